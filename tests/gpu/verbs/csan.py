"""The PyTorch corpus under StreamSan and PyTorch's CUDA Sanitizer.

Runs every program of tests/corpus/torch bare, under StreamSan and under PyTorch's sanitizer.
Prints the verdicts, the pair of lines that each found, and the wall times. A racy program is
right with a finding of its kind, a clean one with none; the sanitizer's findings have no kind, so
any will do. The wording of `--format csan` is held against the PyTorch that is here. Needs
PyTorch; about 100 s.
"""

import re
import sys

from harness import cases, reports
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS, RECORDED
from harness.process import environment
from harness.table import ABSENT, KNOWN, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=400, timeout=100, jobs=6)


def add_options(_):
    pass


def run(session):
    session.need_gpu()
    session.need_python("torch")
    programs = session.pick(cases.torch_corpus(), lambda c: c.name)
    if not programs:
        raise CannotRun("no program has one of these words in its name")
    table = Table(
        {
            "program": "26",
            "truth": "6",
            "bare s": ">7",
            "| StreamSan": "11",
            "s": ">6",
            "lines (previous/access)": "28",
            "| CSAN": "8",
            "s ": ">6",
            "lines": "",
        }
    )
    totals = {"bare": 0.0, "ours": 0.0, "theirs": 0.0, "right": 0, "theirs_right": 0, "ran": 0}
    with session.jobs() as pool:
        for row in pool.map(lambda case: compare(session, case), programs):
            add_row(table, totals, **row)
        table.note(
            f"{totals['ran']} programs: StreamSan right on {totals['right']}, CSAN on {totals['theirs_right']}; "
            f"{totals['bare']:.0f} s bare, {totals['ours']:.0f} s under StreamSan, {totals['theirs']:.0f} s under CSAN "
            f"(wall, start-up included; {pool._max_workers} at once)"
        )
    wording(session, table)
    return session.finish(table)


def compare(session, case):
    if session.left() < 5:
        return {"case": case, "late": True}
    bare = session.run([sys.executable, case.path])
    if bare.code:
        return {"case": case, "bare": bare}
    return {"case": case, "bare": bare, "ours": ours(session, case), "theirs": theirs(session, case)}


def ours(session, case):
    """Whether StreamSan is right, the lines of what it found, and the wall time."""
    report, log = session.out / f"{case.name}.json", session.out / f"{case.name}.txt"
    under = session.streamsan("run", "--json", report, "--error-exitcode", "0", "--log-file", log, "--")
    ran = session.run([*under, sys.executable, case.path])
    data = reports.load(report)
    if data is None:
        return False, f"no report, exit {ran.code}: {ran.last_words(120)}", ran.wall
    found = reports.findings(data)
    lines = {
        "/".join(reports.line_in(f[side]["stack"], case.path.name) for side in ("previous", "access")) for f in found
    }
    hazards = {(f["hazard"], bool(f["host"])) for f in found}
    right = (case.kind, case.host) in hazards if case.races else not hazards
    return right, " ".join(sorted(lines)), ran.wall


def theirs(session, case):
    """The same of PyTorch's CUDA Sanitizer."""
    ran = session.run([sys.executable, case.path], env=environment(TORCH_CUDA_SANITIZER=1))
    (session.out / f"{case.name}.csan.txt").write_text(ran.errors)
    pairs = set()
    for error in ran.errors.split("CSAN detected a possible data race")[1:]:
        parts = re.split(
            r"Previous access by stream|Tensor was allocated with stack trace|Trace for tensor allocation", error
        )
        lines = [re.findall(rf'File "[^"]*{re.escape(case.path.name)}", line (\d+)', part) for part in parts[:2]]
        access, previous = [found[-1] if found else "?" for found in (lines + [[], []])[:2]]
        pairs.add(f"{previous}/{access}")
    if not pairs and ran.code:
        return False, f"exit {ran.code}: {(ran.errors.strip().splitlines() or [''])[-1][:80]}", ran.wall
    return bool(pairs) == case.races, " ".join(sorted(pairs)), ran.wall


def add_row(table, totals, case, bare=None, ours=None, theirs=None, late=False):
    truth = "race" if case.races else "clean"
    if bare and bare.missing:
        return table.row(ABSENT, case.name, truth, "", f"{bare.missing} is not installed")
    if late or ours is None:
        note = LATE if late else f"bare run: exit {bare.code}: {bare.last_words(120)}"
        return table.row(LATE if late else WRONG, case.name, truth, "", note)
    more = {
        "bare": bare.wall,
        "ours": ours[2],
        "theirs": theirs[2],
        "right": ours[0],
        "theirs_right": theirs[0],
        "ran": 1,
    }
    for name, value in more.items():
        totals[name] += value
    word = {True: "| right", False: "| WRONG"}
    return table.row(
        OK if ours[0] else KNOWN if case.name in cases.known_failures() else WRONG,
        case.name,
        truth,
        f"{bare.wall:.1f}",
        word[ours[0]],
        f"{ours[2]:.1f}",
        ours[1][:28],
        word[theirs[0]],
        f"{theirs[2]:.1f}",
        theirs[1][:60],
    )


def wording(session, table):
    """`--format csan` against the error classes of the PyTorch that is here."""
    command = [
        sys.executable,
        PROGRAMS / "csan_wording.py",
        session.binaries.streamsan,
        *sorted(RECORDED.glob("*.trace")),
    ]
    ran = session.run(command)
    said = (ran.text or ran.errors).strip()[-300:]
    table.row(WRONG if ran.code else OK, "--format csan", "", "", "| WRONG" if ran.code else "| right", below=[said])
