"""PyTorch operators whose addresses are data, on two streams that nothing orders: each once with elements in common and once without.

Usage: torch_indirect.py gather|scatter|histogram|index_put|embedding_bag race|clean"""
import sys
import torch

case, race = sys.argv[1], sys.argv[2] == "race"
n, dev = 1 << 14, "cuda"
one, two = torch.cuda.Stream(), torch.cuda.Stream()
table = torch.zeros(n, device=dev)
rows = torch.zeros(1000, 64, device=dev)
evens, odds = torch.arange(0, n, 2), torch.arange(1, n, 2)
low, high = torch.randint(0, 500, (300,)), torch.randint(500, 1000, (300,))
if race:
    odds[77], high[33] = 6, low[5]
evens, odds, low, high = (t.to(dev) for t in (evens, odds, low, high))
ones, bags, counts = torch.ones(n // 2, device=dev), torch.arange(0, 300, 10, device=dev), torch.ones(300, device=dev)
torch.cuda.synchronize()
first, second = {
    "gather": (lambda: table.scatter_(0, evens, 1.0), lambda: torch.gather(table, 0, odds)),
    "scatter": (lambda: table.scatter_(0, evens, 1.0), lambda: table.scatter_(0, odds, 2.0)),
    "histogram": (lambda: table.scatter_add_(0, low, counts), lambda: table.index_fill_(0, high, 0.0)),
    "index_put": (lambda: table.index_put_((evens,), ones), lambda: table.index_put_((odds,), ones)),
    "embedding_bag": (lambda: rows.index_fill_(0, low, 1.0), lambda: torch.nn.functional.embedding_bag(high, rows, bags)),
}[case]
with torch.cuda.stream(one):
    first()
with torch.cuda.stream(two):
    second()
torch.cuda.synchronize()
print("done")
