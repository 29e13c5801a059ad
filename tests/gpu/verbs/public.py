"""Dependent launches of public code: CUTLASS, FlashInfer, CUB, Thrust, Triton, PyTorch.

Programs of this repository launch kernels of these libraries behind a kernel that triggers before
it writes: at commits in which they read before their wait, or never wait, and at commits in which
they wait first. Each runs bare, under `streamsan run` and under `streamsan run --exact`. Racy ones
must be reported, no others; exit codes, and what silent ones print, must be those of the bare run.
Headers of CUTLASS and FlashInfer are taken from the folder --sources, by names like
`cutlass-7107b0553`, and fetched by git where they are missing. Needs a GPU of compute capability
9.0 and nvcc, PyTorch and Triton for their rows; about 300 s, of which compilers take most.
"""

import concurrent.futures
import dataclasses
import importlib.util
import pathlib
import shutil
import sys

from harness import reports
from harness.beside_bare import alone, ended, under
from harness.options import Defaults
from harness.places import CACHE, PROGRAMS
from harness.process import environment, execute
from harness.table import ABSENT, KNOWN, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=600, timeout=120, sim=True)
FLAGS = ("-O2", "-w", "-lineinfo", "-std=c++17", "-cudart", "shared", "-DNDEBUG")
HOPPER = ("-arch=sm_90a", "--expt-relaxed-constexpr", "-DCUTLASS_ENABLE_GDC_FOR_SM90", "-lcuda")
WHERE = {"cutlass": "https://github.com/NVIDIA/cutlass", "flashinfer": "https://github.com/flashinfer-ai/flashinfer"}
FOLDERS = {"cutlass": ("include", "tools/util/include"), "flashinfer": ("include",)}


@dataclasses.dataclass(frozen=True)
class Case:
    """A program with its words, and whether it has a race."""

    title: str
    racy: bool
    source: str
    words: tuple
    # A library's headers, as `cutlass-COMMIT`.
    headers: str = ""
    # Whether the headers' waits are left out.
    without_waits: bool = False
    # Why its race is not found.
    known: str = ""


def cutlass(commit, form, what, racy, note, known=""):
    title = f"cutlass {commit} {form} {what}: {note}"
    return Case(title, racy, "cutlass_dependents.cu", (form, what), f"cutlass-{commit}", known=known)


def flashinfer(form, without):
    note = "waits left out" if without else "waits"
    return Case(
        f"flashinfer {form}: {note}", without, "flashinfer_dependents.cu", (form,), "flashinfer-fb28d7242", without
    )


CASES = [
    # Before #2719 the product of groups never waits; before 6b3e607b8 (#2962) its scheduler reads the
    # shapes first.
    cutlass("b1d6e2c9b", "grouped", "operands", True, "never waits", known="the kernel makes its maps itself"),
    cutlass("b1d6e2c9b", "grouped", "shapes", True, "never waits"),
    cutlass("c6dfdf837", "grouped", "operands", False, "waits"),
    cutlass("c6dfdf837", "grouped", "shapes", True, "reads before its wait"),
    cutlass("7107b0553", "grouped", "operands", False, "waits"),
    cutlass("7107b0553", "grouped", "shapes", False, "waits"),
    cutlass("7107b0553", "product", "operands", False, "waits"),
    flashinfer("norm", False),
    flashinfer("norm", True),
    flashinfer("fused", False),
    flashinfer("fused", True),
    Case("cub and thrust", False, "cub_dependents.cu", ()),
    Case("triton racy", True, "triton_dependents.py", ("racy",)),
    Case("triton mended", False, "triton_dependents.py", ("mended",)),
    Case("torch eager", False, "torch_dependents.py", ("eager",)),
    Case("torch compiled", False, "torch_dependents.py", ("compiled",)),
    Case("torch compiled, pdl", False, "torch_dependents.py", ("pdl",)),
]


def add_options(parser):
    parser.add_argument(
        "--sources", metavar="FOLDER", type=pathlib.Path, help="the libraries' headers (default: .cache/gpu/sources)"
    )


def run(session):
    if not session.args.sim:
        session.need_gpu()
    cases = session.pick(CASES, lambda case: case.title)
    table = Table({"case": "46", "racy": "5", "predicted": "10", "exact": "10", "": "6", "note": ""})
    with concurrent.futures.ThreadPoolExecutor(min(8, session.cores)) as pool:
        built = {}
        for case in cases:
            key = case.source, case.headers, case.without_waits
            if case.source.endswith(".cu") and key not in built:
                built[key] = pool.submit(compiled, session, case)
        for case in cases:
            program = built.get((case.source, case.headers, case.without_waits))
            table.row(*judged(session, case, program))
    return session.finish(table)


def compiled(session, case):
    """The program of a case, or why there is none."""
    flags = list(FLAGS)
    if case.headers:
        folder = headers(session, case.headers)
        if folder is None:
            return None, f"no headers: {case.headers} is not in --sources, and git cannot fetch it"
        library = case.headers.split("-")[0]
        if case.without_waits:
            flags.append(f"-I{without_waits(session, folder)}")
        flags += [f"-I{folder / part}" for part in FOLDERS[library]]
        flags += [f"-I{folder}/include/flashinfer"] if library == "flashinfer" else []
        flags += HOPPER if library == "cutlass" else ["-arch=sm_90"]
    else:
        flags.append("-arch=sm_90")
    built = session.compiler.compile(PROGRAMS / case.source, *flags, limit=500)
    return built.path, built.error


def headers(session, name):
    """The folder of a library's headers at a commit. Fetches them where they are missing."""
    sources = session.args.sources or CACHE / "sources"
    folder = (sources / name).resolve()
    if folder.exists():
        return folder
    library, commit = name.split("-")
    made = session.work / name
    made.mkdir()
    for words in (
        ["init", "-q"],
        ["fetch", "-q", "--filter=blob:none", WHERE[library]],
        ["checkout", "-q", commit, "--", *FOLDERS[library]],
    ):
        if execute(["git", "-C", made, *words], session.limit()).code:
            return None
    sources.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(made / ".git")
    shutil.move(made, folder)
    return folder


def without_waits(session, folder):
    """A folder with FlashInfer's norms as they are where the macro around their waits is not set."""
    made = session.work / "without_waits" / "flashinfer"
    made.mkdir(parents=True, exist_ok=True)
    text = (folder / "include/flashinfer/norm.cuh").read_text()
    guard = "#if (__CUDACC_VER_MAJOR__ >= 12 &&"
    assert guard in text, "FlashInfer's waits have another guard: see without_waits"
    (made / "norm.cuh").write_text(text.replace(guard, "#if (0 &&"))
    return made.parent


def judged(session, case, program):
    """The fields of a row."""
    about = (case.title, "racy" if case.racy else "")
    if session.left() < 10:
        return (LATE, *about, "", "", LATE, "")
    if program is not None:
        path, error = program.result()
        if path is None:
            return (WRONG, *about, "", "", "WRONG", f"does not compile: {error[-300:]}")
        command = [path, *case.words]
    else:
        if case.source.startswith("t") and importlib.util.find_spec(case.source.split("_")[0]) is None:
            return (ABSENT, *about, "", "", ABSENT, f"this Python has no {case.source.split('_')[0]}")
        command = [sys.executable, PROGRAMS / case.source, *case.words]
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(session.work / "inductor"))
    bare = alone(session, command, env)
    problems, words, notes, missed = [], [], [], False
    for exact in ("", "--exact"):
        if exact and not session.args.sim and not session.binaries.exact:
            words.append(ABSENT)
            continue
        how = exact or "predicted"
        name = f"{CASES.index(case)} {how}"
        ran, data = under(session, name, command, exact, env)
        found = reports.findings(data) if data else []
        words.append(f"{len(found)}" + ("" if data else " ?"))
        wrong = ended(ran, bare, data)
        if data is not None and bool(found) != case.racy:
            said = ", ".join(sorted({f"{f['confidence']} {f['access'].get('kernel') or '?'}"[:90] for f in found}))
            if case.racy and case.known:
                missed = True
            else:
                wrong.append("MISSED" if case.racy else f"FALSE ALARM: {said}")
        if bare and not case.racy and not ran.hung and ran.code == bare.code and ran.text != bare.text:
            wrong.append(f"prints {ran.text[-80:]!r}, bare {bare.text[-80:]!r}")
        problems += [f"{how}: {problem}" for problem in wrong]
        launches = (data or {}).get("coverage", {}).get("launches", {})
        weak = {key: count for key, count in launches.items() if key in ("kinds_only", "unknown") and count}
        notes += [f"{how}: {weak}"] if weak else []
    outcome = WRONG if problems else KNOWN if missed else OK
    notes += [f"missed: {case.known}"] if missed else []
    return (outcome, *about, *words, outcome, "; ".join(problems + notes))
