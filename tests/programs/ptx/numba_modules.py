"""Writes the PTX that Numba's CUDA target makes of kernels of many kinds; needs no GPU.  numba_modules.py FOLDER [CAPABILITY...]"""
import pathlib
import sys
import warnings

import numba
import numpy as np
from numba import cuda, float32, float64, int32, int64, types, uint8

warnings.filterwarnings("ignore")
KERNELS = []


def kernel(*signature):
    def add(function):
        KERNELS.append((function, signature))
        return function
    return add


F, D, I, L, F2, I8 = float32[::1], float64[:], int32[::1], int64[:], float32[:, ::1], uint8[:, :, ::1]


@kernel(F, float32)
def fill(x, value):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = value + i


@kernel(D, D, D)
def stride(x, y, o):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        o[i] = x[i] / y[i] + x[-1]


@kernel(F2, F2, F2)
def matmul(a, b, c):
    m, n = cuda.grid(2)
    if m < c.shape[0] and n < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[m, k] * b[k, n]
        c[m, n] = total


@kernel(F2, F2, F2)
def tiled(a, b, c):
    x = cuda.shared.array((16, 16), float32)
    y = cuda.shared.array((16, 16), float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    m, n = cuda.grid(2)
    total = float32(0)
    for t in range((a.shape[1] + 15) // 16):
        x[i, j] = a[m, t * 16 + j] if m < a.shape[0] and t * 16 + j < a.shape[1] else 0
        y[i, j] = b[t * 16 + i, n] if t * 16 + i < b.shape[0] and n < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(16):
            total += x[i, k] * y[k, j]
        cuda.syncthreads()
    if m < c.shape[0] and n < c.shape[1]:
        c[m, n] = total


@kernel(F, F)
def block_sum(x, o):
    part = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    s = cuda.blockDim.x // 2
    while s > 0:
        cuda.syncthreads()
        if t < s:
            part[t] += part[t + s]
        s //= 2
    if t == 0:
        cuda.atomic.add(o, 0, part[0])


@kernel(I, L, F, D)
def atomics(i, l, f, d):
    t = cuda.grid(1)
    cuda.atomic.add(i, t, 1)
    cuda.atomic.max(l, t, t)
    cuda.atomic.min(f, t, 0.5)
    cuda.atomic.add(d, t % 7, 1.0)
    cuda.atomic.compare_and_swap(i[t:], 0, 1)
    cuda.atomic.exch(i, 3, t)
    cuda.atomic.or_(i, 4, t)
    cuda.atomic.inc(i, 5, 100)


@kernel(F, F, I)
def warps(x, o, m):
    t = cuda.grid(1)
    v = x[t]
    v += cuda.shfl_xor_sync(0xffffffff, v, 1)
    v += cuda.shfl_down_sync(0xffffffff, v, 4)
    o[t] = v
    m[t] = cuda.ballot_sync(0xffffffff, v > 0) + cuda.popc(t) + cuda.clz(t) + cuda.brev(t) + cuda.laneid


@kernel(I8, I8)
def stencil(x, o):
    i, j, k = cuda.grid(3)
    if 0 < i < x.shape[0] - 1 and j < x.shape[1] and k < x.shape[2]:
        o[i, j, k] = (x[i - 1, j, k] + x[i, j, k] + x[i + 1, j, k]) // 3


@kernel(F, I, F)
def gather(x, i, o):
    t = cuda.grid(1)
    if t < o.size:
        o[t] = x[i[t]]


TABLE = np.arange(64, dtype=np.float32)


@kernel(I, F)
def constants(i, o):
    table = cuda.const.array_like(TABLE)
    own = cuda.local.array(8, float32)
    t = cuda.grid(1)
    for k in range(8):
        own[k] = table[(t + k) % 64]
    o[t] = own[i[t] % 8]


@kernel(types.complex64[:], types.complex64[:])
def complexes(x, o):
    t = cuda.grid(1)
    o[t] = x[t] * x[t] + 1j


record = numba.from_dtype(np.dtype([("a", np.float32), ("b", np.int64), ("c", np.int16)]))


@kernel(record[:], F)
def records(r, o):
    t = cuda.grid(1)
    r[t].b = t
    o[t] = r[t].a + r[t].c


@kernel(types.UniTuple(F, 3), F)
def tuples(xs, o):
    t = cuda.grid(1)
    for x in xs:
        o[t] += x[t]


@kernel(F, F)
def together(x, o):
    g = cuda.cg.this_grid()
    t = cuda.grid(1)
    o[t] = x[t] * 2
    g.sync()
    x[t] = o[t ^ 1]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    made = failed = 0
    for capability in map(int, sys.argv[2:] or ("75", "90", "100")):
        for function, signature in KERNELS:
            try:
                ptx, _ = cuda.compile_ptx(function, signature, cc=(capability // 10, capability % 10), lineinfo=True)
            except Exception as error:
                failed += 1
                print(f"{function.__name__}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
                continue
            (folder / f"{function.__name__}-{capability}.ptx").write_text(ptx)
            made += 1
    print(f"Numba {numba.__version__}: {made} modules, {failed} that it could not make")


main()
