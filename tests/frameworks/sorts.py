"""Sorts, selections and searches of PyTorch over four shapes and three types: kernels whose places
are data. Record it with `--sim --exact=all`, and compare it with `check --exact-compare`.
"""

import torch

torch.manual_seed(0)
for dtype in (torch.float32, torch.float16, torch.int64):
    shapes = ((20,), (5, 6), (3000,), (64, 2500))
    inputs = [(torch.rand(shape, device="cuda") * 100).to(dtype) for shape in shapes]
    for x in inputs:
        torch.sort(x), torch.argsort(x), torch.msort(x), torch.topk(x, 3)
        torch.unique(x), torch.unique_consecutive(x), torch.unique(x, return_inverse=True, return_counts=True)
        torch.masked_select(x, x > 50), torch.nonzero(x > 50), torch.argwhere(x > 50), x[x > 50]
        torch.bincount(x.flatten().to(torch.int64)), torch.kthvalue(x, 2), torch.median(x)
        torch.searchsorted(torch.sort(x.flatten())[0], x.flatten())
        x.masked_scatter(x > 50, x.flatten())
        rows = torch.randint(0, 10, (x.numel(),), device="cuda")
        table = torch.zeros(10, 4, device="cuda")
        table.index_put_((rows,), torch.ones(x.numel(), 4, device="cuda"), accumulate=True)
    torch.cumsum(inputs[2], 0), torch.cumsum(inputs[3], 1)
    if dtype.is_floating_point:
        torch.multinomial(inputs[1] + 1, 3), torch.randperm(1000, device="cuda"), torch.randperm(100000, device="cuda")
torch.cuda.synchronize()
