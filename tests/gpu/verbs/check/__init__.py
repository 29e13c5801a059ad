"""The corpus and real programs: verdicts, output, exit codes.

Every program runs bare and under `streamsan run`. Exit codes and output must be the same, and the
findings must be what the first lines of the program say. What tests/corpus/known_failures.txt
lists may be wrong, unless --strict is given.

--samples runs the programs of tests/samples instead: their output must also be that of
tests/samples/expected. --lines FILE writes what each CUDA program showed, a line each, and keeps
the lines of other programs; tests/corpus/on_gpu.txt is made so, and the end-to-end tests hold the
simulated GPU against it.

Needs nvcc, and Python with torch, triton, cupy and jax: what is not installed is left out. Beside
table.txt and results.json, reports.txt has every report, the wrong ones first.
"""

import concurrent.futures
import importlib.util
import pathlib
import sys

from harness import cases, cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.process import environment

from .entry_points import entry_points
from .judge import Check
from .summary import finish

DEFAULTS = Defaults(budget=450, timeout=60, sim=True)


def add_options(parser):
    parser.add_argument("--samples", action="store_true", help="the programs of tests/samples")
    parser.add_argument("--no-cuda", action="store_true", help="leave CUDA programs out")
    parser.add_argument("--no-torch", action="store_true", help="leave all Python programs out")
    parser.add_argument("--no-loops", action="store_true", help="leave the training loops of tests/programs/python out")
    runtime = parser.add_mutually_exclusive_group()
    runtime.add_argument("--static-only", action="store_true", help="CUDA programs with the static runtime only")
    runtime.add_argument("--shared-only", action="store_true", help="CUDA programs with the shared runtime only")
    parser.add_argument("--runs", metavar="N", type=int, default=1, help="check each program N times")
    parser.add_argument("--lines", metavar="FILE", type=pathlib.Path, help="write what each CUDA program showed")
    parser.add_argument("--strict", action="store_true", help="known failures count as wrong")


def variants_of(case, variant):
    """How a case is checked: by default; where the CPU's accesses matter, with them too."""
    watched = case.sees_host and case.group in ("cuda", "torch")
    return [(variant, [])] + ([(f"{variant}+host", ["--host-accesses"])] if watched else [])


def run(session):
    args = session.args
    if not args.sim:
        session.need_gpu()
    check = Check(session)
    # On the simulated GPU only where this Python has PyTorch.
    here = not args.sim or importlib.util.find_spec("torch")
    python = python_cases(session) if here and not args.no_torch and not args.samples else []
    programs = [] if args.no_cuda else cuda_cases(session)
    if not python and not programs:
        raise CannotRun(
            "no case has one of these words in its name" if args.only else "these options leave nothing to check"
        )
    usual = 2 if args.sim else max(2, min(6, session.cores // 2))
    with (
        session.jobs(usual) as runners,
        concurrent.futures.ThreadPoolExecutor(2 if args.sim else max(2, session.cores - 2)) as compilers,
    ):
        pending = [
            runners.submit(check.checked, case, label, [sys.executable, case.path, *case.args], environment(), options)
            for case in python
            for label, options in variants_of(case, "python")
        ]
        if programs:
            pending += compile_and_check(session, check, programs, compilers, runners)
        for job in pending:
            if error := job.exception():
                check.internal(error)
    return finish(session, check)


def python_cases(session):
    found = cases.torch_corpus() + ([] if session.args.no_loops else cases.python_loops())
    # The slow ones first.
    found = sorted(cases.with_twins(found), key=lambda c: (c.group != "loop", c.name))
    return session.pick(found, lambda c: c.name)


def cuda_cases(session):
    found = session.pick(cases.samples() if session.args.samples else cases.cuda_corpus(), lambda c: c.name)
    # What takes longest to compile first.
    return sorted(found, key=lambda c: "heavy" not in c.needs)


def compile_and_check(session, check, programs, compilers, runners):
    """Compiles each program with each runtime, then submits its runs, which it returns."""
    args, arch = session.args, "sm_80" if session.args.sim else "sm_90"
    runtimes = ["shared"] if args.sim or args.shared_only else ["static"] if args.static_only else ["static", "shared"]
    env = environment(LD_LIBRARY_PATH=cuda.library_path())
    session.say(f"{session.compiler.toolkit.nvcc}: {len(programs)} programs, {' and '.join(runtimes)} cudart, {arch}")
    submitted = []

    def build(case, runtime):
        built = session.compiler.compile(case.path, *case.build_flags(runtime, arch))
        for twin in filter(None, [case, case.twin()]):
            for label, options in variants_of(twin, runtime):
                if built.path is None:
                    check.add(check.new_row(twin, label, f"does not compile: {built.error}"))
                else:
                    command = [built.path, *twin.args]
                    submitted.append(runners.submit(check.checked, twin, label, command, env, options))

    compiling = [compilers.submit(build, case, runtime) for runtime in runtimes for case in programs]
    if not args.sim and not args.only and not args.samples:
        compiling.append(compilers.submit(entry_points, session, check, arch, env))
    for job in compiling:
        if error := job.exception():
            check.internal(error)
    return submitted
