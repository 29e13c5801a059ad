"""What the training programs share: five steps on the CPU, the same on the GPU, and a comparison of
the losses. Owns the side stream on which batches are fetched; the programs own model and loss.

Arguments of each program: `wait` (the default) trains on batches that the training stream has
waited for, `race` on batches that it has not.
"""

import sys

import torch

STEPS = 5
TOLERANCE = 1e-4


class Fetcher:
    """Copies batches to the device on a stream of its own."""

    def __init__(self, device, waits):
        self.device, self.waits = device, waits
        self.stream = torch.cuda.Stream() if device == "cuda" else None

    def fetch(self, *batch):
        if self.stream is None:
            return batch
        with torch.cuda.stream(self.stream):
            fetched = [part.pin_memory().to("cuda", non_blocking=True) for part in batch]
        current = torch.cuda.current_stream()
        if self.waits:
            current.wait_stream(self.stream)
        for part in fetched:
            part.record_stream(current)
        return fetched


def losses(device, build, loss_of, batches, waits):
    """The loss of each step."""
    torch.manual_seed(0)
    model = build().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    fetcher = Fetcher(device, waits)
    curve = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, *fetcher.fetch(*batch))
        loss.backward()
        optimizer.step()
        curve.append(loss.detach())
    return [loss.item() for loss in curve]


def main(build, loss_of, batch_of):
    """Trains on both devices; the exit code is 1 where the curves part and nothing races."""
    waits = "race" not in sys.argv[1:]
    torch.manual_seed(1)
    batches = [batch_of() for _ in range(STEPS)]
    ours = losses("cuda", build, loss_of, batches, waits)
    theirs = losses("cpu", build, loss_of, batches, waits)
    furthest = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
    for step, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        print(f"step {step}: GPU {mine:.6f}, CPU {other:.6f}")
    close = furthest <= TOLERANCE
    print(f"furthest apart: {furthest:.2e}")
    # What a program computes that races is not defined.
    sys.exit(0 if close or not waits else 1)
