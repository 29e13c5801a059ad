"""FFCV's loader copies batches to the GPU into a ring of three buffers, and is ahead of the model. The loader is as
much of FFCV's as its iterator asks for, in the form of either release."""
import contextlib
import time
import types

import stand_in

stand_in.bare("ffcv", "ffcv.loader")
stand_in.packages("ffcv.pipeline", "ffcv.traversal_order", "numba")
import torch
from ffcv.loader.epoch_iterator import EpochIterator

n, count = 1 << 20, 6
loaded = 0
data = torch.ones(n).pin_memory()


def load(batch_indices, memory, metadata=None, storage_state=None):
    """As FFCV's operation that copies to a device."""
    global loaded
    loaded += 1
    return (memory.copy_(data, non_blocking=True),)


def load_to_slot(batch_indices, memory_0, **_):
    return load(batch_indices, memory_0)


class Epoch(contextlib.nullcontext):
    state = None
    start_batch = end_batch = staticmethod(lambda batch: None)


def slots(batch_size, count):
    return torch.empty(count, n, device="cuda")


loader = types.SimpleNamespace(
    batch_size=n,
    batches_ahead=1,
    num_workers=1,
    reader=types.SimpleNamespace(metadata=None),
    memory_manager=types.SimpleNamespace(schedule_epoch=lambda batches: Epoch()),
    # 0.0.3
    pipelines={"image": types.SimpleNamespace(allocate_memory=lambda *sizes: [slots(*sizes)])},
    memory_bank_keys_per_stage={0: [("image", 0)]},
    code_per_stage={0: load},
    # 1.0.0
    graph=types.SimpleNamespace(allocate_memory=lambda *sizes: {"operation": {0: slots(*sizes)}, "shared": {}}),
    code=([(load_to_slot, [0])], [0]),
)
weight = torch.ones(n, device="cuda")
torch.cuda.synchronize()
epoch = EpochIterator(loader, range(count * n))
for index, (batch,) in enumerate(epoch):
    # What the model does first: the loader has begun the next batch but one.
    while loaded < min(index + 3, count):
        time.sleep(0.001)
    result = batch * weight
torch.cuda.synchronize()
# A thread in the middle of a call does not survive the end of the interpreter.
epoch.join()
