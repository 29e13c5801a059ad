"""A tensordict on the CPU is made of tensors of the GPU, and read."""
import multiprocessing.reduction

import torch
import torch.multiprocessing.reductions

# These releases look for it where PyTorch had it then.
torch.multiprocessing.reductions.ForkingPickler = multiprocessing.reduction.ForkingPickler
from tensordict import TensorDict

n = 1 << 12
data = {"a": torch.ones(n, device="cuda")}
torch.cuda.synchronize()
result = TensorDict(data, batch_size=n, device="cpu")
total = result["a"].sum()
torch.cuda.synchronize()
