"""Logistic regression with JAX: a jitted step with its gradient on the GPU, against NumPy."""

import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

STEPS, RATE = 5, 0.5
rng = np.random.default_rng(0)
x = rng.standard_normal((64, 8)).astype(np.float32)
y = (x @ rng.standard_normal(8) > 0).astype(np.float32)


def loss_of(weight, x, y):
    z = x @ weight
    return jnp.mean(jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-jnp.abs(z))))


@jax.jit
def step(weight, x, y):
    loss, slope = jax.value_and_grad(loss_of)(weight, x, y)
    return weight - RATE * slope, loss


def train(device):
    weight = jax.device_put(jnp.zeros(8), device)
    batch = [jax.device_put(part, device) for part in (x, y)]
    curve = []
    for _ in range(STEPS):
        weight, loss = step(weight, *batch)
        curve.append(float(loss))
    return np.array(curve)


ours, theirs = train(jax.devices("cuda")[0]), train(jax.devices("cpu")[0])
furthest = float(np.abs(ours - theirs).max())
print(f"GPU {ours}, CPU {theirs}, furthest apart: {furthest:.2e}")
sys.exit(0 if furthest < 1e-4 else 1)
