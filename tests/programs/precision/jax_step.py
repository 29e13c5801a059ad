"""Training steps of a small network under XLA, with a convolution, a reduction, a sort and a scan."""
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
w = [jax.random.normal(jax.random.fold_in(key, i), s) * 0.05 for i, s in enumerate([(256, 512), (512, 512), (512, 10)])]
x, y = jax.random.normal(key, (128, 256)), jax.random.randint(key, (128,), 0, 10)


def loss(w, x, y):
    for m in w[:-1]:
        x = jax.nn.gelu(x @ m)
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ w[-1]), y[:, None], 1).mean()


@jax.jit
def step(w, x, y):
    value, grad = jax.value_and_grad(loss)(w, x, y)
    return [a - 0.1 * b for a, b in zip(w, grad)], value


for _ in range(3):
    w, value = step(w, x, y)
print(float(value) > 0)
picture, kernel = jax.random.normal(key, (4, 3, 33, 33)), jax.random.normal(key, (8, 3, 5, 5))
jax.jit(lambda p, k: jax.nn.relu(jax.lax.conv(p, k, (1, 1), "SAME")).sum((2, 3)))(picture, kernel).block_until_ready()
jnp.sort(x, axis=1).block_until_ready()
jnp.cumsum(x, axis=0).block_until_ready()
jnp.concatenate([x, x[:5]]).T.block_until_ready()
x.at[y].add(1.0).block_until_ready()
