"""Clean: a small residual network, mixed precision with a gradient scaler, fused Adam. Prints the loss."""
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *[Block(32) for _ in range(4)], nn.AdaptiveAvgPool2d(1),
                      nn.Flatten(), nn.Linear(32, 10)).cuda()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
scaler = torch.amp.GradScaler("cuda")
x, y = torch.randn(16, 3, 32, 32, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
for _ in range(8):
    optimiser.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    scaler.update()
print(f"loss {loss.item():.2f}")
