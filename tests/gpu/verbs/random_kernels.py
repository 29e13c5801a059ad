"""Random kernels: every word that the device makes against the simulated GPU's.

Takes a folder of kernels with their input and the simulator's output, which `NATIVE_FUZZ_KEEP` has
left there (see sim/tests/native_fuzz). ptxas compiles each for the device, and
tests/gpu/programs/random_kernels.py launches it. Of machine code with NATIVE_FUZZ_EXACT every word
must be the same; without, the last bits of approximate functions differ. A third of a second a
kernel and core.
"""

import array
import concurrent.futures
import pathlib
import subprocess
import sys

from harness import cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS
from harness.process import environment
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=300, timeout=60, sim=True)
# Kernels that one process launches, one after the other.
BATCH = 25


def add_options(parser):
    parser.add_argument("--kernels", metavar="FOLDER", type=pathlib.Path, required=True, help="what was kept")
    parser.add_argument("--device", metavar="FOLDER", type=pathlib.Path, help="leave here what the device makes")
    parser.add_argument("--arch", metavar="ARCH", help="compile for this one (default: the device's)")


def run(session):
    if not session.args.sim:
        session.need_gpu()
    outputs = session.pick(session.args.kernels.glob("native-fuzz-*.output"), lambda file: file.stem)
    seeds = sorted(int(file.stem.rpartition("-")[2]) for file in outputs)
    if not seeds:
        raise CannotRun(f"{session.args.kernels}: no kernel with an output is there, or with one of these words")
    if session.args.device:
        session.args.device.mkdir(parents=True, exist_ok=True)
    arch = session.args.arch or ("sm_80" if session.args.sim else of_device())
    table = Table({"seeds": "24", "": "8", "same": ">6", "differ": ">6", "words": ">7", "note": ""})
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    with session.jobs(session.cores) as pool:
        done = [pool.submit(check, session, arch, batch) for batch in batches]
        for batch in concurrent.futures.as_completed(done):
            cells, below = batch.result()
            table.row(*cells, below=below)
    return session.finish(table)


def of_device():
    """The first device's architecture, as ptxas names it."""
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True
    )
    return "sm_" + asked.stdout.split()[0].replace(".", "")


def check(session, arch, seeds):
    """The row of a batch."""
    title = f"{seeds[0]} to {seeds[-1]}"
    place = {kind: [session.args.kernels / f"native-fuzz-{seed}.{kind}" for seed in seeds] for kind in ("ptx", "output")}
    made = []
    for seed, ptx in zip(seeds, place["ptx"]):
        if session.left() < 10:
            return (LATE, title, LATE), []
        code = session.work / f"{seed}.cubin"
        if session.run([cuda.ptxas(), f"-arch={arch}", "-o", code, ptx]).code == 0:
            made.append(seed)
    if not made:
        return (ABSENT, title, ABSENT, "", "", "", "ptxas compiles none of them"), []
    program = [sys.executable, PROGRAMS / "random_kernels.py", session.args.kernels, session.work]
    program.append(session.args.device or session.work)
    waiting, failed = made, []
    while waiting:
        ran = session.run([*program, *waiting], env=environment(**session.simulated(arch)))
        # It ends at the first that fails.
        ended = next((at for at, seed in enumerate(waiting) if not device_output(session, seed).exists()), len(waiting))
        failed += [f"seed {seed}: exit {ran.code}: {ran.last_words()}" for seed in waiting[ended : ended + 1]]
        waiting = waiting[ended + 1 :]
    same, differ, words = 0, [], 0
    for seed in made:
        if not device_output(session, seed).exists():
            continue
        mine = (session.args.kernels / f"native-fuzz-{seed}.output").read_bytes()
        wrong = differences(mine, device_output(session, seed).read_bytes())
        same += not wrong
        words += len(wrong)
        if wrong:
            first = ", ".join(f"word {at}: {a:#x} simulated, {b:#x} here" for at, a, b in wrong[:3])
            differ.append(f"seed {seed}: {len(wrong)} words: {first}")
            (session.out / f"{seed}.words").write_text("".join(f"{at} {a:08x} {b:08x}\n" for at, a, b in wrong))
    counts = {"failed": len(failed), "not compiled": len(seeds) - len(made)}
    note = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    outcome = WRONG if differ or failed else OK
    return (outcome, title, outcome, same, len(differ), words, note), failed + differ


def device_output(session, seed):
    return (session.args.device or session.work) / f"{seed}.device"


def differences(mine, theirs):
    """Place, and both values, of words that differ."""
    if mine == theirs:
        return []
    pairs = zip(array.array("I", mine), array.array("I", theirs))
    return [(at, a, b) for at, (a, b) in enumerate(pairs) if a != b]
