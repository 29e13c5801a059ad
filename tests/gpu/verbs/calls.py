"""The calls that StreamSan's shim saw against those that CUPTI saw.

  python3 tests/gpu calls [options] [NAME=COMMAND...]

Without a command it takes the training loops of tests/programs/python.
tests/gpu/programs/cupti_calls.c counts CUPTI's side; --preload names it already built, otherwise
gcc builds it with the CUPTI of the toolkit. Functions that the shim forwards by a jump (`skip` in
the table of cuda-sys) are left out.
"""

import pathlib
import re
import shlex
import sys

from harness import cases, cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS, ROOT
from harness.process import environment
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=400, timeout=300, jobs=None)


def add_options(parser):
    parser.add_argument("programs", nargs="*", metavar="NAME=COMMAND", help="programs to count the calls of")
    parser.add_argument("--preload", metavar="FILE", type=pathlib.Path, help="cupti_calls.c, built")


def run(session):
    session.need_gpu()
    skipped, known = functions()
    programs = [(name, shlex.split(command)) for name, _, command in (p.partition("=") for p in session.args.programs)]
    if any(not command for _, command in programs):
        raise CannotRun("a program is given as NAME=COMMAND")
    programs = programs or [(c.name, [sys.executable, str(c.path)]) for c in cases.python_loops()]
    preload = session.args.preload or built(session)
    table = Table({"program": "32", "": "6", "functions": ">9", "calls": ">8", "differ": ">6", "note": ""})
    for name, command in session.pick(programs, lambda p: p[0]):
        if session.left() < 5:
            table.row(LATE, name, LATE)
            continue
        counted = counts(session, name, command, preload)
        if isinstance(counted, str):
            table.row(WRONG, name, "WRONG", "", "", "", counted)
            continue
        theirs, ours = counted
        names = sorted(n for n in set(theirs) | set(ours) if n not in skipped)
        differ = [n for n in names if theirs.get(n, 0) != ours.get(n, 0)]
        outcome = WRONG if differ or not names else OK
        table.row(
            outcome,
            name,
            outcome,
            len(names),
            sum(theirs.get(n, 0) for n in names),
            len(differ),
            below=[
                f"{n}: CUPTI {theirs.get(n, 0)}, shim {ours.get(n, 0)}{'' if n in known else '  (not in the table)'}"
                for n in differ
            ],
        )
    return session.finish(table)


def functions():
    """Names that the shim forwards by a jump, and all names, from the table of cuda-sys."""
    skipped, known = set(), set()
    row = r"(before|after|both|skip)\s+fn \w+\s*(?:\([^\[]*\))?\s*\[([^\]]*)\]" + r'\s*(?:\w+(?:\s+"[^"]*")?)?;'
    for file in (ROOT / "cuda-sys/src/driver_api").iterdir():
        for when, symbols in re.findall(row, file.read_text(), re.S):
            names = [part.split()[-1] for part in symbols.replace("\n", " ").split(",") if part.strip()]
            known.update(names)
            skipped.update(names if when == "skip" else ())
    return skipped, known


def built(session):
    """The library that counts CUPTI's side, built with the toolkit's CUPTI."""
    root = pathlib.Path(cuda.toolkit().nvcc).resolve().parent.parent
    library = session.work / "cupti_calls.so"
    folders = [root, root / "extras" / "CUPTI", root / "targets" / "x86_64-linux"]
    flags = [f"-I{f}/include" for f in folders] + [f"-L{f}/{lib}" for f in folders for lib in ("lib64", "lib")]
    flags += [f"-Wl,-rpath,{f}/{lib}" for f in folders for lib in ("lib64", "lib")]
    made = session.run(["gcc", "-O2", "-shared", "-fPIC", PROGRAMS / "cupti_calls.c", *flags, "-lcupti", "-o", library])
    if made.code:
        raise CannotRun(f"cupti_calls.c does not compile (build it, and name it by --preload): {made.last_words()}")
    return library


def counts(session, name, command, preload):
    """The counts of both sides, or what went wrong."""
    file, trace = session.work / f"{name}.cupti", session.work / f"{name}.trace"
    env = environment(CUPTI_CALLS=file, LD_PRELOAD=preload.resolve())
    ran = session.run([*session.streamsan("record", "--count-calls", "-o", trace, "--"), *command], env=env)
    if ran.code:
        return f"exit {ran.code}: {ran.last_words(200)}"
    dumped = session.run(session.streamsan("dump", trace))
    trace.unlink(missing_ok=True)
    if dumped.code or not file.exists():
        return f"dump: exit {dumped.code}, CUPTI's counts {'are' if file.exists() else 'are not'} there"
    theirs = {n: int(c) for n, c in (line.split() for line in file.read_text().splitlines())}
    ours = {n: int(c) for n, c in re.findall(r'Note \{ kind: Info, text: "(\w+)", count: (\d+) \}', dumped.text)}
    return theirs, ours
