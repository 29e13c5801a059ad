"""Owns how CUDA's compiler and tools are found, and which GPUs there are. Compiles nothing."""

import dataclasses
import functools
import os
import pathlib
import shutil

from .errors import CannotRun
from .places import ROOT
from .process import execute


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """nvcc, what it needs to link with its own libraries, and where those lie at run time."""

    nvcc: str
    link: tuple
    libraries: tuple


@functools.cache
def toolkit():
    """NVCC, CUDA_HOME, PATH, /usr/local/cuda, else what scripts/toolkit installs."""
    home = os.environ.get("CUDA_HOME")
    for nvcc in (
        os.environ.get("NVCC"),
        home and os.path.join(home, "bin", "nvcc"),
        shutil.which("nvcc"),
        "/usr/local/cuda/bin/nvcc",
    ):
        if nvcc and os.path.exists(nvcc):
            root = pathlib.Path(nvcc).resolve().parent.parent
            stubs = [p for p in (root / "lib64/stubs", root / "targets/x86_64-linux/lib/stubs") if p.exists()]
            libraries = [p for p in (root / "lib64", root / "targets/x86_64-linux/lib", root / "lib") if p.exists()]
            return Toolkit(nvcc, tuple(f"-L{p}" for p in stubs + libraries), tuple(map(str, libraries)))
    installed = execute([ROOT / "scripts" / "toolkit"], 600)
    if installed.code:
        raise CannotRun(f"no nvcc in NVCC, CUDA_HOME or PATH, and scripts/toolkit failed: {installed.last_words()}")
    root = pathlib.Path(installed.text.strip())
    return Toolkit(str(root / "bin" / "nvcc"), (f"-L{root}/lib", f"-L{ROOT}/.toolkit/lib"), (str(root / "lib"),))


def ptxas():
    """The assembler beside nvcc."""
    return pathlib.Path(toolkit().nvcc).with_name("ptxas")


def library_path():
    """LD_LIBRARY_PATH for programs that were linked with the shared runtime."""
    return ":".join([*toolkit().libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


@functools.cache
def tool(name):
    """One of NVIDIA's debuggers and profilers, or None."""
    found = shutil.which(name)
    home = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    for place in (home / "bin" / name, home / "compute-sanitizer" / name):
        found = found or (str(place) if place.exists() else None)
    for pattern in () if found else (f"opt/nvidia/nsight*/**/{name}", f"usr/local/cuda*/**/{name}"):
        found = next((str(p) for p in pathlib.Path("/").glob(pattern) if p.is_file()), None) or found
    return found


@functools.cache
def devices():
    """One line for each GPU, without its serial number."""
    listed = execute(["nvidia-smi", "-L"], 60)
    return tuple(line.split(" (UUID")[0] for line in listed.text.splitlines()) if listed.code == 0 else ()
