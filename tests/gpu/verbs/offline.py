"""Recorded runs against live ones, and tools that read what they give.

A racy PyTorch program is checked live and from its trace: the reports must be the same, byte for
byte, also where the source is gone. So must those of every program of tests/corpus/torch. NVTX
ranges name parts, PyTorch's memory viewer takes the snapshot, `pytest --streamsan` charges a race
to its test. Needs PyTorch; about 90 s.
"""

import importlib.util
import json
import os
import shutil
import sys

from harness import cases
from harness.options import Defaults
from harness.places import PROGRAMS, ROOT
from harness.process import environment
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=300, timeout=80, jobs=8)
RACE = 66


def add_options(_):
    pass


class Offline:
    """The rows of one call."""

    def __init__(self, session):
        self.session, self.work = session, session.work
        self.table = Table({"what": "58", "": "8", "note": ""})

    def row(self, title, right, note=""):
        self.table.row(OK if right else WRONG, title, "ok" if right else "WRONG", note)

    def number(self, title, value):
        """A measurement: it is neither right nor wrong."""
        self.table.note(f"{title:58} {value}")

    def same(self, a, b):
        a, b = self.work / a, self.work / b
        return a.exists() and b.exists() and a.read_bytes() == b.read_bytes()

    def check(self, trace, stem):
        """Analyses a trace into STEM.json and STEM.txt."""
        return self.session.run(
            self.session.streamsan(
                "check",
                self.work / trace,
                "--json",
                self.work / f"{stem}.json",
                "--log-file",
                self.work / f"{stem}.txt",
            )
        )

    def live(self, program, stem):
        under = self.session.streamsan(
            "run",
            "-o",
            self.work / f"{stem}.trace",
            "--json",
            self.work / f"{stem}.live.json",
            "--log-file",
            self.work / f"{stem}.live.txt",
            "--",
        )
        return self.session.run([*under, sys.executable, program])


def run(session):
    session.need_gpu()
    session.need_python("torch")
    offline = Offline(session)
    steps = {"trace": trace, "memory": memory, "corpus": corpus, "pytest": pytest}
    for name, step in steps.items():
        if session.left() < 10:
            offline.table.row(LATE, name, LATE)
        else:
            step(offline)
    for name in ("racy.trace", "racy.live.json", "racy.live.txt", "memory.txt", "memory.pickle", "pytest.txt"):
        if (offline.work / name).exists():
            shutil.copy(offline.work / name, session.out / name)
    return session.finish(offline.table)


def trace(offline):
    """One program, live and from its trace, with its source and without."""
    work, program = offline.work, offline.work / "racy.py"
    shutil.copy(PROGRAMS / "offline_racy.py", program)
    ran = offline.live(program, "racy")
    (work / "said.txt").write_bytes(ran.out)
    offline.row("a racy PyTorch program is found live", ran.code == RACE, f"exit code {ran.code}")
    text = work / "racy.live.txt"
    offline.row("NVTX ranges name the part", text.exists() and "in step > forward" in text.read_text())
    checked = offline.check("racy.trace", "racy.later")
    offline.number("milliseconds to check the trace", round(checked.wall * 1000))
    offline.row("live and recorded JSON are the same", offline.same("racy.live.json", "racy.later.json"))
    offline.row("live and recorded text are the same", offline.same("racy.live.txt", "racy.later.txt"))
    program.rename(work / "gone.py")
    offline.check("racy.trace", "racy.moved")
    offline.row("without the source, the same", offline.same("racy.live.json", "racy.moved.json"))
    size = os.path.getsize(work / "racy.trace") if (work / "racy.trace").exists() else 0
    offline.number("bytes of the trace (with symbols and code)", size)
    made = offline.session.run(offline.session.streamsan("timeline", work / "racy.trace", "-o", work / "timeline.json"))
    try:
        events = len(json.loads((work / "timeline.json").read_text())["traceEvents"])
        offline.row("the time line is JSON", made.code == 0, f"{events} events")
    except (OSError, ValueError, KeyError) as error:
        offline.row("the time line is JSON", False, repr(error))


def memory(offline):
    """PyTorch's own viewer reads the snapshot."""
    session, work = offline.session, offline.work
    made = session.run(session.streamsan("memory", work / "racy.trace", "--snapshot", work / "memory.pickle"))
    (work / "memory.txt").write_bytes(made.out)
    offline.row("memory", made.code == 0, made.last_words())
    for line in [line for line in made.text.splitlines() if "peak" in line] + (
        work / "said.txt"
    ).read_text().splitlines():
        offline.table.note(line)
    viewer = [sys.executable, "-m", "torch.cuda._memory_viz"]
    for picture in ("trace_plot", "segment_plot", "stats", "trace"):
        page = ["-o", work / f"{picture}.html"] if picture.endswith("_plot") else []
        ran = session.run([*viewer, picture, work / "memory.pickle", *page])
        offline.row(f"_memory_viz {picture}", ran.code == 0, ran.errors.strip()[-120:] if ran.code else "")
    for picture in ("segments", "memory"):
        ran = session.run([sys.executable, PROGRAMS / "flamegraph.py", picture, work / "memory.pickle"])
        offline.row(f"_memory_viz {picture}", ran.code == 0, (ran.errors if ran.code else ran.text).strip()[-120:])


def corpus(offline):
    """Every program of the corpus, live and from its trace: both say the same, byte for byte."""
    session = offline.session
    programs = session.pick(cases.torch_corpus(), lambda c: c.name)

    def both(case):
        if session.left() < 5:
            return LATE, LATE
        live = offline.live(case.path, case.name).code
        # A program that failed here has no trace of interest: its exit code is its own, a trace has
        # none.
        if live not in (0, RACE):
            return ABSENT, f"not run here ({live})"
        later = offline.check(f"{case.name}.trace", f"{case.name}.later").code
        (offline.work / f"{case.name}.trace").unlink(missing_ok=True)
        ends = [f"{case.name}.{way}.{kind}" for kind in ("json", "txt") for way in ("live", "later")]
        if live == later and offline.same(*ends[:2]) and offline.same(*ends[2:]):
            return OK, f"same ({live})"
        for name in filter(lambda n: (offline.work / n).exists(), ends):
            shutil.copy(offline.work / name, session.out / name)
        return WRONG, f"DIFFERS ({live}, {later})"

    with session.jobs() as pool:
        for case, (outcome, note) in zip(programs, pool.map(both, programs)):
            offline.table.row(outcome, f"live and recorded agree: {case.name}", outcome, note)


def pytest(offline):
    """The plugin: the race belongs to one of two tests."""
    session, title = offline.session, "pytest --streamsan charges the race to its test"
    if importlib.util.find_spec("pytest") is None:
        return offline.table.row(ABSENT, title, ABSENT, "this Python has no pytest")
    tests = offline.work / "test_parts.py"
    shutil.copy(PROGRAMS / "pytest_parts.py", tests)
    env = environment(PATH=f"{session.binaries.folder}:{os.environ.get('PATH', '')}", PYTHONPATH=ROOT / "python")
    plugins = ["-p", "streamsan.pytest_plugin", "-p", "no:cacheprovider"]
    ran = session.run([sys.executable, "-m", "pytest", "-q", *plugins, "--streamsan", tests], env=env)
    text = ran.text + ran.errors
    (offline.work / "pytest.txt").write_text(text)
    charged = "test_racy" in text and not any("FAILED" in line and "test_ordered" in line for line in text.splitlines())
    offline.row(title, ran.code == 1 and charged, f"exit code {ran.code}")
    for line in text.splitlines()[-8:]:
        offline.table.note(line)
    return None
