"""Training steps of a small ResNet: convolutions, batch norm, ReLU, pooling, SGD with momentum."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        same = before == after and stride == 1
        self.skip = nn.Identity() if same else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


torch.manual_seed(0)
widths = [(32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
model = nn.Sequential(
    nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
    *(Block(*w) for w in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
x, y = torch.randn(16, 3, 97, 97, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
for low in (False, True):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for _ in range(2):
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=low):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
torch.cuda.synchronize()
