"""The host's touches of memory that kernels use in place: `--host-accesses`.

Every case of tests/programs/sim/in_place.cu runs bare and under `streamsan run --host-accesses`:
as it is, and with the wait that mends it. A racy one must give a finding with the host on a side,
every other none; exit code and output must be those of the bare run. The note says what was
stepped aside from. Needs nvcc (or --program); about 60 s.
"""

import concurrent.futures
import pathlib

from harness import reports
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import SHARED
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=150, timeout=30, jobs=5, sim=True)


def add_options(parser):
    parser.add_argument("--program", metavar="FILE", type=pathlib.Path, help="in_place.cu, built")


def run(session):
    if not session.args.sim:
        session.need_gpu()
    program = session.args.program or compiled(session)
    listed = session.run([program, "--list"])
    if listed.code or not listed.text:
        raise CannotRun(f"in_place --list: exit {listed.code}: {listed.last_words()}")
    cases = []
    for name, verdict in (line.split() for line in listed.text.splitlines()):
        cases.append((name, [name], verdict == "race"))
        if verdict == "race":
            cases.append((f"{name} fixed", [name, "fixed"], False))
    table = Table({"case": "32", "truth": "5", "found": ">5", "bare": ">6", "under": ">6", "": "6", "note": ""})
    with session.jobs() as pool:
        cases = session.pick(cases, lambda case: case[0])
        for done in concurrent.futures.as_completed([pool.submit(check, session, program, *case) for case in cases]):
            table.row(*done.result())
    return session.finish(table)


def compiled(session):
    arch = "sm_80" if session.args.sim else "native"
    flags = ["-O2", "-g", "-lineinfo", "-std=c++17", f"-arch={arch}", "-cudart", "static"]
    built = session.compiler.compile(SHARED / "sim" / "in_place.cu", *flags, limit=120)
    if built.path is None:
        raise CannotRun(f"in_place.cu does not compile: {built.error[-500:]}")
    session.say("compiled")
    return built.path


def check(session, program, title, words, racy):
    """The fields of a row."""
    truth = "race" if racy else "clean"
    if session.left() < 5:
        return LATE, title, truth, "", "", "", LATE
    report = session.work / f"{title}.json"
    options = ["--host-accesses", "--error-exitcode", "0", "--no-require-cuda", "--json", report, *(["--sim"] if session.args.sim else [])]
    # Without a GPU there is nothing that the program could do bare.
    bare = None if session.args.sim else session.run([program, *words])
    ran = session.run([*session.streamsan("run", *options, "--"), program, *words])
    code, out = (bare.code, bare.out) if bare else (0, b"done\n")
    data, problems = reports.load(report), []
    if bare and bare.code:
        problems.append(f"bare exit {bare.code}: {bare.last_words()!r}")
    if ran.hung or ran.code != code:
        problems.append("hung" if ran.hung else f"exit {ran.code} instead of {code}: {ran.last_words()!r}")
    if ran.out != out:
        problems.append(f"output {ran.text[-200:]!r} instead of {out[-200:]!r}")
    found = reports.findings(data) if data else []
    if data is None:
        problems.append("no JSON")
    elif racy and not any(f["host"] for f in found):
        problems.append("MISSED")
    elif not racy and found:
        problems.append(f"FALSE ALARM {reports.kinds(found)}")
    coverage = (data or {}).get("coverage", {})
    unwatched = coverage.get("host_unwatched", {})
    notes = [f"{what} ({count})" for what, count in coverage.get("unobserved", {}).items()]
    notes += [f"{kind} unwatched" for kind in ("managed", "pinned") if unwatched.get(kind)]
    return (
        WRONG if problems else OK,
        title,
        truth,
        len(found),
        f"{bare.wall:.1f}" if bare else "",
        f"{ran.wall:.1f}",
        "WRONG" if problems else "ok",
        "; ".join(problems + notes),
    )
