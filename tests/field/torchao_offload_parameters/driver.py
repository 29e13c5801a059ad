"""Two steps of an optimizer that keeps its state on the CPU, by torchao."""
import autograd_worker
import stand_in

stand_in.rest_of("torchao")
import torch
import torchao.utils

torchao.utils.get_available_devices = lambda: ["cpu", "cuda"]
from torchao.prototype.low_bit_optim.cpu_offload import CPUOffloadOptimizer



class Descent:
    """An optimizer. PyTorch's own load its compiler at their first step, which takes longer than all of this."""

    def __init__(self, groups, lr):
        self.param_groups, self.lr = groups, lr

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["params"].sub_(group["params"].grad, alpha=self.lr)


n = 1 << 20
weight = torch.nn.Parameter(torch.ones(n, device="cuda"))
optimizer = CPUOffloadOptimizer([weight], Descent, lr=0.1)
torch.cuda.synchronize()
for _ in range(2):
    (weight * 2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
autograd_worker.settle()
