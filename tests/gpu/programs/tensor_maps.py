"""Kernels of Triton that copy by tensor descriptors, made on the host and on the device.

`tensor_maps.py launch` launches each once; `tensor_maps.py measure FILE` finds by perturbed memory
which bytes of each tensor a launch changes, and which parts of it matter, and writes them down.
"""

import json
import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first = pid // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    at_m = first + pid % in_group % size
    at_n = pid % in_group // size
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = a.load([at_m * BM, k * BK])
        y = b.load([at_n * BN, k * BK])
        sums = tl.dot(x, y.T, sums)
    c.store([at_m * BM, at_n * BN], sums.to(tl.float16))


@triton.jit
def plain_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    at_m = tl.program_id(0)
    at_n = tl.program_id(1)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = a.load([at_m * BM, k * BK])
        y = b.load([at_n * BN, k * BK])
        sums = tl.dot(x, y.T, sums)
    c.store([at_m * BM, at_n * BN], sums.to(tl.float16))


@triton.jit
def place(tile, in_group, tiles_m, GROUP: tl.constexpr):
    first = tile // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    return first + tile % size, tile % in_group // size


@triton.jit
def persistent_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                       SMS: tl.constexpr):
    start = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    tiles_k = tl.cdiv(K, BK)
    in_group = GROUP * tiles_n
    for tile in tl.range(start, tiles_m * tiles_n, SMS):
        at_m, at_n = place(tile, in_group, tiles_m, GROUP)
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tiles_k):
            x = a.load([at_m * BM, k * BK])
            y = b.load([at_n * BN, k * BK])
            sums = tl.dot(x, y.T, sums)
        c.store([at_m * BM, at_n * BN], sums.to(tl.float16))


@triton.jit
def device_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SMS: tl.constexpr):
    a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, SMS):
        at_m = tile // tiles_n
        at_n = tile % tiles_n
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            x = a.load([at_m * BM, k * BK])
            y = b.load([at_n * BN, k * BK])
            sums = tl.dot(x, y.T, sums)
        c.store([at_m * BM, at_n * BN], sums.to(tl.float16))


@triton.jit
def attention(q, k, v, o, scale, HEADS, LENGTH, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              CAUSAL: tl.constexpr):
    at_m = tl.program_id(0)
    head = tl.program_id(1)
    row = head * LENGTH
    rows = at_m * BM + tl.arange(0, BM)
    x = q.load([row + at_m * BM, 0])
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, D), dtype=tl.float32)
    end = (at_m + 1) * BM if CAUSAL else LENGTH
    for n in range(0, end, BN):
        y = k.load([row + n, 0])
        s = tl.dot(x, y.T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= n + tl.arange(0, BN)[None, :], s, -float("inf"))
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        fade = tl.exp(most - now)
        total = total * fade + tl.sum(p, 1)
        sums = tl.dot(p.to(tl.float16), v.load([row + n, 0]), sums * fade[:, None])
        most = now
    o.store([row + at_m * BM, 0], (sums / total[:, None]).to(tl.float16))


@triton.jit
def shifted_copy(x, y, at, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr):
    i = tl.program_id(0) * B0
    j = tl.program_id(1) * B1
    k = tl.program_id(2) * B2
    y.store([i, j + at, k], x.load([i, j, k]))


@triton.jit
def add_rows(x, y, B0: tl.constexpr, B1: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    y.atomic_add([0, j * B1], x.load([i * B0, j * B1]))


def half(*shape):
    return (torch.rand(shape, device="cuda") - 0.5).half()


def descriptor(x, box):
    return TensorDescriptor.from_tensor(x, list(box))


def cases():
    """Name, tensors with whether they are written, launch."""
    for m, n, k, bm, bn, bk in [(512, 512, 256, 128, 128, 64), (1000, 712, 200, 128, 64, 64), (4096, 4096, 128, 128, 256, 64)]:
        a, b, c = half(m, k), half(n, k), half(m, n)
        da, db, dc = descriptor(a, (bm, bk)), descriptor(b, (bn, bk)), descriptor(c, (bm, bn))
        tensors = {"a": (a, False), "b": (b, False), "c": (c, True)}
        tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
        yield f"product {m}", tensors, lambda: product[(tiles,)](da, db, dc, m, n, k, bm, bn, bk, 8, num_warps=8)
        grid = (triton.cdiv(m, bm), triton.cdiv(n, bn))
        yield f"plain {m}", tensors, lambda: plain_product[grid](da, db, dc, m, n, k, bm, bn, bk, num_warps=8)
        yield f"half {m}", tensors, lambda: product[(tiles // 2,)](da, db, dc, m, n, k, bm, bn, bk, 8, num_warps=8)
        yield f"persistent {m}", tensors, lambda: persistent_product[(min(tiles, 132),)](
            da, db, dc, m, n, k, bm, bn, bk, 8, 132, num_warps=8)
        yield f"device {m}", tensors, lambda: device_product[(min(tiles, 132),)](
            a, b, c, m, n, k, bm, bn, bk, 132, num_warps=8)
    for causal in (False, True):
        heads, length, d = 6, 512, 64
        q, k, v, o = (half(heads * length, d) for _ in range(4))
        ds = [descriptor(x, (128, d)) for x in (q, k, v, o)]
        tensors = {"q": (q, False), "k": (k, False), "v": (v, False), "o": (o, True)}
        yield f"attention {causal}", tensors, lambda: attention[(length // 128, heads)](
            *ds, 0.1, heads, length, d, 128, 128, causal, num_warps=8)
    x, y = half(10, 40, 72), half(10, 40, 72)
    wide = half(10, 40, 96)[:, :, :72]
    for to in (y, wide):
        tensors = {"x": (x, False), "y": (to, True)}
        dx, dy = descriptor(x, (4, 16, 32)), descriptor(to, (4, 16, 32))
        for at in (0, 5, 30):
            yield f"shifted {at} {to.stride(1)}", tensors, lambda: shifted_copy[(3, 3, 3)](dx, dy, at, 4, 16, 32)
        yield "part", tensors, lambda: shifted_copy[(2, 1, 2)](dx, dy, 0, 4, 16, 32)
    x, y = half(64, 128), half(16, 128)
    dx, dy = descriptor(x, (16, 64)), descriptor(y, (16, 64))
    yield "add", {"x": (x, False), "y": (y, True)}, lambda: add_rows[(4, 2)](dx, dy, 16, 64)


def bytes_of(x):
    """The memory of a tensor, gaps between its rows included."""
    count = sum((n - 1) * s for n, s in zip(x.shape, x.stride())) + 1
    return torch.as_strided(x, (count,), (1,)).view(torch.uint8)


def runs(changed):
    edges = torch.diff(torch.cat([changed.new_zeros(1), changed, changed.new_zeros(1)]).int())
    starts, ends = torch.nonzero(edges == 1).flatten(), torch.nonzero(edges == -1).flatten()
    return torch.stack([starts, ends], 1).tolist()


def measured(tensors, launch):
    # Patterns that are finite halves, and nothing that a kernel stores.
    changed, result = {}, {}
    for pattern in (0x11, 0x2B):
        for x, written in tensors.values():
            if written:
                bytes_of(x).fill_(pattern)
        launch()
        torch.cuda.synchronize()
        for name, (x, written) in tensors.items():
            if written:
                new = bytes_of(x) != pattern
                changed[name] = changed[name] | new if name in changed else new
    for name, (x, written) in tensors.items():
        if written:
            result[name] = {"changed": runs(changed[name])}
    # Which of 32 parts of each source does a result rest on?
    outputs = [x for x, written in tensors.values() if written]
    def answer():
        for out in outputs:
            bytes_of(out).fill_(0x11)
        launch()
        torch.cuda.synchronize()
        return [bytes_of(out).clone() for out in outputs]
    plain = answer()
    for name, (x, written) in tensors.items():
        if written:
            continue
        flat = bytes_of(x).view(torch.float16)
        part = -(-flat.numel() // 32)
        matters = []
        for at in range(0, flat.numel(), part):
            kept = flat[at : at + part].clone()
            flat[at : at + part] = 3.0
            if any(not torch.equal(a, b) for a, b in zip(plain, answer())):
                matters.append([2 * at, 2 * min(at + part, flat.numel())])
            flat[at : at + part] = kept
        result[name] = {"read": matters}
    return result


def main():
    torch.manual_seed(1)
    told = []
    for name, tensors, launch in cases():
        print(name, flush=True)
        where = {n: [x.data_ptr(), bytes_of(x).numel()] for n, (x, _) in tensors.items()}
        if sys.argv[1] == "measure":
            told.append({"name": name, "at": where, "measured": measured(tensors, launch)})
        else:
            launch()
            torch.cuda.synchronize()
            told.append({"name": name, "at": where})
    with open(sys.argv[2], "w") as out:
        json.dump(told, out)


main()
