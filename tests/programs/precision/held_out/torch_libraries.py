"""What PyTorch leaves to libraries or does in kernels of its own beside the usual operators: FFT, linear algebra, sparse matrices, losses with
dynamic programming, sampling from grids, sorting of segments, quantised and grouped products, compiled code. Forward and backward."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
dev = "cuda"


def f32(*shape, grad=False):
    return torch.randn(*shape, device=dev, requires_grad=grad)


def ffts():
    for shape in ((64,), (5, 100), (3, 12, 35), (2, 8, 9, 10), (1, 1 << 14), (7, 97)):
        x = f32(*shape, grad=True)
        (torch.fft.rfftn(x).abs().sum() + torch.fft.fft(x, dim=0).abs().sum() + torch.fft.irfft(torch.fft.rfft(x), n=shape[-1]).sum()).backward()
    torch.stft(f32(2, 4000), 256, 64, window=torch.hann_window(256, device=dev), return_complex=True)


def linear_algebra():
    for n in (3, 17, 64, 200):
        a = f32(2, n, n)
        spd = a @ a.mT + n * torch.eye(n, device=dev)
        torch.linalg.cholesky(spd), torch.linalg.inv(spd), torch.linalg.det(spd), torch.linalg.solve(spd, a), torch.linalg.lu_factor(a)
        torch.linalg.qr(a), torch.linalg.eigh(spd), torch.linalg.svd(a), torch.linalg.matrix_exp(0.01 * a), torch.linalg.solve_triangular(spd.tril(), a, upper=False)
        torch.linalg.lstsq(a[0], f32(n, 2)), torch.linalg.matrix_power(a, 3), torch.cholesky_inverse(torch.linalg.cholesky(spd)), torch.linalg.pinv(a)


def sparse():
    dense = f32(60, 80) * (torch.rand(60, 80, device=dev) < 0.1)
    b = f32(80, 9)
    for x in (dense.to_sparse_coo(), dense.to_sparse_csr()):
        x @ b, torch.sparse.mm(x, b), x.to_dense()
    coo = dense.to_sparse_coo().requires_grad_()
    torch.sparse.mm(coo, b).sum().backward()
    torch.sparse.softmax(dense.to_sparse_coo(), 1), torch.sparse.sum(dense.to_sparse_coo(), 0), (dense.to_sparse_coo() + dense.to_sparse_coo()).coalesce()
    torch.sparse.sampled_addmm(dense.to_sparse_csr(), f32(60, 5), f32(5, 80)), dense.to_sparse_csr().to_sparse_csc()


def losses():
    x = f32(50, 4, 21, grad=True)
    targets, lengths = torch.randint(1, 21, (4, 12), device=dev), torch.tensor([12, 7, 9, 1], device=dev)
    F.ctc_loss(x.log_softmax(2), targets, torch.full((4,), 50, device=dev), lengths).backward()
    y = f32(30, 7, grad=True)
    label = torch.randint(0, 7, (30,), device=dev)
    (F.multi_margin_loss(y, label) + F.cross_entropy(y, label, label_smoothing=0.1, weight=torch.rand(7, device=dev)) + F.nll_loss(y.log_softmax(1), label, ignore_index=3)
     + F.triplet_margin_loss(y, y.flip(0), y.roll(1, 0)) + F.gaussian_nll_loss(y, y.detach(), y.square()) + F.poisson_nll_loss(y, label[:, None].float())).backward()
    image = f32(2, 5, 9, 8, grad=True)
    F.cross_entropy(image, torch.randint(0, 5, (2, 9, 8), device=dev)).backward()


def grids():
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            x, grid = f32(2, 3, 11, 13, grad=True), (torch.rand(2, 7, 5, 2, device=dev) * 2.4 - 1.2).requires_grad_()
            F.grid_sample(x, grid, mode, padding, align_corners=False).sum().backward()
    x, grid = f32(1, 2, 5, 6, 7, grad=True), (torch.rand(1, 3, 4, 5, 3, device=dev) * 2 - 1).requires_grad_()
    F.grid_sample(x, grid, align_corners=True).sum().backward()
    for mode, shape in (("linear", (2, 3, 17)), ("bilinear", (2, 3, 9, 11)), ("bicubic", (1, 2, 9, 10)), ("trilinear", (1, 2, 5, 6, 7)), ("area", (2, 3, 9, 11)), ("nearest-exact", (2, 3, 9, 11))):
        for scale in (0.6, 1.7):
            x = f32(*shape, grad=True)
            F.interpolate(x, scale_factor=scale, mode=mode).sum().backward()
    x = f32(2, 4, 10, 12, grad=True)
    (F.pixel_shuffle(x, 2).sum() + F.fold(F.unfold(x, 3, padding=1, stride=2), (10, 12), 3, padding=1, stride=2).sum() + F.affine_grid(f32(2, 2, 3), (2, 4, 5, 5)).sum()).backward()


def windows():
    for d in (1, 2, 3):
        size = (2, 3, 12, 11, 9)[: 2 + d]
        for pool in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool", "max_unpool"):
            x = f32(*size, grad=True)
            if pool == "max_unpool":
                y, at = getattr(F, f"max_pool{d}d")(x, 2, return_indices=True)
                getattr(F, f"max_unpool{d}d")(y, at, 2, output_size=x.shape[2:]).sum().backward()
            elif pool == "lp_pool":
                getattr(F, f"lp_pool{d}d")(x, 2, 3, 2).sum().backward()
            else:
                getattr(F, f"{pool}{d}d")(x, 3).sum().backward()
        for options in ({"padding": 1}, {"stride": 2, "groups": 3}, {"dilation": 2}, {"padding": "same"}):
            x, w = f32(*size, grad=True), f32(6, 3 // options.get("groups", 1), *[3] * d, grad=True)
            getattr(F, f"conv{d}d")(x, w, f32(6), **options).sum().backward()
        x, w = f32(*size, grad=True), f32(3, 4, *[3] * d, grad=True)
        getattr(F, f"conv_transpose{d}d")(x, w, stride=2, padding=1, output_padding=1).sum().backward()
        for mode in ("reflect", "replicate", "circular"):
            F.pad(x, (1, 2) * d, mode).sum().backward()
    F.fractional_max_pool2d(f32(2, 3, 12, 12), 3, output_ratio=0.5)


def indices():
    table, bag = f32(500, 24, grad=True), torch.randint(0, 500, (90,), device=dev)
    offsets = torch.tensor([0, 3, 3, 40, 77], device=dev)
    for mode in ("sum", "mean", "max"):
        F.embedding_bag(bag, table, offsets, mode=mode).sum().backward()
    F.embedding_bag(bag, table, offsets, mode="sum", per_sample_weights=torch.rand(90, device=dev)).sum().backward()
    F.embedding(bag.view(9, 10), table, padding_idx=0, scale_grad_by_freq=True).sum().backward()
    x, at = f32(30, 40, grad=True), torch.randint(0, 30, (30, 40), device=dev)
    for how in ("sum", "prod", "mean", "amax", "amin"):
        x.scatter_reduce(0, at, x.detach(), how).sum().backward()
        torch.segment_reduce(x.detach(), "sum", lengths=torch.tensor([10, 0, 20], device=dev), axis=0)
    x.take_along_dim(at, 0).sum().backward()
    torch.index_reduce(x.detach(), 0, at[:, 0], x.detach(), "amax"), x.detach().index_put((at[0] % 30, at[1] % 40), f32(40), accumulate=True)
    torch.unique_consecutive(bag.sort()[0], return_counts=True), torch.isin(bag, bag[:5]), bag.msort(), bag.argsort(stable=True, descending=True)
    torch.sort(f32(3, 5000)), torch.sort(f32(40, 300), dim=0, descending=True), torch.topk(f32(3, 9000), 100), f32(3, 70000).topk(7), f32(1 << 20).sort(), f32(50, 2000).median(1)
    torch.histc(f32(1000), 33), torch.tril_indices(9, 7, device=dev), torch.combinations(f32(12), 3), torch.cummax(f32(50, 60), 0), torch.logcumsumexp(f32(9, 300), 1)
    torch.nonzero_static(f32(99) > 0, size=30), torch.masked.softmax(f32(9, 9), 1, mask=f32(9, 9) > 0)


def products():
    a, b = torch.randint(-9, 9, (64, 96), device=dev, dtype=torch.int8), torch.randint(-9, 9, (96, 32), device=dev, dtype=torch.int8)
    torch._int_mm(a, b.t().contiguous().t())
    for t in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        x, y, z = (torch.randn(*s, device=dev, dtype=t) for s in ((7, 33, 65), (7, 65, 17), (7, 33, 17)))
        torch.baddbmm(z, x, y), torch.bmm(x, y), torch.einsum("bij,bjk->ik", x, y), x[0] @ y[0, :, 0], torch.addmv(z[0, :, 0], x[0], y[0, :, 0]), torch.dot(x[0, 0], x[0, 1])
        torch.nn.functional.bilinear(x[0, :, :9].contiguous(), x[0, :, 9:20].contiguous(), torch.randn(5, 9, 11, device=dev, dtype=t)) if t == torch.float32 else None
    scale = torch.ones((), device=dev)
    left, right = f32(64, 128).to(torch.float8_e4m3fn), f32(96, 128).to(torch.float8_e4m3fn).t()
    torch._scaled_mm(left, right, scale, scale, out_dtype=torch.bfloat16)
    torch._grouped_mm(f32(64, 32).bfloat16(), f32(3, 32, 48).bfloat16(), offs=torch.tensor([16, 32, 64], device=dev, dtype=torch.int32))


def norms():
    for shape in ((4, 6, 9, 10), (2, 32, 33), (5, 768), (3, 17, 1025)):
        x = f32(*shape, grad=True)
        y = F.layer_norm(x, x.shape[-1:], torch.ones(shape[-1], device=dev, requires_grad=True)) + F.rms_norm(x, x.shape[-1:]) + F.softmax(x, 1) + F.log_softmax(x, -1)
        y.sum().backward()
        if len(shape) > 2:
            (F.instance_norm(x) + F.batch_norm(x, None, None, training=True) + F.local_response_norm(x, 3)).sum().backward()
            F.group_norm(x, 2).sum().backward()
        (torch.linalg.vector_norm(x, 3, -1).sum() + F.normalize(x, dim=1).sum() + torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(shape[-1], 3).to(dev))(x).sum()).backward()


def randoms():
    for t in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.empty(1001, device=dev, dtype=t)
        x.normal_(), x.uniform_(), x.exponential_(), x.log_normal_(), x.cauchy_(), x.geometric_(0.3), x.bernoulli_(0.2)
    torch.poisson(torch.rand(333, device=dev) * 5), torch.distributions.Gamma(torch.rand(99, device=dev) + 1, 2.0).sample(), torch.distributions.Dirichlet(torch.rand(9, 7, device=dev) + 1).rsample()
    torch.multinomial(torch.rand(5, 3000, device=dev), 20), torch.randperm(100000, device=dev), torch.normal(f32(50), torch.rand(50, device=dev)), F.gumbel_softmax(f32(9, 30), hard=True)


def compiled():
    @torch.compile
    def step(x, w, b):
        y = F.gelu(x @ w + b)
        return F.layer_norm(y, y.shape[-1:]).softmax(-1).cumsum(0).amax(1), y.sort(0)[0].var(), F.dropout(y, 0.2).mean()

    w = f32(65, 130, grad=True)
    for n in (33, 34, 200):
        a, b, c = step(f32(n, 65), w, f32(130))
        (a.sum() + b + c).backward()


CASES = [ffts, linear_algebra, sparse, losses, grids, windows, indices, products, norms, randoms, compiled]
ran, failed = 0, []
for case in CASES:
    try:
        case()
        torch.cuda.synchronize()
        ran += 1
    except Exception as error:
        failed.append(f"{case.__name__} ({type(error).__name__} {(str(error) or '-').splitlines()[0][:80]})")
print(f"LIBRARIES {ran} of {len(CASES)}; not here: {', '.join(failed)}")
