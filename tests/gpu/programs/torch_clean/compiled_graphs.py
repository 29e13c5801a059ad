"""Clean: torch.compile with CUDA graphs (reduce-overhead), forward and backward. Prints the loss."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda()
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(64, 256, device="cuda")


@torch.compile(mode="reduce-overhead")
def forward(x):
    return (model(x) - x).square().mean()


for _ in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    loss = forward(x)
    loss.backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    kept = loss.item()
print(f"loss {kept:.2f}")
