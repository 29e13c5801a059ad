"""Jacobi's method on the Laplace equation with CuPy, against NumPy. `race`: the residual is computed
on another stream that does not wait for the last step."""

import sys

import cupy as cp
import numpy as np

N, STEPS = 32, 60
waits = "race" not in sys.argv[1:]

step = cp.RawKernel(
    r"""
extern "C" __global__ void step(const float *from, float *to, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1) return;
    int at = y * n + x;
    to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
}
""",
    "step",
)
squared = cp.ElementwiseKernel("float32 a, float32 b", "float32 d", "d = (a - b) * (a - b)", "squared_difference")


def reference(start):
    old, new = start.copy(), start.copy()
    for _ in range(STEPS):
        new[1:-1, 1:-1] = 0.25 * (old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1])
        old, new = new, old
    return old, float(((old - new) ** 2).sum())


start = np.zeros((N, N), np.float32)
start[0] = 1.0
work, watch = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
with work:
    old, new = cp.asarray(start), cp.asarray(start)
    for _ in range(STEPS):
        step((N // 16, N // 16), (16, 16), (old, new, N))
        old, new = new, old
if waits:
    watch.wait_event(work.record())
with watch:
    residual = float(squared(old, new).sum())
work.synchronize()
wanted, wanted_residual = reference(start)
furthest = float(np.abs(old.get() - wanted).max())
print(f"furthest apart: {furthest:.2e}, residual {residual:.6e}, by NumPy {wanted_residual:.6e}")
right = furthest < 1e-5 and abs(residual - wanted_residual) < 1e-4 * wanted_residual
sys.exit(0 if right or not waits else 1)
