"""PyTorch without its compiler and its distributed tensors, for drivers whose project mentions them and
that use neither.

Their import, with SymPy, takes twice as long as PyTorch's own. Here they are stand-ins, and a function
that is handed to the compiler comes back as it was. Import this before the project."""
import stand_in
import torch


def same(function=None, *args, **options):
    """As a decorator, with options or without."""
    return same if function is None else function


stand_in.packages(
    "functorch.compile", "torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor",
    "torch.distributed._tensor", "torch.distributed.tensor",
)
import torch._dynamo.compiled_autograd
import torch._dynamo.external_utils
import torch._inductor.decomposition

torch.compile = same
for name in ("allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "mark_static_address"):
    setattr(torch._dynamo, name, same)
for module in (torch._dynamo, torch._dynamo.external_utils):
    module.is_compiling = lambda: False
torch._inductor.decomposition.register_decomposition = lambda *operators: same
