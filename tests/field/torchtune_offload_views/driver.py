"""A layer whose backward hands on a view of what it saved, under torchtune's offloading of activations."""
import importlib.util
import logging
import os
import sys
import types

import autograd_worker
import torch
import torch_alone  # before torchtune, which imports torchao

# torchtune's own file, without the package around it, which wants data sets and tokenisers. Of two
# modules that it imports it uses these names here, for a class of layers and for a logger.
sys.modules["torchtune.modules"] = types.SimpleNamespace(TiedLinear=type("TiedLinear", (), {}))
sys.modules["torchtune.utils"] = types.SimpleNamespace(get_logger=logging.getLogger)
package = os.path.dirname(importlib.util.find_spec("torchtune").origin)
spec = importlib.util.spec_from_file_location("offloading", f"{package}/training/_activation_offloading.py")
offloading = importlib.util.module_from_spec(spec)
spec.loader.exec_module(offloading)

n = 1 << 20


class Saves(torch.autograd.Function):
    """Its gradient is a view of the tensor that it saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return saved.view_as(saved)


class Uses(torch.autograd.Function):
    """Reads the gradient that comes to it, and what it saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return grad * 2 if saved is not None else None


x = torch.ones(n, device="cuda", requires_grad=True)
with offloading.OffloadActivations(use_streams=True):
    y = x * 1
    for layer in [Uses] * 3 + [Saves] + [Uses] * 7:
        y = layer.apply(y)
    y.backward(torch.ones_like(y))
torch.cuda.synchronize()
autograd_worker.settle()
