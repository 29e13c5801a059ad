"""A model reads batches that timm's loader copies to the GPU and normalises ahead, on a stream of its own."""
import stand_in

stand_in.packages("torchvision")
import torch
import torch_alone  # before timm
from timm.data.loader import PrefetchLoader

shape = (16, 3, 64, 64)
batches = [(torch.zeros(shape, dtype=torch.uint8).pin_memory(), torch.zeros(16).pin_memory()) for _ in range(6)]
loader = PrefetchLoader(batches, channels=3, device=torch.device("cuda"))
weight = torch.ones(shape, device="cuda")
torch.cuda.synchronize()
for batch, target in loader:
    result = batch * weight
torch.cuda.synchronize()
