"""A layer saves a part of its input that does not begin where the memory begins, under TRL's offloading."""
import autograd_worker
import stand_in

stand_in.packages("transformers")
import importlib.util
import os

import torch
import torch_alone  # before TRL
import transformers

transformers.is_torch_npu_available = lambda: False
# TRL's own file, without the trainers around it.
package = os.path.dirname(importlib.util.find_spec("trl").origin)
spec = importlib.util.spec_from_file_location("offloading", f"{package}/models/activation_offloading.py")
offloading = importlib.util.module_from_spec(spec)
spec.loader.exec_module(offloading)

n = 1 << 20


class Shifted(torch.autograd.Function):
    """Saves its input but for the first element, as a loss with shifted labels does."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x[1:])
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return torch.nn.functional.pad(saved * 2, (1, 0)) * grad


x = torch.ones(n, device="cuda", requires_grad=True)
offload = offloading.OffloadActivations(use_streams=True)
torch.cuda.synchronize()
with offload:
    y = Shifted.apply(x * 2)
    y.backward(torch.ones_like(y))
torch.cuda.synchronize()
autograd_worker.settle()
