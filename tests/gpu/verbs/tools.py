"""Debuggers and profilers together with StreamSan.

Each tool runs around the checked program and, where it can, inside of `streamsan run`. Each must
end with its exit code and say what it should have found. Tools that are not installed are left
out. Needs nvcc; about 90 s. One runs after the other: a tool that owns the GPU's counters or its
debugger cannot be used twice at a time.
"""

import sys

from harness import cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS, SHARED
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=200, timeout=40, jobs=None)
TOOLS = ("cuda-gdb", "compute-sanitizer", "ncu", "nsys")


def add_options(_):
    pass


def run(session):
    session.need_gpu()
    rows = session.pick(list(cases(session)), lambda row: row[0])
    if not rows:
        raise CannotRun("no row has one of these words in its title")
    table = Table({"tool": "64", "": "6", "exit": ">5", "seconds": ">8", "note": ""})
    for title, command, code, *words in rows:
        if session.left() < 5:
            table.row(LATE, title, LATE)
            continue
        ran = session.run(command, cwd=session.work)
        text = ran.text + ran.errors
        missing = [word for word in words if word not in text]
        right = ran.code == code and not missing and not ran.hung
        wrong = "" if right else f"expected exit {code}" + "".join(f", no '{w}'" for w in missing)
        table.row(
            OK if right else WRONG,
            title,
            "ok" if right else "WRONG",
            "hung" if ran.hung else ran.code,
            f"{ran.wall:.1f}",
            wrong,
            below=() if right else [f"| {line[:200]}" for line in text.strip().splitlines()[-12:]],
        )
    for name in TOOLS:
        if not cuda.tool(name):
            table.row(ABSENT, name, ABSENT, "", "", "not installed")
    return session.finish(table)


def compiled(session, name, *flags):
    built = session.compiler.compile(SHARED / "demo" / "racy.cu", "-O2", "-g", "-arch=native", *flags)
    if built.path is None:
        raise CannotRun(f"demo/racy.cu does not compile: {built.error[-400:]}")
    # Both twins are made of one source: each gets a name of its own.
    twin = session.work / name
    twin.write_bytes(built.path.read_bytes())
    twin.chmod(0o755)
    return twin


def cases(session):
    """A title, a command, the exit code it must have, the words it must say."""
    racy, mended = compiled(session, "racy"), compiled(session, "mended", "-DFIXED")
    under = session.streamsan("run", "--error-exitcode", "66", "--")
    yield "alone: racy", [*under, racy], 66, "1 finding"
    yield "alone: mended", [*under, mended], 0, "0 findings"
    gdb, sanitizer, ncu, nsys = map(cuda.tool, TOOLS)
    if gdb:
        batch = [gdb, "-batch", "-ex", f"set environment LD_PRELOAD {session.binaries.shim}"]
        finish = ["-ex", "run", "-ex", "print $_exitcode"]
        yield (
            "cuda-gdb, the shim preloaded into its program: racy",
            [*batch, *finish, racy],
            0,
            "DATA RACE",
            "exited normally",
        )
        stop = [*batch, "-ex", "break total", "-ex", "run", "-ex", "bt 1", "-ex", "delete", "-ex", "continue"]
        yield (
            "cuda-gdb, a breakpoint in a kernel",
            [*stop, mended],
            0,
            "hit Breakpoint",
            "0 findings",
            "exited normally",
        )
    if sanitizer:
        for checks in ("memcheck", "racecheck", "initcheck", "synccheck"):
            summary = "RACECHECK SUMMARY: 0" if checks == "racecheck" else "ERROR SUMMARY: 0"
            inside = [*under, sanitizer, "--tool", checks, racy]
            yield f"compute-sanitizer {checks} inside streamsan: racy", inside, 66, summary, "1 finding"
        around = [sanitizer, "--target-processes", "all", *under, mended]
        yield "compute-sanitizer around streamsan: mended", around, 0, "0 findings"
    if ncu:
        # It starts its program with an LD_PRELOAD of its own: that program is not checked, and the
        # report says so.
        inside = [*under, ncu, "--section", "LaunchStats", racy]
        yield "ncu inside streamsan: not checked, and the report says so", inside, 0, "no CUDA work was seen"
        around = [ncu, "--target-processes", "all", "--section", "LaunchStats", *under, mended]
        yield "ncu around streamsan: mended", around, 0, "0 findings"
    if nsys:
        profile = [nsys, "profile", "-t", "cuda", "-o"]
        yield "nsys inside streamsan: racy", [*under, *profile, session.work / "n1", racy], 66, "1 finding"
        yield "nsys around streamsan: mended", [*profile, session.work / "n2", *under, mended], 0, "0 findings"
    if session.run([sys.executable, "-c", "import torch"]).code == 0:
        python, counted = [sys.executable, PROGRAMS / "profiled.py"], "kernels seen by the profiler: "
        yield "torch.profiler (CUPTI): racy", [*under, *python, "racy"], 66, counted, "DATA RACE"
        yield "torch.profiler (CUPTI): ordered", [*under, *python], 0, counted, "0 findings"
        watched = [*under[:-1], "--host-accesses", "--", *python]
        yield "torch.profiler with --host-accesses: ordered", watched, 0, "0 findings"
