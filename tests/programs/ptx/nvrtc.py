"""NVRTC through ctypes: CUDA C++ to PTX, no GPU needed. Owned by the PTX census; not a test."""
import ctypes
import glob
import sys


# What kernels need of the host's headers, which are not there.
TYPES = "#pragma once\n" + "".join(f"typedef {old} {new}_t;\n" for old, new in (
    ("signed char", "int8"), ("unsigned char", "uint8"), ("short", "int16"), ("unsigned short", "uint16"), ("int", "int32"), ("unsigned", "uint32"),
    ("long long", "int64"), ("unsigned long long", "uint64"), ("unsigned long", "uintptr")))
HOST_HEADERS = ("cstdint", "stdint.h", "cstdio", "stdio.h", "cstdlib", "cstring")


class Failed(Exception):
    pass


class Nvrtc:
    def __init__(self):
        found = [f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib/libnvrtc.so.*") if ".alt" not in f]
        if not found:
            raise Failed("no libnvrtc: pip install nvidia-cuda-nvrtc")
        # It opens its builtins by name: loaded beforehand they are found.
        for builtins in glob.glob(sorted(found)[-1].rsplit("/", 1)[0] + "/libnvrtc-builtins.so.*"):
            ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(sorted(found)[-1])
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def ptx(self, source, name, options, expressions=()):
        """The PTX of a source. `expressions`: templates to instantiate."""
        program = ctypes.c_void_p()
        texts = (ctypes.c_char_p * len(HOST_HEADERS))(*([TYPES.encode()] * len(HOST_HEADERS)))
        names = (ctypes.c_char_p * len(HOST_HEADERS))(*(h.encode() for h in HOST_HEADERS))
        self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), len(HOST_HEADERS), texts, names)
        try:
            for e in expressions:
                self.lib.nvrtcAddNameExpression(program, e.encode())
            texts = [o.encode() for o in options]
            bad = self.lib.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts))
            if bad:
                raise Failed(f"{name}: " + self.text(program, "Log").strip()[:600])
            return self.text(program, "PTX")
        finally:
            self.lib.nvrtcDestroyProgram(ctypes.byref(program))

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.lib, f"nvrtcGet{'ProgramLog' if what == 'Log' else what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{'ProgramLog' if what == 'Log' else what}")(program, buffer)
        return buffer.value.decode(errors="replace")
