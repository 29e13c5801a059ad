"""A block that is filled on a stream and sent by an engine that CUDA does not see; with `waits` the host waits in between.
With `engine` a second engine writes it meanwhile."""
import ctypes
import sys

import streamsan

cuda = ctypes.CDLL("libcuda.so.1")


class Block:
    """Memory as libraries for arrays show it."""

    def __init__(self, address, elements):
        self.__cuda_array_interface__ = {"shape": (elements,), "typestr": "<f4", "data": (address, False), "strides": None, "version": 3}


def check(answer):
    assert answer == 0, answer


def make(function, *arguments):
    handle = ctypes.c_void_p()
    check(function(ctypes.byref(handle), *arguments))
    return handle


check(cuda.cuInit(0))
check(cuda.cuCtxSetCurrent(make(cuda.cuDevicePrimaryCtxRetain, 0)))
stream = make(cuda.cuStreamCreate, 1)
memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
check(cuda.cuMemsetD8Async(memory, ctypes.c_ubyte(1), ctypes.c_size_t(4096), stream))
if "waits" in sys.argv:
    check(cuda.cuStreamSynchronize(stream))
there = streamsan.external_begin("read", Block(memory.value, 1024), key=7)
if "engine" in sys.argv:
    streamsan.external_begin("write", memory.value, 16, key=8)
streamsan.external_end(7)
streamsan.external_end(8)
for wrong in (("see", memory.value, 16), ("read", memory.value)):
    try:
        streamsan.external_begin(*wrong)
        print("taken:", wrong)
    except ValueError as error:
        print(error)
check(cuda.cuCtxSynchronize())
print("sent", there)
