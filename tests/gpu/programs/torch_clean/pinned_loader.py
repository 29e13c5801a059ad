"""Clean: a DataLoader with two forked workers and pinned memory, copies on the consumer's stream. Prints a sum."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.arange(4096.0).reshape(256, 16), torch.arange(256))
    total = torch.zeros((), device="cuda")
    for x, y in DataLoader(data, batch_size=32, num_workers=2, pin_memory=True, persistent_workers=True):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        total += (x.sum(1) * (y % 3)).sum()
    print(f"sum {total.item():.0f}")


if __name__ == "__main__":
    main()
