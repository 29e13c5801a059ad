"""CuPy's own kernels and the libraries that it calls: elementwise and reduction kernels that it generates, CUB, sorting, scatters, FFT, linear
algebra, sparse matrices, images. Forward only; odd sizes, strides and types."""
import cupy as cp

cp.random.seed(0)


def elementwise():
    for shape in ((7,), (1000,), (33, 65), (3, 5, 7, 11)):
        for t in ("f4", "f8", "i4"):
            x, y = (cp.random.rand(*shape) * 9).astype(t), (cp.random.rand(*shape) * 9 + 1).astype(t)
            x + y, x * y - x, x.T.copy(), x[::2] * 2, cp.where(x == y, x, y), cp.sqrt(y), cp.exp(-y), x.astype("f8"), cp.broadcast_to(x, (2, *shape)).copy()
        z = cp.random.rand(*shape) + 1j * cp.random.rand(*shape)
        z * z.conj(), z.real + z.imag, z.T.copy(), z[::2] - 1


def reductions():
    for shape in ((1000,), (64, 100), (100, 64), (3, 5, 7, 11), (1 << 18,)):
        x = cp.random.rand(*shape).astype("f4")
        for axis in (None, *range(x.ndim)):
            x.sum(axis), x.max(axis), x.argmin(axis), x.mean(axis), x.var(axis), cp.prod(x, axis), cp.cumsum(x, axis), cp.cumprod(x, axis), cp.median(x, axis), cp.percentile(x, 30, axis)
    cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")(cp.random.rand(33, 70), axis=1)


def order():
    for n in (5, 999, 70000):
        x = cp.random.rand(n).astype("f4")
        cp.sort(x), cp.argsort(x), cp.partition(x, n // 2), cp.unique((x * 50).astype("i4")), cp.searchsorted(cp.sort(x), x), cp.bincount((x * 50).astype("i4")), cp.histogram(x, 20), cp.digitize(x, cp.linspace(0, 1, 9))
        cp.lexsort(cp.stack([x, x[::-1]])), cp.flatnonzero(x > 0.5), x[x > 0.5], cp.diff(x), cp.roll(x, 3), cp.flip(x), cp.convolve(x[:300], x[:20]), cp.interp(x, cp.linspace(0, 1, 9), cp.arange(9.0))
    cp.sort(cp.random.rand(40, 30), axis=0), cp.nonzero(cp.random.rand(9, 9) > 0.5), cp.argwhere(cp.random.rand(9, 9) > 0.5)


def indices():
    x, i = cp.random.rand(300, 24), cp.random.randint(0, 300, 90)
    x[i], x.take(i, 0), cp.take_along_axis(x, cp.argsort(x, 1), 1), cp.put(x.copy(), i, 1.0), cp.choose(i % 2, cp.stack([i, i + 1])), cp.compress(x[:, 0] > 0.5, x, 0), cp.select([x > 0.5], [x], 2.0)
    cp.add.at(x, i, 1.0), cp.maximum.at(x, (i, i % 24), 0.5), cp.tril(x), cp.triu_indices(9), cp.kron(x[:3], x[:2]), cp.meshgrid(x[0], x[1]), cp.concatenate([x, x], 1), cp.repeat(x, 2, 0), cp.tile(x, (2, 3)), cp.pad(x, 2, "reflect")
    x[10:20, ::3] = 4
    x[i, i % 24] = 7


def products():
    for t in ("f4", "f8", "f2", "c8", "i4"):
        a, b = (cp.random.rand(33, 65) * 9).astype(t), (cp.random.rand(65, 17) * 9).astype(t)
        a @ b, cp.einsum("ij,jk->k", a, b), cp.tensordot(a, b, 1), cp.outer(a[0], b[:, 0]), cp.inner(a, a), cp.matmul(a[None].repeat(3, 0), b), a @ b[:, 0], cp.vdot(a, a)


def linear_algebra():
    for n in (3, 17, 100):
        a = cp.random.rand(n, n) + n * cp.eye(n)
        spd = a @ a.T
        cp.linalg.solve(a, a[:, 0]), cp.linalg.inv(a), cp.linalg.cholesky(spd), cp.linalg.qr(a), cp.linalg.svd(a), cp.linalg.eigh(spd), cp.linalg.det(a), cp.linalg.lstsq(a, a[:, :2], rcond=None), cp.linalg.norm(a), cp.linalg.matrix_power(a, 3)


def ffts():
    for shape in ((64,), (5, 100), (3, 12, 35), (7, 97), (1 << 14,)):
        x = cp.random.rand(*shape)
        cp.fft.fft(x), cp.fft.rfftn(x), cp.fft.irfft(cp.fft.rfft(x)), cp.fft.fftshift(x), cp.fft.ifftn(cp.fft.fftn(x.astype("f4")))


def sparse():
    from cupyx.scipy import sparse

    dense = cp.random.rand(60, 80) * (cp.random.rand(60, 80) < 0.1)
    csr, b = sparse.csr_matrix(dense), cp.random.rand(80, 9)
    csr @ b, csr @ b[:, 0], csr.T.tocsr(), csr.tocoo().tocsc(), (csr + csr).toarray(), csr.sum(0), (csr @ csr.T).toarray(), csr[3:9], csr.multiply(2.0), csr.max(1), sparse.coo_matrix(dense).toarray()


def images():
    from cupyx.scipy import ndimage, signal, special

    x = cp.random.rand(60, 70).astype("f4")
    ndimage.gaussian_filter(x, 2), ndimage.median_filter(x, 5), ndimage.sobel(x), ndimage.rotate(x, 30), ndimage.zoom(x, 1.5), ndimage.label(x > 0.5), ndimage.binary_erosion(x > 0.5), ndimage.map_coordinates(x, cp.random.rand(2, 99) * 50)
    ndimage.distance_transform_edt(x > 0.5), ndimage.uniform_filter(x, 3), ndimage.maximum_filter(x, 4), signal.convolve2d(x, x[:5, :5]), special.gamma(x + 1), special.erf(x)


def randoms():
    g = cp.random.default_rng(0)
    g.random(1001), g.integers(0, 9, 1001), g.standard_normal(99), g.exponential(size=99), g.gamma(2.0, size=99), g.poisson(3.0, 99), g.beta(2.0, 3.0, 99), g.binomial(9, 0.4, 99)
    cp.random.rand(1001), cp.random.randn(1000), cp.random.permutation(999), cp.random.choice(cp.arange(50), 20), cp.random.randint(0, 7, (33, 5))


CASES = [elementwise, reductions, order, indices, products, linear_algebra, ffts, sparse, images, randoms]
ran, failed = 0, []
for case in CASES:
    try:
        case()
        cp.cuda.Device().synchronize()
        ran += 1
    except Exception as error:
        failed.append(f"{case.__name__} ({type(error).__name__} {(str(error) or '-').splitlines()[0][:80]})")
print(f"CUPY {ran} of {len(CASES)}; not here: {', '.join(failed)}")
