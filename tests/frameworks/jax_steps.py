"""What the JAX programs share: five steps of gradient descent on the GPU, the same on the CPU, and a
comparison of the losses. The programs own model and data.

Argument of each program: with `race` another library reads the first weights on a stream of its own,
which waits for none of XLA's."""

import ctypes
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Each product would be tried in dozens of ways, to find out which one is the fastest here.
if "tune" not in sys.argv[1:]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"

import jax
import numpy as np

STEPS = 5
TOLERANCE = 1e-4
waits = "race" not in sys.argv[1:]
jax.config.update("jax_default_matmul_precision", "highest")


def train(device, loss_of, weights, batch):
    @jax.jit
    def step(weights, *batch):
        loss, slopes = jax.value_and_grad(loss_of)(weights, *batch)
        return [weight - 0.1 * slope for weight, slope in zip(weights, slopes)], loss

    weights, batch = jax.device_put((weights, batch), device)
    losses = []
    for _ in range(STEPS):
        weights, loss = step(weights, *batch)
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


def main(loss_of, weights, batch):
    """Trains on both devices; the exit code is 1 where the losses part and nothing races."""
    after, ours = train(jax.devices("cuda")[0], loss_of, weights, batch)
    if waits:
        jax.block_until_ready(after)
    read = read_elsewhere(after[0])
    expected, theirs = train(jax.devices("cpu")[0], loss_of, weights, batch)
    apart = max(abs(float(a) - float(b)) for a, b in zip(ours, theirs))
    print(f"losses at most {apart:.2e} apart: {[float(loss) for loss in ours]}")
    right = apart < TOLERANCE and np.allclose(read, np.asarray(expected[0]), atol=1e-4)
    # What a program computes that races is not defined.
    sys.exit(0 if right or not waits else 1)
