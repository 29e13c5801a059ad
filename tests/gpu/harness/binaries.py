"""Owns where StreamSan's binaries are: --bin, STREAMSAN_BIN, .gpu/, .gpu/bin/, target/release/.

A folder that is named and holds no streamsan is an error; the next place is not tried then. What
is found is copied: files that were carried here may lack the permission to execute, and a build
that goes on beside the run must not change what is checked.
"""

import os
import pathlib
import shutil

from .errors import CannotRun
from .places import ROOT

USUAL = (ROOT / ".gpu", ROOT / ".gpu" / "bin", ROOT / "target" / "release")


def find(named=None):
    """The folder with streamsan and libstreamsan.so."""
    named = named or os.environ.get("STREAMSAN_BIN")
    for folder in map(pathlib.Path, [named] if named else USUAL):
        if (folder / "streamsan").exists():
            return folder.resolve()
    looked = named or "STREAMSAN_BIN, .gpu, .gpu/bin, target/release"
    raise CannotRun(f"no streamsan found in {looked}: run scripts/build, or name a folder by --bin or STREAMSAN_BIN")


class Binaries:
    """A copy of the binaries that can be executed."""

    def __init__(self, source, work):
        self.source, self.folder = source, work / "bin"
        self.folder.mkdir()
        for file in self.source.iterdir():
            if file.is_file() and (file.name in ("streamsan", "exact.fatbin") or ".so" in file.name):
                self._copy(file, self.folder / file.name)
        # Beside the binaries lies a folder with the simulated GPU, under the names programs ask
        # for.
        if (self.source / "sim").is_dir():
            (self.folder / "sim").mkdir()
            for file in (self.source / "sim").iterdir():
                self._copy(file, self.folder / "sim" / file.name)

    @staticmethod
    def _copy(source, target):
        shutil.copy(source, target)
        target.chmod(0o755)

    @property
    def streamsan(self):
        return str(self.folder / "streamsan")

    @property
    def shim(self):
        return self.folder / "libstreamsan.so"

    @property
    def exact(self):
        """The device side of exact mode, or None where it was not built."""
        patch = self.folder / "exact.fatbin"
        return patch if patch.exists() else None
