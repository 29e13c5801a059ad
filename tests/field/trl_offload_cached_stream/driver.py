"""A forward pass on a stream of its own, with TRL's offloading of activations made before."""
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


class Scale(torch.autograd.Function):
    """Saves its result, and reads it in its backward."""

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return grad * saved


x = torch.ones(n, device="cuda", requires_grad=True)
offload = offloading.OffloadActivations(use_streams=True)
torch.cuda.synchronize()
results = [x]
with torch.cuda.stream(torch.cuda.Stream()), offload:
    for _ in range(3):
        results.append(Scale.apply(results[-1]))
torch.cuda.synchronize()
