"""The race of racy.c out of Python: the driver through ctypes. Ends with 3."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(answer):
    assert answer == 0, answer


def make(function, *arguments):
    handle = ctypes.c_void_p()
    check(function(ctypes.byref(handle), *arguments))
    return handle


def fill(stream, value):
    check(cuda.cuMemsetD8Async(memory, ctypes.c_ubyte(value), ctypes.c_size_t(4096), stream))


check(cuda.cuInit(0))
check(cuda.cuCtxSetCurrent(make(cuda.cuDevicePrimaryCtxRetain, 0)))
first = make(cuda.cuStreamCreate, 1)
second = make(cuda.cuStreamCreate, 1)
memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
fill(first, 1)
for _ in range(3):
    fill(second, 2)
check(cuda.cuCtxSynchronize())
print("python", len(sys.argv))
sys.exit(3)
