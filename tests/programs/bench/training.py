"""Training steps of a transformer (about a thousand launches) or a ResNet (about four hundred). Needs torch and a GPU.

    training.py MODEL            the median of 30 steps, in JSON, nanoseconds
    training.py MODEL turns      says "ready"; then, for each number read, takes as many steps and says their median, in nanoseconds
    training.py MODEL within ROUNDS STEPS
                                 in each round as many steps observed by StreamSan and as many that pass it, in random order; says the
                                 medians of both, a round a line, in nanoseconds. The library must be built with the feature `pass`.
"""
import ctypes
import json
import random
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions and the way past them."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.skip = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)) if before != after else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def transformer():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 8).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False, fused=False)
    x = torch.randn(8, 128, 256, device="cuda")
    return optimiser, lambda: model(x).square().mean()


def resnet():
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *(Block(*width) for width in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100)).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    x, y = torch.randn(16, 3, 128, 128, device="cuda"), torch.randint(0, 100, (16,), device="cuda")
    return optimiser, lambda: nn.functional.cross_entropy(model(x), y)


def main():
    torch.manual_seed(0)
    optimiser, forward = {"transformer": transformer, "resnet": resnet}[sys.argv[1]]()

    def median(count):
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            optimiser.zero_grad()
            forward().backward()
            optimiser.step()
            torch.cuda.synchronize()
            times.append(time.perf_counter_ns() - start)
        return sorted(times)[count // 2]

    median(10)
    if sys.argv[2:3] == ["within"]:
        let_pass = getattr(ctypes.CDLL(None), "streamsan_pass", lambda _: None)  # without StreamSan both are bare
        median(30)
        for _ in range(int(sys.argv[3])):
            medians = {}
            for passed in random.sample([False, True], 2):
                let_pass(ctypes.c_bool(passed))
                median(1)
                medians[passed] = median(int(sys.argv[4]))
            print(medians[False], medians[True], flush=True)
        return
    if sys.argv[2:] != ["turns"]:
        print(json.dumps({"step": median(30)}))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        print(median(int(line)), flush=True)


main()
