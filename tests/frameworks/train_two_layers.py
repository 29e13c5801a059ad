"""A model of two layers: the least that trains."""

import torch
from torch import nn

import training


def build():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))


def batch():
    return torch.randn(16, 32), torch.randint(4, (16,))


def loss_of(model, x, label):
    return nn.functional.cross_entropy(model(x), label)


if __name__ == "__main__":
    training.main(build, loss_of, batch)
