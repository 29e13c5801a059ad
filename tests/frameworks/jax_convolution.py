"""A small convolutional network in JAX: strided, in groups, transposed, with pooling. XLA has cuDNN
compute convolutions and their gradients."""

import jax_steps

import jax
import jax.numpy as jnp
import numpy as np

FORM = ("NHWC", "HWIO", "NHWC")
random = np.random.default_rng(0)
images = random.normal(size=(4, 12, 12, 3)).astype(np.float32)
wanted = images.mean(axis=3, keepdims=True)
shapes = ((3, 3, 3, 8), (8,), (3, 3, 1, 16), (2, 2, 16, 4), (1, 1, 4, 1))
start = [(0.3 * random.normal(size=shape)).astype(np.float32) for shape in shapes]


def convolve(x, filters, stride, groups=1):
    return jax.lax.conv_general_dilated(
        x, filters, (stride, stride), "SAME", dimension_numbers=FORM, feature_group_count=groups
    )


def loss_of(weights, x, y):
    first, bias, depthwise, up, last = weights
    x = jax.nn.relu(convolve(x, first, 2) + bias)
    x = jnp.tanh(convolve(x, depthwise, 1, groups=8))
    x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4
    x = jax.lax.conv_transpose(x, up, (2, 2), "SAME", dimension_numbers=FORM)
    return jnp.mean((convolve(x, last, 1) - y) ** 2)


jax_steps.main(loss_of, start, (images, wanted))
