"""Clean: CuPy's elementwise, reduction, raw and fused kernels, matrix products, FFT, sort, scatter, pinned copies and its memory pool, on
streams that wait for each other by events. Prints sums."""
import cupy as cp
import numpy as np

saxpy = cp.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "saxpy")
norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
raw = cp.RawKernel('extern "C" __global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }', "twice")


@cp.fuse()
def fused(x, y):
    return cp.tanh(x) * y + 1


n = 1 << 14
x, y = cp.linspace(0, 1, n, dtype=cp.float32), cp.ones(n, dtype=cp.float32)
left, right = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
filled, used = cp.cuda.Event(disable_timing=True), cp.cuda.Event(disable_timing=True)
pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(n * 4), np.float32, n)
pinned[:] = np.arange(n) % 7
cp.cuda.Device().synchronize()
results = []
for step in range(5):
    with left:
        left.wait_event(used)
        up = cp.empty(n, cp.float32)
        up.set(pinned)
        z = saxpy(np.float32(0.5), up, y)
        raw((n // 256,), (256,), (z, np.int32(n)))
        filled.record(left)
    with right:
        right.wait_event(filled)
        total = norm(fused(z, x))
        spectrum = cp.abs(cp.fft.rfft(z)).sum()
        square = z[: 64 * 64].reshape(64, 64) @ x[: 64 * 64].reshape(64, 64)
        counts = cp.bincount(cp.sort(z).astype(cp.int32) % 16, minlength=16)
        cp.add.at(counts, cp.arange(16) % 4, 1)
        used.record(right)
    right.synchronize()
    left.synchronize()
    results.append(float(total) + float(spectrum) + float(square.sum()) + int(counts.sum()))
    del up, z, total, spectrum, square, counts
print(f"sum {sum(results):.1f}", cp.get_default_memory_pool().used_bytes())
