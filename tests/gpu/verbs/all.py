"""Everything that waits for a GPU, in one table, a row for each verb.

The parts run one after the other, the quick and telling ones first, each within its share of the
budget. A part that is not reached counts as not checked. What a part printed is in
FOLDER/PART/log.txt, beside its own results; the end of it is shown where something is wrong.
--sim runs what has a simulated way. --only picks parts by name; `calls` is not one of them (it
needs CUPTI, and its counts differ where programs start and end).
"""

import dataclasses
import importlib
import json
import signal
import subprocess
import sys
import time

from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import TESTS
from harness.process import environment, kill_group, watched
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=1700, timeout=None, sim=True)
# Below this share of its usual budget a part is not begun.
LEAST = 0.25


@dataclasses.dataclass
class Part:
    """A call of a verb: its name here, its words, the seconds it may take."""

    name: str
    words: list
    budget: float
    sim: bool = False


PARTS = [
    Part("check", ["check"], 450, sim=True),
    Part("samples", ["check", "--samples"], 150, sim=True),
    Part("order", ["order"], 150),
    Part("in_place", ["in_place"], 150, sim=True),
    Part("descriptors", ["descriptors"], 60, sim=True),
    Part("transparency", ["transparency"], 300, sim=True),
    Part("semantics", ["semantics"], 100),
    Part("instructions", ["instructions"], 60, sim=True),
    Part("digests", ["digests"], 300, sim=True),
    Part("torch", ["torch"], 300),
    Part("offline", ["offline"], 150),
    Part("csan", ["csan"], 200),
    Part("tools", ["tools"], 150),
    Part("exact", ["exact"], 400),
    Part("results", ["results"], 200, sim=True),
    Part("recordings", ["recordings"], 200),
    Part("tiles", ["tiles"], 150),
    Part("dependents", ["dependents"], 300, sim=True),
    # It measures: last, when nothing else is warm or waits.
    Part("cost", ["cost"], 400),
]


def add_options(_):
    pass


def run(session):
    if not session.args.sim:
        session.need_gpu()
    parts = session.pick([p for p in PARTS if p.sim or not session.args.sim], lambda p: p.name)
    if not parts:
        raise CannotRun(f"no part has one of these words in its name: there are {', '.join(p.name for p in PARTS)}")
    table = Table(
        {
            "part": "14",
            "": "8",
            "exit": ">4",
            "seconds": ">8",
            "ok": ">5",
            "known": ">5",
            "wrong": ">5",
            "no time": ">7",
            "left out": ">8",
            "note": "",
        }
    )
    for part in parts:
        budget = min(part.budget, session.left())
        if budget < part.budget * LEAST:
            table.row(LATE, part.name, LATE, name=part.name)
            continue
        add_row(session, table, part, *call(session, part, budget))
    return session.finish(table)


def call(session, part, budget):
    """Runs a part in a process of its own: its exit code, seconds, whether it hung, its output."""
    args, out = session.args, session.out / part.name
    out.mkdir(exist_ok=True)
    (out / "results.json").unlink(missing_ok=True)
    command = [
        sys.executable,
        TESTS / "gpu",
        *part.words,
        "--bin",
        session.binaries.folder,
        "--out",
        out,
        "--budget",
        f"{budget:.0f}",
    ]
    if args.jobs and importlib.import_module(f"verbs.{part.words[0]}").DEFAULTS.jobs is not None:
        command += ["--jobs", args.jobs]
    command += ["--sim"] if args.sim else []
    began, hung = time.monotonic(), False
    with open(out / "log.txt", "w") as log:
        child = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment(),
            start_new_session=True,
        )
        with watched(child.pid, grace=5):
            try:
                # Its last programs may have begun just before its budget ended.
                child.wait(budget + 30)
            except subprocess.TimeoutExpired:
                hung = True
                # It ends what it started, then itself.
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(10)
                except subprocess.TimeoutExpired:
                    kill_group(child.pid)
                    child.wait()
    return child.returncode, time.monotonic() - began, hung, (out / "log.txt").read_text(errors="replace")


def add_row(session, table, part, code, seconds, hung, log):
    try:
        counts = json.loads((session.out / part.name / "results.json").read_text())
    except (OSError, ValueError):
        counts = {}
    outcome = (
        WRONG
        if hung or code not in (0, 1, 2) or (code == 1 and counts.get("wrong", 1))
        else {0: OK, 1: LATE, 2: ABSENT}[code]
    )
    last = log.strip().splitlines()[-1:] or [""]
    note = "took too long" if hung else last[0] if code == 2 else ""
    tail = [line[:200] for line in log.strip().splitlines()[-12:]] if outcome == WRONG else []
    numbers = [counts.get(key, "") for key in ("ok", "known", "wrong", "no_time", "left_out")]
    table.row(outcome, part.name, outcome, code, f"{seconds:.0f}", *numbers, note, below=tail, name=part.name)
