# expect: clean
# pair: none
# needs: transparency
# why: a jitted JAX loop with a sort, a scan and a matrix product; XLA orders its own streams.
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp


@jax.jit
def step(w, key):
    x = jax.random.normal(key, (64, 64))
    w = jnp.tanh(w @ x * 0.1 + 0.01)
    return jnp.sort(w, axis=0), jnp.cumsum(w).max()


w = jnp.ones((64, 64), jnp.float32)
for i in range(5):
    w, peak = step(w, jax.random.key(i))
print("peak", f"{float(peak):.2f}", "mean", f"{float(w.mean()):.4f}")
