"""Whether a program notices StreamSan: output and exit code in every mode.

The programs: tests/samples, the clean ones of tests/corpus, tests/programs/touches.cu and, on a
GPU, Python programs with PyTorch, Triton, CuPy and JAX. Standard output and error must be the
same. Where two bare runs differ in numbers, numbers are left out of the comparison; a program
whose bare runs differ otherwise is left out. Needs nvcc. What differs is written to
FOLDER/*.differs.
"""

import pathlib
import sys

from harness import cases, cuda
from harness.errors import CannotRun
from harness.options import Defaults, words
from harness.places import ROOT, SHARED
from harness.process import environment
from harness.reports import numbers_hidden
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=140, timeout=60, sim=True)
MODES = {
    "live": ["run"],
    "record": ["record"],
    "host-accesses": ["run", "--host-accesses"],
    "host-order": ["run", "--host-order", "threads"],
    "blocking": ["run", "--launch-blocking"],
    "no-stacks": ["run", "--no-stacks"],
    "exact": ["run", "--exact"],
}
# What cannot be: a host that must go on for the launch to end waits for ever when it waits for the
# launch. (XLA times its kernels behind one that waits for the host, and warns.)
DEADLOCKS = {("write_wait_value", "blocking"), ("jax_loop", "blocking")}
PYTHON = [
    "tests/programs/python/cupy_loop.py",
    "tests/programs/python/jax_loop.py",
    "tests/programs/python/torch_training_loop.py",
    "tests/programs/python/triton_loop.py",
    "tests/corpus/torch/dataloader_pinned.py",
    "tests/corpus/torch/prefetcher.py",
    "tests/corpus/torch/graphed_callable.py",
    "tests/corpus/torch/doc_mul_out_waited.py",
    "tests/corpus/torch/cupy_external_stream.py",
    "tests/corpus/torch/resnet_loop.py",
]
HEAVY = {"thrust_algorithms", "cub_device"}
SAME, NONE = "same", "-"


def add_options(parser):
    parser.add_argument(
        "--modes", metavar="MODE[,MODE]", type=words, default=[], help=f"only these of {', '.join(MODES)}"
    )
    parser.add_argument("--no-python", action="store_true", help="leave Python programs out")


class Program:
    """One program: how it is started, and what it says bare."""

    def __init__(self, group, name, case=None, command=None):
        self.group, self.name, self.case, self.command = group, name, case, command
        self.bare, self.loose, self.answers, self.note = None, False, {}, ""

    @property
    def title(self):
        return f"{self.group}/{self.name}"


def programs():
    found = [Program("sample", c.name, c) for c in cases.samples()]
    found += [Program("corpus", c.name, c) for c in cases.cuda_corpus() if not c.races]
    return found + [Program("touches", "touches", cases.Case(SHARED / "touches.cu", "touches"))]


class Comparison:
    """What all programs of one call share."""

    def __init__(self, session, modes):
        self.session, self.modes = session, modes
        self.python_env = environment(
            TRITON_CACHE_DIR=session.work / "triton", XLA_PYTHON_CLIENT_PREALLOCATE="false", PYTHONHASHSEED="0"
        )
        self.cuda_env = self.python_env | {"LD_LIBRARY_PATH": cuda.library_path()}
        self.sim = session.args.sim
        self.bare_env = self.cuda_env | ({"LD_LIBRARY_PATH": f"{session.binaries.folder}/sim"} if self.sim else {})

    def prepare(self, program):
        """Compiles the program, and runs it twice without anything."""
        session = self.session
        if program.case:
            flags = program.case.build_flags("shared", "sm_80" if self.sim else "sm_90")
            built = session.compiler.compile(program.case.path, *flags)
            if built.path is None:
                program.note = f"does not compile: {built.error[-200:]}"
                return program
            program.command = [built.path]
        if session.left() < 5:
            program.note = "no time"
            return program
        env = self.bare_env if program.case else self.python_env
        first, second = (session.run(program.command, env=env) for _ in range(2))
        program.bare = answer(first)
        program.loose = answer(first) != answer(second)
        if first.hung:
            program.note = "the bare run takes too long"
        elif first.missing:
            program.note = f"{first.missing} is not installed"
        elif program.loose and not same(answer(first), answer(second), loose=True):
            program.note = "bare runs differ"
        return program

    def check(self, program, mode):
        session = self.session
        if program.note or (program.name, mode) in DEADLOCKS:
            program.answers[mode] = NONE
            return
        if session.left() < 3:
            program.answers[mode] = LATE
            return
        stem = f"{program.group}-{program.name}-{mode}"
        log, trace = session.work / f"{stem}.txt", session.work / f"{stem}.trace"
        under = session.streamsan(*self.modes[mode])
        under += ["-o", trace] if mode == "record" else ["--error-exitcode", "0", "--log-file", log]
        under += ["--sim"] if self.sim else []
        ran = session.run(
            [*under, "--", *program.command], factor=2, env=self.cuda_env if program.case else self.python_env
        )
        # The launcher's own line about the recording is not the program's.
        err = b"".join(line for line in ran.err.splitlines(True) if not line.startswith(b"streamsan: recorded;"))
        if session.left() <= 0 and ran.hung:
            program.answers[mode] = LATE
        elif same(program.bare, (ran.code, ran.out, err), program.loose):
            program.answers[mode] = SAME
        else:
            bare = program.bare
            program.answers[mode] = (
                "HUNG" if ran.hung else "EXIT" if ran.code != bare[0] else "OUTPUT" if ran.out != bare[1] else "STDERR"
            )
            (session.out / f"{stem}.differs").write_bytes(
                b"bare %d\n%s\n--- stderr\n%s\n\nchecked %d\n%s\n--- stderr\n%s\n--- log\n%s"
                % (*bare, ran.code, ran.out, ran.err, log.read_bytes()[-4000:] if log.exists() else b"")
            )
        trace.unlink(missing_ok=True)


def answer(ran):
    return ran.code, ran.out, ran.err


def same(a, b, loose):
    if loose:
        return (
            a[0] == b[0]
            and numbers_hidden(a[1]) == numbers_hidden(b[1])
            and numbers_hidden(a[2]) == numbers_hidden(b[2])
        )
    return a == b


def modes_of(session):
    unknown = set(session.args.modes) - set(MODES)
    if unknown:
        raise CannotRun(f"no mode is named {', '.join(sorted(unknown))}: there are {', '.join(MODES)}")
    modes = {m: o for m, o in MODES.items() if not session.args.modes or m in session.args.modes}
    if session.args.sim or not session.binaries.exact:
        modes.pop("exact", None)
    if not modes:
        raise CannotRun("mode exact needs a GPU, and exact.fatbin beside streamsan (scripts/patch)")
    return modes


def run(session):
    args = session.args
    if not args.sim:
        session.need_gpu()
    modes = modes_of(session)
    compiled = sorted(session.pick(programs(), lambda p: p.name), key=lambda p: p.name not in HEAVY)
    scripts = (
        []
        if args.sim or args.no_python
        else [Program("python", pathlib.Path(p).stem, command=[sys.executable, ROOT / p]) for p in PYTHON]
    )
    scripts = session.pick(scripts, lambda p: p.name)
    if not compiled and not scripts:
        raise CannotRun("no program has one of these words in its name")
    comparison = Comparison(session, modes)
    with session.jobs(2 if args.sim else max(2, session.cores - 4)) as pool:
        checks = []
        for prepared in [pool.submit(comparison.prepare, p) for p in scripts + compiled]:
            checks += [pool.submit(comparison.check, prepared.result(), mode) for mode in modes]
        for check in checks:
            check.result()
    return report(session, scripts + sorted(compiled, key=lambda p: p.title), modes)


def outcome_of(program, answers):
    if program.note:
        return LATE if program.note == "no time" else WRONG if program.note.startswith("does not compile") else ABSENT
    if set(answers) - {SAME, NONE, LATE}:
        return WRONG
    return LATE if LATE in answers else OK


def report(session, everything, modes):
    table = Table({"program": "40", "exit": ">4", "": "6"} | {m: ">13" for m in modes}, live=False)
    for p in everything:
        answers = [p.answers.get(m, NONE) for m in modes]
        loose = "" if p.bare is None else "words" if p.loose else "bytes"
        table.row(
            outcome_of(p, answers),
            p.title,
            "" if p.bare is None else p.bare[0],
            loose,
            *([] if p.note else answers),
            below=[p.note] if p.note else [],
        )
    for mode in modes:
        told = [p.answers.get(mode, NONE) for p in everything if not p.note]
        differ = "".join(f", {w} {told.count(w)}" for w in ("HUNG", "EXIT", "OUTPUT", "STDERR", LATE) if w in told)
        table.note(f"{mode:14} {told.count(SAME)} of {sum(t != NONE for t in told)} programs the same{differ}")
    table.note(f"not compared: {sum(bool(p.note) for p in everything)}")
    table.print_all()
    return session.finish(table)
