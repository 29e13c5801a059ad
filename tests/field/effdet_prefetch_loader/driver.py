"""A model reads batches that effdet's loader copies to the GPU and normalises ahead, on a stream of its own. With
`recorded` each batch is marked as in use on the model's stream."""
import os
import sys

import stand_in

# Not all that the package compiles when it is imported is real here.
os.environ["PYTORCH_JIT"] = "0"

stand_in.packages("timm", "torchvision", "omegaconf", "pycocotools")
import torch
from effdet.data.loader import PrefetchLoader

shape = (16, 3, 64, 64)
images = torch.zeros(shape).pin_memory()
loader = PrefetchLoader([(images, {}) for _ in range(6)], mean=(0.5,) * 3, std=(0.5,) * 3)
weight = torch.ones(shape, device="cuda")
torch.cuda.synchronize()
for batch, target in loader:
    if "recorded" in sys.argv:
        batch.record_stream(torch.cuda.current_stream())
    result = batch * weight
torch.cuda.synchronize()
