"""Writes through a wild pointer in the 500th of a thousand launches (kernel compiled at run time). Ends with an error."""
import torch

source = 'extern "C" __global__ void poke(float* p, long long offset) { p[offset + threadIdx.x] = 1; }'
poke = torch.cuda._compile_kernel(source, "poke")
x = torch.zeros(256, device="cuda")
for i in range(1000):
    y = x + i
    if i == 500:
        poke((1,), (32,), (y, 1 << 40))  # the culprit
torch.cuda.synchronize()
