"""A small residual network with convolutions, batch norms and pooling."""

import torch
from torch import nn

import training


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.way(x) + self.short(x))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Block(8, 8, 1),
        Block(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def batch():
    return torch.randn(4, 3, 16, 16), torch.randint(10, (4,))


def loss_of(model, images, labels):
    return nn.functional.cross_entropy(model(images), labels)


if __name__ == "__main__":
    training.main(build, loss_of, batch)
