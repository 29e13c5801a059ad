"""Jacobi's method with Numba in one launch, whose blocks wait for each other between the steps,
against NumPy. `race`: the result is copied on another stream, which does not wait for the launch."""

import sys

import numpy as np
from numba import cuda

N, STEPS = 32, 20
waits = "race" not in sys.argv[1:]


@cuda.jit
def steps(old, new, count):
    grid = cuda.cg.this_grid()
    x, y = cuda.grid(2)
    for _ in range(count):
        if 0 < x < old.shape[0] - 1 and 0 < y < old.shape[1] - 1:
            new[x, y] = 0.25 * (old[x, y - 1] + old[x, y + 1] + old[x - 1, y] + old[x + 1, y])
        grid.sync()
        old, new = new, old


start = np.zeros((N, N))
start[0] = 1.0
old, new = cuda.to_device(start), cuda.to_device(start)
result = cuda.pinned_array((N, N))
computes, copies = cuda.stream(), cuda.stream()
cuda.synchronize()
steps[(N // 16, N // 16), (16, 16), computes](old, new, STEPS)
if waits:
    done = cuda.event()
    done.record(computes)
    done.wait(copies)
old.copy_to_host(result, stream=copies)
cuda.synchronize()
wanted, other = start.copy(), start.copy()
for _ in range(STEPS):
    other[1:-1, 1:-1] = 0.25 * (wanted[1:-1, :-2] + wanted[1:-1, 2:] + wanted[:-2, 1:-1] + wanted[2:, 1:-1])
    wanted, other = other, wanted
furthest = float(np.abs(result - wanted).max())
print(f"furthest apart: {furthest:.2e}")
sys.exit(0 if furthest < 1e-12 or not waits else 1)
