"""An ordered kernel (or, with `racy`, an unordered one) under PyTorch's profiler, which counts kernels."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile

a = torch.rand(1 << 20, device="cuda")
side = torch.cuda.Stream()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    b = a * 2
    if "racy" not in sys.argv:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        c = b + 1
    torch.cuda.synchronize()
kernels = [e for e in seen.events() if "elementwise" in e.name]
print("kernels seen by the profiler:", len(kernels))
