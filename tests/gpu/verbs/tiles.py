"""Copies by tensor maps: which bytes kernels touch, by perturbed memory, and what is known of them.

Triton's descriptor kernels (programs/tensor_maps.py) and kernels with random maps
(tests/programs/sim/tiles.cu) run twice. Once they are measured: which bytes of each tensor change
whatever they held before, which parts of it matter for a result, which bytes tiles were stored to.
Once they are recorded, and the trace is checked: how many launches have ranges, and how many are
exact. What was measured goes to the results folder with the traces; kernels/tests/triton and
kernels/tests/truth keep some of it, and the tests there compare it with what is predicted. Needs
Triton for the first, nvcc for the second; about 60 s.
"""

import importlib.util
import json
import sys

from harness.options import Defaults
from harness.places import PROGRAMS, TESTS
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=150, timeout=90)


def add_options(_):
    pass


def run(session):
    session.need_gpu()
    table = Table({"program": "10", "": "8", "cases": ">6", "launches": ">9", "ranges": ">7", "exact": ">6", "note": ""})
    for name, part in session.pick([("triton", triton), ("random", random)], lambda p: p[0]):
        if session.left() < 20:
            table.row(LATE, name, LATE)
        else:
            part(session, table, name)
    return session.finish(table)


def triton(session, table, name):
    if importlib.util.find_spec("triton") is None:
        return table.row(ABSENT, name, ABSENT, "", "", "", "", "this Python has no Triton")
    program = [sys.executable, PROGRAMS / "tensor_maps.py"]
    measured = session.out / "triton.json"
    ran = session.run([*program, "measure", measured])
    if ran.code != 0:
        return table.row(WRONG, name, WRONG, "", "", "", "", f"exit code {ran.code}: {ran.last_words()}")
    recorded = [*program, "launch", session.out / "triton.launched.json"]
    return known(session, table, name, recorded, len(json.loads(measured.read_text())))


def random(session, table, name):
    built = session.compiler.compile(TESTS / "programs/sim/tiles.cu", "-O2", "-std=c++17", "-arch=sm_90a")
    if built.path is None:
        return table.row(ABSENT, name, ABSENT, "", "", "", "", built.error[-200:])
    lines = []
    # A case that faults ends its process: few in each.
    for seed in range(1, 9):
        ran = session.run([built.path, "aligned", "30", str(seed)])
        lines += [line for line in ran.text.splitlines() if " changed" in line]
    (session.out / "tiles.txt").write_text("\n".join(lines) + "\n")
    return known(session, table, name, [built.path, "halves", "mended"], len(lines))


def known(session, table, name, command, cases):
    trace, report = session.out / f"{name}.trace", session.out / f"{name}.report.json"
    ran = session.run(session.streamsan("record", "-o", trace, "--", *command))
    if ran.code == 0:
        ran = session.run(session.streamsan("check", "--json", report, trace))
    if ran.code != 0 or not report.exists():
        return table.row(WRONG, name, WRONG, cases, "", "", "", f"exit code {ran.code}: {ran.last_words()}")
    coverage = json.loads(report.read_text())["coverage"]
    launches = coverage["launches"]
    exact = launches["ranges"] - sum(row["launches"] for row in coverage["inexact"])
    return table.row(OK, name, OK, cases, launches["total"], launches["ranges"], exact)
