"""The input of PyTorch's flame graphs:  flamegraph.py segments|memory SNAPSHOT

PyTorch draws them with a Perl script that it fetches from the network. This checks what that script
would read.
"""
import pickle
import sys

from torch.cuda import _memory_viz

with open(sys.argv[2], "rb") as file:
    lines = getattr(_memory_viz, sys.argv[1])(pickle.load(file), format_flamegraph=str).splitlines()
assert lines and all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines), lines[:3]
print(len(lines), "stacks,", sum(int(line.rsplit(" ", 1)[1]) for line in lines), "bytes")
