"""instructions.py CODE IN OUT: launches the kernels k0, k1 and so on of CODE, one for each list of IN, and writes their results to OUT.

Owns the launches by the driver's API. IN and OUT are JSON: of each kernel the values of each thread, and a number for each.
"""
import ctypes
import json
import struct
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *words):
    code = getattr(cuda, name)(*words)
    if code:
        sys.exit(f"{name} gives {code}")


def allocate(size):
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    return memory


def launch(module, name, threads):
    """What each thread of a kernel leaves in the first 8 of its 32 bytes."""
    kernel = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
    read = b"".join(struct.pack("<QQQ", *(list(values) + [0, 0])[:3]) for values in threads)
    size = 32 * len(threads)
    call("cuMemcpyHtoD_v2", source, read, ctypes.c_size_t(len(read)))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    words = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(word), ctypes.c_void_p) for word in (source, target)))
    call("cuLaunchKernel", kernel, *map(ctypes.c_uint, [1, 1, 1, len(threads), 1, 1, 0]), None, words, None)
    call("cuCtxSynchronize")
    made = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", made, target, ctypes.c_size_t(size))
    return [row[0] for row in struct.iter_unpack("<QQQQ", made.raw)]


call("cuInit", 0)
context, module = ctypes.c_void_p(), ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
with open(sys.argv[1], "rb") as file:
    call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(file.read()))
source, target = allocate(24 << 10), allocate(32 << 10)
with open(sys.argv[2]) as file:
    asked = json.load(file)
results = [launch(module, f"k{at}", threads) for at, threads in enumerate(asked)]
with open(sys.argv[3], "w") as file:
    json.dump(results, file)
