"""Programmatic dependent launch and copies by tensor maps: verdicts, with and without --exact.

Every pair of kernels of tests/programs/sim/programmatic.cu (the forms of public reports and their
mended twins; on streams and as nodes of graphs) and every pair of two streams of
tests/programs/sim/tiles.cu runs bare, under `streamsan run`, and under `streamsan run --exact`. A
racy one must be reported, no other; exit code and what the silent ones leave in memory must be
those of the bare run. Needs a GPU of compute capability 9.0 and nvcc, and for --exact exact.fatbin
beside streamsan (scripts/patch); about 60 s.
"""

import json

from harness.beside_bare import alone, ended, under
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import SHARED
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=300, timeout=120, sim=True)
# Of tiles.cu. (The first of the pair is racy with that word.)
TILES = ("output", "ordered", "halves", "columns", "loops", "clipped", "added", "constant", "global", "freed")


def add_options(_):
    pass


def run(session):
    if not session.args.sim:
        session.need_gpu()
    cases = [(f"{how}{exact}", "launches", how, exact) for how in ("stream", "capture") for exact in ("", " --exact")]
    cases += [(f"tiles {name}{exact}", "tiles", name, exact) for name in TILES for exact in ("", " --exact")]
    columns = {"case": "24", "pairs": ">5", "racy": ">5", "found": ">5", "false": ">5", "results": "7"}
    table = Table({**columns, "": "6", "note": ""})
    programs = {}
    for title, part, word, exact in session.pick(cases, lambda case: case[0]):
        if exact and not session.args.sim and not session.binaries.exact:
            table.row(ABSENT, title, "", "", "", "", "", ABSENT, "no exact.fatbin: scripts/patch makes it")
            continue
        if session.left() < 10:
            table.row(LATE, title, "", "", "", "", "", LATE)
            continue
        if part not in programs:
            programs[part] = compiled(session, {"launches": "programmatic", "tiles": "tiles"}[part])
        check = launches if part == "launches" else tiles
        table.row(*check(session, programs[part], title, word, exact.strip()))
    return session.finish(table)


def compiled(session, name):
    flags = ["-O2", "-w", "-lineinfo", "-std=c++17", "-arch=sm_90a", "-cudart", "shared"]
    built = session.compiler.compile(SHARED / "sim" / f"{name}.cu", *flags, limit=240)
    if built.path is None:
        raise CannotRun(f"{name}.cu does not compile: {built.error[-500:]}")
    return built.path


def hashes(ran):
    return dict(line.split(" ") for line in ran.text.splitlines() if line.count(" ") == 1)


def launches(session, program, title, how, exact):
    """The fields of a row."""
    bare = alone(session, [program, how])
    ran, data = under(session, title, [program, how], exact)
    left, before = hashes(ran), hashes(bare) if bare else {}
    # The simulated GPU runs PTX, and machine code is what is judged: see the program.
    racy = {name for name in left if name.split("_")[0] in ("racy", "moved", "warp")}
    found = {named(finding["access"]) for finding in (data or {}).get("findings", [])}
    missed, wrong = sorted(racy - found), sorted(found - racy)
    problems = [f"MISSED {name}" for name in missed] + [f"FALSE ALARM {name}" for name in wrong]
    changed = [name for name in sorted(set(left) - racy) if bare and before.get(name) != left[name]]
    problems += [f"CHANGED {name}" for name in changed]
    problems += ended(ran, bare, data)
    if not left:
        problems.append("no pairs")
    return (
        WRONG if problems else OK,
        title,
        len(left),
        len(racy),
        len(racy & found),
        len(wrong),
        "" if not bare else "WRONG" if changed else "same",
        "WRONG" if problems else "ok",
        "; ".join(problems),
    )


def named(access):
    return (access.get("kernel") or "?").split("(")[0]


def tiles(session, program, title, name, exact):
    """The same, of a racy pair and its twin."""
    problems, found, wrong, unknown = [], 0, 0, []
    for variant in ("racy", "mended"):
        bare = alone(session, [program, name, variant])
        ran, data = under(session, f"{title} {variant}", [program, name, variant], exact)
        count = len((data or {}).get("findings", []))
        problems += [f"{variant}: {problem}" for problem in ended(ran, bare, data)]
        if variant == "racy":
            found = count
            problems += [] if count else ["MISSED"]
        else:
            wrong = count
            problems += ["FALSE ALARM"] if count else []
        of = (data or {}).get("coverage", {}).get("launches", {})
        unknown += [f"{variant}: {json.dumps(of)}"] if of.get("kinds_only") or of.get("unknown") else []
    row = WRONG if problems else OK, title, 2, 1, min(found, 1), wrong, "", "WRONG" if problems else "ok"
    return (*row, "; ".join(problems + unknown))
