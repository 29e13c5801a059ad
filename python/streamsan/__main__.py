"""``python -m streamsan SCRIPT [ARGS...]``: the script under StreamSan."""

import sys

from . import _replace

if len(sys.argv) < 2:
    sys.exit("usage: python -m streamsan SCRIPT [ARGS...]")
_replace([sys.executable] + sys.argv[1:])
