"""The operators of the sweep, by family. Owns the choice; what is done with them is in operators.py.

Names are those of PyTorch's own table of operators (`torch.testing._internal`). Left out are
operators that draw random numbers or choose among equal inputs, leave memory as it is, only make
views. Linear algebra and sparse products are in linear_algebra.py.
"""

FAMILIES = {
    "arithmetic": """
        add sub mul div floor_divide remainder fmod neg abs sign sgn reciprocal square sqrt rsqrt pow float_power
        addcmul addcdiv lerp clamp clamp_min clamp_max maximum minimum fmax fmin copysign hypot ldexp frexp
        nan_to_num rsub true_divide gcd lcm deg2rad heaviside nextafter""",
    "functions": """
        exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
        sigmoid logit erf erfc erfinv lgamma digamma sinc i0 logaddexp logaddexp2 xlogy special.ndtr special.i1
        floor ceil round trunc frac angle igamma polygamma special.zeta""",
    "logic": """
        eq ne lt le gt ge isnan isinf isfinite isclose logical_and logical_or logical_not logical_xor bitwise_and
        bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift where signbit allclose isin""",
    "reductions": """
        sum mean prod std var std_mean norm amax amin aminmax argmax argmin all any max min median nansum nanmean
        logsumexp count_nonzero cumsum cumprod cummax cummin logcumsumexp trace dist linalg.vector_norm
        masked.softmax masked.sum quantile kthvalue diff""",
    "indexing": """
        gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_put take
        take_along_dim masked_fill masked_select masked_scatter nonzero argwhere put __getitem__ bincount histc
        searchsorted bucketize sort argsort topk msort unique unique_consecutive nn.functional.embedding
        nn.functional.embedding_bag nn.functional.one_hot repeat_interleave""",
    "shapes": """
        cat stack clone contiguous flip roll repeat tile tril triu diag diag_embed kron meshgrid constant_pad_nd
        nn.functional.pad nn.functional.pixel_shuffle nn.functional.unfold rot90 block_diag cross outer
        arange linspace logspace eye full zeros_like ones_like fill""",
    "activations": """
        nn.functional.relu nn.functional.relu6 nn.functional.leaky_relu nn.functional.elu nn.functional.selu
        nn.functional.celu nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.softplus
        nn.functional.hardswish nn.functional.hardsigmoid nn.functional.hardtanh nn.functional.softshrink
        nn.functional.prelu nn.functional.glu nn.functional.logsigmoid nn.functional.threshold softmax log_softmax""",
    "layers": """
        nn.functional.layer_norm nn.functional.batch_norm nn.functional.group_norm nn.functional.instance_norm
        nn.functional.rms_norm nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.avg_pool2d
        nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d nn.functional.interpolate
        nn.functional.grid_sample nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
        nn.functional.conv_transpose2d nn.functional.linear nn.functional.scaled_dot_product_attention
        nn.functional.multi_head_attention_forward nn.functional.normalize""",
    "losses": """
        nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss
        nn.functional.cross_entropy nn.functional.nll_loss nn.functional.binary_cross_entropy
        nn.functional.binary_cross_entropy_with_logits nn.functional.kl_div nn.functional.cosine_similarity
        nn.functional.ctc_loss nn.functional.triplet_margin_loss nn.functional.margin_ranking_loss""",
    "products": """
        mm bmm matmul addmm baddbmm addbmm mv addmv dot vdot inner einsum tensordot addr linalg.multi_dot cdist
        linalg.vecdot linalg.matrix_power nn.functional.bilinear""",
}


def names(families=None):
    """All operators, or those of some families, each once."""
    chosen = families or FAMILIES
    return list(dict.fromkeys(name for family in chosen for name in FAMILIES[family].split()))
