"""A model of two layers in JAX."""

import jax_steps

import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
inputs = random.normal(size=(64, 16)).astype(np.float32)
wanted = np.sin(inputs @ random.normal(size=(16, 4)).astype(np.float32))
start = [(0.3 * random.normal(size=shape)).astype(np.float32) for shape in ((16, 32), (32,), (32, 4), (4,))]


def loss_of(weights, x, y):
    first, bias, second, last = weights
    return jnp.mean((jnp.tanh(x @ first + bias) @ second + last - y) ** 2)


jax_steps.main(loss_of, start, (inputs, wanted))
