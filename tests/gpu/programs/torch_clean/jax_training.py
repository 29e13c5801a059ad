"""Clean: a JAX training loop: jitted steps with donated buffers, a scan over layers, random numbers, transfers while steps run. Prints the loss."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x):
    def layer(h, p):
        return jnp.tanh(h @ p["w"] + p["b"]), None

    h, _ = jax.lax.scan(layer, x, params)
    return h


def loss_of(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


@jax.jit
def evaluate(params, x, y):
    return loss_of(params, x, y)


def update(params, moments, x, y, key):
    noisy = x + 0.01 * jax.random.normal(key, x.shape)
    loss, grads = jax.value_and_grad(loss_of)(params, noisy, y)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, moments), moments, loss


update = jax.jit(update, donate_argnums=(0, 1))
key = jax.random.key(0)
params = {"w": jax.random.normal(key, (4, 128, 128)) * 0.08, "b": jnp.zeros((4, 128))}
moments = jax.tree.map(jnp.zeros_like, params)
rng = np.random.default_rng(0)
for step in range(12):
    x, y = (jax.device_put(rng.standard_normal((64, 128), np.float32)) for _ in range(2))
    params, moments, loss = update(params, moments, x, jnp.tanh(y), jax.random.fold_in(key, step))
print(f"loss {float(loss):.2f} {float(evaluate(params, x, jnp.tanh(y))):.2f}")
