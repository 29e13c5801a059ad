"""StreamSan from inside Python: is it active, how to start it, start it now; which memory CuPy and RMM hand out; a pytest plugin.

    import streamsan
    streamsan.enable()          # at the top of the script, before CUDA is used
    streamsan.annotate(cupy)    # blocks of CuPy's (or RMM's) pool get stacks of their own in reports

StreamSan watches a process from its first CUDA call on, through a library that the loader puts in front of the driver. That cannot
be done later, so `enable()` returns at once when the process runs under StreamSan, and otherwise says how to start it. With
`enable(restart=True)`, or with STREAMSAN=1 in the environment, the script is started again under StreamSan instead.

    python -m streamsan train.py --epochs 1          # the same as: streamsan python train.py --epochs 1
    python -m streamsan --sim train.py --epochs 1    # options of streamsan come before the script
"""

import os
import shutil
import stat
import sys

__version__ = "0.1.0"
__all__ = ["annotate", "binary", "enable", "external_begin", "external_end", "is_active", "save", "NotActive"]

# For pytest, which takes this package for a plugin: the wheel names it as one, and `-p streamsan` does. By its full name, which
# `-p streamsan.pytest_plugin` uses as well, the module is registered once.
pytest_plugins = ["streamsan.pytest_plugin"]


class NotActive(RuntimeError):
    """The process does not run under StreamSan."""


def is_active():
    """Whether StreamSan's library is in this process and not switched off."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = any("libstreamsan.so" in line or "streamsan-soname" in line for line in maps)
    except OSError:
        loaded = "libstreamsan.so" in os.environ.get("LD_PRELOAD", "")
    return loaded and not _is_off(os.environ.get("STREAMSAN_OPTIONS", ""))


def _is_off(text):
    """Whether a value of STREAMSAN_OPTIONS switches StreamSan off: the last word of the key ``off`` holds."""
    off = False
    for pair in text.split(":"):
        key, equals, value = pair.strip().partition("=")
        key = key.strip().replace("_", "-")
        key = key[2:] if key.startswith("--") else key
        if key == "off" and (not equals or value in ("1", "yes", "true", "on")):
            off = True
        elif (key == "off" and value in ("0", "no", "false", "off")) or (key == "no-off" and not equals):
            off = False
    return off


def binary():
    """The path of the ``streamsan`` program: in the folder that STREAMSAN_BIN names, of this package, in PATH, or built in the source
    folder that this file lies in; None where there is none."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.environ.get("PATH", os.defpath)
    for folder in (os.environ.get("STREAMSAN_BIN"), os.path.join(here, "bin"), path, os.path.join(here, "..", "..", "target", "release")):
        found = shutil.which("streamsan", path=folder) if folder else None
        if found:
            return os.path.abspath(found)
    return None


def enable(restart=False):
    """Returns True when StreamSan is active. Otherwise raises NotActive with the command to use; with `restart` (or STREAMSAN=1)
    starts the script again under StreamSan, which does not return."""
    if is_active():
        return True
    program = binary()
    command = [program or "streamsan"] + list(getattr(sys, "orig_argv", [sys.executable] + sys.argv))
    wanted = restart or os.environ.get("STREAMSAN") == "1"
    consumed = _consumed_source()
    if wanted and program and not consumed and not os.environ.get("STREAMSAN_RESTARTED"):
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(program, command, {**os.environ, "STREAMSAN_RESTARTED": "1"})
    torch = sys.modules.get("torch")
    in_use = torch is not None and getattr(torch, "cuda", None) and torch.cuda.is_initialized()
    why = "CUDA is in use already" if in_use else "it must be loaded before CUDA is"
    missing = "" if program else " (no streamsan program was found: set STREAMSAN_BIN to its folder)"
    if consumed:
        missing += f"\nThe script comes from {consumed}, which cannot be read a second time: write it to a file first"
    raise NotActive(f"StreamSan does not watch this process, and {why}. Start the script with:\n  {' '.join(command)}{missing}")


def _consumed_source():
    """Where the script comes from if nothing of it would be left for a second start: standard input, or a pipe; None otherwise."""
    script = sys.argv[0] if sys.argv else None
    if script in ("", "-"):
        # A prompt is asked again.
        return None if sys.stdin is not None and sys.stdin.isatty() else "standard input"
    try:
        mode = os.stat(script).st_mode if script else 0
    except OSError:
        return None
    return f"a pipe ({script})" if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def annotate(library):
    """Shows StreamSan the blocks that the pool of a library (the module `cupy` or `rmm`) hands out from now on: see `streamsan.pools`.
    Returns whether StreamSan is there: without it nothing happens, at no cost."""
    from . import pools

    return pools.annotate(library)


def save(reason=""):
    """Keeps what was recorded last, where ``--keep-last`` would delete it: the segments get a second name in ``saved-N-REASON`` beside
    them. Returns whether StreamSan is there: without it nothing happens, at no cost."""
    import ctypes

    try:
        asked = ctypes.CDLL(None).streamsan_save
    except AttributeError:
        return False
    asked.argtypes, asked.restype = [ctypes.c_char_p], None
    asked(str(reason).encode())
    return True


def external_begin(access, memory, size=None, key=0):
    """An engine that CUDA does not see (a network card, a disk) reads or writes memory from here on, until `external_end(key)`.
    `access`: "read", "write" or "read_write". `memory`: a tensor or array with `data_ptr` or `__cuda_array_interface__`, of which
    all bytes are meant unless `size` is given, or an address with its `size`. Several accesses may have one key. Returns whether
    StreamSan is there: without it nothing happens, at no cost."""
    kinds = {"read": 1, "write": 2, "read_write": 3}
    if access not in kinds:
        raise ValueError(f"access is {access!r}: it must be one of {', '.join(kinds)}")
    address, size = _bytes_of(memory, size)
    asked = _function("streamsan_external_begin", 4)
    if asked is None:
        return False
    asked(kinds[access], address, size, key)
    return True


def external_end(key=0):
    """The program has seen that all accesses with this key are over: see `external_begin`."""
    asked = _function("streamsan_external_end", 1)
    if asked is None:
        return False
    asked(key)
    return True


def _function(name, arguments):
    """A function of StreamSan's library that takes so many numbers; None without StreamSan."""
    import ctypes

    try:
        asked = getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return None
    asked.argtypes, asked.restype = [ctypes.c_uint64] * arguments, None
    return asked


def _bytes_of(memory, size):
    """Address and size of a piece of memory."""
    if isinstance(memory, int):
        if size is None:
            raise ValueError("an address needs its size in bytes")
        return memory, size
    if hasattr(memory, "data_ptr"):
        if size is None and not memory.is_contiguous():
            raise ValueError("the tensor is not contiguous: pass its pieces, or an address and a size")
        return memory.data_ptr(), memory.numel() * memory.element_size() if size is None else size
    interface = memory.__cuda_array_interface__
    if size is None:
        if interface.get("strides"):
            raise ValueError("the array is not contiguous: pass its pieces, or an address and a size")
        size = int(interface["typestr"][2:])
        for extent in interface["shape"]:
            size *= extent
    return interface["data"][0], size


def _replace(arguments):
    """Becomes the program."""
    program = binary()
    if program is None:
        sys.exit("streamsan: no streamsan program in this package or in PATH: set STREAMSAN_BIN to its folder")
    os.execv(program, [program] + arguments)


def main():
    """The console script."""
    if sys.argv[1:2] == ["fleet"]:
        # In this Python, whose packages are those that the extra has installed.
        from .fleet.__main__ import main as fleet

        sys.exit(fleet(sys.argv[2:]))
    _replace(sys.argv[1:])
