# expect: clean
# pair: none
# needs: transparency
# why: CuPy elementwise, raw and reduction kernels on its default stream and on one of its own, which is synchronised.
import cupy as cp

square = cp.RawKernel(
    r"""
extern "C" __global__ void square(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
""",
    "square",
)
n = 1 << 16
x = cp.arange(n, dtype=cp.float32) / n
y = cp.zeros(n, dtype=cp.float32)
for _ in range(8):
    square((n // 256,), (256,), (x, y, cp.int32(n)))
    x = cp.sqrt(y) * 0.5 + 0.25
cp.cuda.runtime.deviceSynchronize()
stream = cp.cuda.Stream(non_blocking=True)
with stream:
    z = cp.cumsum(x)
    total = z[-1] + cp.sort(x)[0]
stream.synchronize()
print("total", round(float(total), 2), cp.asnumpy(x[:3]).round(4).tolist())
