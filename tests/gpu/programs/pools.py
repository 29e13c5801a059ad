"""Blocks of a pool that announces them to StreamSan: pools.py cupy|rmm reused|waited|early|early_waited|apart

An array of stream `a` is used on stream `b`, which waits for `a`, and is given up. Then `a` fills a new one:
  reused        which gets the same bytes (a race); waited: after `a` waits for `b` (clean)
  early         which gets other bytes, but might have got these (freed while used); early_waited: clean
  apart         while the first one lives (clean)
"""
import sys

import cupy as cp

import streamsan

library, case = sys.argv[1:]
if library == "rmm":
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True, initial_pool_size=64 << 20)
    told = streamsan.annotate(rmm)
    cp.cuda.set_allocator(rmm_cupy_allocator)
else:
    told = streamsan.annotate(cp)

n = 1 << 16
a, b = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
first, second = cp.cuda.Event(disable_timing=True), cp.cuda.Event(disable_timing=True)
with a:
    spare, keep = cp.empty(n // 4, cp.uint8), cp.empty(n // 4, cp.uint8)
    x = cp.empty(n, cp.uint8)
    x.fill(1)
    first.record(a)
    fence = cp.empty(n // 4, cp.uint8)
b.wait_event(first)
with b:
    x.fill(2)
    second.record(b)
if case in ("waited", "early_waited"):
    a.wait_event(second)
with a:
    if case.startswith("early"):
        del spare
    kept = x if case == "apart" else None
    del x
    y = cp.empty(n // 4 if case.startswith("early") else n, cp.uint8)
    y.fill(3)
cp.cuda.Device().synchronize()
print(int(y.sum()) // 3, "announced" if told else "not announced")
