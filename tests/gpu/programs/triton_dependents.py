"""Triton's kernels with launch_pdl, one behind the other: `triton_dependents.py racy|mended`.

The first lets its dependents start before it stores, the second loads what the first stores: before
its wait, or behind it.
"""

import sys

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda


@triton.jit
def first(out, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cuda.gdc_wait()
    cuda.gdc_launch_dependents()
    tl.store(out + at, at * value)


@triton.jit
def late(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cuda.gdc_wait()
    loaded = tl.load(x + at)
    cuda.gdc_launch_dependents()
    tl.store(out + at, loaded + 1)


@triton.jit
def early(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    loaded = tl.load(x + at, volatile=True)
    cuda.gdc_wait()
    cuda.gdc_launch_dependents()
    tl.store(out + at, loaded + 1)


def main():
    reader = {"racy": early, "mended": late}[sys.argv[1]]
    x = torch.zeros(1 << 14, dtype=torch.int32, device="cuda")
    y = torch.zeros_like(x)
    grid = (x.numel() // 256,)
    torch.cuda.synchronize()
    for value in range(3):
        first[grid](x, value, BLOCK=256, launch_pdl=True)
        reader[grid](x, y, BLOCK=256, launch_pdl=True)
        late[grid](y, x, BLOCK=256, launch_pdl=True)
    torch.cuda.synchronize()
    print(int(x.sum()) if reader is late else "done")


main()
