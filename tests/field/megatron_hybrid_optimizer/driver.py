"""One step of an optimizer that keeps its states on the CPU, then a forward pass that reads the new weights."""
import torch
import torch_alone  # before Megatron
from megatron.core.optimizer.cpu_offloading.hybrid_optimizer import HybridDeviceOptimizer

weight = torch.nn.Parameter(torch.zeros(1 << 20, device="cuda"))
weight.grad = torch.ones_like(weight)
optimizer = HybridDeviceOptimizer(
    [weight],
    offload_fraction=1.0,
    cpu_optimizer_cls=torch.optim.SGD,
    gpu_optimizer_cls=torch.optim.SGD,
    overlap_cpu_optimizer_d2h_h2d=True,
    lr=0.1,
)
optimizer.step()
with torch.no_grad():
    result = weight * 2
torch.cuda.synchronize()
