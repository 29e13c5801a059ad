"""Clean: two streams add to the same elements atomically, in types of 16 and 32 bits (16 bits become a loop of load and compare-and-swap)."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(to, value, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(to + at % 64, tl.full((BLOCK,), value, tl.float32).to(to.dtype.element_ty), mask=at < n)


n = 4096
streams = [torch.cuda.Stream() for _ in range(2)]
main = torch.cuda.current_stream()
sums = []
for kind in (torch.float16, torch.bfloat16, torch.float32):
    to = torch.zeros(64, device="cuda", dtype=kind)
    for stream in streams:
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            add[(n // 256,)](to, 1.0, n, BLOCK=256)
    for stream in streams:
        main.wait_stream(stream)
    sums.append(float(to.float().sum()))
torch.cuda.synchronize()
print(sums)
