"""StreamSan from inside Python: is it active, how to start it, start it now.

    import streamsan
    streamsan.enable()          # at the top of the script, before CUDA is used

StreamSan watches a process from its first CUDA call on, through a library that the loader puts in front of the driver. That cannot
be done later, so `enable()` returns at once when the process runs under StreamSan, and otherwise says how to start it. With
`enable(restart=True)`, or with STREAMSAN=1 in the environment, the script is started again under StreamSan instead.

    python -m streamsan train.py --epochs 1      # the same as: streamsan python train.py --epochs 1
"""
import os
import shutil
import sys

__all__ = ["enable", "is_active", "NotActive"]


class NotActive(RuntimeError):
    """The process does not run under StreamSan."""


def is_active():
    """Whether StreamSan's library is in this process and not switched off."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = any("libstreamsan.so" in line or "streamsan-soname" in line for line in maps)
    except OSError:
        loaded = "libstreamsan.so" in os.environ.get("LD_PRELOAD", "")
    options = os.environ.get("STREAMSAN_OPTIONS", "").split(":")
    return loaded and not any(option in ("off", "off=1", "off=yes", "off=true", "off=on") for option in options)


def _launcher():
    """The streamsan program: named by STREAMSAN_BIN, beside this file, in the build folder, or on the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.environ.get("STREAMSAN_BIN"), here, os.path.join(here, "..", "..", "target", "release")]
    for folder in filter(None, folders):
        program = os.path.join(folder, "streamsan")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return os.path.abspath(program)
    return shutil.which("streamsan")


def _command():
    return list(getattr(sys, "orig_argv", [sys.executable] + sys.argv))


def _cuda_in_use():
    torch = sys.modules.get("torch")
    return bool(torch is not None and getattr(torch, "cuda", None) and torch.cuda.is_initialized())


def enable(restart=False):
    """Returns True when StreamSan is active. Otherwise raises NotActive with the command to use; with `restart` (or STREAMSAN=1)
    starts the script again under StreamSan, which does not return."""
    if is_active():
        return True
    launcher = _launcher()
    command = [launcher or "streamsan"] + _command()
    wanted = restart or os.environ.get("STREAMSAN") == "1"
    if wanted and launcher and not os.environ.get("STREAMSAN_RESTARTED"):
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(launcher, command, {**os.environ, "STREAMSAN_RESTARTED": "1"})
    why = "CUDA is in use already" if _cuda_in_use() else "it must be loaded before CUDA is"
    missing = "" if launcher else " (no streamsan program was found: set STREAMSAN_BIN to its folder)"
    raise NotActive(f"StreamSan does not watch this process, and {why}. Start the script with:\n  {' '.join(command)}{missing}")


def _main():
    launcher = _launcher()
    if launcher is None:
        sys.exit("streamsan: no streamsan program was found: set STREAMSAN_BIN to its folder")
    if len(sys.argv) < 2:
        sys.exit("usage: python -m streamsan SCRIPT [ARGS...]")
    os.execv(launcher, [launcher, sys.executable] + sys.argv[1:])


if __name__ == "__main__":
    _main()
