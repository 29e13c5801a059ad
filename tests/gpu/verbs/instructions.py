"""Single instructions: what the device makes of odd values, against what is on record.

sim/tests/measured/instructions.txt holds instructions, values and an H100's results, which the
simulated GPU is tested against. Here the device answers again. `--record` writes its answers into
the file. Needs ptxas; about 15 s.
"""

import itertools
import json
import re
import sys

from harness import cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS, ROOT
from harness.process import environment
from harness.table import OK, WRONG, Table

DEFAULTS = Defaults(budget=120, timeout=100, jobs=None, sim=True)
MEASURED = ROOT / "sim/tests/measured/instructions.txt"
HEAD = ".version 8.3\n.target {arch}\n.address_size 64\n"


def add_options(parser):
    parser.add_argument("--record", action="store_true", help="write the device's answers into the file")
    parser.add_argument("--arch", default="sm_90", help="compile for this one (default: %(default)s)")


def run(session):
    if not session.args.sim:
        session.need_gpu()
    text = MEASURED.read_text()
    values, kernel, asked = parse(text)
    module = HEAD.format(arch=session.args.arch) + "".join(
        kernel.replace("NAME", f"k{at}").replace("BODY", body) for at, (_, body, _) in enumerate(asked)
    )
    (session.work / "all.ptx").write_text(module)
    code = session.work / "all.cubin"
    made = session.run([cuda.ptxas(), f"-arch={session.args.arch}", "-o", code, session.work / "all.ptx"])
    if made.code:
        raise CannotRun(f"ptxas: {made.last_words()}")
    inputs = [list(itertools.product(*(values[name] for name in names))) for names, _, _ in asked]
    (session.work / "in.json").write_text(json.dumps(inputs))
    program = [sys.executable, PROGRAMS / "instructions.py", code, session.work / "in.json", session.work / "out.json"]
    ran = session.run(program, env=environment(**session.simulated(session.args.arch)))
    if ran.code:
        raise CannotRun(f"exit {ran.code}: {ran.last_words()}")
    answers = json.loads((session.work / "out.json").read_text())
    if session.args.record:
        MEASURED.write_text(recorded(text, answers))
    table = Table({"instruction": "60", "": "5", "same": ">4", "of": ">4", "first": ""})
    for (_, body, known), given, answer in zip(asked, inputs, answers):
        known = answer if session.args.record else known
        wrong = [(v, a, b) for v, a, b in zip(given, known, answer) if a != b]
        outcome = WRONG if wrong or len(known) != len(answer) else OK
        first = ", ".join(f"{' '.join(f'{x:x}' for x in v)}: {a:x} recorded, {b:x}" for v, a, b in wrong[:2])
        table.row(outcome, body[:60], outcome, len(answer) - len(wrong), len(answer), first)
    return session.finish(table)


def parse(text):
    """The sets of values, the text of a kernel, and of each instruction: its sets, it, its results."""
    values, kernel, asked = {}, [], []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "values":
            name, *numbers = rest.split()
            values.setdefault(name, []).extend(int(number, 16) for number in numbers)
        elif word == "do":
            names, _, body = rest.partition(": ")
            asked.append((names.split(), body, []))
        elif asked and line.startswith(" "):
            asked[-1][2].extend(int(number, 16) for number in line.split())
        elif line.startswith(" "):
            kernel.append(line)
    return values, "\n".join(kernel) + "\n", asked


def recorded(text, answers):
    """The file with these answers."""
    answers, lines = iter(answers), []
    for line in text.splitlines():
        if line.startswith(" ") and re.fullmatch(r"[0-9a-f ]+", line):
            continue
        lines.append(line)
        if line.startswith("do "):
            row = "   "
            for number in next(answers):
                word = f" {number:x}"
                if len(row) + len(word) > 100:
                    lines.append(row)
                    row = "   "
                row += word
            lines.append(row)
    return "\n".join(lines) + "\n"
