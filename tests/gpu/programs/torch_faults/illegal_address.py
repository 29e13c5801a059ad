"""Writes 4 TiB beyond a tensor in the 500th of a thousand launches (kernel compiled at run time). Ends with an error."""
import torch

# torch hands Python's integers over as 32 bits.
source = 'extern "C" __global__ void poke(float* p, int gib) { p[((long long)gib << 28) + threadIdx.x] = 1; }'
poke = torch.cuda._compile_kernel(source, "poke")
x = torch.zeros(256, device="cuda")
for i in range(1000):
    y = x + i
    if i == 500:
        poke((1, 1, 1), (32, 1, 1), (y, 4096))  # the culprit
torch.cuda.synchronize()
