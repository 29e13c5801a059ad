"""Kernels that XLA makes and the libraries that it calls: fusions, reductions, scans, sorts, gathers, scatters, convolutions, FFT, linear algebra,
loops and conditions, training steps. Each jitted, once or twice."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
from jax import lax

KEY = jax.random.key(0)


def normal(*shape, dtype=jnp.float32):
    return jax.random.normal(KEY, shape, dtype)


def run(function, *arguments):
    jax.block_until_ready(jax.jit(function)(*arguments))


def fusions():
    for shape in ((7,), (1000,), (33, 65), (3, 5, 7, 11)):
        x = normal(*shape)
        run(lambda x: jnp.tanh(x) * x + 1, x), run(lambda x: jnp.where(x > 0, x, jnp.exp(x)).astype(jnp.bfloat16), x), run(lambda x: x.T + 1, x), run(lambda x: (x[::2], jnp.flip(x), jnp.roll(x, 3), jnp.tile(x, 2)), x)
        run(lambda x: jnp.concatenate([x, x + 1]), x), run(lambda x: jnp.pad(x, 2, mode="reflect"), x), run(lambda x: lax.bitcast_convert_type(x, jnp.int32) ^ 5, x)


def reductions():
    for shape in ((1000,), (64, 100), (100, 64), (3, 5, 7, 11), (1 << 18,)):
        x = normal(*shape)
        for axis in (None, *range(x.ndim)):
            run(lambda x: (x.sum(axis), x.max(axis), x.argmin(axis), x.var(axis), jax.nn.logsumexp(x, axis)), x), run(lambda x: jnp.cumsum(x, axis), x)
        run(lambda x: jax.nn.softmax(x, -1), x), run(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,) * x.ndim, (2,) * x.ndim, "SAME"), x), run(lambda x: lax.associative_scan(jnp.maximum, x), x)


def order():
    for n in (5, 999, 70000):
        x = normal(n)
        run(jnp.sort, x), run(jnp.argsort, x), run(lambda x: lax.top_k(x, min(7, n)), x), run(jnp.median, x), run(lambda x: jnp.searchsorted(jnp.sort(x), x), x), run(lambda x: jnp.histogram(x, 20), x), run(lambda x: jnp.unique(x.astype(jnp.int32), size=9), x)
    run(lambda x: jnp.sort(x, 0), normal(40, 30)), run(lambda x: lax.sort((x, x + 1), num_keys=1), normal(500))


def indices():
    x, i = normal(300, 24), jax.random.randint(KEY, (90,), 0, 300)
    run(lambda x, i: x[i], x, i), run(lambda x, i: x.at[i].add(1.0), x, i), run(lambda x, i: x.at[i, i % 24].set(7.0), x, i), run(lambda x, i: x.at[i].max(0.5), x, i), run(lambda x, i: jax.ops.segment_sum(x[:90], i % 10, 10), x, i)
    run(lambda x, i: lax.dynamic_slice(x, (i[0], 0), (9, 9)), x, i), run(lambda x, i: lax.dynamic_update_slice(x, x[:5, :5], (i[1], 3)), x, i), run(lambda x, i: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), x, i), run(lambda x, i: jax.nn.one_hot(i, 30), x, i)
    run(lambda x, i: jnp.nonzero(x > 0, size=50), x, i), run(lambda x, i: jnp.tril(x), x, i), run(jax.grad(lambda x, i: jnp.square(x[i]).sum()), x, i)


def products():
    for t in (jnp.float32, jnp.float16, jnp.bfloat16, jnp.complex64, jnp.int8):
        a, b = normal(33, 65).astype(t), normal(65, 17).astype(t)
        run(jnp.matmul, a, b), run(lambda a, b: jnp.einsum("ij,jk->k", a, b), a, b), run(lambda a, b: jnp.matmul(jnp.stack([a, a]), b), a, b), run(lambda a, b: jax.nn.relu(a @ b + 1), a, b), run(lambda a, b: a @ b[:, 0], a, b)
    run(lambda a, b: jax.nn.gelu(a @ b + b[0]), normal(256, 128, dtype=jnp.bfloat16), normal(128, 512, dtype=jnp.bfloat16))


def convolutions():
    for shape, kernel, options in (((2, 8, 17, 19), (12, 8, 3, 3), {"padding": "SAME"}), ((2, 8, 17, 19), (8, 1, 3, 3), {"padding": "VALID", "feature_group_count": 8}), ((2, 8, 16, 16), (12, 8, 3, 3), {"padding": "SAME", "rhs_dilation": (2, 2)}), ((2, 4, 50), (6, 4, 5), {"padding": "SAME"}), ((1, 3, 8, 9, 10), (4, 3, 3, 3, 3), {"padding": "SAME"})):
        strides = (2,) * (len(shape) - 2) if "rhs_dilation" not in options else (1, 1)
        convolve = lambda x, w: lax.conv_general_dilated(x, w, strides, **options)
        run(convolve, normal(*shape), normal(*kernel)), run(jax.grad(lambda x, w: jnp.square(convolve(x, w)).sum(), (0, 1)), normal(*shape), normal(*kernel))


def ffts():
    for shape in ((64,), (5, 100), (3, 12, 35), (7, 97), (1 << 14,)):
        run(lambda x: jnp.fft.fft(x), normal(*shape)), run(lambda x: jnp.fft.rfftn(x), normal(*shape)), run(lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), normal(*shape))


def linear_algebra():
    for n in (3, 17, 100):
        a = normal(n, n) + n * jnp.eye(n)
        for f in (lambda a: jnp.linalg.solve(a, a[:, 0]), jnp.linalg.inv, lambda a: jnp.linalg.cholesky(a @ a.T), jnp.linalg.qr, jnp.linalg.svd, lambda a: jnp.linalg.eigh(a @ a.T), jnp.linalg.det, lambda a: jax.scipy.linalg.expm(a / n), lambda a: lax.linalg.triangular_solve(a, a, lower=True)):
            run(f, a)


def loops():
    x = normal(64, 64)
    run(lambda x: lax.fori_loop(0, 10, lambda i, h: jnp.tanh(h @ x) + i, x), x), run(lambda x: lax.while_loop(lambda h: h.sum() < 1e4, lambda h: h * 2 + 1, jnp.abs(x)), x), run(lambda x: lax.scan(lambda h, r: (h + r, (h * r).sum()), x[0], x), x), run(lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x), x)
    run(lambda x: lax.map(lambda r: jnp.sort(r), x), x), run(jax.vmap(lambda r: jnp.convolve(r, r[:5])), x)


def randoms():
    for f in (jax.random.normal, jax.random.uniform, jax.random.exponential, jax.random.laplace):
        run(lambda: f(KEY, (1001,)))
    run(lambda: jax.random.gamma(KEY, 2.0, (99,))), run(lambda: jax.random.permutation(KEY, 999)), run(lambda: jax.random.categorical(KEY, jnp.ones((9, 30)))), run(lambda: jax.random.choice(KEY, 50, (20,), replace=False)), run(lambda: jax.random.poisson(KEY, 3.0, (99,)))


def training():
    def attention(p, x):
        q, k, v = jnp.split(x @ p["qkv"], 3, -1)
        q, k, v = (jnp.reshape(t, (*t.shape[:2], 4, -1)) for t in (q, k, v))
        x = x + jnp.reshape(jax.nn.dot_product_attention(q, k, v, is_causal=True), x.shape) @ p["out"]
        x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.silu(x @ p["up"]) @ p["down"]

    p = {"qkv": normal(64, 192) * 0.1, "out": normal(64, 64) * 0.1, "up": normal(64, 128) * 0.1, "down": normal(128, 64) * 0.1}
    for t in (jnp.float32, jnp.bfloat16):
        q, x = jax.tree.map(lambda a: jnp.array(a, t, copy=True), p), normal(4, 40, 64).astype(t)
        step = jax.jit(lambda p, x: jax.tree.map(lambda p, g: p - 0.01 * g, p, jax.grad(lambda p: jnp.square(attention(p, x)).mean())(p)), donate_argnums=0)
        for _ in range(3):
            q = step(q, x)
        jax.block_until_ready(q)


CASES = [fusions, reductions, order, indices, products, convolutions, ffts, linear_algebra, loops, randoms, training]
ran, failed = 0, []
for case in CASES:
    try:
        case()
        ran += 1
    except Exception as error:
        failed.append(f"{case.__name__} ({type(error).__name__} {(str(error) or '-').splitlines()[0][:80]})")
print(f"JAX {ran} of {len(CASES)}; not here: {', '.join(failed)}")
