"""Blocks of memory pools that hide them from CUDA: CuPy's and RMM's.

StreamSan sees what such a pool gets from CUDA, and finds races inside that by bytes. This file adds
whose bytes they are: each block has a stack and a life of its own in reports, and one that is freed
while another stream may still use it is a finding. It uses hooks that the libraries offer for this,
and costs a call into Python for each block that is handed out or taken back.

Not seen: blocks that other threads get from CuPy (its hooks belong to a thread), and RMM resources
that are used past the current one.
"""

import ctypes

#: STREAMSAN_ANY_STREAM of streamsan.h.
ANY_STREAM = ctypes.c_void_p(-1).value


def _shim():
    """The preloaded library's two functions, or None."""
    try:
        library = ctypes.CDLL(None)
        allocated, freed = library.streamsan_allocated, library.streamsan_freed
    except AttributeError:
        return None
    allocated.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    freed.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    allocated.restype = freed.restype = None
    return allocated, freed


def annotate(library):
    """See `streamsan.annotate`."""
    name = getattr(library, "__name__", "")
    if name not in ("cupy", "rmm"):
        raise ValueError(f"streamsan.annotate knows the modules cupy and rmm, not {library!r}")
    shim = _shim()
    if shim is None:
        return False
    return (_cupy if name == "cupy" else _rmm)(library, *shim)


def _cupy(cupy, allocated, freed):
    class Blocks(cupy.cuda.MemoryHook):
        """CuPy gives a block back to the stream it was handed out to."""

        name = "StreamSan"

        def malloc_postprocess(self, device_id, size, mem_size, mem_ptr, pmem_id):
            allocated(b"CuPy", mem_ptr, mem_size, cupy.cuda.get_current_stream().ptr)

        def free_preprocess(self, device_id, mem_size, mem_ptr, pmem_id):
            freed(mem_ptr, ANY_STREAM)

    try:
        Blocks().__enter__()
    except KeyError:
        pass  # This thread has the hook already.
    return True


def _rmm(rmm, allocated, freed):
    upstream = rmm.mr.get_current_device_resource()

    def allocate(size, stream):
        block = upstream.allocate(size, stream)
        allocated(b"RMM", block, size, _handle(stream))
        return block

    def deallocate(block, size, stream):
        freed(block, _handle(stream))
        upstream.deallocate(block, size, stream)

    rmm.mr.set_current_device_resource(rmm.mr.CallbackMemoryResource(allocate, deallocate))
    return True


def _handle(stream):
    """The number of an RMM stream: its CUDA protocol says it."""
    return stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else ANY_STREAM
