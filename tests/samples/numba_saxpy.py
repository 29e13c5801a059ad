"""A Numba CUDA program on the simulated GPU: the driver API from Python, PTX made at run time.

    python3 -m venv env && env/bin/pip install numba-cuda nvidia-cuda-nvrtc
    CUDA_HOME=FOLDER streamsan --sim env/bin/python tests/samples/numba_saxpy.py        # prints: sum True

FOLDER holds libnvvm, libdevice and libnvrtc as a toolkit does (nvvm/lib64, nvvm/libdevice, lib64). nvJitLink must not be
installed in `env`: Numba then links with the driver, which gets PTX; nvJitLink makes machine code, which the simulator refuses by name.
"""
import numpy as np
from numba import cuda

@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]

@cuda.jit
def total(x, out):
    s = cuda.shared.array(128, dtype=np.int32)
    i = cuda.grid(1)
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    step = 64
    while step:
        if cuda.threadIdx.x < step:
            s[cuda.threadIdx.x] += s[cuda.threadIdx.x + step]
        cuda.syncthreads()
        step //= 2
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, s[0])

n = 1 << 14
x = cuda.to_device(np.arange(n, dtype=np.int32))
y = cuda.to_device(np.ones(n, dtype=np.int32))
out = cuda.to_device(np.zeros(1, dtype=np.int32))
stream = cuda.stream()
saxpy[n // 128, 128, stream](3, x, y)
total[n // 128, 128, stream](y, out)
stream.synchronize()
want = (3 * np.arange(n, dtype=np.int64) + 1).sum() & 0xffffffff
print("sum", int(out.copy_to_host()[0]) & 0xffffffff == want)
