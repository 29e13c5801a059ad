"""Predictions against measurements: what the range analysis said each launch touches, and what it
did."""

import pathlib
import re
import sys
import time

from harness import cuda, reports

from .check import PRECISION, PROGRAMS, notes


def zoo(check):
    check.all(lambda job: compared(check, *job), [("zoo200", [sys.executable, PRECISION / "torch_operators.py"])])


def oracle(check):
    jobs = [
        (f"torch_{name}", [sys.executable, PRECISION / f"torch_{name}.py"])
        for name in ("operators", "zoo", "transformer", "resnet")
    ]
    jobs.append(("triton", [sys.executable, PRECISION / "triton_zoo.py"]))
    for name, source, flags in (("cublas", PRECISION / "cublas.cu", ["-lcublas"]), ("cub", PROGRAMS / "cub.cu", [])):
        if program := check.compile(source, *flags):
            jobs.append((name, [program]))
    check.all(lambda job: compared(check, *job), [job for job in jobs if pathlib.Path(job[1][-1]).exists()])


def held_out(check):
    """Workloads that no rule is made for."""
    jobs = [("models", "torch_models"), ("libraries", "torch_libraries"), ("cupy", "cupy_zoo"), ("jax", "jax_zoo")]
    check.all(
        lambda job: compared(check, *job),
        [(name, [sys.executable, PRECISION / "held_out" / f"{file}.py"]) for name, file in jobs],
    )


def compared(check, name, command):
    file, report = check.kept / f"oracle_{name}.json", check.kept / f"oracle_{name}_report.json"
    trace = check.session.work / f"oracle_{name}.trace"
    words = ["--exact", "--exact-compare", file, "--no-stacks", "--error-exitcode", "0", "--json", report, "-o", trace]
    began = time.monotonic()
    ran = check.run("oracle_" + name, [*check.streamsan(*words, "--"), *command], 150)
    table, data = reports.load(file), reports.load(report)
    if table is None or data is None:
        return check.wrong(name, f"exit {ran.code}, no table: {ran.last_words(400)}")
    launches = data["coverage"]["launches"]
    check.judged(
        ran.code == 0,
        name,
        f"exit {ran.code}, {time.monotonic() - began:.1f} s, {launches['measured']} of {launches['total']} "
        f"launches measured: {table['counts']} {notes(ran)} {ran.last_words(400) if ran.code else ''}".rstrip(),
    )
    for kernel in table["kernels"]:
        counts = {k: v for k, v in kernel["counts"].items() if k in ("unsound", "overclaimed")}
        if counts:
            (check.wrong if "unsound" in counts else check.right)(
                name, f"{counts} {kernel['kernel'][:180]}", examples(kernel)
            )
    return machine_code(check, name, table, trace)


def examples(kernel):
    """One launch that was predicted wrongly."""
    for e in kernel["examples"][:1]:
        wrong = e["missing"] or e["claimed_but_not_touched"]
        ranges = [(w["kind"], w["bytes"], hex(w.get("at", 0)), w["ranges"][:3]) for w in wrong][:3]
        yield f"grid {e['grid']} block {e['block']}: {ranges}"


def machine_code(check, name, table, trace):
    """Machine code of kernels that were predicted wrongly, to study them elsewhere."""
    wanted = [k["kernel"] for k in table["kernels"] if {"unsound", "overclaimed"} & set(k["counts"])][:12]
    disassembler = cuda.tool("cuobjdump")
    if not wanted or not trace.exists() or not disassembler:
        return
    images, found = {}, {}
    for line in check.run(f"dump_{name}", check.streamsan("dump", trace)).text.splitlines():
        at = re.search(
            r' Image \{ id: ImageId\((\d+)\), source: File, path: "([^"]*)", offset: (\d+), size: (\d+)', line
        )
        if at:
            images[at[1]] = (at[2], int(at[3]), int(at[4]))
        at = re.search(r' Kernel \{ id: KernelId\(\d+\), name: "([^"]*)", image: ImageId\((\d+)\)', line)
        if at and at[1] in wanted:
            found[at[1]] = at[2]
    for number, (kernel, image) in enumerate(found.items()):
        if image not in images or check.session.left() < 30:
            continue
        path, offset, size = images[image]
        binary = check.session.work / f"{name}_{image}.fatbin"
        with open(path, "rb") as file:
            file.seek(offset)
            binary.write_bytes(file.read(size or -1))
        ran = check.session.run([disassembler, "-arch", "sm_90", "-sass", "-fun", kernel, binary], factor=0.4)
        (check.kept / f"sass_{name}_{number}.txt").write_text(f"{kernel}\n{ran.text[:400000]}")
