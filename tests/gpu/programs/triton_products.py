"""Triton's product of a matrix by a transposed one, through tensor descriptors, in three forms."""

import triton
import triton.language as tl


@triton.jit
def tile(a, b, c, i, j, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i * BM, k]), b.load([j * BN, k]).T, total)
    c.store([i * BM, j * BN], total.to(tl.bfloat16))


@triton.jit
def tiles_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile(a, b, c, tl.program_id(0), tl.program_id(1), K, BM, BN, BK)


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    for at in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        tile(a, b, c, at // across, at % across, K, BM, BN, BK)


@triton.jit
def device_kernel(x, w, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(w, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    across = tl.cdiv(N, BN)
    for at in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        tile(a, b, c, at // across, at % across, K, BM, BN, BK)
