"""The kernel of `triton_tma` in `workloads.py`: Triton reads a kernel's source from a file of its own."""
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of the product of a and the transpose of b, by tensor maps."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([m, k]), b.load([n, k]).T, total)
    c.store([m, n], total.to(tl.float16))
