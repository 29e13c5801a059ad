"""CUDA's rules of order: what calls wait for, and a program for each rule.

tests/gpu/programs/what_waits.cu must give every answer of the committed table. Every case of
order_rules.cu must get its verdict and, where there are two GPUs, so must those of two_gpus.cu,
two_gpus.py (peer copies, NCCL, DDP, FSDP) and torch_clean's. Each case runs bare and under
`streamsan run`; exit code and output must be the same. Needs nvcc; about 100 s.
"""

import concurrent.futures
import dataclasses
import re
import sys

from harness import reports
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=300, timeout=60, jobs=5)
# The exit code of a case that this machine cannot run.
CANNOT = 77


@dataclasses.dataclass
class Case:
    """A case of a program that lists several, or (without a name) a whole program."""

    program: list
    file: str
    name: str
    verdict: str

    @property
    def title(self):
        return f"{self.file}-{self.name}"


def add_options(_):
    pass


def run(session):
    devices = session.need_gpu()
    names = ["what_waits", "order_rules"] + (["two_gpus"] if len(devices) > 1 else [])
    with session.jobs() as pool:
        built = dict(zip(names, pool.map(lambda name: compiled(session, name), names)))
        session.say("compiled")
        table = Table({"case": "52", "truth": "5", "found": ">5", "bare": ">6", "under": ">6", "": "9", "note": ""})
        what_waits = built.pop("what_waits")
        if session.wanted("what_waits"):
            # Alone: it measures.
            compare_answers(session, table, what_waits)
        cases = list_cases(session, built, len(devices))
        # The long ones first.
        cases.sort(key=lambda c: not c.file.endswith(".py"))
        for done in concurrent.futures.as_completed([pool.submit(check, session, c) for c in cases]):
            add_row(table, *done.result())
    return session.finish(table)


def compiled(session, name):
    built = session.compiler.compile(
        PROGRAMS / f"{name}.cu", "-O2", "-g", "-lineinfo", "-std=c++17", "-arch=native", limit=120
    )
    if built.path is None:
        raise CannotRun(f"{name}.cu does not compile: {built.error[-500:]}")
    return [built.path]


def list_cases(session, built, devices):
    programs = [(f"{name}", command) for name, command in built.items()]
    if devices > 1:
        programs.append(("two_gpus.py", [sys.executable, PROGRAMS / "two_gpus.py"]))
    cases = []
    for file, command in programs:
        listed = session.run([*command, "--list"])
        if listed.code or not listed.text:
            raise CannotRun(f"{file} --list: exit {listed.code}: {listed.last_words()}")
        cases += [Case(command, file, *line.split(" ", 1)) for line in listed.text.splitlines()]
    for name in ("two_gpus.py", "ddp.py") if devices > 1 else ():
        cases.append(Case([sys.executable, PROGRAMS / "torch_clean" / name], f"torch_clean-{name}", "", "clean"))
    return session.pick(cases, lambda c: c.title)


def compare_answers(session, table, program):
    """What calls wait for on this GPU, against the committed table."""
    ran = session.run(program)
    (session.out / "what_waits.txt").write_bytes(ran.out)

    def answers(text):
        return {re.sub(r" \([\d.]+ ms\)$", "", line) for line in text.splitlines()}

    here, committed = answers(ran.text), answers((PROGRAMS / "what_waits.txt").read_text())
    gone = sorted(committed - here)
    table.row(
        WRONG if ran.code else OK,
        "what_waits",
        "",
        len(here),
        f"{ran.wall:.1f}",
        "",
        "exit" if ran.code else "ok",
        f"{len(here)} rows, {len(here - committed)} not in the committed table, {len(gone)} no longer true; "
        f"exit {ran.code} {ran.last_words(200)}".strip(),
        below=gone,
    )


def check(session, case):
    """The case, how it ended bare and under the tool, what is wrong with it, what was found."""
    if session.left() < 5:
        return case, None, None, [LATE], [], {}
    report, log = session.out / f"{case.title}.json", session.out / f"{case.title}.txt"
    command = [*case.program, *([case.name] if case.name else [])]
    bare = session.run(command)
    if bare.code == CANNOT:
        return case, bare, None, [], [], {}
    ran = session.run(
        [*session.streamsan("run", "--error-exitcode", "0", "--json", report, "--log-file", log, "--"), *command]
    )
    problems = []
    if bare.code:
        problems.append(f"bare exit {bare.code}: {bare.last_words()!r}")
    if ran.code != bare.code:
        problems.append(f"exit {ran.code} instead of {bare.code}: {ran.last_words()!r}")
    # What a racy program computes is not defined.
    if case.verdict == "clean" and hidden(ran) != hidden(bare):
        problems.append(f"output {ran.text[-200:]!r} instead of {bare.text[-200:]!r}")
    data = reports.load(report)
    found = reports.findings(data) if data else []
    if data is None:
        problems.append("no JSON")
    elif (case.verdict == "race") != bool(found):
        problems.append("FALSE ALARM" if found else "MISSED")
    return case, bare, ran, problems, found, (data or {}).get("coverage", {})


def hidden(ran):
    return re.sub(r"\d+", "#", ran.text)


def add_row(table, case, bare, ran, problems, found, coverage):
    if bare is None:
        return table.row(LATE, case.title, case.verdict, "", "", "", LATE, name=case.title)
    if ran is None:
        return table.row(
            ABSENT, case.title, case.verdict, "", f"{bare.wall:.1f}", "", ABSENT, "cannot run here", name=case.title
        )
    note = "; ".join(problems) + "".join(
        f", not modelled: {name} ({n})" for name, n in coverage.get("not_modelled", {}).items()
    )
    kinds = [f"{f['hazard']} {reports.name(f['previous'])} / {reports.name(f['access'])}"[:180] for f in found]
    shown = kinds[:3] if problems or ".py" in case.title or case.file == "two_gpus" else []
    return table.row(
        WRONG if problems else OK,
        case.title,
        case.verdict,
        len(found),
        f"{bare.wall:.1f}",
        f"{ran.wall:.1f}",
        "WRONG" if problems else "ok",
        note,
        below=shown,
        name=case.title,
        kinds=kinds,
    )
