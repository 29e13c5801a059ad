"""Triton's kernels that `hopper_code.py` compiles for compute capability 9.0: products, persistent and
grouped, flash attention forward and backward, reductions and copies, all with tensor descriptors.
They are compiled, never launched.
"""

import triton
import triton.language as tl


@triton.jit
def mm(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    WS: tl.constexpr,
    TRANS: tl.constexpr,
    ACT: tl.constexpr,
):
    i = tl.program_id(0)
    j = tl.program_id(1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        x = a.load([i * BM, k])
        if TRANS:
            y = b.load([j * BN, k]).T
        else:
            y = b.load([k, j * BN])
        acc = tl.dot(x, y, acc)
    if ACT:
        acc = tl.where(acc > 0, acc, 0.01 * acc)
    c.store([i * BM, j * BN], acc.to(c.dtype))


@triton.jit
def mm_reg_a(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK):
        x = a.load([i * BM, k]).to(tl.float16) * 2.0
        y = b.load([k, j * BN])
        acc = tl.dot(x.to(tl.float16), y, acc)
    c.store([i * BM, j * BN], acc.to(c.dtype))


@triton.jit
def mm_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    rm = i * BM + tl.arange(0, BM)
    rn = j * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :], mask=(k + rk)[None, :] < K, other=0.0)
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :], mask=(k + rk)[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
    c.store([i * BM, j * BN], acc.to(c.dtype))


@triton.jit
def persistent(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    WS: tl.constexpr,
    FLAT: tl.constexpr,
    SUB: tl.constexpr,
    GROUP: tl.constexpr,
):
    m = tl.cdiv(M, BM)
    n = tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), m * n, tl.num_programs(0), flatten=FLAT, warp_specialize=WS):
        g = t // (GROUP * n)
        first = g * GROUP
        size = min(m - first, GROUP)
        i = first + (t % (GROUP * n)) % size
        j = (t % (GROUP * n)) // size
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([i * BM, k]), b.load([j * BN, k]).T, acc)
        if SUB:
            acc = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            l, r = tl.split(acc)
            c.store([i * BM, j * BN], l.to(c.dtype))
            c.store([i * BM, j * BN + BN // 2], r.to(c.dtype))
        else:
            c.store([i * BM, j * BN], acc.to(c.dtype))


@triton.jit
def device(
    x, w, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr, FLAT: tl.constexpr
):
    a = tl.make_tensor_descriptor(x, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(w, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    n = tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), tl.cdiv(M, BM) * n, tl.num_programs(0), flatten=FLAT, warp_specialize=WS):
        i = t // n
        j = t % n
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([i * BM, k]), b.load([j * BN, k]).T, acc)
        c.store([i * BM, j * BN], acc.to(tl.float16))


@triton.jit
def grouped(pa, pb, pc, sizes, G, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    t = tl.program_id(0)
    last = 0
    for g in range(G):
        M = tl.load(sizes + g * 3)
        N = tl.load(sizes + g * 3 + 1)
        K = tl.load(sizes + g * 3 + 2)
        m = tl.cdiv(M, BM)
        n = tl.cdiv(N, BN)
        if t >= last and t < last + m * n:
            a = tl.make_tensor_descriptor(
                tl.load(pa + g).to(tl.pointer_type(tl.float16)), shape=[M, K], strides=[K, 1], block_shape=[BM, BK]
            )
            b = tl.make_tensor_descriptor(
                tl.load(pb + g).to(tl.pointer_type(tl.float16)), shape=[N, K], strides=[K, 1], block_shape=[BN, BK]
            )
            c = tl.make_tensor_descriptor(
                tl.load(pc + g).to(tl.pointer_type(tl.float16)), shape=[M, N], strides=[N, 1], block_shape=[BM, BN]
            )
            while t >= last and t < last + m * n:
                i = (t - last) // n
                j = (t - last) % n
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, K, BK):
                    acc = tl.dot(a.load([i * BM, k]), b.load([j * BN, k]).T, acc)
                c.store([i * BM, j * BN], acc.to(tl.float16))
                t += tl.num_programs(0)
        last += m * n


@triton.jit
def forward(
    q,
    k,
    v,
    o,
    sums,
    scale,
    L,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
    WS: tl.constexpr,
    FP8: tl.constexpr,
):
    start = tl.program_id(0) * BM
    rows = start + tl.arange(0, BM)
    first = tl.program_id(1) * L
    query = q.load([first + start, 0])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = L
    if CAUSAL:
        end = start + BM
    for at in tl.range(0, end, BN, warp_specialize=WS):
        s = tl.dot(query, k.load([first + at, 0]).T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= (at + tl.arange(0, BN))[None, :], s, -1e6)
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None])
        kept = tl.exp2(top - higher)
        if FP8:
            vv = v.load([0, first + at]).T
        else:
            vv = v.load([first + at, 0])
        acc = tl.dot(p.to(v.dtype), vv, acc * kept[:, None])
        total = total * kept + tl.sum(p, 1)
        top = higher
    tl.store(sums + first + rows, top + tl.log2(total))
    o.store([first + start, 0], (acc / total[:, None]).to(o.dtype))


@triton.jit
def backward(
    q,
    k,
    v,
    do,
    dq,
    dk,
    dv,
    sums,
    delta,
    scale,
    L,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    WS: tl.constexpr,
):
    start, first = tl.program_id(0) * BN, tl.program_id(1) * L
    cols = start + tl.arange(0, BN)
    key, value = k.load([first + start, 0]), v.load([first + start, 0])
    ak, av = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for at in tl.range(start, L, BM, warp_specialize=WS):
        rows = at + tl.arange(0, BM)
        query, slope = q.load([first + at, 0]), do.load([first + at, 0])
        s = tl.dot(key, query.T) * scale
        p = tl.exp2(s - tl.load(sums + first + rows)[None, :])
        p = tl.where(rows[None, :] >= cols[:, None], p, 0.0)
        av = tl.dot(p.to(tl.float16), slope, av)
        dp = tl.dot(value, slope.T)
        ds = (p * (dp - tl.load(delta + first + rows)[None, :])).to(tl.float16)
        ak = tl.dot(ds, query, ak)
        part = tl.dot(ds.T, key)
        dq.atomic_add([first + at, 0], part)
    dk.store([first + start, 0], ak.to(tl.float16))
    dv.store([first + start, 0], av.to(tl.float16))


@triton.jit
def backward_plain(q, k, v, do, dq, sums, delta, scale, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start, first = tl.program_id(0) * BM, tl.program_id(1) * L
    rows = start + tl.arange(0, BM)
    query, slope = q.load([first + start, 0]), do.load([first + start, 0])
    of_rows, sum_of = tl.load(delta + first + rows), tl.load(sums + first + rows)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, start + BM, BN):
        key = k.load([first + at, 0])
        p = tl.exp2(tl.dot(query, key.T) * scale - sum_of[:, None])
        ds = p * (tl.dot(slope, v.load([first + at, 0]).T) - of_rows[:, None])
        acc = tl.dot(ds.to(tl.float16), key, acc)
    dq.store([first + start, 0], acc.to(tl.float16))


@triton.jit
def copy(x, y, M, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    i = tl.program_id(0)
    v = x.load([i * BM, 0])
    if KIND == 0:
        y.store([i * BM, 0], v * 2)
    elif KIND == 1:
        y.store([0, i * BM], v.T)
    elif KIND == 2:
        y.atomic_add([i * BM, 0], v)
    elif KIND == 3:
        y.atomic_max([i * BM, 0], v)
    elif KIND == 4:
        y.store([i * BM, 0], tl.cumsum(v, 1))
    elif KIND == 5:
        y.store([i * BM, 0], tl.sort(v))
    elif KIND == 6:
        s = tl.sum(v, 1, keep_dims=True)
        y.store([i * BM, 0], v - s)
    elif KIND == 7:
        y.store([i * BM, 0], tl.flip(v))


@triton.jit
def stream(x, y, M, BM: tl.constexpr, BN: tl.constexpr, REDUCE: tl.constexpr, WS: tl.constexpr):
    for t in tl.range(tl.program_id(0), M // BM, tl.num_programs(0), warp_specialize=WS):
        v = x.load([t * BM, 0])
        if REDUCE:
            y.atomic_add([t * BM, 0], v)
        else:
            y.store([t * BM, 0], tl.sqrt(v.to(tl.float32)).to(v.dtype))


@triton.jit
def two_stores(x, y, z, M, BM: tl.constexpr, BN: tl.constexpr):
    for t in tl.range(tl.program_id(0), M // BM, tl.num_programs(0)):
        v = x.load([t * BM, 0])
        y.store([t * BM, 0], v * 2)
        z.store([0, t * BM], v.T)


@triton.jit
def gathered(p, ix, y, M, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0)
    r = tl.load(ix + i * BM + tl.arange(0, BM))
    v = tl.load(p + r[:, None] * BN + tl.arange(0, BN)[None, :])
    y.store([i * BM, 0], v)


@triton.jit
def dims(x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    v = x.load([i * A, j * B, 0])
    y.store([j * B, i * A, 0], tl.permute(v, (1, 0, 2)) + 1)


@triton.jit
def line(x, y, A: tl.constexpr):
    i = tl.program_id(0)
    y.store([i * A], x.load([i * A]) + 1)


@triton.jit
def scratch_device(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0)
    a = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for j in range(0, N, BN):
        c = tl.make_tensor_descriptor(y + j, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
        c.store([i * BM, 0], a.load([i * BM, j]) + 1)
