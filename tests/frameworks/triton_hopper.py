"""Triton's kernels for compute capability 9.0 against PyTorch on the CPU: products through tensor
descriptors (of the host and of the device, persistent, warp-specialised), and flash attention,
forward and backward. Arguments are names of these, all without; with `ptx` Triton's PTX is loaded
in place of its machine code. A result that is not the CPU's within half precision is an error.
"""

import sys

import torch
import triton
import triton.language as tl
from triton.compiler.compiler import CompiledKernel
from triton.tools.tensor_descriptor import TensorDescriptor

TILE, ROWS, COLUMNS, INNER = 64, 256, 128, 320
HEADS, LENGTH, WIDTH = 2, 192, 64
TOLERANCE = 1e-2


@triton.jit
def tile(a, b, c, i, j, K, R: tl.constexpr, B: tl.constexpr):
    total = tl.zeros((R, B), dtype=tl.float32)
    for k in range(0, K, B):
        total = tl.dot(a.load([i * R, k]), b.load([j * B, k]).T, total)
    c.store([i * R, j * B], total.to(tl.float16))


@triton.jit
def tiles_kernel(a, b, c, K, B: tl.constexpr):
    tile(a, b, c, tl.program_id(0), tl.program_id(1), K, B, B)


@triton.jit
def persistent_kernel(a, b, c, M, N, K, R: tl.constexpr, B: tl.constexpr, PARTED: tl.constexpr):
    across = N // B
    for at in tl.range(tl.program_id(0), M // R * across, tl.num_programs(0), warp_specialize=PARTED):
        tile(a, b, c, at // across, at % across, K, R, B)


@triton.jit
def device_kernel(x, w, y, M, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(x, shape=[M, K], strides=[K, 1], block_shape=[B, B])
    b = tl.make_tensor_descriptor(w, shape=[N, K], strides=[K, 1], block_shape=[B, B])
    c = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    across = N // B
    for at in range(tl.program_id(0), M // B * across, tl.num_programs(0)):
        tile(a, b, c, at // across, at % across, K, B, B)


@triton.jit
def forward_kernel(q, k, v, o, sums, scale, L, D: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    first = tl.program_id(1) * L
    query = q.load([first + tl.program_id(0) * B, 0])
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    out = tl.zeros((B, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * B, B):
        score = tl.dot(query, k.load([first + start, 0]).T) * scale
        columns = start + tl.arange(0, B)
        score = tl.where(rows[:, None] >= columns[None, :], score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - higher[:, None])
        kept = tl.exp2(top - higher)
        out = tl.dot(weight.to(tl.float16), v.load([first + start, 0]), out * kept[:, None])
        total = total * kept + tl.sum(weight, 1)
        top = higher
    o.store([first + tl.program_id(0) * B, 0], (out / total[:, None]).to(tl.float16))
    tl.store(sums + first + rows, top + tl.log2(total))


@triton.jit
def weights(query, key, sums, rows, columns, scale):
    score = tl.dot(query, key.T) * scale
    weight = tl.exp2(score - sums[:, None])
    return tl.where(rows[:, None] >= columns[None, :], weight, 0.0)


@triton.jit
def keys_kernel(q, k, v, slope, into_k, into_v, sums, delta, scale, plain, L, D: tl.constexpr, B: tl.constexpr):
    start, first = tl.program_id(0) * B, tl.program_id(1) * L
    columns = start + tl.arange(0, B)
    key, value = k.load([first + start, 0]), v.load([first + start, 0])
    dk, dv = tl.zeros((B, D), tl.float32), tl.zeros((B, D), tl.float32)
    for at in range(start, L, B):
        rows = at + tl.arange(0, B)
        query, do = q.load([first + at, 0]), slope.load([first + at, 0])
        weight = weights(query, key, tl.load(sums + first + rows), rows, columns, scale)
        dv = tl.dot(weight.to(tl.float16).T, do, dv)
        of_weight = tl.dot(do, value.T)
        of_score = weight * (of_weight - tl.load(delta + first + rows)[:, None])
        dk = tl.dot(of_score.to(tl.float16).T, query, dk)
    into_k.store([first + start, 0], (dk * plain).to(tl.float16))
    into_v.store([first + start, 0], dv.to(tl.float16))


@triton.jit
def queries_kernel(q, k, v, slope, into_q, sums, delta, scale, plain, L, D: tl.constexpr, B: tl.constexpr):
    start, first = tl.program_id(0) * B, tl.program_id(1) * L
    rows = start + tl.arange(0, B)
    query, do = q.load([first + start, 0]), slope.load([first + start, 0])
    of_rows, sum_of_rows = tl.load(delta + first + rows), tl.load(sums + first + rows)
    dq = tl.zeros((B, D), tl.float32)
    for at in range(0, start + B, B):
        columns = at + tl.arange(0, B)
        key = k.load([first + at, 0])
        weight = weights(query, key, sum_of_rows, rows, columns, scale)
        of_score = weight * (tl.dot(do, v.load([first + at, 0]).T) - of_rows[:, None])
        dq = tl.dot(of_score.to(tl.float16), key, dq)
    into_q.store([first + start, 0], (dq * plain).to(tl.float16))


def numbers(*shape):
    return torch.randn(*shape).half()


def described(tensor, rows=TILE):
    return TensorDescriptor.from_tensor(tensor, [rows, TILE])


def product(launch):
    a, b = numbers(ROWS, INNER), numbers(COLUMNS, INNER)
    x, w, y = a.cuda(), b.cuda(), torch.empty(ROWS, COLUMNS, dtype=torch.float16, device="cuda")
    launch(x, w, y)
    return [(y.cpu(), a.float() @ b.float().T)]


def described_product():
    grid = (ROWS // TILE, COLUMNS // TILE)
    return product(lambda x, w, y: tiles_kernel[grid](*map(described, (x, w, y)), INNER, B=TILE, num_stages=3))


def persistent(rows, parted):
    def launch(x, w, y):
        a, b, c = described(x, rows), described(w), described(y, rows)
        persistent_kernel[(2,)](a, b, c, ROWS, COLUMNS, INNER, R=rows, B=TILE, PARTED=parted, num_stages=3)

    return product(launch)


def device_product():
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    return product(lambda x, w, y: device_kernel[(2,)](x, w, y, ROWS, COLUMNS, INNER, B=TILE, num_stages=3))


def attention():
    q, k, v, do = (numbers(HEADS, LENGTH, WIDTH).requires_grad_(at < 3) for at in range(4))
    wanted = torch.nn.functional.scaled_dot_product_attention(*(x.float() for x in (q, k, v)), is_causal=True)
    slopes = torch.autograd.grad(wanted, (q, k, v), do.float())
    rows = [x.detach().reshape(-1, WIDTH).cuda() for x in (q, k, v, do)]
    made = [torch.empty_like(rows[0]) for _ in range(4)]
    sums = torch.empty(HEADS * LENGTH, dtype=torch.float32, device="cuda")
    plain = WIDTH**-0.5
    grid, shape = (LENGTH // TILE, HEADS), {"D": WIDTH, "B": TILE}
    queries, keys, values, slope = map(described, rows)
    out, dq, dk, dv = map(described, made)
    forward_kernel[grid](queries, keys, values, out, sums, plain * 1.4426950408889634, LENGTH, **shape)
    delta = (made[0].float() * rows[3].float()).sum(1)
    scales = (plain * 1.4426950408889634, plain, LENGTH)
    keys_kernel[grid](queries, keys, values, slope, dk, dv, sums, delta, *scales, **shape)
    queries_kernel[grid](queries, keys, values, slope, dq, sums, delta, *scales, **shape)
    wanted = [wanted, *slopes]
    return [(x.cpu().reshape(y.shape), y.detach().float()) for x, y in zip(made, wanted)]


KERNELS = {
    "described": described_product,
    "persistent": lambda: persistent(TILE, False),
    # Two warp groups share a tile: with 64 rows Triton 3.9 lets both store all of it.
    "specialised": lambda: persistent(2 * TILE, True),
    "device": device_product,
    "attention": attention,
}


def take_ptx():
    init = CompiledKernel.__init__

    def with_ptx(self, *words, **named):
        init(self, *words, **named)
        self.kernel = self.asm["ptx"].encode() + b"\0"

    CompiledKernel.__init__ = with_ptx


def main():
    words = [word for word in sys.argv[1:] if word in KERNELS]
    if "ptx" in sys.argv:
        take_ptx()
    wrong = False
    for name in words or KERNELS:
        torch.manual_seed(1)
        for at, (got, wanted) in enumerate(KERNELS[name]()):
            off = ((got.float() - wanted).abs() / (wanted.abs() + 1)).max().item()
            wrong |= not off < TOLERANCE
            print(f"{name} {at}: {'right' if off < TOLERANCE else f'wrong by {off}'}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
