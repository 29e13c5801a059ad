"""A training loop with one wait that is needed and one synchronisation that is not.

Batches are uploaded on a stream of their own, and the training stream waits for them. At the end of
each step the device is synchronised, which orders nothing: `streamsan excess` says so.
"""

import torch
from torch import nn

STEPS = 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    batches = [torch.randn(16, 32).pin_memory() for _ in range(STEPS)]
    uploads = torch.cuda.Stream()
    total = torch.zeros((), device="cuda")
    for batch in batches:
        with torch.cuda.stream(uploads):
            x = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(uploads)  # needed: the step reads the batch
        x.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        torch.cuda.synchronize()  # needless: nothing on the host uses what this waits for
    print(f"mean loss {total.item() / STEPS:.4f}")


if __name__ == "__main__":
    main()
