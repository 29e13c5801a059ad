"""Exact mode: measured bytes, verdicts, predictions.

The parts, in their order:
  marks, truth      measured bytes against kernels that say what they touch
  graph             kernels that graphs launch, measured node by node
  cost, step        what each mode costs, beside NVIDIA's compute-sanitizer
  programs          verdicts of programs whose addresses are data; their output must stay the same
  indirect          operators of PyTorch whose addresses are data
  learned           measured once, then used without patching
  devices           scatters on every device, and into the memory of another one
  confirm           findings on trial: withdrawn, or confirmed as measured
  corpus            the corpus in exact mode
  oracle            predictions against measurements, for real workloads
  zoo               one of them alone (oracle contains it)
  held_out          the same for workloads that no rule is made for

Needs exact.fatbin beside streamsan (scripts/patch) and nvcc; PyTorch, Triton and
compute-sanitizer for their parts. What every program printed goes to FOLDER/exact.tar.xz.
"""

import tarfile

from harness.errors import CannotRun
from harness.options import Defaults, words
from harness.table import LATE

from . import cost, measured, oracle, verdicts
from .check import Check

DEFAULTS = Defaults(budget=280, timeout=60, jobs=4)
PARTS = {
    "marks": measured.marks,
    "truth": measured.truth,
    "graph": verdicts.graph,
    "cost": cost.cost,
    "step": cost.step,
    "programs": verdicts.programs,
    "indirect": verdicts.indirect,
    "learned": verdicts.learned,
    "devices": verdicts.devices,
    "confirm": verdicts.confirm,
    "corpus": verdicts.corpus,
    "oracle": oracle.oracle,
    "zoo": oracle.zoo,
    "held_out": oracle.held_out,
}
USUAL = [part for part in PARTS if part not in ("zoo", "held_out")]


def add_options(parser):
    parser.add_argument(
        "--parts",
        metavar="PART[,PART]",
        type=words,
        default=USUAL,
        help="only these (default: all but zoo and held_out)",
    )


def run(session):
    unknown = [part for part in session.args.parts if part not in PARTS]
    if unknown:
        raise CannotRun(f"no part is named {', '.join(unknown)}: there are {', '.join(PARTS)}")
    session.need_gpu()
    if not session.binaries.exact:
        raise CannotRun(f"no exact.fatbin in {session.binaries.source}: scripts/patch makes it")
    check = Check(session)
    for part in session.args.parts:
        session.say(f"== {part}")
        check.part = part
        if session.left() < 15:
            check.row(LATE, part, "")
            continue
        try:
            PARTS[part](check)
        except Exception as error:  # A part that fails must not end the others.
            check.wrong(part, f"{type(error).__name__}: {error}")
    (check.kept / "table.txt").write_text(check.table.text() + "\n")
    with tarfile.open(session.out / "exact.tar.xz", "w:xz") as archive:
        archive.add(check.kept, "exact")
    return session.finish(check.table)
