"""What a PyTorch training step costs under StreamSan.

All ways are loaded at once and take turns, so that what else the machine does hits them alike. A
row gives the median of a step's time over the rounds, and of its ratio to the bare one's of the
same round the median and the quartiles. `bare again` shows the noise.

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

from harness.errors import CannotRun
from harness.medians import median, ratios
from harness.options import Defaults, words
from harness.places import SHARED
from harness.process import environment, kill_group, watched
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=1200, timeout=600, jobs=None)
PROGRAM = SHARED / "bench" / "training.py"
USUAL = "bare,bare again,no stacks,stacks,CSAN"
USUAL_WITHIN = "bare,no stacks,stacks"


def add_options(parser):
    parser.add_argument("--within", action="store_true", help="turns within one process")
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
        f"with --within: {USUAL_WITHIN})",
    )
    parser.add_argument("--rounds", metavar="N", type=int, default=20)
    # With turns of five steps the quartiles of `bare again` lay at 0.84 and 1.09, with ten at 0.93
    # and 1.09.
    parser.add_argument("--steps", metavar="N", type=int, default=10, help="steps of one turn (default: %(default)s)")


class Ended(Exception):
    """A process of a way ended before it was asked to."""


class Way:
    """A process that takes steps when it is asked to."""

    def __init__(self, name, start, env, model):
        self.name, self.times = name, []
        self.child = subprocess.Popen(
            [*start, sys.executable, str(PROGRAM), model, "turns"],
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
        """Lets it end by itself, for a while."""
        try:
            self.child.communicate(timeout=20)
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
    asked = session.args.ways or words(USUAL_WITHIN if session.args.within else USUAL)
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
    table = Table(
        {"model": "12", "way": "20", "ms": ">8", "ratio": ">8", "quartiles": "18", "fastest ms": ">10", "": ""}
    )
    for model in session.pick(args.models, str):
        (within if args.within else in_turns)(session, table, model, ways)
    return session.finish(table)


def in_turns(session, table, model, ways):
    """Each round asks every way for some steps, in an order of its own."""
    with contextlib.ExitStack() as ends:
        loaded = []
        try:
            for name, (start, env) in ways.items():
                way = Way(name, start, env, model)
                loaded.append(way)
                ends.enter_context(watched(way.child.pid))
                ends.callback(way.end)
            for way in loaded:
                way.ask(session.limit())
            for number in range(session.args.rounds):
                if session.left() < 5:
                    table.row(LATE, model, "", "", "", "", "", f"{number} of {session.args.rounds} rounds")
                    break
                for way in random.sample(loaded, len(loaded)):
                    way.times.append(int(way.ask(session.limit(), session.args.steps)))
        except Ended as error:
            table.row(WRONG, model, "", "", "", "", "", str(error))
        else:
            for way in loaded:
                add_row(table, model, way.name, way.times, loaded[0].times)


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
