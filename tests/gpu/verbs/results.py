"""What programs computed: bytes on the device against bytes on the simulated GPU.

The clean programs of tests/corpus and tests/samples run once on the device, with
tests/gpu/programs/results.c preloaded, and once under `streamsan --sim --sim-results`: PTX and
machine code of compute capability 8.0. Each allocation that the device's run ended must have the
same digest in the simulator's. What differs between two runs on the device is left out. Needs
nvcc; about 60 s. With --sim both sides are the simulated GPU.
"""

import collections

from harness import cases, cuda
from harness.errors import CannotRun
from harness.options import Defaults
from harness.places import PROGRAMS
from harness.process import environment
from harness.table import ABSENT, KNOWN, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=200, timeout=60, sim=True)
# The simulated GPU's special functions (`rsqrt.approx`, `ex2.approx`) are exact to the last bit or
# so, and not the device's.
APPROXIMATE = {"option_prices", "event_query_until_ready"}
# Temporary storage of CUB holds addresses and what sums have come to, in the order of blocks.
HAVE_STORAGE = {"thrust_algorithms", "cub_device"}
# What code is in the program: the device takes PTX (it is of another architecture), the simulated
# GPU the first that fits.
CODES = {"ptx": ["-gencode", "arch=compute_80,code=compute_80"], "sass": ["-arch=sm_80"]}


def add_options(_):
    pass


def run(session):
    if not session.args.sim:
        session.need_gpu()
    programs = [c for c in cases.cuda_corpus() + cases.samples() if not c.races]
    programs = session.pick(programs, lambda c: c.name)
    if not programs:
        raise CannotRun("no program has one of these words in its name")
    built = session.compiler.compile(PROGRAMS / "results.c", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared")
    if built.path is None:
        raise CannotRun(f"results.c does not compile: {built.error}")
    preload = session.work / "results.so"
    preload.write_bytes(built.path.read_bytes())
    table = Table({"program": "32", "code": "4", "": "8", "same": ">5", "of": ">5", "note": ""}, live=False)
    with session.jobs(2 if session.args.sim else max(2, session.cores - 4)) as pool:
        for done in [pool.submit(check, session, table, preload, case) for case in programs]:
            done.result()
    table.sort(lambda data: (data["name"], data["code"]))
    table.print_all()
    return session.finish(table)


def check(session, table, preload, case):
    """One program: two runs on the device, and one on the simulated GPU for each kind of code."""
    bare = [on_device(session, preload, case, n) for n in range(2)]
    for code in CODES:
        cells = case.name, code
        data = {"name": case.name, "code": code}
        if session.left() < 5:
            table.row(LATE, *cells, LATE, **data)
        elif note := next((b for b in bare if isinstance(b, str)), None):
            table.row(ABSENT, *cells, ABSENT, "", "", note, **data)
        else:
            table.row(*compare(session, case, code, bare, cells), **data)


def on_device(session, preload, case, number):
    """The lines of one run, or why there are none."""
    built = compiled(session, case, "sass")
    if built.path is None:
        return f"does not compile: {built.error[-150:]}"
    lines = session.work / f"{case.name}-{number}.device"
    sim = f"{session.binaries.folder}/sim:" if session.args.sim else ""
    env = environment(LD_PRELOAD=preload, RESULTS=lines, LD_LIBRARY_PATH=sim + cuda.library_path())
    ran = session.run([built.path], env=env)
    if ran.hung or ran.code:
        return f"ends with {ran.code} on the device: {ran.last_words(120)}"
    ended = lines.read_text().splitlines() if lines.exists() else []
    # After an error that stays nothing can be read any more.
    return collections.Counter(x for x in ended if not x.startswith("unread")) if ended else "allocates nothing"


def compare(session, case, code, bare, cells):
    """The outcome and cells of a row."""
    built = compiled(session, case, code)
    if built.path is None:
        return ABSENT, *cells, ABSENT, "", "", f"does not compile: {built.error[-150:]}"
    file = session.work / f"{case.name}-{code}.sim"
    # In the program's order: what is freed early is freed behind what wrote it.
    words = ["--sim", f"--sim-results={file}", "--sim-schedule=in-order", "--error-exitcode=0"]
    ran = session.run(
        session.streamsan(*words, "--", built.path), env=environment(LD_LIBRARY_PATH=cuda.library_path()), factor=2
    )
    if ran.hung or ran.code:
        return WRONG, *cells, WRONG, "", "", f"ends with {ran.code} when simulated: {ran.last_words(120)}"
    simulated = collections.Counter(file.read_text().splitlines() if file.exists() else [])
    # What two runs on the device do not agree about is not a result.
    stable = bare[0] & bare[1]
    same = stable & simulated
    total = stable.total()
    if total == 0:
        return ABSENT, *cells, ABSENT, 0, 0, "nothing that two runs on the device agree about"
    missing = sorted((stable - same).elements())
    storage = case.name in HAVE_STORAGE and all(
        line.startswith("device") and int(line.split()[1]) % 4 for line in missing
    )
    known = storage or case.name in APPROXIMATE
    if missing:
        (session.out / f"{case.name}-{code}.differs").write_text(
            "device only:\n%s\nsimulated only:\n%s\n"
            % ("\n".join(missing), "\n".join(sorted((simulated - same).elements())))
        )
    left = bare[0].total() - total
    note = f"{left} differ between two runs on the device" if left else ""
    outcome = OK if not missing else KNOWN if known else WRONG
    return outcome, *cells, outcome, same.total(), total, "; ".join(filter(None, [" ".join(missing[:2]), note]))


def compiled(session, case, code):
    """The program with one kind of code."""
    flags = case.build_flags("shared", "sm_80")
    if "-arch=sm_80" in flags:
        at = flags.index("-arch=sm_80")
        flags[at : at + 1] = CODES[code]
    return session.compiler.compile(case.path, *flags)
