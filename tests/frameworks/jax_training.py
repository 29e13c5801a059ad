"""A model of two layers in JAX: five steps on the GPU and on the CPU, and a comparison of the losses.
`race`: another library reads the weights on a stream of its own, which waits for none of XLA's."""

import ctypes
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Each product would be tried in dozens of ways, to find out which one is the fastest here.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 5
TOLERANCE = 1e-4
waits = "race" not in sys.argv[1:]
jax.config.update("jax_default_matmul_precision", "highest")

random = np.random.default_rng(0)
inputs = random.normal(size=(64, 16)).astype(np.float32)
wanted = np.sin(inputs @ random.normal(size=(16, 4)).astype(np.float32))
start = [(0.3 * random.normal(size=shape)).astype(np.float32) for shape in ((16, 32), (32,), (32, 4), (4,))]


def loss_of(weights, x, y):
    first, bias, second, last = weights
    return jnp.mean((jnp.tanh(x @ first + bias) @ second + last - y) ** 2)


@jax.jit
def step(weights, x, y):
    loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
    return [weight - 0.1 * slope for weight, slope in zip(weights, slopes)], loss


def train(device):
    weights = [jax.device_put(weight, device) for weight in start]
    x, y = jax.device_put(inputs, device), jax.device_put(wanted, device)
    losses = []
    for _ in range(STEPS):
        weights, loss = step(weights, x, y)
        losses.append(loss)
    return weights, losses


def read_elsewhere(array):
    """What a library does that is handed a pointer: reads it on its own stream."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    copied = np.empty(array.shape, array.dtype)
    at = array.unsafe_buffer_pointer()
    for status in (
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        cuda.cuCtxSetCurrent(context),
        cuda.cuStreamCreate(ctypes.byref(stream), 1),
        cuda.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(copied.ctypes.data), ctypes.c_uint64(at), ctypes.c_size_t(copied.nbytes), stream
        ),
        cuda.cuStreamSynchronize(stream),
    ):
        assert status == 0, status
    return copied


weights, ours = train(jax.devices("cuda")[0])
if waits:
    jax.block_until_ready(weights)
read = read_elsewhere(weights[0])
expected, theirs = train(jax.devices("cpu")[0])
apart = max(abs(float(a) - float(b)) for a, b in zip(ours, theirs))
print(f"losses at most {apart:.2e} apart: {[float(loss) for loss in ours]}")
right = apart < TOLERANCE and np.allclose(read, np.asarray(expected[0]), atol=1e-4)
sys.exit(0 if right or not waits else 1)
