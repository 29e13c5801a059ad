"""Races inside kernels: compute-sanitizer's racecheck beside StreamSan on the simulated GPU.

Runs each program twice: under `compute-sanitizer --tool racecheck` on the GPU, and under
`streamsan --sim --inside`. Prints what each says, and how many races and alarms each has in all.
The programs are the twins of programs/inside, racy and mended, compiled for sm_80 and as PTX; with
--list others, one a line: suite and name, tab, `racy` or `clean`, tab, the command, which runs in
the list's folder (`cargo xtask inside-suites --list` archives one with its programs). Only
StreamSan's verdict on a twin can be WRONG: what racecheck says is the result. Needs nvcc for the
twins; about 300 s.
"""

import collections
import dataclasses
import pathlib
import re
import shlex

from harness import cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS
from harness.process import environment
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=480, timeout=60, jobs=4)
TWINS = PROGRAMS / "inside"
FINDINGS = 66
RACE, SILENT = "race", "silent"


@dataclasses.dataclass
class Case:
    """A program, and whether it has a race inside a kernel."""

    name: str
    racy: bool
    command: list | None = None
    folder: pathlib.Path | None = None
    source: pathlib.Path | None = None


def add_options(parser):
    parser.add_argument("--sanitizer", metavar="FILE", help="compute-sanitizer (default: where CUDA has it)")
    parser.add_argument("--list", metavar="FILE", help="programs of others, in place of the twins")


def run(session):
    sanitizer = session.args.sanitizer or cuda.tool("compute-sanitizer")
    if not sanitizer:
        raise CannotRun("no compute-sanitizer here; name it with --sanitizer")
    if not session.args.sanitizer:
        session.need_gpu()
    cases = listed(session.args.list) if session.args.list else twins()
    cases = session.pick(cases, lambda case: case.name)
    if not cases:
        raise CannotRun("no program has one of these words in its name")
    table = Table({"program": "34", "truth": "6", "racecheck": "10", "s": ">6", "StreamSan": "10", "s ": ">6", "": ""})
    tally = collections.defaultdict(Tally)
    with session.jobs() as pool:
        for case, theirs, ours in pool.map(lambda case: compare(session, sanitizer, case), cases):
            add_row(session, table, tally, case, theirs, ours)
    for (suite, tool), of in sorted(tally.items()):
        table.note(f"{suite}{tool}: {of.found} of {of.racy} racy programs, {of.alarms} alarms in {of.clean} clean ones")
    return session.finish(table)


@dataclasses.dataclass
class Tally:
    """What one tool says of all programs that it could judge."""

    racy: int = 0
    found: int = 0
    clean: int = 0
    alarms: int = 0

    def count(self, case, verdict):
        if verdict not in (RACE, SILENT):
            return
        self.racy += case.racy
        self.clean += not case.racy
        self.found += case.racy and verdict == RACE
        self.alarms += not case.racy and verdict == RACE


def twins():
    for source in sorted(TWINS.glob("*.cu")):
        yield Case(f"{source.stem} racy", True, source=source)
        yield Case(f"{source.stem} mended", False, source=source)


def listed(file):
    folder = pathlib.Path(file).resolve().parent
    for number, line in enumerate(pathlib.Path(file).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 3 or cells[1] not in ("racy", "clean"):
            raise CannotRun(f"{file}:{number}: a name, 'racy' or 'clean' and a command are needed, with tabs between")
        yield Case(cells[0], cells[1] == "racy", command=shlex.split(cells[2]), folder=folder)


def compare(session, sanitizer, case):
    """The case, and what each tool says of it with the seconds that it took; `None`: no time."""
    if session.left() < 5:
        return case, None, None
    command = case.command
    if command is None:
        flags = ["-std=c++17", "-lineinfo", *code_for(arch_of(case)), "-diag-suppress", "20012,20013"]
        built = session.compiler.compile(case.source, *flags, *([] if case.racy else ["-DMENDED"]))
        if built.path is None:
            return case, ("does not compile", 0, built.error), ("", 0, "")
        command = [built.path]
    simulated = f"arch={arch_of(case)}:code=ptx" if case.source else "code=ptx"
    log = re.sub(r"\W+", "-", case.name)
    theirs = judged(session.run([sanitizer, "--tool", "racecheck", *command], cwd=case.folder))
    if session.left() < 5:
        return case, theirs, None
    ran = session.run(
        session.streamsan("run", "--sim", "--inside", "--log-file", session.out / f"{log}.txt", "--", *command),
        env=environment(STREAMSAN_SIM=simulated),
        cwd=case.folder,
    )
    verdict = {0: SILENT, FINDINGS: RACE}.get(ran.code, f"exit {ran.code}")
    return case, theirs, ("hung" if ran.hung else verdict, ran.wall, ran.last_words())


def arch_of(case):
    """Clusters need 9.0."""
    return 90 if "__cluster_dims__" in case.source.read_text() else 80


def code_for(arch):
    """Machine code for the GPU, which may be a newer one, and PTX for both."""
    return ["-gencode", f"arch=compute_{arch},code=[sm_{arch},compute_{arch}]"]


def judged(ran):
    """What racecheck says: its summary has errors and warnings, of which both are hazards."""
    if ran.hung:
        return "hung", ran.wall, ""
    said = re.search(r"RACECHECK SUMMARY: (\d+) hazards?", ran.text + ran.errors)
    if said is None:
        return f"exit {ran.code}", ran.wall, (ran.text + ran.errors).strip()[-300:]
    return RACE if int(said[1]) else SILENT, ran.wall, ""


def add_row(session, table, tally, case, theirs, ours):
    truth = "racy" if case.racy else "clean"
    if theirs is None or ours is None:
        return table.row(LATE, case.name, truth, LATE)
    # Lists have names of a suite and a program.
    suite = f"{case.name.split()[0]}, " if session.args.list else ""
    tally[suite, "racecheck"].count(case, theirs[0])
    tally[suite, "StreamSan"].count(case, ours[0])
    right = ours[0] == (RACE if case.racy else SILENT)
    # Programs of others are compared, not checked.
    is_wrong = not right and (session.args.list is None or ours[0] not in (RACE, SILENT))
    below = [*([theirs[2]] if theirs[0] not in (RACE, SILENT) else []), *([ours[2]] if is_wrong else [])]
    return table.row(
        WRONG if is_wrong else OK,
        case.name,
        truth,
        theirs[0],
        f"{theirs[1]:.1f}",
        ours[0],
        f"{ours[1]:.1f}",
        "WRONG" if is_wrong else "",
        below=below,
        racy=case.racy,
        racecheck=theirs[0],
        streamsan=ours[0],
    )
