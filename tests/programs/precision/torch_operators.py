"""Two hundred operators of PyTorch, each twice (a small and an odd shape): what exact mode compares summaries with."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
UNARY = """abs acos acosh angle asin asinh atan atanh bitwise_not:i ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
floor frac isfinite isinf isnan isposinf lgamma log log10 log1p log2 logical_not logit neg positive rad2deg reciprocal relu round rsqrt sgn sigmoid
sign signbit sin sinc sinh sqrt square tan tanh trunc nan_to_num i0 special.i1 special.ndtr special.log_ndtr special.entr special.bessel_j0 clone
flatten fliplr flipud ravel t_copy cumsum:d cumprod:d logcumsumexp:d cummax:d cummin:d sort:d argsort:d flip:d1 roll:1 diff nonzero
sum mean prod amax amin aminmax std var norm argmax argmin all any logsumexp:d median mode:d unique nansum nanmean count_nonzero trace diag tril triu
diagonal_copy softmax:d log_softmax:d renorm:r tile:p repeat_interleave:1 rot90 histc bincount:c""".split()
BINARY = """add sub mul div remainder fmod floor_divide true_divide maximum minimum fmax fmin atan2 hypot copysign nextafter logaddexp logaddexp2 xlogy
special.xlog1py eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and:i bitwise_or:i bitwise_xor:i bitwise_left_shift:i gcd:i lcm:i
heaviside float_power ldexp dist cdist kron allclose isclose equal rsub polar cross:3 dot:v vdot:v outer:v ger:v inner""".split()
OTHER = {
    "where": lambda a, b: torch.where(a > 0, a, b), "lerp": lambda a, b: torch.lerp(a, b, 0.3), "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b), "clamp": lambda a, b: a.clamp(-1, 1), "clamp_tensor": lambda a, b: torch.clamp(a, min=b),
    "cat": lambda a, b: torch.cat([a, b, a], 1), "stack": lambda a, b: torch.stack([a, b]), "pad": lambda a, b: F.pad(a, (1, 2)),
    "reflect": lambda a, b: F.pad(a[None], (2, 1), mode="reflect"), "masked_fill": lambda a, b: a.masked_fill(b > 0, 1.0),
    "masked_select": lambda a, b: a.masked_select(b > 0), "masked_scatter": lambda a, b: a.clone().masked_scatter_(b > 0, b),
    "take": lambda a, b: a.take(a.argsort(1)[0]), "gather": lambda a, b: a.gather(1, b.argsort(1)), "index_select": lambda a, b: a.index_select(0, rows(a)),
    "index": lambda a, b: a[rows(a)], "index_put": lambda a, b: a.clone().index_put_((rows(a),), a[:5]), "index_add": lambda a, b: a.index_add(0, rows(a), a[:5]),
    "index_copy": lambda a, b: a.index_copy(0, rows(a), a[:5]), "index_fill": lambda a, b: a.index_fill(0, rows(a), 2.0),
    "scatter": lambda a, b: a.scatter(1, b.argsort(1), b), "scatter_add": lambda a, b: a.scatter_add(1, b.argsort(1), b),
    "scatter_amax": lambda a, b: a.scatter_reduce(1, b.argsort(1), b, "amax"), "one_hot": lambda a, b: F.one_hot(rows(a), 64), "embedding": lambda a, b: F.embedding(rows(a), a),
    "embedding_bag": lambda a, b: F.embedding_bag(rows(a)[None], a), "topk": lambda a, b: a.topk(3, 1), "kthvalue": lambda a, b: a.kthvalue(2, 1),
    "searchsorted": lambda a, b: torch.searchsorted(a[0].sort()[0], b), "bucketize": lambda a, b: torch.bucketize(b, a[0].sort()[0]),
    "mm": lambda a, b: a @ b.t(), "addmm": lambda a, b: torch.addmm(a.new_zeros(a.shape[0]), a, b.t()), "mv": lambda a, b: a @ b[0], "bmm": lambda a, b: torch.bmm(a[None], b.t()[None]),
    "baddbmm": lambda a, b: torch.baddbmm(a.new_zeros(1), a[None], b.t()[None]), "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b), "linear": lambda a, b: F.linear(a, b),
    "half_mm": lambda a, b: a.half() @ b.half().t(), "bfloat_mm": lambda a, b: a.bfloat16() @ b.bfloat16().t(), "double_mm": lambda a, b: a.double() @ b.double().t(),
    "layer_norm": lambda a, b: F.layer_norm(a, a.shape[1:]), "rms_norm": lambda a, b: F.rms_norm(a, a.shape[1:]), "batch_norm": lambda a, b: F.batch_norm(a, None, None, training=True),
    "group_norm": lambda a, b: F.group_norm(a[None], a.shape[0]), "instance_norm": lambda a, b: F.instance_norm(a[None]), "gelu": lambda a, b: F.gelu(a), "silu": lambda a, b: F.silu(a),
    "mish": lambda a, b: F.mish(a), "elu": lambda a, b: F.elu(a), "selu": lambda a, b: F.selu(a), "celu": lambda a, b: F.celu(a), "softplus": lambda a, b: F.softplus(a), "hardtanh": lambda a, b: F.hardtanh(a),
    "hardswish": lambda a, b: F.hardswish(a), "leaky_relu": lambda a, b: F.leaky_relu(a), "prelu": lambda a, b: F.prelu(a, a.new_ones(1)), "softshrink": lambda a, b: F.softshrink(a),
    "dropout": lambda a, b: F.dropout(a, 0.5), "mse": lambda a, b: F.mse_loss(a, b), "l1": lambda a, b: F.l1_loss(a, b), "smooth_l1": lambda a, b: F.smooth_l1_loss(a, b),
    "huber": lambda a, b: F.huber_loss(a, b), "kl_div": lambda a, b: F.kl_div(a, b.abs()), "cross_entropy": lambda a, b: F.cross_entropy(a, b.argmax(1)), "nll": lambda a, b: F.nll_loss(a, b.argmax(1)),
    "bce": lambda a, b: F.binary_cross_entropy_with_logits(a, (b > 0).float()), "cosine": lambda a, b: F.cosine_similarity(a, b), "pairwise": lambda a, b: F.pairwise_distance(a, b),
    "conv1d": lambda a, b: F.conv1d(a[None], b.new_ones(4, a.shape[0], 3)), "conv2d": lambda a, b: F.conv2d(a[None, None], b.new_ones(2, 1, 3, 3)), "conv_transpose": lambda a, b: F.conv_transpose2d(a[None, None], b.new_ones(1, 2, 3, 3)),
    "max_pool": lambda a, b: F.max_pool2d(a[None], 2), "avg_pool": lambda a, b: F.avg_pool2d(a[None], 2), "adaptive": lambda a, b: F.adaptive_avg_pool2d(a[None], 3), "unfold": lambda a, b: F.unfold(a[None, None], 3),
    "nearest": lambda a, b: F.interpolate(a[None, None], scale_factor=2), "bilinear": lambda a, b: F.interpolate(a[None, None], scale_factor=1.5, mode="bilinear"), "grid": lambda a, b: F.grid_sample(a[None, None], a.new_zeros(1, 4, 4, 2)),
    "attention": lambda a, b: F.scaled_dot_product_attention(*[a[None, None].half()] * 3), "rand_like": lambda a, b: torch.rand_like(a), "randperm": lambda a, b: torch.randperm(77, device="cuda"),
    "bernoulli": lambda a, b: torch.bernoulli(a.sigmoid()), "multinomial": lambda a, b: a.abs().multinomial(3), "arange": lambda a, b: torch.arange(99, device="cuda"), "linspace": lambda a, b: torch.linspace(0, 1, 99, device="cuda"),
    "eye": lambda a, b: torch.eye(33, device="cuda"), "zeros": lambda a, b: torch.zeros_like(a), "full": lambda a, b: torch.full_like(a, 3), "meshgrid": lambda a, b: torch.cartesian_prod(a[0], b[0]),
    "strided": lambda a, b: a[::2, 1::3] * 2, "transposed": lambda a, b: a.t().contiguous(), "expanded": lambda a, b: a[:, :1] + b, "cast": lambda a, b: a.to(torch.bfloat16), "fft": lambda a, b: torch.fft.rfft(a),
    "foreach_add": lambda a, b: torch._foreach_add([a, b, a], 1.0), "foreach_norm": lambda a, b: torch._foreach_norm([a, b]), "cholesky": lambda a, b: torch.linalg.cholesky(a @ a.t() + 99 * torch.eye(len(a), device="cuda")),
    "solve": lambda a, b: torch.linalg.solve(a @ a.t() + 99 * torch.eye(len(a), device="cuda"), b), "combinations": lambda a, b: torch.combinations(a[0]), "vander": lambda a, b: torch.vander(a[0]), "trapezoid": lambda a, b: torch.trapezoid(a),
}


def rows(a):
    return torch.arange(4, -1, -1, device="cuda") * (len(a) // 5)


def call(name, a, b, binary):
    name, _, how = name.partition(":")
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    if how == "i":
        a, b = (a * 10).int().abs() + 1, (b * 3).int().abs() + 1
    if how == "c":
        return function((a * 10).int().abs().flatten())
    if binary:
        return function(a[:, :3], b[:, :3], dim=1) if how == "3" else function(a[0], b[0]) if how == "v" else function(a, b)
    return {"d": lambda: function(a, 1), "d1": lambda: function(a, [1]), "1": lambda: function(a, 2), "p": lambda: function(a, (2, 1)),
            "r": lambda: function(a, 2, 0, 1.0)}.get(how, lambda: function(a))()


ran, failed = 0, []
every = [(n, lambda a, b, n=n: call(n, a, b, False)) for n in UNARY] + [(n, lambda a, b, n=n: call(n, a, b, True)) for n in BINARY] + list(OTHER.items())
for name, operator in every:
    try:
        for shape in ((64, 96), (37, 53)):
            operator(torch.randn(*shape, device="cuda"), torch.randn(*shape, device="cuda"))
        ran += 1
    except Exception as error:
        failed.append(f"{name} ({str(error).splitlines()[0][:60]})")
torch.cuda.synchronize()
print(f"OPERATORS {ran} of {len(every)}; not here: {', '.join(failed)}")
