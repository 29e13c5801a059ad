"""What a PyTorch training step costs under StreamSan.

All ways are loaded at once and take turns, so that what else the machine does hits them alike. A
row gives the median of a step's time over the rounds, and of its ratio to the bare one's of the
same round the median and the quartiles. `bare again` shows the noise.

--workloads measures nine other programs in the same way (models of Hugging Face, cuDNN, JAX, CuPy,
Triton, NCCL; three of them need two GPUs). A row then gives what an operation costs more, and how
long the process takes to end, too. `--ways recorded` is the shim with an analyzer that only writes
the trace.

--beside FOLDER takes another build's binaries into the same turns (`other stacks`, `other no
stacks`): before and after a change, whatever the machine does meanwhile.

--within takes turns within one process instead: some steps are observed, some are passed on.
Neither another process's memory nor its cores make a difference then; `bare` shows the noise, and
the cost of passing calls on is left out. It needs a library of its own: `cargo build --release -p
shim --features pass`. Needs PyTorch, and a machine that does nothing else.
"""

import contextlib
import random
import select
import subprocess
import sys
import time

from harness import binaries, cuda
from harness.errors import CannotRun
from harness.medians import median, quartiles, ratios
from harness.options import Defaults, words
from harness.places import SHARED
from harness.process import environment, kill_group, watched
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=1200, timeout=600, jobs=None)
PROGRAM = SHARED / "bench" / "training.py"
WORKLOADS = SHARED / "bench" / "workloads.py"
# Operations of a step, about; and GPUs.
OPERATIONS = {
    "hf_llama": (1260, 1),
    "kv_offload": (70, 1),
    "cupy_pipeline": (8, 1),
    "jax_train": (60, 1),
    "rnn_ctc_fft": (5100, 1),
    "triton_tma": (2, 1),
    "batch_p2p": (16, 2),
    "async_reduce": (36, 2),
    "symmetric": (18, 2),
}
USUAL_WORKLOADS = "bare,bare again,no stacks,stacks"
USUAL = "bare,bare again,no stacks,stacks,CSAN"
USUAL_WITHIN = "bare,no stacks,stacks"
OTHER = ",other no stacks,other stacks"


def add_options(parser):
    parser.add_argument("--within", action="store_true", help="turns within one process")
    parser.add_argument(
        "--workloads",
        metavar="NAME[,NAME]",
        type=words,
        nargs="?",
        const=list(OPERATIONS),
        help="other programs instead of the models; without names all nine",
    )
    parser.add_argument(
        "--models",
        metavar="NAME[,NAME]",
        type=words,
        default=["transformer", "resnet"],
        help="default: transformer,resnet",
    )
    parser.add_argument(
        "--ways",
        metavar="WAY[,WAY]",
        type=words,
        help=f"of bare, bare again, off, no stacks, stacks, small ring, recorded, CSAN (default: {USUAL}; "
        f"with --within: {USUAL_WITHIN}; with --workloads: {USUAL_WORKLOADS})",
    )
    parser.add_argument("--beside", metavar="FOLDER", help="binaries of another build, in turns with these")
    parser.add_argument("--rounds", metavar="N", type=int, default=20)
    # With turns of five steps the quartiles of `bare again` lay at 0.84 and 1.09, with ten at 0.93
    # and 1.09.
    parser.add_argument("--steps", metavar="N", type=int, default=10, help="steps of one turn (default: %(default)s)")


class Ended(Exception):
    """A process of a way ended before it was asked to."""


class Way:
    """A process that takes steps when it is asked to."""

    def __init__(self, name, start, env, program):
        self.name, self.times, self.ended_in = name, [], float("nan")
        self.child = subprocess.Popen(
            [*start, sys.executable, *map(str, program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(**env),
            start_new_session=True,
        )

    def ask(self, limit, line=None):
        try:
            if line is not None:
                self.child.stdin.write(f"{line}\n")
                self.child.stdin.flush()
        except OSError as error:
            raise Ended(f"{self.name}: {error}") from error
        # Each answer is one line, so nothing waits in a buffer.
        if not select.select([self.child.stdout], [], [], limit)[0]:
            raise Ended(f"{self.name}: no answer within {limit:.0f} s")
        answer = self.child.stdout.readline().strip()
        if not answer:
            raise Ended(f"{self.name} ended: {self.child.wait(10)}")
        return answer

    def end(self):
        """Lets it end by itself, for a while, and measures that."""
        if self.child.poll() is not None:
            return
        began = time.monotonic()
        try:
            self.child.communicate(timeout=20)
            self.ended_in = time.monotonic() - began
        except (subprocess.TimeoutExpired, OSError, ValueError):
            kill_group(self.child.pid)
            self.child.wait()


def ways_of(session):
    """By name: what comes before the program, and its environment."""
    log = ["run", "--error-exitcode", "0", "--log-file", "/dev/null"]
    ways = {
        "bare": ([], {}),
        "bare again": ([], {}),
        "off": (session.streamsan(*log, "--off", "--"), {}),
        "no stacks": (session.streamsan(*log, "--no-stacks", "--"), {}),
        "stacks": (session.streamsan(*log, "--"), {}),
        "small ring": (session.streamsan(*log, "--ring-mib", "1", "--"), {}),
        "recorded": (session.streamsan("record", "-o", session.work / "cost.trace", "--"), {}),
        "CSAN": ([], {"TORCH_CUDA_SANITIZER": "1"}),
    }
    usual = USUAL_WORKLOADS if session.args.workloads else USUAL_WITHIN if session.args.within else USUAL
    if session.args.beside:
        place = session.work / "beside"
        place.mkdir()
        other = binaries.Binaries(binaries.find(session.args.beside), place).streamsan
        ways |= {
            "other no stacks": ([other, *log, "--no-stacks", "--"], {}),
            "other stacks": ([other, *log, "--"], {}),
        }
        usual += OTHER
    asked = session.args.ways or words(usual)
    if unknown := [name for name in asked if name not in ways]:
        raise CannotRun(f"no way is named {', '.join(unknown)}: there are {', '.join(ways)}")
    return {name: ways[name] for name in asked}


def run(session):
    session.need_gpu()
    session.need_python("torch")
    args, ways = session.args, ways_of(session)
    if args.within and b"streamsan_pass" not in session.binaries.shim.read_bytes():
        raise CannotRun(
            f"libstreamsan.so in {session.binaries.source} cannot pass calls on: "
            "cargo build --release -p shim --features pass"
        )
    if args.workloads:
        return workloads(session, ways)
    table = Table(
        {"model": "12", "way": "20", "ms": ">8", "ratio": ">8", "quartiles": "18", "fastest ms": ">10", "": ""}
    )
    for model in session.pick(args.models, str):
        (within if args.within else models)(session, table, model, ways)
    return session.finish(table)


def workloads(session, ways):
    """The other programs, each in turns."""
    if unknown := [name for name in session.args.workloads if name not in OPERATIONS]:
        raise CannotRun(f"no workload is named {', '.join(unknown)}: there are {', '.join(OPERATIONS)}")
    table = Table(
        {"workload": "14", "way": "16", "ms": ">8", "ratio": ">8", "quartiles": "16", "added us/op": ">12",
         "its quartiles": "18", "ends in s": ">10", "": ""}
    )
    for name in session.pick(session.args.workloads, str):
        operations, gpus = OPERATIONS[name]
        if len(cuda.devices()) < gpus:
            table.row(ABSENT, name, "", "", "", "", "", "", "", f"needs {gpus} GPUs")
            continue
        loaded, problem = in_turns(session, ways, [WORKLOADS, name])
        if problem:
            table.row(problem[0], name, "", "", "", "", "", "", "", problem[1])
        for way in loaded:
            add_workload(table, name, operations, way, loaded[0].times)
    return session.finish(table)


def add_workload(table, name, operations, way, bare):
    if not way.times:
        return
    low, middle, high = ratios(way.times, bare)
    added = [(taken - other) / operations / 1e3 for taken, other in zip(way.times, bare)]
    below, between, above = quartiles(added)
    table.row(
        OK,
        name,
        way.name,
        f"{median(way.times) / 1e6:.3f}",
        f"{middle:.3f}x",
        f"{low:.3f} to {high:.3f}",
        f"{between:+.2f}",
        f"{below:+.2f} to {above:+.2f}",
        f"{way.ended_in:.2f}",
        nanoseconds=median(way.times),
        middle=middle,
        low=low,
        high=high,
        added=between,
        ended_in=way.ended_in,
    )


def models(session, table, model, ways):
    loaded, problem = in_turns(session, ways, [PROGRAM, model, "turns"])
    if problem:
        table.row(problem[0], model, "", "", "", "", "", problem[1])
    if not problem or problem[0] == LATE:
        for way in loaded:
            add_row(table, model, way.name, way.times, loaded[0].times)


def in_turns(session, ways, program):
    """Each round asks every way for some steps, in an order of its own. The ways with their times,
    and what went wrong: an outcome and its reason."""
    problem, loaded = None, []
    with contextlib.ExitStack() as ends:
        try:
            for name, (start, env) in ways.items():
                way = Way(name, start, env, program)
                loaded.append(way)
                ends.enter_context(watched(way.child.pid))
                ends.callback(way.end)
            for way in loaded:
                way.ask(session.limit())
            for number in range(session.args.rounds):
                if session.left() < 5:
                    problem = (LATE, f"{number} of {session.args.rounds} rounds")
                    break
                for way in random.sample(loaded, len(loaded)):
                    way.times.append(int(way.ask(session.limit(), session.args.steps)))
        except Ended as error:
            problem = (WRONG, str(error))
    return loaded, problem


def within(session, table, model, ways):
    """Medians of a round's observed steps, and of those that passed, in nanoseconds."""
    for name, (start, env) in ways.items():
        command = [*start, sys.executable, PROGRAM, model, "within", session.args.rounds, session.args.steps]
        ran = session.run(command, env=environment(**env))
        if ran.code or not ran.out:
            table.row(WRONG, model, name, "", "", "", "", f"exit {ran.code} {ran.last_words(200)}")
            continue
        add_row(table, model, name, *zip(*(map(int, line.split()) for line in ran.text.splitlines())))


def add_row(table, model, name, times, bare):
    if not times:
        return
    low, middle, high = ratios(times, bare)
    table.row(
        OK,
        model,
        name,
        f"{median(times) / 1e6:.2f}",
        f"{middle:.3f}x",
        f"{low:.3f} to {high:.3f}",
        f"{min(times) / 1e6:.2f}",
        nanoseconds=median(times),
        middle=middle,
        low=low,
        high=high,
    )
