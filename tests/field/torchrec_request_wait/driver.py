"""Waits for the result of a collective, uses it, and lets go of it. An operation of our own stands in for the
collective: it is done, and its result was allocated on the stream of the communication."""
import stand_in

stand_in.packages("fbgemm_gpu", "torchmetrics", "iopath", "pyre_extensions", "tensordict")
import torch
import torch_alone  # before TorchRec
from torchrec.distributed.comm_ops import Request

n = 1 << 20


class Done(torch.autograd.Function):
    """As the functions of TorchRec's collectives: gives the request's result."""

    @staticmethod
    def forward(ctx, group, request, dummy):
        return request.tensor


communication = torch.cuda.Stream()
for _ in range(2):
    request = Request(None, torch.device("cuda"))
    request.wait_function = Done
    with torch.cuda.stream(communication):
        request.tensor = torch.ones(n, device="cuda")
    torch.cuda.current_stream().wait_stream(communication)
    embeddings = request.wait()
    result = embeddings * 2
    del embeddings, request
torch.cuda.synchronize()
