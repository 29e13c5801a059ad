# expect: clean
# racy: race RAW
# needs: numba
# why: two kernels in two streams of Numba; an event stands between them, unless "racy" is the argument.
import sys
import warnings

import numpy as np
from numba import cuda

warnings.filterwarnings("ignore")


@cuda.jit
def fill(x, value):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = value + i


@cuda.jit
def double(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]


n = 1 << 12
x = cuda.to_device(np.zeros(n, np.float32))
y = cuda.to_device(np.zeros(n, np.float32))
a, b = cuda.stream(), cuda.stream()
# Compiled before it matters: work is held back for a program that goes on, not for a compiler.
fill[n // 128, 128](x, 7.0)
double[n // 128, 128](x, y)
cuda.synchronize()
fill[n // 128, 128, a](x, 1.0)
if sys.argv[1:] != ["racy"]:
    event = cuda.event()
    event.record(a)
    event.wait(b)
double[n // 128, 128, b](x, y)
cuda.synchronize()
print("right" if (y.copy_to_host() == 2 * (1 + np.arange(n))).all() else "wrong")
