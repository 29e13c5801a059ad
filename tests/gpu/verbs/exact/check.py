"""What the parts share: rows, runs whose output is kept, and the verdict of a run in exact mode."""

import re
import time

from harness import reports
from harness.places import SHARED
from harness.process import environment
from harness.table import KNOWN, LATE, OK, WRONG, Table

PROGRAMS = SHARED / "exact"
PRECISION = SHARED / "precision"
# What exact mode does not see: the host's own loads and stores (see --host-accesses).
NOT_SEEN = {"c_host_reads_download_early", "c_host_reads_small_download_early"}


class Check:
    """The rows of one call."""

    def __init__(self, session):
        self.session, self.part = session, ""
        self.kept = session.work / "kept"
        self.kept.mkdir()
        self.table = Table({"part": "9", "case": "40", "": "8", "what was seen": ""})

    # ---- rows

    def row(self, outcome, case, text, below=()):
        self.table.row(outcome, self.part, case, outcome, text, below=below)

    def right(self, case, text, below=()):
        self.row(OK, case, text, below)

    def wrong(self, case, text, below=()):
        self.row(WRONG, case, text, below)

    def judged(self, fine, case, text):
        self.row(OK if fine else WRONG, case, text)

    # ---- running

    def run(self, name, command, timeout=60, **more):
        """Runs a command. What it printed is kept."""
        env = environment(TRITON_CACHE_DIR=self.session.work / "triton", XLA_PYTHON_CLIENT_PREALLOCATE="false", **more)
        command = list(map(str, command))
        ran = self.session.run(command, factor=timeout / 60, env=env)
        said = f"{ran.text[-200000:]}\n--\n{ran.errors[-200000:]}"
        (self.kept / f"{name}.txt").write_text(f"{command}\nexit {ran.code}, {ran.wall:.1f} s\n{said}")
        return ran

    def streamsan(self, *words):
        return self.session.streamsan(*words)

    def compile(self, source, *flags):
        """The program, or None, which is a row that says why."""
        if self.session.left() < 15:
            self.row(LATE, source.stem, "")
            return None
        built = self.session.compiler.compile(source, "-O2", "-std=c++17", "-arch=native", *flags)
        if built.path is None:
            self.wrong(source.stem, f"does not compile: {built.error[-400:]}")
        return built.path

    def all(self, do, jobs):
        """Does several jobs at a time. The first word of each is its name."""

        def one(job):
            if self.session.left() > 15:
                do(job)
            else:
                self.row(LATE, job[0], "")

        with self.session.jobs() as pool:
            list(pool.map(one, self.session.pick(jobs, lambda job: job[0])))

    # ---- verdicts

    def verdict(self, name, command, race, same=None, timeout=60, mode=("--exact",)):
        """A program in exact mode. `race` None: anything may be found. `same` judges what it
        printed.
        """
        report, began = self.kept / f"{name}.json", time.monotonic()
        under = self.streamsan(*mode, "--no-stacks", "--error-exitcode", "0", "--json", report, "--")
        ran = self.run(name, [*under, *command], timeout)
        data = reports.load(report)
        if data is None:
            return self.wrong(name, f"exit {ran.code}, no report: {ran.last_words()}")
        findings, launches = data["findings"], data["coverage"]["launches"]
        what = ", ".join(f"{f['confidence']}/{f['established']} {f['hazard']}" for f in findings) or "silent"
        fine = ran.code == 0 and race in (None, bool(findings)) and (same is None or same(ran.text))
        measured = all(f["established"] == "exact" and f["confidence"] == "certain" for f in findings) if race else True
        expected = "race" if race else "anything" if race is None else "silence"
        text = (
            f"exit {ran.code}, {time.monotonic() - began:.1f} s, {what}; expected {expected}; "
            f"{launches['measured']} of {launches['total']} launches measured {notes(ran)}"
        )
        if race and "--confirm" in mode:
            fine = fine and any(f["confidence"] == "certain" for f in findings)
            measured = True
        if name in NOT_SEEN:
            return self.row(OK if fine else KNOWN, name, text)
        if fine:
            return self.right(name, text + ("" if measured else " (not by measurement)"))
        return self.wrong(name, text, below=[f"output {ran.text[-200:]!r}", f"errors {ran.last_words()!r}"])


def notes(ran):
    """StreamSan's own remarks on exact mode."""
    lines = (
        re.sub(r"^streamsan: ", "", line)
        for line in ran.errors.splitlines()
        if re.match(r"streamsan: (NOTE|EXACT|no exact)", line)
    )
    return "; ".join(lines)
