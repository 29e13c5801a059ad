"""Public code: dependent launches of CUTLASS, FlashInfer and llama.cpp, and operators of PyTorch.

Programs of this repository launch kernels of these libraries behind a kernel that triggers before
it writes: at commits in which they read before their wait, or never wait, and at commits in which
they wait first. CUTLASS's own examples run as they are, and operators of cuBLAS, cuDNN, Triton and
PyTorch on one stream, on two that wait for each other, and on two of which one does not wait. Each
case runs bare, under `streamsan run` and under `streamsan run --exact`. Racy ones must be reported,
no others; exit codes, and what silent ones print (but for times), must be those of the bare run.
`launches`, `ranges` and `byte` are of the predicted run: all launches, those with ranges, and those
known to the byte. `equal` and `unsound` are of the run with --exact: launches whose predicted bytes
are those measured, claimed or not, and launches that touched a byte which was not predicted. Sums
of libraries follow; what each kernel lacks is in why.json.

Sources of CUTLASS, FlashInfer and ggml (llama.cpp) are taken from the folder --sources, by names
like `cutlass-7107b0553`, and fetched by git where they are missing. Needs a GPU of compute
capability 9.0 and nvcc with cuBLAS, PyTorch and Triton for their rows. The first 17 rows take about
300 s, of which compilers take most; the others, compiled before, 170 s. --built names a
folder with compiled programs; what is not in it is compiled.
"""

import collections
import concurrent.futures
import dataclasses
import importlib.util
import json
import pathlib
import re
import shutil
import sys

from harness import reports
from harness.beside_bare import alone, ended, under
from harness.options import Defaults
from harness.places import CACHE, PROGRAMS
from harness.process import environment, execute
from harness.table import ABSENT, KNOWN, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=1200, timeout=120, sim=True)
FLAGS = ("-O2", "-w", "-lineinfo", "-std=c++17", "-cudart", "shared", "-DNDEBUG")
HOPPER = ("-arch=sm_90a", "--expt-relaxed-constexpr", "-DCUTLASS_ENABLE_GDC_FOR_SM90", "-lcuda")
WHERE = {
    "cutlass": "https://github.com/NVIDIA/cutlass",
    "flashinfer": "https://github.com/flashinfer-ai/flashinfer",
    "ggml": "https://github.com/ggml-org/ggml",
}
FOLDERS = {
    "cutlass": ("include", "tools/util/include", "examples"),
    "flashinfer": ("include",),
    "ggml": ("include", "src"),
}
# Where a library's headers lie in its folders.
INCLUDED = {
    "cutlass": ("include", "tools/util/include", "examples/common"),
    "flashinfer": ("include", "include/flashinfer"),
    "ggml": ("include", "src", "src/ggml-cuda"),
}
FOR = {
    "cutlass": HOPPER,
    "flashinfer": ("-arch=sm_90",),
    "ggml": ("-arch=sm_90", "-use_fast_math", "-extended-lambda"),
}
# The counts of a row, and the words of titles by which they are summed.
COUNTS = ("launches", "ranges", "byte", "equal", "unsound")
GROUPS = ("cutlass", "example", "flashinfer", "cub", "triton", "torch", "llama.cpp", "cublasLt")
# Lines of CUTLASS's examples that tell times.
TIMES = re.compile(r".*(runtime|FLOPS).*\n?")


@dataclasses.dataclass(frozen=True)
class Case:
    """A program with its words, and whether it has a race."""

    title: str
    racy: bool
    # In the folder of programs, or (`examples/...`) in that of the library.
    source: str
    words: tuple
    # A library's sources, as `cutlass-COMMIT`.
    headers: str = ""
    # Whether the headers' waits are left out.
    without_waits: bool = False
    # Why its race is not found.
    known: str = ""
    flags: tuple = ()


def cutlass(commit, form, what, racy, note, known=""):
    title = f"cutlass {commit} {form} {what}: {note}"
    return Case(title, racy, "cutlass_dependents.cu", (form, what), f"cutlass-{commit}", known=known)


def flashinfer(form, without):
    note = "waits left out" if without else "waits"
    return Case(
        f"flashinfer {form}: {note}", without, "flashinfer_dependents.cu", (form,), "flashinfer-fb28d7242", without
    )


def llama(commit, form, racy, note):
    title = f"llama.cpp {commit} {form}: {note}"
    return Case(title, racy, "llama_dependents.cu", (form,), f"ggml-{commit}")


def example(source, **sizes):
    """An example of CUTLASS as it is, in sizes with a name."""
    number = source.split("_")[0]
    return [
        Case(f"cutlass example {number} {size}", False, f"examples/{source}", (*words.split(),), "cutlass-7107b0553")
        for size, words in sizes.items()
    ]


def operator(title, source, *words, flags=()):
    """On one stream, on two that wait for each other, and on two of which one does not."""
    return [
        Case(f"{title}: {streams}", streams == "unordered", source, (*words, streams), flags=flags)
        for streams in ("one", "ordered", "unordered")
    ]


CASES = [
    # Before #2719 the product of groups never waits; before 6b3e607b8 (#2962) its scheduler reads the
    # shapes first.
    cutlass("b1d6e2c9b", "grouped", "operands", True, "never waits", known="its maps get addresses through a shuffle"),
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
    # Commits of ggml, into which llama.cpp's are copied: before and after #23690, before and after
    # #23825. That one takes the launch attribute away; #24030 gives it back, and takes `__restrict__`
    # away. The loads of the queries stay above the wait in machine code.
    llama("377998315", "fwht", True, "never waits"),
    llama("e18a795f5", "fwht", False, "waits"),
    llama("a8779616d", "attention", True, "a load is moved above its wait"),
    llama("3076f42ba", "attention", False, "is no dependent"),
    llama("191dfedba", "attention", True, "a load is moved above its wait"),
    llama("d99724f2b", "attention", True, "a load is moved above its wait"),
    llama("d99724f2b", "fwht", False, "waits"),
    *example(
        "48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu",
        small="--m=256 --n=256 --k=128 --iterations=1",
        medium="--m=2048 --n=1024 --k=512 --iterations=1",
    ),
    *example(
        "49_hopper_gemm_with_collective_builder/49_collective_builder.cu",
        small="--m=256 --n=256 --k=128",
        medium="--m=2048 --n=1024 --k=512 --l=2",
    ),
    *example(
        "54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu",
        small="--m=256 --n=256 --k=128 --l=1 --iterations=1",
        medium="--m=1024 --n=2048 --k=512 --l=2 --iterations=1",
    ),
    *example(
        "57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu",
        small="--m=256 --n=256 --k=128 --groups=2 --iterations=1",
        medium="--m=1024 --n=512 --k=512 --groups=6 --iterations=1",
    ),
    *example(
        "67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling/"
        "67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling.cu",
        small="--m=256 --n=256 --k=256 --l=1 --warmup=0 --iterations=1",
        medium="--m=1024 --n=1024 --k=512 --l=2 --warmup=0 --iterations=1",
    ),
    *operator("cublasLt", "lt_streams.cu", flags=("-lcublasLt",)),
    *(
        case
        for name, title in (
            ("tiles", "triton product by descriptors"),
            ("persistent", "triton persistent product"),
            ("device", "triton product by the device's descriptors"),
            ("matmul", "torch product"),
            ("convolution", "torch convolution"),
            ("cudnn", "torch attention of cuDNN"),
            ("flash", "torch flash attention"),
            ("efficient", "torch efficient attention"),
            ("compiled", "torch compiled model"),
            ("pdl", "torch compiled model with pdl"),
        )
        for case in operator(title, "torch_streams.py", name)
    ),
]


def add_options(parser):
    parser.add_argument(
        "--sources", metavar="FOLDER", type=pathlib.Path, help="the libraries' headers (default: .cache/gpu/sources)"
    )
    parser.add_argument(
        "--built",
        metavar="FOLDER",
        type=pathlib.Path,
        help="programs that are compiled: SOURCE, or SOURCE-HEADERS, with `-without_waits` where these are left out",
    )


def run(session):
    if not session.args.sim:
        session.need_gpu()
    cases = session.pick(CASES, lambda case: case.title)
    table = Table(
        {
            "case": "54",
            "racy": "5",
            "predicted": "10",
            "exact": "6",
            "launches": ">8",
            "ranges": ">7",
            "byte": ">6",
            "equal": ">6",
            "unsound": ">7",
            "": "8",
            "note": "",
        }
    )
    with concurrent.futures.ThreadPoolExecutor(min(8, session.cores)) as pool:
        built, why = {}, {}
        for case in cases:
            key = case.source, case.headers, case.without_waits
            if case.source.endswith(".cu") and key not in built:
                built[key] = pool.submit(compiled, session, case)
        for case in cases:
            program = built.get((case.source, case.headers, case.without_waits))
            table.row(*judged(session, case, program, why))
    summed(table)
    (session.out / "why.json").write_text(json.dumps(why, indent=1))
    return session.finish(table)


def summed(table):
    """Sums of each library's rows, and of all."""
    sums = collections.defaultdict(lambda: [0] * len(COUNTS))
    first = list(table.columns).index(COUNTS[0])
    for _, cells, _, _ in table.rows:
        counts = [int(cell or 0) for cell in cells[first : first + len(COUNTS)]]
        for group in (" ".join(word for word in re.split("[ :]+", cells[0])[:2] if word in GROUPS) or "others", "all"):
            sums[group] = [a + b for a, b in zip(sums[group], counts)]
    for group, counts in sorted(sums.items(), key=lambda one: one[0] == "all"):
        table.note(f"{group}: " + ", ".join(f"{count} {name}" for count, name in zip(counts, COUNTS)))


def compiled(session, case):
    """The program of a case, or why there is none."""
    if session.args.built:
        words = (pathlib.Path(case.source).stem, case.headers, "without_waits" if case.without_waits else "")
        path = session.args.built.resolve() / "-".join(filter(None, words))
        if path.exists():
            # (Files that were carried here may lack the permission.)
            path.chmod(0o755)
            return path, ""
    flags, folder = [*FLAGS, *case.flags], PROGRAMS
    if case.headers:
        folder = headers(session, case.headers)
        if folder is None:
            return None, f"no headers: {case.headers} is not in --sources, and git cannot fetch it"
        library = case.headers.split("-")[0]
        if case.without_waits:
            flags.append(f"-I{without_waits(session, folder)}")
        flags += [f"-I{folder / part}" for part in INCLUDED[library]]
        flags += FOR[library]
    else:
        flags.append("-arch=sm_90")
    source = folder / case.source if case.source.startswith("examples/") else PROGRAMS / case.source
    built = session.compiler.compile(source, *flags, limit=500)
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


def judged(session, case, program, why):
    """The fields of a row. `why` gets what is known of each of its kernels."""
    about = (case.title, "racy" if case.racy else "")
    if session.left() < 10:
        return (LATE, *about, *[""] * 7, LATE, "")
    if program is not None:
        path, error = program.result()
        if path is None:
            return (WRONG, *about, *[""] * 7, WRONG, f"does not compile: {error[-300:]}")
        command = [path, *case.words]
    else:
        if case.source.startswith("t") and importlib.util.find_spec(case.source.split("_")[0]) is None:
            return (ABSENT, *about, *[""] * 7, ABSENT, f"this Python has no {case.source.split('_')[0]}")
        command = [sys.executable, PROGRAMS / case.source, *case.words]
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(session.work / "inductor"))
    bare = alone(session, command, env)
    problems, words, counts, compared, notes, missed = [], [], ("",) * 3, ("",) * 2, [], False
    for exact in ("", "--exact"):
        if exact and not session.args.sim and not session.binaries.exact:
            words.append(ABSENT)
            continue
        how = exact or "predicted"
        name = f"{CASES.index(case)} {how}"
        file = session.work / f"{name.replace(' ', '-')}-compared.json"
        ran, data = under(session, name, command, exact, env, ["--exact-compare", file] if exact else ())
        found = reports.findings(data) if data else []
        words.append(f"{len(found)}" + ("" if data else " ?"))
        wrong = ended(ran, bare, data)
        if data is not None and bool(found) != case.racy:
            said = ", ".join(sorted({f"{f['confidence']} {f['access'].get('kernel') or '?'}"[:90] for f in found}))
            if case.racy and case.known:
                missed = True
            else:
                wrong.append("MISSED" if case.racy else f"FALSE ALARM: {said}")
        if bare and not case.racy and not ran.hung and ran.code == bare.code and steady(ran) != steady(bare):
            wrong.append(f"prints {ran.text[-80:]!r}, bare {bare.text[-80:]!r}")
        if data and not exact:
            counts = known(data["coverage"])
            why[case.title] = {"predicted": data["coverage"]["kernels"]}
        if exact and (verdicts := reports.load(file)):
            compared = verdicts["counts"].get("tight", 0), verdicts["counts"].get("unsound", 0)
            wrong += [f"{compared[1]} launches unsound"] if compared[1] else []
            why.setdefault(case.title, {})["compared"] = verdicts["kernels"]
        problems += [f"{how}: {problem}" for problem in wrong]
        launches = (data or {}).get("coverage", {}).get("launches", {})
        weak = {key: count for key, count in launches.items() if key in ("kinds_only", "unknown") and count}
        notes += [f"{how}: {weak}"] if weak else []
    outcome = WRONG if problems else KNOWN if missed else OK
    notes += [f"missed: {case.known}"] if missed else []
    return (outcome, *about, *words, *counts, *compared, outcome, "; ".join(problems + notes))


def known(coverage):
    """How many launches there were, how many have ranges, and how many are known to the byte."""
    launches = coverage["launches"]
    return launches["total"], launches["ranges"], sum(kernel["exact"] for kernel in coverage["kernels"])


def steady(ran):
    """What a program printed, without times."""
    return TIMES.sub("", ran.text)
