"""Clean: Triton kernels (softmax, matrix product with autotuning, layer norm, atomic histogram) on three streams that wait for each other
by events. Prints sums."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * width + at, mask=at < width, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * width + at, e / tl.sum(e, 0), mask=at < width)


@triton.jit
def layer_norm(x, y, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * width + at, mask=at < width, other=0.0)
    mean = tl.sum(v, 0) / width
    d = tl.where(at < width, v - mean, 0.0)
    tl.store(y + row * width + at, d * tl.rsqrt(tl.sum(d * d, 0) / width + 1e-5), mask=at < width)


@triton.autotune([triton.Config({"B": 32}, num_warps=4), triton.Config({"B": 64}, num_warps=4)], key=["n"])
@triton.jit
def product(a, b, c, n, B: tl.constexpr):
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, n, B):
        at = k + tl.arange(0, B)
        total += tl.dot(tl.load(a + i[:, None] * n + at[None, :]), tl.load(b + at[:, None] * n + j[None, :]), input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total)


@triton.jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(bins + (v * 15.99).to(tl.int32), 1, mask=at < n)


torch.manual_seed(0)
n = 256
a, b = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
soft, norm, c = torch.empty_like(a), torch.empty_like(a), torch.empty_like(a)
bins = torch.zeros(16, dtype=torch.int32, device="cuda")
main, left, right = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
grid = lambda meta: (n // meta["B"], n // meta["B"])
for _ in range(6):
    left.wait_stream(main)
    right.wait_stream(main)
    with torch.cuda.stream(left):
        softmax[(n,)](a, soft, n, BLOCK=256)
        histogram[(triton.cdiv(n * n, 1024),)](soft, bins, n * n, BLOCK=1024)
    with torch.cuda.stream(right):
        layer_norm[(n,)](b, norm, n, BLOCK=256)
        histogram[(triton.cdiv(n * n, 1024),)](a, bins, n * n, BLOCK=1024)
    main.wait_stream(left)
    main.wait_stream(right)
    product[grid](soft, norm, c, n)
    a.copy_(c.abs().clamp_(0, 1))
torch.cuda.synchronize()
print(f"bins {bins.sum().item()} sum {c.sum().item():.2f}")
