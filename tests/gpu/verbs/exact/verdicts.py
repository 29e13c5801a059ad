"""Programs whose addresses are data: their verdicts by measurement, and that their output stays."""

import re
import sys

from harness import cases, reports

from .check import PROGRAMS

WAYS = ("race", "clean")
GRAPHS = [f"{case} {way}" for case in ("branches", "stream", "update", "child") for way in WAYS]
CASES = [f"{case} {way}" for case in ("gather", "scatter", "histogram", "list", "table", "nested") for way in WAYS]
INDIRECT = [
    f"{case} {way}" for case in ("gather", "scatter", "histogram", "index_put", "embedding_bag") for way in WAYS
]
TORCH = {
    "index_put_disjoint",
    "halves_disjoint",
    "ddp_buckets",
    "triton_side",
    "graph_refill",
    "shared_weight_matmuls",
    "fused_adamw_side",
    "slices_overlap",
}


def says_right(out):
    return "right" in out


def says_right_or_loss(out):
    return "right" in out or "loss" in out


def graph(check):
    """Kernels that graphs launch, measured node by node."""
    program = check.compile(PROGRAMS / "graph.cu")
    if program:
        jobs = [("graph_" + case.replace(" ", "_"), [program, *case.split()], case.endswith("race")) for case in GRAPHS]
        check.all(lambda job: check.verdict(*job, same=says_right), jobs)


def programs(check):
    indirect, cub = check.compile(PROGRAMS / "indirect.cu"), check.compile(PROGRAMS / "cub.cu")
    jobs = []
    if indirect:
        jobs += [(case.replace(" ", "_"), [indirect, *case.split()], case.endswith("race"), None, 60) for case in CASES]
    if cub:
        jobs.append(("cub", [cub], False, says_right, 60))
    ops, bare = PROGRAMS / "ops.py", {}

    def run_bare(job):
        bare[job[0].removeprefix("torch_")] = check.run(
            f"bare_{job[0]}", [sys.executable, ops, job[0].removeprefix("torch_")], 80
        ).text

    check.all(run_bare, [(f"torch_{what}",) for what in ("five", "mm", "triton", "graph", "train")])
    for what, out in bare.items():
        hashes = re.findall("HASH.*", out)
        jobs.append(
            (
                f"torch_{what}",
                [sys.executable, ops, what],
                False,
                lambda out, h=hashes: re.findall("HASH.*", out) == h,
                90,
            )
        )
    check.all(lambda job: check.verdict(*job[:4], timeout=job[4]), jobs)
    measured = check.kept / "torch_train.txt"
    for way, text in (("bare", bare.get("train", "")), ("measured", measured.read_text() if measured.exists() else "")):
        steps = " ".join(re.findall(r"STEP ([\d.]+)", text))
        check.table.note(f"{way} steps of training: {steps} ms")


def indirect(check):
    """Operators whose addresses are data."""
    jobs = [
        (
            "i_" + case.replace(" ", "_"),
            [sys.executable, PROGRAMS / "torch_indirect.py", *case.split()],
            case.endswith("race"),
        )
        for case in INDIRECT
    ]
    check.all(lambda job: check.verdict(*job, same=lambda out: "done" in out, timeout=80), jobs)


def learned(check):
    """Measured once, used without patching: the racy way must be found, the clean one be silent."""
    flags = {"squares": [], "gather": [], "cublas": ["-lcublas"]}
    built = {name: check.compile(PROGRAMS / f"confirm_{name}.cu", *more) for name, more in flags.items()}

    def one(job):
        title, name, program, way = job
        file = check.session.work / f"{title}.json"
        under = check.streamsan("--exact", "--learned", file, "--no-stacks", "--error-exitcode", "0", "--")
        first = check.run(f"{title}_first", [*under, program, way])
        lines = re.findall("LEARNED.*", first.errors)
        check.verdict(
            title, [program, way], way == "race" if name == "squares" else None, says_right, mode=["--learned", file]
        )
        report = reports.load(check.kept / f"{title}.json")
        if report is None:
            return
        launches = report["coverage"]["launches"]
        wanted = {"squares": launches["total"], "gather": 0}.get(name, launches["learned"])
        check.judged(
            launches["learned"] == wanted,
            title,
            f"{launches['learned']} of {launches['total']} launches by what was learned; "
            f"{'; '.join(lines) or 'nothing learned'}",
        )

    check.all(
        one,
        [(f"learned_{name}_{way}", name, program, way) for name, program in built.items() if program for way in WAYS],
    )


def devices(check):
    """Scatters on every device there is, and (with two) from one into the memory of the other."""
    program = check.compile(PROGRAMS / "devices.cu")
    if program:
        jobs = [(f"devices_{way}", [program, way], way != "clean") for way in ("race", "peer", "clean")]
        check.all(lambda job: check.verdict(*job, same=says_right), jobs)


def confirm(check):
    """Summaries first, measured on demand. A race of the clean way must be withdrawn, one of the
    racy way confirmed.
    """
    flags = {"gather": [], "rim": [], "cub": [], "cublas": ["-lcublas"]}
    with check.session.jobs() as pool:
        paths = pool.map(lambda name: check.compile(PROGRAMS / f"confirm_{name}.cu", *flags[name]), flags)
        commands = {name: [path] for name, path in zip(flags, paths) if path}
    jobs = []
    if "gather" in commands:
        # A graph that holds the code: nothing may be patched, and its results must stay right.
        jobs.append(("confirm_gather_graph", [*commands["gather"], "clean", "graph"], None, 60, ["--confirm"]))
    commands["step"] = [sys.executable, PROGRAMS / "confirm_step.py"]
    for name, command in commands.items():
        for way in WAYS:
            # The analysis of PyTorch's kernels takes seconds. A training job has them; these few
            # steps must wait.
            slow = ["16", "1"] if (name, way) == ("step", "race") else []
            for more in ([], ["--pedantic"]):
                # What sorting touches is data: weak findings at first.
                if way == "clean" or bool(more) == (name == "cub"):
                    title = f"confirm_{name}_{way}{'_pedantic' * bool(more)}"
                    jobs.append((title, [*command, way, *slow], way == "race", 90, ["--confirm", *more]))
        # What the summaries alone say of the same programs, to see what the trial changed.
        jobs.append((f"summary_{name}_clean", [*command, "clean"], None, 90, []))
    check.all(lambda job: check.verdict(*job[:3], same=says_right_or_loss, timeout=job[3], mode=job[4]), jobs)


def corpus(check):
    """The corpus in exact mode."""

    def cuda(job):
        name, case = job
        program = check.compile(case.path, "-lcuda")
        if program:
            check.verdict(name, [program], case.races)

    torch = [(f"t_{c.name}", c) for c in cases.torch_corpus() if c.name in TORCH]
    check.all(lambda job: check.verdict(job[0], [sys.executable, job[1].path], job[1].races, timeout=80), torch)
    check.all(cuda, [(f"c_{c.name}", c) for c in cases.cuda_corpus()])
