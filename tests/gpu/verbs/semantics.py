"""What is reported of the stream semantics in PyTorch's CUDA notes.

Runs every case of tests/gpu/programs/torch_semantics.py and prints what the notes say of it,
whether its memory is in fact unordered, what was reported, and what orders the forms that are
called unsafe and are not. Needs PyTorch; about a minute.
"""

import sys

from harness import reports
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=300, timeout=200, jobs=6)
PROGRAM = PROGRAMS / "torch_semantics.py"


def add_options(_):
    pass


def run(session):
    session.need_gpu()
    session.need_python("torch")
    listed = session.run([sys.executable, PROGRAM])
    forms = session.pick([line.split("\t") for line in listed.text.splitlines()], lambda form: form[0])
    if not forms:
        raise CannotRun(f"{PROGRAM.name} lists no form with one of these words: {listed.last_words()}")
    table = Table({"form": "52", "notes": "8", "truth": "6", "reported": "8", "": "7", "note": ""})
    with session.jobs() as pool:
        results = pool.map(lambda form: reported(session, form[0]), forms)
        for (name, documented, truth, why), (verdict, said) in zip(forms, results):
            outcome = LATE if verdict == LATE else OK if verdict == truth else WRONG
            table.row(outcome, name, documented, truth, verdict, outcome, said or (f"ordered: {why}" if why else ""))
    return session.finish(table)


def reported(session, name):
    """The verdict, and the lines of each finding."""
    if session.left() < 5:
        return LATE, ""
    report = session.out / f"{name}.json"
    ran = session.run(
        [*session.streamsan("run", "--error-exitcode", "0", "--json", report, "--"), sys.executable, PROGRAM, name]
    )
    data = reports.load(report)
    if ran.text != "done\n" or data is None:
        own = [line for line in ran.errors.strip().splitlines() if not line.startswith("streamsan:")]
        return "FAILED", (own or [f"exit {ran.code}"])[-1][:120]

    def line(side):
        return reports.line_in(side["stack"], PROGRAM.name)

    found = data["findings"]
    said = {f"{f['kind']} {f['hazard']} {f['confidence']} {line(f['previous'])}/{line(f['access'])}" for f in found}
    return "race" if found else "clean", ", ".join(sorted(said))
