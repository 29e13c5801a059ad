"""Three blocks whose weights are copied to the GPU ahead of their use and given back behind it."""
import torch
import torch_alone  # before diffusers
from diffusers.hooks import apply_group_offloading


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1 << 20))

    def forward(self, x):
        return x * self.weight


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


model = Model()
apply_group_offloading(
    model,
    onload_device=torch.device("cuda"),
    offload_device=torch.device("cpu"),
    offload_type="leaf_level",
    use_stream=True,
    record_stream=True,
)
x = torch.ones(1 << 20, device="cuda")
with torch.no_grad():
    for _ in range(2):
        x = model(x)
torch.cuda.synchronize()
