"""Machine code of Triton's kernels for compute capability 9.0, compiled without a GPU, and what
`streamsan explain` says of fences between proxies in it (`copy-without-proxy-fence`): of the code
as it is, and with each FENCE.VIEW.ASYNC replaced by a NOP. A hint in code as it is would be a false
one: exit code 1. For measurements by hand: it takes some ten minutes of one core.

    PYTHONPATH=<folder of Triton> python3 tests/frameworks/hopper_code.py STREAMSAN FOLDER [KERNEL...]

FOLDER gets the code. Forms that Triton refuses are counted; forms with equal code count once.
"""

import collections
import hashlib
import itertools
import json
import os
import struct
import subprocess
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import hopper_kernels as kernels

TARGET = GPUTarget("cuda", 90, 32)
# Low 12 bits of an instruction.
FENCE, NOP = 0x3C6, 0x918


def d(kind, *block):
    """The type of a tensor's descriptor."""
    return f"tensordesc<{kind}[{', '.join(map(str, block))}]>"


def form(fn, types, constants, **options):
    return fn, types, constants, options


def forms():
    for ty, (bm, bn, bk), stages, warps in itertools.product(
        ["fp16", "bf16", "fp8e4nv"], [(64, 64, 64), (128, 128, 64), (128, 256, 64)], [2, 3, 4], [4, 8]
    ):
        if ty == "fp8e4nv":
            bk *= 2
        if bm * bn > 128 * 128 and warps == 4:
            continue
        for ws in (False, True):
            if ws and (stages != 3):
                continue
            for tr, act in ((True, False), (False, True)):
                if ty == "fp8e4nv" and not tr:
                    continue
                if not tr and stages == 4:
                    continue
                b = d(ty, bn, bk) if tr else d(ty, bk, bn)
                o = "fp16" if ty != "bf16" else "bf16"
                yield form(
                    kernels.mm,
                    dict(a=d(ty, bm, bk), b=b, c=d(o, bm, bn), M="i32", N="i32", K="i32"),
                    dict(BM=bm, BN=bn, BK=bk, WS=ws, TRANS=tr, ACT=act),
                    num_stages=stages,
                    num_warps=warps,
                )
    for ty, stages in itertools.product(["fp16", "fp32", "fp8e5"], [2, 3]):
        yield form(
            kernels.mm_reg_a,
            dict(a=d(ty, 64, 64), b=d("fp16", 64, 64), c=d("fp32", 64, 64), K="i32"),
            dict(BM=64, BN=64, BK=64),
            num_stages=stages,
            num_warps=4,
        )
    for ty, stages, w in itertools.product(["fp16", "fp32", "fp8e5"], [1, 3], [4, 8]):
        yield form(
            kernels.mm_pointers,
            dict(a="*" + ty, b="*" + ty, c=d("fp16", 128, 64), M="i32", N="i32", K="i32"),
            dict(BM=128, BN=64, BK=64),
            num_stages=stages,
            num_warps=w,
        )
    for (bm, bn), stages, warps, ws, flat, sub in itertools.product(
        [(64, 64), (128, 128), (128, 256)], [2, 3], [4, 8], [False, True], [False, True], [False, True]
    ):
        if bn == 256 and (warps == 4):
            continue
        if stages == 2 and (ws or bn == 64):
            continue
        yield form(
            kernels.persistent,
            dict(
                a=d("fp16", bm, 64),
                b=d("fp16", bn, 64),
                c=d("fp16", bm, bn // 2 if sub else bn),
                M="i32",
                N="i32",
                K="i32",
            ),
            dict(BM=bm, BN=bn, BK=64, WS=ws, FLAT=flat, SUB=sub, GROUP=8),
            num_stages=stages,
            num_warps=warps,
        )
    for (bm, bn), stages, warps, ws, flat in itertools.product(
        [(64, 64), (128, 128)], [1, 3], [4, 8], [False, True], [False, True]
    ):
        yield form(
            kernels.device,
            dict(x="*fp16", w="*fp16", y="*fp16", M="i32", N="i32", K="i32"),
            dict(BM=bm, BN=bn, BK=64, WS=ws, FLAT=flat),
            num_stages=stages,
            num_warps=warps,
        )
    for b, stages, warps in itertools.product([64, 128], [2, 3], [4, 8]):
        yield form(
            kernels.grouped,
            dict(pa="*i64", pb="*i64", pc="*i64", sizes="*i32", G="i32"),
            dict(BM=b, BN=b, BK=64),
            num_stages=stages,
            num_warps=warps,
        )
    for dd, (bm, bn), causal, ws, ty, warps in itertools.product(
        [64, 128], [(64, 64), (128, 64), (128, 128)], [False, True], [False, True], ["fp16", "bf16", "fp8e5"], [4, 8]
    ):
        if warps == 4 and bm == 128 and dd == 128:
            continue
        if warps == 8 and bm == 64:
            continue
        f8 = ty == "fp8e5"
        v = d(ty, dd, bn) if f8 else d(ty, bn, dd)
        if f8 and bn < 64:
            continue
        yield form(
            kernels.forward,
            dict(
                q=d(ty, bm, dd),
                k=d(ty, bn, dd),
                v=v,
                o=d("fp16" if f8 else ty, bm, dd),
                sums="*fp32",
                scale="fp32",
                L="i32",
            ),
            dict(D=dd, BM=bm, BN=bn, CAUSAL=causal, WS=ws, FP8=f8),
            num_stages=2 if dd == 128 else 3,
            num_warps=warps,
        )
    for (bm, bn), stages, warps, ws in itertools.product([(64, 64), (64, 128)], [1, 2], [4, 8], [False, True]):
        yield form(
            kernels.backward,
            dict(
                q=d("fp16", bm, 64),
                k=d("fp16", bn, 64),
                v=d("fp16", bn, 64),
                do=d("fp16", bm, 64),
                dq=d("fp32", bm, 64),
                dk=d("fp16", bn, 64),
                dv=d("fp16", bn, 64),
                sums="*fp32",
                delta="*fp32",
                scale="fp32",
                L="i32",
            ),
            dict(D=64, BM=bm, BN=bn, WS=ws),
            num_stages=stages,
            num_warps=warps,
        )
    for stages, warps in itertools.product([1, 2, 3], [4, 8]):
        yield form(
            kernels.backward_plain,
            dict(
                q=d("fp16", 64, 64),
                k=d("fp16", 64, 64),
                v=d("fp16", 64, 64),
                do=d("fp16", 64, 64),
                dq=d("fp16", 64, 64),
                sums="*fp32",
                delta="*fp32",
                scale="fp32",
                L="i32",
            ),
            dict(D=64, BM=64, BN=64),
            num_stages=stages,
            num_warps=warps,
        )
    for kind, (bm, bn), ty, w in itertools.product(range(8), [(32, 64), (64, 128)], ["fp16", "fp32", "i32"], [1, 4]):
        if kind == 3 and ty == "fp32" or (kind == 3 and ty == "fp16" and bm == 32):
            continue
        out_ = d(ty, bn, bm) if kind == 1 else d(ty, bm, bn)
        yield form(kernels.copy, dict(x=d(ty, bm, bn), y=out_, M="i32"), dict(BM=bm, BN=bn, KIND=kind), num_warps=w)
    for red, ws, st in itertools.product([False, True], [False, True], [1, 3]):
        yield form(
            kernels.stream,
            dict(x=d("fp32", 32, 64), y=d("fp32", 32, 64), M="i32"),
            dict(BM=32, BN=64, REDUCE=red, WS=ws),
            num_stages=st,
        )
    for ty, st in itertools.product(["fp16", "fp32"], [1, 3]):
        yield form(
            kernels.two_stores,
            dict(x=d(ty, 32, 64), y=d(ty, 32, 64), z=d(ty, 64, 32), M="i32"),
            dict(BM=32, BN=64),
            num_stages=st,
        )
        yield form(
            kernels.gathered, dict(p="*" + ty, ix="*i32", y=d(ty, 32, 64), M="i32"), dict(BM=32, BN=64), num_stages=st
        )
        yield form(kernels.dims, dict(x=d(ty, 4, 8, 32), y=d(ty, 8, 4, 32)), dict(A=4, B=8, C=32), num_stages=st)
        yield form(kernels.line, dict(x=d(ty, 128), y=d(ty, 128)), dict(A=128), num_stages=st)
        yield form(
            kernels.scratch_device, dict(x="*" + ty, y="*" + ty, M="i32", N="i32"), dict(BM=32, BN=64), num_stages=st
        )


def machine_code(fn, types, constants, options):
    signature = {name: types.get(name, "constexpr") for name in fn.arg_names}
    aligned = [at for at, kind in enumerate(signature.values()) if kind.startswith("*") or kind == "i32"]
    attributes = {(at,): [["tt.divisibility", 16]] for at in aligned}
    source = ASTSource(fn, signature, constants, attributes)
    return triton.compile(source, target=TARGET, options=options).asm["cubin"]


def without_fences(code):
    """The code of a cubin without its fences, and how many it had."""
    code, fences = bytearray(code), 0
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, sections + at * size) for at in range(count)]
    for name, _, _, _, start, length in headers:
        at = headers[names][4] + name
        if code[at : code.index(0, at)].startswith(b".text."):
            for place in range(start, start + length, 16):
                if struct.unpack_from("<H", code, place)[0] & 0xFFF == FENCE:
                    fences += 1
                    # Its predicate is none, and what it waits for stays.
                    struct.pack_into("<Q", code, place, NOP | 0x7000)
    return bytes(code), fences


def hints(streamsan, file, code):
    with open(file, "wb") as to:
        to.write(code)
    said = subprocess.run([streamsan, "explain", "--json", file], capture_output=True, text=True, check=True)
    return sum(len(kernel.get("unfenced", [])) for kernel in json.loads(said.stdout)["kernels"])


def main():
    streamsan, folder, *wanted = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    seen, refused, table = set(), 0, {}
    for number, (fn, *how) in enumerate(forms()):
        if wanted and fn.__name__ not in wanted:
            continue
        # The compiler dies of what it refuses in several ways.
        try:
            code = machine_code(fn, *how)
        except Exception:
            refused += 1
            continue
        if (digest := hashlib.sha256(code).digest()) in seen:
            continue
        seen.add(digest)
        bare, fences = without_fences(code)
        file = os.path.join(folder, f"{number:03}-{fn.__name__}")
        found, lacking = hints(streamsan, f"{file}.cubin", code), hints(streamsan, f"{file}-bare.cubin", bare)
        if found:
            print(f"{file}.cubin: {found} hints")
        row = table.setdefault(fn.__name__, collections.Counter())
        row.update(
            {"kernels": 1, "fences": fences, "hints": found, "without fences": lacking, "have one": lacking > 0}
        )
    whole = sum(table.values(), collections.Counter())
    for name, row in [*table.items(), ("all", whole)]:
        print(
            name,
            *(f"{row[column]} {column}" for column in ("kernels", "fences", "hints", "without fences", "have one")),
            sep="  ",
        )
    print(f"Triton {triton.__version__}: {refused} forms refused")
    sys.exit(whole["hints"] > 0)


if __name__ == "__main__":
    main()
