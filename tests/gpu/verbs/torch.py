"""PyTorch, Triton, CuPy, JAX: clean programs, faults, pools.

Clean programs (tests/gpu/programs/torch_clean) must stay silent and print the same. Faults
(torch_faults) must be named with the launch that caused them. Blocks of CuPy's pool, and of RMM's
where it is installed, must be known. Needs PyTorch; about four minutes, --clean about one. `cost`
measures what a training step costs.
"""

import importlib.util
import os
import sys

from harness import reports
from harness.options import Defaults
from harness.places import PROGRAMS, ROOT
from harness.process import environment
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=400, timeout=200, jobs=4)
# The exit code of a program that this machine cannot run.
CANNOT = 77
POOLS = ("reused", "waited", "early", "early_waited", "apart")
# What is found in the blocks of a pool, by case.
FOUND = {"reused": {"race"}, "early": {"freed-while-used"}}


def add_options(parser):
    parser.add_argument("--clean", action="store_true", help="the clean programs only")


def run(session):
    session.need_gpu()
    session.need_python("torch")
    clean_only = session.args.clean
    jobs = [(clean, f"clean {p.stem}", p) for p in sorted((PROGRAMS / "torch_clean").glob("*.py"))]
    if not clean_only:
        faults = PROGRAMS / "torch_faults"
        jobs += [
            (fault, f"fault {name}{''.join(options)}", faults / f"{name}.py", options)
            for name in ("illegal_address", "device_assert")
            for options in ([], ["--launch-blocking"])
        ]
        jobs.append((freed_early, "freed_early", faults / "freed_early.py"))
        libraries = ["cupy"] + ["rmm"] * (importlib.util.find_spec("rmm") is not None)
        jobs += [(pool, f"pool {library} {case}", library, case) for library in libraries for case in POOLS]
    table = Table({"what": "44", "": "8", "note": ""})

    def one(job):
        do, _, *rest = job
        return (LATE, "") if session.left() < 5 else do(session, *rest)

    jobs = session.pick(jobs, lambda job: job[1])
    with session.jobs() as several:
        for job, (outcome, note, *below) in zip(jobs, several.map(one, jobs)):
            table.row(outcome, job[1], outcome, note, below=below)
    return session.finish(table)


def under(session, program, *options, stem=None, env=None):
    """A program under StreamSan: how it ended, and its report."""
    stem = stem or program[0].stem + "".join(options)
    report = session.out / f"{stem}.json"
    start = session.streamsan("run", "--error-exitcode", "0", "--json", report, *options, "--")
    ran = session.run([*start, sys.executable, *program], env=env)
    (session.out / f"{stem}.txt").write_bytes(ran.out + ran.err)
    return ran, reports.load(report) or {}


def clean(session, program):
    bare = session.run([sys.executable, program])
    (session.out / f"{program.stem}-bare.txt").write_bytes(bare.out + bare.err)
    if bare.missing or bare.code == CANNOT:
        return ABSENT, f"{bare.missing} is not installed" if bare.missing else "cannot run here"
    ran, report = under(session, [program])
    found = [
        f"{f['kind']} {f['hazard']} {f['access'].get('operator') or f['access']['call']}"
        for f in report.get("findings", [])
    ]
    same = bare.text.strip() == ran.text.strip() and bare.code == ran.code == 0
    below = found
    if not same:
        below += [
            f"checked: {ran.text.strip()!r} {ran.code} {ran.last_words()}",
            f"bare: {bare.code} {bare.last_words()}",
        ]
    outcome = OK if same and not found and report else WRONG
    return outcome, f"{'same' if same else 'DIFFERS'} output, {len(found)} findings   {bare.text.strip()!r}", *below


def fault(session, program, options):
    ran, report = under(session, [program], *options)
    faults = report.get("faults", [])
    below = []
    for f in faults:
        culprit = f["culprit"] and (f["culprit"]["kernel"][:60], reports.python_frame(f["culprit"]["stack"]))
        running = [(r["stream"], r["launches"], r["places"]) for r in f["running"]]
        below.append(f"{f['error']} by {f['call']}: culprit {culprit} running {running}")
    return (
        (OK, f"{len(faults)} faults", *below)
        if faults
        else (WRONG, f"no fault is named, exit {ran.code} {ran.last_words(200)}")
    )


def freed_early(session, program):
    """A block that is given back while another stream may still read it."""
    ran, report = under(session, [program])
    found = [
        (
            f["kind"],
            reports.python_frame(f["previous"]["stack"]),
            reports.python_frame((f["allocation"] or {}).get("stack") or []),
        )
        for f in report.get("findings", [])
    ]
    right = ran.code == 0 and any(kind == "freed-without-record_stream" for kind, *_ in found)
    return OK if right else WRONG, "; ".join(map(str, found)) or f"nothing found, exit {ran.code} {ran.last_words(200)}"


def pool(session, library, case):
    """A pool that announces its blocks: what was found, and in whose memory."""
    env = environment(PYTHONPATH=f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}")
    program = [PROGRAMS / "pools.py", library, case]
    ran, report = under(session, program, stem=f"pools_{library}_{case}", env=env)
    if ran.missing:
        return ABSENT, f"{ran.missing} is not installed"
    found = report.get("findings", [])
    memory = [
        f"{f['kind']} {f['hazard']} {f['allocation']['size']} bytes of {f['allocation']['name']!r} "
        f"{reports.python_frame(f['allocation']['stack'])}"
        for f in found
    ]
    right = ran.code == 0 and ran.text.endswith(" announced\n") and {f["kind"] for f in found} == FOUND.get(case, set())
    return OK if right else WRONG, f"{ran.text.strip()} {memory}", *([] if right else [ran.last_words(600)])
