"""Launches of kernels that take the addresses of an input and of an output, by the driver's API.

Owns the calls. Ends the process with a line and 1 at the first that fails: the context is gone then.
"""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *words):
    code = getattr(cuda, name)(*words)
    if code:
        sys.exit(f"{name} gives {code}")


def start():
    """Makes the first device's context the thread's."""
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


def loaded(code):
    """A module of machine code, which nothing unloads."""
    module = ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
    return module


def allocated(size):
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    return memory


def made(module, name, grid, block, read, size):
    """The bytes that a kernel leaves in `size` bytes that were zero."""
    kernel, made = ctypes.c_void_p(), ctypes.create_string_buffer(size)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
    source, target = allocated(len(read)), allocated(size)
    call("cuMemcpyHtoD_v2", source, read, ctypes.c_size_t(len(read)))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    words = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(word), ctypes.c_void_p) for word in (source, target)))
    call("cuLaunchKernel", kernel, *map(ctypes.c_uint, [*grid, *block, 0]), None, words, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", made, target, ctypes.c_size_t(size))
    for memory in (source, target):
        call("cuMemFree_v2", memory)
    return made.raw
