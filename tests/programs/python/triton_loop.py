# expect: clean
# pair: none
# needs: transparency
# why: Triton compiles a kernel and launches it in a loop on one stream.
import torch
import triton
import triton.language as tl


@triton.jit
def saxpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


n = 100_003
x = torch.arange(n, device="cuda", dtype=torch.float32)
y = torch.ones(n, device="cuda")
out = torch.empty_like(x)
for step in range(20):
    saxpy[(triton.cdiv(n, 1024),)](x, y, out, 0.5, n, BLOCK=1024)
    y.copy_(out)
    y.remainder_(1000.0)
torch.cuda.synchronize()
print("sum", f"{y.double().sum().item():.3f}", "last", y[-1].item())
