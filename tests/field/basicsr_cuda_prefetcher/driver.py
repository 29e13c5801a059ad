"""A model reads batches that BasicSR's prefetcher copies to the GPU ahead, on a stream of its own. With `recorded`
each batch is marked as in use on the model's stream."""
import importlib.util
import os
import sys

import torch

# BasicSR's own file, without the models around it.
package = os.path.dirname(importlib.util.find_spec("basicsr").origin)
spec = importlib.util.spec_from_file_location("prefetch", f"{package}/data/prefetch_dataloader.py")
prefetch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prefetch)

n = 1 << 20
images = [torch.ones(n).pin_memory() for _ in range(6)]
weight = torch.ones(n, device="cuda")
torch.cuda.synchronize()
prefetcher = prefetch.CUDAPrefetcher(({"lq": image} for image in images), {"num_gpu": 1})
while (batch := prefetcher.next()) is not None:
    if "recorded" in sys.argv:
        batch["lq"].record_stream(torch.cuda.current_stream())
    result = batch["lq"] * weight
torch.cuda.synchronize()
