"""Jacobi's method on the Laplace equation with Numba, against NumPy. `race`: steps alternate between
two streams that do not wait for each other."""

import sys

import numpy as np
from numba import cuda

N, STEPS = 32, 20
waits = "race" not in sys.argv[1:]


@cuda.jit
def step(old, new):
    x, y = cuda.grid(2)
    if 0 < x < old.shape[0] - 1 and 0 < y < old.shape[1] - 1:
        new[x, y] = 0.25 * (old[x, y - 1] + old[x, y + 1] + old[x - 1, y] + old[x + 1, y])


start = np.zeros((N, N))
start[0] = 1.0
old, new = cuda.to_device(start), cuda.to_device(start)
streams = [cuda.stream(), cuda.stream()]
for number in range(STEPS):
    stream = streams[number % 2]
    step[(N // 16, N // 16), (16, 16), stream](old, new)
    old, new = new, old
    if waits:
        done = cuda.event()
        done.record(stream)
        done.wait(streams[(number + 1) % 2])
cuda.synchronize()
wanted, other = start.copy(), start.copy()
for _ in range(STEPS):
    other[1:-1, 1:-1] = 0.25 * (wanted[1:-1, :-2] + wanted[1:-1, 2:] + wanted[:-2, 1:-1] + wanted[2:, 1:-1])
    wanted, other = other, wanted
furthest = float(np.abs(old.copy_to_host() - wanted).max())
print(f"furthest apart: {furthest:.2e}")
sys.exit(0 if furthest < 1e-12 or not waits else 1)
