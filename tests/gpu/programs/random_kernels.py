"""random_kernels.py KERNELS CODE MADE SEED...: launches kernels, and leaves what they made in MADE/SEED.device.

Owns one launch by the driver's API: KERNELS has text and input of each seed, CODE its machine code. Compares nothing. Ends with 1 at
the first call that fails: the context is gone then.
"""
import ctypes
import pathlib
import re
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *words):
    code = getattr(cuda, name)(*words)
    if code:
        sys.exit(f"{name} gives {code}")


def launch(text, code, read, size):
    """The bytes that kernel `k` leaves in `size` bytes that were zero."""
    grid, block = ([int(word) for word in re.search(rf"{name} (\d+ \d+ \d+)", text)[1].split()] for name in ("grid", "block"))
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"k")
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(len(read)))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(size))
    call("cuMemcpyHtoD_v2", source, read, ctypes.c_size_t(len(read)))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    values = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in (source, target)))
    call("cuLaunchKernel", kernel, *map(ctypes.c_uint, [*grid, *block, 0]), None, values, None)
    call("cuCtxSynchronize")
    made = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", made, target, ctypes.c_size_t(size))
    for memory in (source, target):
        call("cuMemFree_v2", memory)
    call("cuModuleUnload", module)
    return made.raw


kernels, codes, to = map(pathlib.Path, sys.argv[1:4])
call("cuInit", 0)
context = ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
for seed in sys.argv[4:]:
    kept = lambda kind: kernels / f"native-fuzz-{seed}.{kind}"
    print(seed, flush=True)
    size = kept("output").stat().st_size
    made = launch(kept("ptx").read_text(), (codes / f"{seed}.cubin").read_bytes(), kept("input").read_bytes(), size)
    (to / f"{seed}.device").write_bytes(made)
