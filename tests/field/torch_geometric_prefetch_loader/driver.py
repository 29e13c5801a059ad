"""A model reads batches that PyG's loader copies to the GPU ahead, on a stream of its own. With `recorded` each
batch is marked as in use on the model's stream."""
import importlib.util
import os
import sys

import torch

# PyG's own file, without the package around it: of it the file imports whether there is an Intel GPU.
package = os.path.dirname(importlib.util.find_spec("torch_geometric").origin)
import stand_in

stand_in.packages("torch_geometric")
spec = importlib.util.spec_from_file_location("prefetch", f"{package}/loader/prefetch.py")
prefetch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prefetch)

n = 1 << 20
loader = [torch.ones(n) for _ in range(6)]
weight = torch.ones(n, device="cuda")
torch.cuda.synchronize()
for batch in prefetch.PrefetchLoader(loader, torch.device("cuda")):
    if "recorded" in sys.argv:
        batch.record_stream(torch.cuda.current_stream())
    result = batch * weight
torch.cuda.synchronize()
