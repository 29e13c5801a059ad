"""Memory that goes from one process to another as a descriptor, a fabric handle or a pool.

Every form of tests/programs/descriptors.c runs bare and under `streamsan run`: unordered and
ordered too early (each must give one finding), ordered by the host and by an event of both
processes (none). What the driver refuses in the bare run is left out: fabric handles need a
fabric. Needs gcc and two processes on one GPU; about 60 s.
"""

import shutil

from harness import reports
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import TESTS
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=150, timeout=20, jobs=4, sim=True)
FORMS = ("fd", "twice", "released", "pool", "fabric", "self", "other", "anew")
ORDERS = {"nothing": True, "early": True, "event": False, "host": False}


def add_options(_):
    pass


def run(session):
    if not session.args.sim:
        session.need_gpu()
    program = compiled(session)
    cases = [(form, order) for form in FORMS for order in ORDERS if applies(form, order)]
    table = Table({"memory": "10", "order": "8", "truth": "5", "found": ">5", "bare": ">6", "": "8", "note": ""})
    with session.jobs() as pool:
        picked = session.pick(cases, lambda case: " ".join(case))
        for done in [pool.submit(check, session, program, *case) for case in picked]:
            table.row(*done.result())
    return session.finish(table)


def applies(form, order):
    """One process orders itself by events, and unmatched memory has one order to miss."""
    if form == "self":
        return order in ("nothing", "event")
    return form not in ("other", "anew") or order == "nothing"


def compiled(session):
    if not shutil.which("gcc"):
        raise CannotRun("gcc is needed for descriptors.c")
    built, programs = session.work / "descriptors", TESTS / "programs"
    words = ["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", f"-I{programs / 'fake'}"]
    source = programs / "descriptors.c"
    folder = [f"-L{session.binaries.folder}/sim"] if session.args.sim else []
    made = session.run(["gcc", *words, source, "-o", built, *folder, "-l:libcuda.so.1", "-ldl"])
    if made.code:
        raise CannotRun(f"descriptors.c does not compile: {made.last_words(300)}")
    return built


def check(session, program, form, order):
    """The fields of a row."""
    racy = ORDERS[order] and form not in ("other", "anew")
    truth = "race" if racy else "clean"
    if session.left() < 5:
        return LATE, form, order, truth, "", "", LATE
    bare = None if session.args.sim else session.run([program, order, form])
    if bare and (bare.hung or bare.code):
        words = "hangs bare" if bare.hung else f"bare exit {bare.code}: {bare.last_words()}"
        return ABSENT, form, order, truth, "", "", ABSENT, words
    report = session.work / f"{form}-{order}.json"
    options = ["--error-exitcode", "0", "--json", report, *(["--sim"] if session.args.sim else [])]
    ran = session.run([*session.streamsan("run", *options, "--"), program, order, form])
    data, problems = reports.load(report), []
    if ran.hung or ran.code:
        problems.append("hung" if ran.hung else f"exit {ran.code}: {ran.last_words()!r}")
    found = reports.findings(data) if data else []
    if data is None:
        problems.append("no JSON")
    elif len(found) != int(racy):
        problems.append("MISSED" if racy else f"FALSE ALARM {reports.kinds(found)}")
    calls = (data or {}).get("coverage", {}).get("not_modelled", {})
    if bool(calls) != (form == "anew"):
        problems.append("a call not modelled" if calls else "an unmatched import is not counted")
    # The racing byte may be any; an ordered copy has what was filled.
    if bare and not racy and form != "other" and ran.out != bare.out:
        problems.append(f"output {ran.text!r} instead of {bare.text!r}")
    notes = [f"{call} ({count})" for call, count in calls.items()]
    return (
        WRONG if problems else OK,
        form,
        order,
        truth,
        len(found),
        f"{bare.wall:.1f}" if bare else "",
        "WRONG" if problems else "ok",
        "; ".join(problems + notes),
    )
