"""A checkpointed region, recomputed in the backward pass from what torchtune's offloading brings back."""
import importlib.util
import logging
import os
import sys
import types

import autograd_worker
import torch
import torch_alone  # before torchtune, which imports torchao
from torch.utils.checkpoint import checkpoint

# As in torchtune_offload_views.
sys.modules["torchtune.modules"] = types.SimpleNamespace(TiedLinear=type("TiedLinear", (), {}))
sys.modules["torchtune.utils"] = types.SimpleNamespace(get_logger=logging.getLogger)
package = os.path.dirname(importlib.util.find_spec("torchtune").origin)
spec = importlib.util.spec_from_file_location("offloading", f"{package}/training/_activation_offloading.py")
offloading = importlib.util.module_from_spec(spec)
spec.loader.exec_module(offloading)

n = 1 << 20


class Uses(torch.autograd.Function):
    """Saves its input, and reads it in its backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return grad * saved


def region(x):
    # What is recomputed first is used last.
    return Uses.apply(Uses.apply(Uses.apply(x.view(-1))))


x = torch.ones(n, device="cuda", requires_grad=True)
with offloading.OffloadActivations(use_streams=True):
    y = x * 1
    for _ in range(3):
        y = Uses.apply(y)
    y = checkpoint(region, y, use_reentrant=False)
    for _ in range(7):
        y = Uses.apply(y)
    y.backward(torch.ones_like(y))
torch.cuda.synchronize()
autograd_worker.settle()
