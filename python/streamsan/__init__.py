"""StreamSan for Python: the program beside this file, found by :func:`binary`, and a pytest plugin."""

import os
import sys

__version__ = "0.1.0"


def binary():
    """The path of the ``streamsan`` program: of this package, otherwise the one in PATH."""
    import shutil

    here = os.path.join(os.path.dirname(__file__), "bin", "streamsan")
    return here if os.access(here, os.X_OK) else shutil.which("streamsan")


def main():
    """The console script: becomes the program."""
    path = binary()
    if path is None:
        sys.exit("streamsan: no streamsan program in this package or in PATH")
    os.execv(path, [path] + sys.argv[1:])
