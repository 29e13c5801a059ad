"""A model reads batches of patches that timm's loader copies to the GPU and normalises ahead, on a stream of its
own."""
import stand_in

stand_in.packages("torchvision")
import torch
import torch_alone  # before timm
from timm.data.naflex_loader import NaFlexPrefetchLoader

shape = (16, 64, 16 * 16 * 3)
patches, targets = torch.zeros(shape).pin_memory(), torch.zeros(16).pin_memory()
batches = (({"patches": patches}, targets) for _ in range(6))
loader = NaFlexPrefetchLoader(batches, device=torch.device("cuda"))
weight = torch.ones(shape, device="cuda")
torch.cuda.synchronize()
for batch, target in loader:
    result = batch["patches"] * weight
torch.cuda.synchronize()
