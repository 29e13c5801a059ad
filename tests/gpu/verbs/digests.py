"""Programs for 9.0a: digests of what they print on the device, against the simulated GPU's.

Kernels of tests/programs/sim for compute capability 9.0a (barrier objects, bulk and tensor copies,
products of warp groups, clusters) run on the device, and on the simulated GPU as machine code and as
PTX, there in two schedules. Each prints what its kernels have computed. With --sim the forms are
compared with each other, without a device. Needs nvcc and a GPU of compute capability 9.0; about
100 s, of which compilers take most.
"""

import hashlib

from harness import cuda
from harness.options import Defaults
from harness.places import TESTS
from harness.process import environment
from harness.table import LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=600, timeout=100, sim=True)
FLAGS = ("-O1", "-w", "-std=c++17", "-cudart", "shared", "-lcuda")
CODE = ("-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]")
# A program, and its arguments: none of these has a race.
CASES = (
    ("group_products.cu",),
    ("hopper_races.cu", "mended"),
    ("pipelines.cu", "mended"),
    ("reductions.cu", "mended"),
    ("tensor_maps.cu",),
    ("tensor_images.cu",),
    ("hopper.cu",),
    ("clusters.cu", "clean"),
)
FORMS = {
    "machine code": "arch=90:code=sass",
    "late": "arch=90:code=sass:schedule=late-first",
    "PTX": "arch=90:code=ptx",
    "random": "arch=90:code=ptx:schedule=random:seed=3",
}


def add_options(_):
    pass


def run(session):
    if not session.args.sim:
        session.need_gpu()
    columns = {"program": "20", "": "8", "lines": ">5", "device": "12"}
    table = Table(columns | dict.fromkeys(FORMS, "12") | {"first": ""})
    for source, *words in session.pick(CASES, lambda case: case[0]):
        name = source.removesuffix(".cu")
        if session.left() < 20:
            table.row(LATE, name, LATE)
            continue
        built = session.compiler.compile(TESTS / "programs/sim" / source, *CODE, *FLAGS)
        if built.path is None:
            table.row(WRONG, name, WRONG, "", "", *[""] * len(FORMS), built.error)
            continue
        compare(session, table, name, [built.path, *words])
    return session.finish(table)


def compare(session, table, name, command):
    ended = {}
    if not session.args.sim:
        ended["device"] = session.run(command, env=environment(LD_LIBRARY_PATH=libraries(session, False)))
    for form, options in FORMS.items():
        place = {"LD_LIBRARY_PATH": libraries(session, True), "STREAMSAN_SIM": options}
        ended[form] = session.run(command, env=environment(**place))
    first = next(iter(ended.values()))
    digests = {form: digest(ran) for form, ran in ended.items()}
    same = all(ran.code == 0 and ran.out == first.out for ran in ended.values())
    others = [form for form, ran in ended.items() if ran.code or ran.out != first.out]
    note = "" if same else difference(first, ended[others[0]], others[0])
    outcome = OK if same and first.text else WRONG
    lines = len(first.text.splitlines())
    table.row(outcome, name, outcome, lines, *[digests.get(form, "") for form in ("device", *FORMS)], note)


def libraries(session, simulated):
    """Where a program finds the runtime, and the simulated driver before the machine's."""
    return f"{session.binaries.folder}/sim" if simulated else cuda.library_path()


def digest(ran):
    """Of what a program has printed, or how it ended."""
    return f"exit {ran.code}" if ran.code else hashlib.sha256(ran.out).hexdigest()[:12]


def difference(first, other, form):
    """The first line that a form has otherwise."""
    if other.code:
        return f"{form}: {other.last_words(200)}"
    pairs = zip(first.text.splitlines(), other.text.splitlines())
    return next((f"{form}: {b}, not {a}" for a, b in pairs if a != b), f"{form}: another number of lines")
