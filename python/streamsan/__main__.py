"""``python -m streamsan [OPTIONS] SCRIPT [ARGS...]``: the script under StreamSan.

The options are those of ``streamsan run``."""

import sys

from . import _replace


def _words(given):
    """The words for streamsan, which knows its options and puts Python before the script."""
    if given and given[0] in ("-h", "--help", "-V", "--version"):
        return given
    if not given or not given[0].startswith("-") or given[0] in ("-m", "-c"):
        # No options of StreamSan's: a script, or Python's own way to name a module or a command.
        return ["run", "--", sys.executable] + given
    # Behind options, '-m' and '-c' begin what Python is to run; '--' says so in any other case.
    for place, word in enumerate(given):
        if word == "--" or not word.startswith("-"):
            break
        if word in ("-m", "-c"):
            given = given[:place] + ["--"] + given[place:]
            break
    return ["run", "--interpreter", sys.executable] + given


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m streamsan [OPTIONS] SCRIPT [ARGS...]")
    _replace(_words(sys.argv[1:]))
