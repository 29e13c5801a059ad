"""Writes what Triton makes of kernels of many kinds, for several architectures, as PTX and machine code; needs no GPU.

  triton_modules.py FOLDER [CAPABILITY...]      (75 80 90 100 120)

Kernels are written in the manner of what people write by hand (matmul, attention, norms) and of what PyTorch's Inductor generates.
"""
import contextlib
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra.cuda import libdevice

try:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
except ImportError:
    gdc_wait = None

MODULES = []


def module(signature, lowest=75, options=(), **constants):
    """Compiles the kernel with that signature (`x:*fp32 n:i32`) and those constants."""
    def add(kernel):
        MODULES.append((kernel, signature, constants, lowest, dict(options)))
        return kernel
    return add


# Elementwise, as by hand.


@module("x:*fp32 y:*fp32 o:*fp32 n:i32", B=1024)
@module("x:*bf16 y:*bf16 o:*bf16 n:i32", B=2048, options=dict(num_warps=8))
@module("x:*fp16 y:*fp16 o:*fp16 n:i64", B=512)
@module("x:*i8 y:*i8 o:*i8 n:i32", B=256)
@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@module("x:*fp32 o:*fp32 n:i32", B=1024)
@triton.jit
def grid_stride(x, o, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        at = start + tl.arange(0, B)
        tl.store(o + at, tl.sigmoid(tl.load(x + at, mask=at < n, other=0.0)), mask=at < n)


@module("x:*fp32 o:*fp32 n:i32", B=1024)
@triton.jit
def transcendental(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=1.0)
    v = libdevice.pow(v, 1.5) + libdevice.atan2(v, 2.0) + libdevice.erf(v) + libdevice.tanh(v) + libdevice.log1p(v) + tl.exp2(v)
    v += libdevice.sin(v * 1e6) + libdevice.lgamma(v) + libdevice.fmod(v, 3.0) + libdevice.ffs(at).to(tl.float32) + tl.rsqrt(v)
    tl.store(o + at, v, mask=at < n)


@module("x:*fp64 o:*fp64 n:i32", B=256)
@triton.jit
def doubles(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=1.0)
    tl.store(o + at, libdevice.cos(v) + libdevice.j0(v) + tl.sqrt(v) / (v + 1), mask=at < n)


@module("x:*i32 o:*i32 n:i32 d:i32", B=256)
@module("x:*i64 o:*i64 n:i64 d:i64", B=256)
@module("x:*i16 o:*i16 n:i32 d:i16", B=256)
@triton.jit
def integers(x, o, n, d, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=1)
    v = (v // d) * 3 + v % d + (v << 2) - (v >> 1) + tl.abs(v) + tl.minimum(v, d) ^ tl.maximum(v, 7)
    tl.store(o + at // 2 * 2 + at % 2, tl.where(v > 0, v, -v) & 255 | ~v, mask=at < n)


@module("x:*u32 o:*u32 h:*u64 n:i32", B=256)
@triton.jit
def unsigned(x, o, h, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=1)
    tl.store(o + at, tl.umulhi(v, 0x9E3779B9) + libdevice.clz(v.to(tl.int32)).to(tl.uint32) + libdevice.popc(v.to(tl.int32)).to(tl.uint32), mask=at < n)
    tl.store(h + at, v.to(tl.uint64) * 0x9E3779B97F4A7C15 >> 7, mask=at < n)


@module("x:*fp32 o:*fp16 b:*bf16 e:*fp8e5 i:*i8 n:i32", lowest=90, B=1024)
@triton.jit
def conversions(x, o, b, e, i, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(o + at, v.to(tl.float16), mask=at < n)
    tl.store(b + at, v.to(tl.bfloat16), mask=at < n)
    tl.store(e + at, v.to(tl.float8e5), mask=at < n)
    tl.store(i + at, v.to(tl.int8), mask=at < n)


@module("x:*fp8e4nv o:*fp32 n:i32", lowest=90, B=1024)
@triton.jit
def from_fp8(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + at, tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), mask=at < n)


@module("x:*fp32 o:*fp32 n:i32 t:i1", B=256)
@triton.jit
def branches(x, o, n, t, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    if t:
        v = tl.load(x + at, mask=at < n, other=0.0) * 2
    elif tl.program_id(0) > 3:
        v = tl.load(x + n + at, mask=at < n, other=0.0)
    else:
        v = tl.full((B,), 1.0, tl.float32)
    while n > 4096:
        n //= 2
        v += 1
    tl.store(o + at, v, mask=at < n)


@module("x:*i32 o:*i32 n:i32", B=256)
@triton.jit
def assembly(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0)
    v = tl.inline_asm_elementwise("{ .reg .pred q; setp.lt.s32 q, $1, $2; selp.b32 $0, $1, $2, q; shf.l.wrap.b32 $0, $0, $0, 3; }",
                                  "=r,r,r", [v, at], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(o + at, v, mask=at < n)


@module("x:*i32 n:i32", B=256)
@triton.jit
def talks(x, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.device_print("value", v)
    tl.device_assert(v < 7, "too large")
    tl.debug_barrier()


# Reductions, scans, sorts.


@module("o:*fp32 x:*fp32 cols:i32 pitch:i32", B=1024)
@module("o:*fp16 x:*fp16 cols:i32 pitch:i64", B=8192, options=dict(num_warps=16))
@triton.jit
def softmax(o, x, cols, pitch, B: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * pitch + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(o + row * cols + at, v / tl.sum(v, 0), mask=at < cols)


@module("x:*fp32 m:*fp32 i:*i64 n:i32", B=1024)
@triton.jit
def argmax(x, m, i, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    tl.store(m + tl.program_id(0), tl.max(v, 0))
    tl.store(i + tl.program_id(0), tl.argmax(v, 0).to(tl.int64))


@module("o:*fp32 x:*fp32 w:*fp32 b:*fp32 mean:*fp32 rstd:*fp32 n:i32 eps:fp32", B=1024)
@triton.jit
def layer_norm(o, x, w, b, mean, rstd, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        total += tl.load(x + row * n + at, mask=at < n, other=0.0)
    m = tl.sum(total, 0) / n
    square = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        d = tl.where(at < n, tl.load(x + row * n + at, mask=at < n, other=0.0) - m, 0.0)
        square += d * d
    r = 1 / tl.sqrt(tl.sum(square, 0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * n + at, mask=at < n, other=0.0, eviction_policy="evict_first")
        tl.store(o + row * n + at, (v - m) * r * tl.load(w + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)


@module("dw:*fp32 db:*fp32 dy:*fp16 xhat:*fp16 locks:*i32 n:i32 groups:i32", B=512)
@triton.jit
def locked_sums(dw, db, dy, xhat, locks, n, groups, B: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, B)
    group = row % groups
    g = tl.load(dy + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    h = tl.load(xhat + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    first = tl.load(locks + groups + group)
    a, b = g * h, g
    if first != 0:
        a += tl.load(dw + group * n + at, mask=at < n)
        b += tl.load(db + group * n + at, mask=at < n)
    else:
        tl.atomic_xchg(locks + groups + group, 1)
    tl.store(dw + group * n + at, a, mask=at < n)
    tl.store(db + group * n + at, b, mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@module("f:*fp32 h:*fp16 i:*i32 l:*i64 u:*u32 x:*i32 n:i32", B=256)
@triton.jit
def atomics(f, h, i, l, u, x, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(f, v.to(tl.float32).sum(0))
    tl.atomic_add(h + at, v.to(tl.float16), mask=at < n)
    tl.atomic_max(i + at % 32, v, mask=at < n)
    tl.atomic_min(u + at, v.to(tl.uint32), mask=at < n)
    tl.atomic_add(l + at, v.to(tl.int64), mask=at < n, sem="relaxed", scope="sys")
    tl.atomic_and(i + at, v, mask=at < n)
    tl.atomic_or(i + at, v, mask=at < n, scope="cta")
    tl.atomic_xor(i + n + at, v, mask=at < n, sem="release")
    tl.store(i + 2 * n + at, tl.atomic_xchg(i + 3 * n + at, v, mask=at < n), mask=at < n)
    tl.atomic_max(f + 1 + at, v.to(tl.float32), mask=at < n)


@module("b:*bf16 x:*bf16 n:i32", lowest=90, B=256)
@triton.jit
def atomic_bf16(b, x, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(b + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def combine(a, b):
    return a * 2 + b


@module("o:*fp32 c:*i32 x:*fp32 n:i32", B=1024)
@triton.jit
def scans(o, c, x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(o + tl.program_id(0) * n + at, tl.associative_scan(v, 0, combine), mask=at < n)
    tl.store(c + tl.program_id(0) * n + at, tl.cumsum((v > 0).to(tl.int32), 0), mask=at < n)


@module("o:*i32 x:*i32 n:i32", B=256)
@triton.jit
def sorts(o, x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=2147483647)
    tl.store(o + tl.program_id(0) * n + at, tl.sort(v), mask=at < n)


@module("o:*i32 x:*i32 n:i32", B=1024, BINS=128)
@triton.jit
def histogram(o, x, n, B: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(o + tl.arange(0, BINS), tl.histogram(v, BINS))


@module("o:*fp32 x:*fp32 i:*i32 n:i32 rows:i32", B=128)
@triton.jit
def embedding(o, x, i, n, rows, B: tl.constexpr):
    row = tl.load(i + tl.program_id(0))
    at = tl.arange(0, B)
    tl.device_assert(row < rows)
    v = tl.load(x + row.to(tl.int64) * n + at, mask=at < n, other=0.0)
    tl.store(o + tl.program_id(0) * n + at, v, mask=at < n)


@module("o:*fp32 x:*fp32 i:*i32", B=64)
@triton.jit
def gathers(o, x, i, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.gather(tl.load(x + at), tl.load(i + at), 0)
    a, b = tl.split(tl.reshape(tl.interleave(v, v * 2), (B, 2)))
    tl.store(o + at, tl.flip(a + b, 0))


@module("o:*fp32 x:*fp32 p:fp32 seed:i32 n:i32", B=1024)
@module("o:*fp32 x:*fp32 p:fp32 seed:i64 n:i32", B=256)
@triton.jit
def dropout(o, x, p, seed, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=at < n, other=0.0) + tl.randn(seed, at + n) * 0.1
    tl.store(o + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


@module("o:*fp32 x:*fp32 rows:i32 cols:i32", BR=32, BC=64)
@triton.jit
def transpose(o, x, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    r, c = tl.program_id(0) * BR + tl.arange(0, BR), tl.program_id(1) * BC + tl.arange(0, BC)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r < rows)[:, None] & (c < cols)[None, :])
    tl.store(o + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c < cols)[:, None] & (r < rows)[None, :])


# Tensor cores.


@module("a:*fp16 b:*fp16 c:*fp16 M:i32 N:i32 K:i32 sa:i32 sb:i32 sc:i32", BM=128, BN=128, BK=32, GROUP=8, options=dict(num_warps=8, num_stages=3))
@module("a:*fp32 b:*fp32 c:*fp32 M:i32 N:i32 K:i32 sa:i32 sb:i32 sc:i32", lowest=80, BM=64, BN=64, BK=32, GROUP=4, options=dict(num_stages=4))
@module("a:*bf16 b:*bf16 c:*fp32 M:i32 N:i32 K:i32 sa:i32 sb:i32 sc:i32", lowest=80, BM=64, BN=32, BK=64, GROUP=1, options=dict(num_stages=2))
@module("a:*i8 b:*i8 c:*i32 M:i32 N:i32 K:i32 sa:i32 sb:i32 sc:i32", lowest=80, BM=64, BN=64, BK=64, GROUP=8)
@module("a:*fp8e4nv b:*fp8e4nv c:*fp32 M:i32 N:i32 K:i32 sa:i32 sb:i32 sc:i32", lowest=90, BM=128, BN=64, BK=64, GROUP=8)
@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    pm = first + pid % (GROUP * tiles_n) % size
    pn = pid % (GROUP * tiles_n) // size
    m, n, k = (pm * BM + tl.arange(0, BM)) % M, (pn * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    at_a, at_b = a + m[:, None] * sa + k[None, :], b + k[:, None] * sb + n[None, :]
    acc = tl.zeros((BM, BN), c.dtype.element_ty if c.dtype.element_ty == tl.int32 else tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=k[None, :] < K - i * BK)
        y = tl.load(at_b, mask=k[:, None] < K - i * BK)
        acc = tl.dot(x, y, acc)
        at_a += BK
        at_b += BK * sb
    m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * sc + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@module("a:tensordesc<fp16[128,64]> b:tensordesc<fp16[64,128]> c:tensordesc<fp16[128,128]> K:i32", lowest=90, BM=128, BN=128, BK=64, options=dict(num_warps=8))
@triton.jit
def matmul_host_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(tl.float16))


@module("a:*fp16 b:*fp16 c:*fp16 M:i32 N:i32 K:i32", lowest=90, BM=128, BN=128, BK=64, SPECIAL=False, options=dict(num_warps=4))
@module("a:*fp16 b:*fp16 c:*fp16 M:i32 N:i32 K:i32", lowest=100, BM=128, BN=128, BK=64, SPECIAL=True, options=dict(num_warps=4))
@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIAL: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    y = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0), flatten=True, warp_specialize=SPECIAL):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(x.load([m, k * BK]), y.load([n, k * BK]).T, acc)
        z.store([m, n], acc.to(tl.float16))


@module("x:*fp32 o:*fp32 i:*i32 M:i32 N:i32", lowest=100, B=64)
@triton.jit
def gather_scatter_descriptor(x, o, i, M, N, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, B])
    b = tl.make_tensor_descriptor(o, [M, N], [N, 1], [1, B])
    rows = tl.load(i + tl.program_id(0) * 32 + tl.arange(0, 32))
    b.scatter(a.gather(rows, tl.program_id(1) * B), rows, tl.program_id(1) * B)


@module("x:*fp32 o:*fp32 M:i32 N:i32", lowest=90, B=64)
@triton.jit
def reduce_descriptor(x, o, M, N, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    b = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    b.atomic_add([tl.program_id(1) * B, 0], a.load([tl.program_id(0) * B, tl.program_id(1) * B]))


@module("q:*fp16 k:*fp16 v:*fp16 o:*fp16 lse:*fp32 T:i32 scale:fp32 st:i64 sh:i64", BM=64, BN=32, D=64, CAUSAL=True)
@module("q:*bf16 k:*bf16 v:*bf16 o:*bf16 lse:*fp32 T:i32 scale:fp32 st:i64 sh:i64", lowest=80, BM=128, BN=64, D=64, CAUSAL=False, options=dict(num_warps=8, num_stages=3))
@triton.jit
def attention(q, k, v, o, lse, T, scale, st, sh, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    head, m, d = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(q + head * sh + m[:, None] * st + d[None, :], mask=m[:, None] < T, other=0.0)
    top, low = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = min(T, (tl.program_id(0) + 1) * BM) if CAUSAL else T
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        y = tl.load(k + head * sh + n[None, :] * st + d[:, None], mask=n[None, :] < T, other=0.0)
        s = tl.dot(x, y) * scale
        s = tl.where((n[None, :] < T) & ((m[:, None] >= n[None, :]) | (not CAUSAL)), s, -1e9)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        low = low * fade + tl.sum(p, 1)
        z = tl.load(v + head * sh + n[:, None] * st + d[None, :], mask=n[:, None] < T, other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * fade[:, None])
        top = new
    tl.store(o + head * sh + m[:, None] * st + d[None, :], (acc / low[:, None]).to(o.dtype.element_ty), mask=m[:, None] < T)
    tl.store(lse + head * T + m, top + tl.log2(low), mask=m < T)


@module("a:*fp8e4nv sa:*u8 b:*fp8e4nv sb:*u8 c:*fp32 K:i32", lowest=90, BM=128, BN=128, BK=128)
@triton.jit
def matmul_scaled(a, sa, b, sb, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k, g = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        x, y = tl.load(a + m[:, None] * K + i + k[None, :]), tl.load(b + n[None, :] * K + i + k[:, None])
        u, w = tl.load(sa + m[:, None] * (K // 32) + i // 32 + g[None, :]), tl.load(sb + n[:, None] * (K // 32) + i // 32 + g[None, :])
        acc = tl.dot_scaled(x, u, "e4m3", y, w, "e4m3", acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


# In the manner of PyTorch's Inductor.


@module("in_ptr0:*fp32 in_ptr1:*fp32 out_ptr0:*fp32 xnumel:i32", XBLOCK=1024)
@triton.jit
def triton_poi_fused_add_relu(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2, x0, x1 = xindex, xindex % 196, xindex // 196 % 64
    a = tl.load(in_ptr0 + x2, xmask, eviction_policy="evict_last")
    b = tl.load(in_ptr1 + (x1 + 64 * x0), xmask, eviction_policy="evict_last")
    tl.store(out_ptr0 + x2, tl.maximum(tl.full([1], 0, tl.int32), a + b), xmask)


@module("in_ptr0:*fp32 out_ptr0:*fp32 out_ptr1:*fp32 xnumel:i32 rnumel:i32", XBLOCK=8, RBLOCK=256)
@triton.jit
def triton_red_fused_mean_var(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask, rbase = xindex < xnumel, tl.arange(0, RBLOCK)[None, :]
    s = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    q = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        r = roffset + rbase
        v = tl.load(in_ptr0 + (r + rnumel * xindex), (r < rnumel) & xmask, eviction_policy="evict_first", other=0.0)
        s = tl.where((r < rnumel) & xmask, s + v, s)
        q = tl.where((r < rnumel) & xmask, q + v * v, q)
    tl.store(out_ptr0 + xindex, tl.sum(s, 1)[:, None], xmask)
    tl.store(out_ptr1 + xindex, tl.sum(q, 1)[:, None], xmask)


@module("in_out_ptr0:*bf16 in_ptr0:*i64 in_ptr1:*bf16 xnumel:i32 r0_numel:i32", lowest=80, XBLOCK=1, R0_BLOCK=1024)
@triton.jit
def triton_per_fused_embedding_rms(in_out_ptr0, in_ptr0, in_ptr1, xnumel, r0_numel, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    x0 = tl.program_id(0) * XBLOCK
    r = tl.arange(0, R0_BLOCK)
    mask = r < r0_numel
    i = tl.load(in_ptr0 + x0, None)
    i = tl.where(i < 0, i + 32000, i)
    tl.device_assert((0 <= i) & (i < 32000), "index out of bounds: 0 <= tmp4 < 32000")
    v = tl.load(in_ptr1 + (r + 768 * i), mask, other=0.0).to(tl.float32)
    v *= libdevice.rsqrt(tl.sum(tl.where(mask, v * v, 0), 0) / 768.0 + 1e-05)
    tl.store(in_out_ptr0 + (r + 768 * x0), v.to(tl.bfloat16), mask)


@module("in_ptr0:*i64 out_ptr0:*fp32 out_ptr1:*i1 load_seed_offset:i32 xnumel:i32", XBLOCK=512)
@triton.jit
def triton_poi_fused_dropout(in_ptr0, out_ptr0, out_ptr1, load_seed_offset, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    seed = tl.load(in_ptr0 + load_seed_offset)
    v = tl.rand(seed, xindex.to(tl.uint32))
    tl.store(out_ptr0 + xindex, v, xmask)
    tl.store(out_ptr1 + xindex, v > 0.1, xmask)


@module("in_ptr0:*fp32 in_ptr1:*fp32 out_ptr0:*fp32 out_ptr1:*fp32 a:i32 b:i32", XBLOCK=1024)
@triton.jit
def triton_for_fused_foreach(in_ptr0, in_ptr1, out_ptr0, out_ptr1, a, b, XBLOCK: tl.constexpr):
    pid, blocks = tl.program_id(0), tl.cdiv(a, XBLOCK)
    if pid < blocks:
        x = pid * XBLOCK + tl.arange(0, XBLOCK)
        tl.store(out_ptr0 + x, tl.load(in_ptr0 + x, x < a) * 0.9, x < a)
    elif pid < blocks + tl.cdiv(b, XBLOCK):
        x = (pid - blocks) * XBLOCK + tl.arange(0, XBLOCK)
        tl.store(out_ptr1 + x, tl.load(in_ptr1 + x, x < b) * 0.9, x < b)


@module("in_ptr0:*fp32 out_ptr0:*fp32 ks0:i64 ks1:i64 xnumel:i64", XBLOCK=256)
@triton.jit
def triton_poi_dynamic(in_ptr0, out_ptr0, ks0, ks1, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0).to(tl.int64) * XBLOCK + tl.arange(0, XBLOCK)[:].to(tl.int64)
    xmask = xindex < xnumel
    x0, x1, x2 = xindex % ks0, xindex // ks0 % ks1, xindex // (ks0 * ks1)
    v = tl.load(in_ptr0 + (x1 + ks1 * x0 + ks0 * ks1 * x2), xmask, eviction_policy="evict_last")
    tl.store(out_ptr0 + xindex, v, xmask)


if gdc_wait is not None:
    @module("x:*fp32 o:*fp32 n:i32", lowest=90, B=1024, options=dict(launch_pdl=True))
    @triton.jit
    def dependent(x, o, n, B: tl.constexpr):
        gdc_wait()
        at = tl.program_id(0) * B + tl.arange(0, B)
        v = tl.load(x + at, mask=at < n)
        gdc_launch_dependents()
        tl.store(o + at, v + 1, mask=at < n)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    made, failed = 0, 0
    for capability in map(int, sys.argv[2:] or ("75", "80", "90", "100", "120")):
        target = GPUTarget("cuda", capability, 32)
        seen = {}
        for kernel, signature, constants, lowest, options in MODULES:
            if capability < lowest:
                continue
            name = kernel.__name__
            seen[name] = seen.get(name, 0) + 1
            types = dict(word.split(":", 1) for word in signature.split())
            types.update({c: "constexpr" for c in constants})
            try:
                # Pointers are aligned, as those of tensors are.
                attributes = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t.startswith("*")}
                source = ASTSource(kernel, signature=types, constexprs=constants, attrs=attributes)
                # Triton prints whole modules of what it can not assemble.
                with contextlib.redirect_stdout(sys.stderr):
                    done = triton.compile(source, target=target, options=options)
            except Exception as error:
                failed += 1
                print(f"{name}, {capability}: {str(error).strip().splitlines()[-1][:200] if str(error) else type(error)}", file=sys.stderr)
                continue
            stem = folder / f"{name}-{seen[name]}-{capability}"
            stem.with_suffix(".ptx").write_text(done.asm["ptx"])
            if "cubin" in done.asm:
                stem.with_suffix(".cubin").write_bytes(done.asm["cubin"])
            made += 1
    print(f"Triton {triton.__version__}: {made} modules, {failed} that it could not make")


main()
