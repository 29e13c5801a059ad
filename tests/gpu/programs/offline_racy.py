"""A race inside NVTX ranges, and a large block given back: what `offline` records and reads back."""
import torch
a = torch.rand(1 << 20, device="cuda")
layer = torch.nn.Linear(512, 512).cuda()
side = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.nvtx.range("step"):
    with torch.cuda.nvtx.range("forward"):
        b = a * 2
        layer(torch.rand(64, 512, device="cuda"))
        with torch.cuda.stream(side):
            c = b + 1
torch.cuda.synchronize()
big = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
del big
print("allocated", torch.cuda.memory_allocated(), "peak", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.max_memory_reserved())
