"""Owns how a CUDA program is compiled, and the cache of compiled programs.

The cache lies in .cache/gpu, which git ignores: the verbs share it, and so do later calls. A
program is compiled anew when its source, a header beside it, a flag, the compiler or (for
-arch=native) the GPU is another one.
"""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import tempfile

from . import cuda
from .places import CACHE, CORPUS, SAMPLES
from .process import execute


@dataclasses.dataclass
class Built:
    """A program that was compiled, or the reason why not."""

    path: pathlib.Path | None
    error: str = ""


class Compiler:
    """nvcc, with the results kept. Safe to use from several threads."""

    def __init__(self, work):
        self.toolkit = cuda.toolkit()
        self.cache = CACHE
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.cache).close()
        except OSError:
            self.cache = work / "compiled"
            self.cache.mkdir()
        self.version = execute([self.toolkit.nvcc, "--version"], 60).out
        self.stub = self._driver_stub()

    def compile(self, source, *flags, limit=300):
        """Compiles one source with nvcc and these flags."""
        source = pathlib.Path(source)
        command = [self.toolkit.nvcc, *flags, *self.toolkit.link, *self.stub, str(source)]
        target = self.cache / self._key(source, command) / source.stem
        if target.exists():
            return Built(target)
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            made = execute([*command, "-o", f"{folder}/{source.stem}"], limit)
            if made.code:
                return Built(None, "too slow" if made.hung else made.last_words(600))
            return Built(self._keep(pathlib.Path(folder), target))

    def _key(self, source, command):
        digest = hashlib.sha256(self.version + repr(command).encode())
        if any("native" in part for part in command):
            digest.update(repr(cuda.devices()).encode())
        headers = [p for p in source.parent.iterdir() if p.suffix in (".h", ".cuh")]
        for file in [source, *sorted(headers)]:
            digest.update(file.read_bytes())
        return digest.hexdigest()[:24]

    @staticmethod
    def _keep(folder, target):
        """Moves a finished folder to its place. Another thread's may be there already."""
        kept = pathlib.Path(tempfile.mkdtemp(dir=target.parent.parent))
        for file in folder.iterdir():
            shutil.move(file, kept / file.name)
        try:
            os.rename(kept, target.parent)
        except OSError:
            shutil.rmtree(kept, ignore_errors=True)
        return target

    def _driver_stub(self):
        """A library for `-lcuda` programs where neither a driver nor a stub is installed."""
        names = set()
        for source in [*(CORPUS / "cuda").glob("*.cu"), *SAMPLES.glob("*.cu")]:
            names |= set(re.findall(r"\b(cu[A-Z]\w+)\s*\(", source.read_text()))
        # cuda.h maps some names to newer symbols.
        names |= {n + s for n in list(names) for s in ("_v2", "_v3", "_ptsz", "_v2_ptsz")}
        text = "".join(f"int {n}(void) {{ return 500; }}\n" for n in sorted(names))
        target = self.cache / f"stub-{hashlib.sha256(text.encode()).hexdigest()[:24]}" / "libcuda.so"
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=self.cache) as folder:
                pathlib.Path(folder, "cuda_stub.c").write_text(text)
                made = execute(
                    [
                        "gcc",
                        "-shared",
                        "-fPIC",
                        "-Wl,-soname,libcuda.so.1",
                        "-o",
                        f"{folder}/libcuda.so",
                        f"{folder}/cuda_stub.c",
                    ],
                    60,
                )
                if made.code:
                    return []
                self._keep(pathlib.Path(folder), target)
        return [f"-L{target.parent}"]
