"""The end of PyTorch's autograd worker, for drivers with a backward in Python."""
import torch


def settle():
    """Returns once the worker has let go of the last graph's nodes.

    `backward` returns before that. A node in Python needs the interpreter to be freed; a thread that
    asks for an interpreter that is ending is ended itself, and takes the process with it (SIGABRT).
    The worker begins a second graph after it has freed the first. Nothing in the second is Python's.
    """
    torch.ones(1, device="cuda", requires_grad=True).sum().backward()
    torch.cuda.synchronize()
