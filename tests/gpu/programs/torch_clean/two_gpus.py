"""Clean: one process, two GPUs, DistributedDataParallel replaced by its parts: NCCL all-reduce through
torch.cuda.nccl on both devices, peer copies with events, FSDP-like all-gather. Needs two GPUs (without
them: exit code 77). Prints a sum."""
import sys

import torch

if torch.cuda.device_count() < 2:
    print("needs two GPUs")
    sys.exit(77)
torch.manual_seed(0)
models = [torch.nn.Linear(256, 256).cuda(d) for d in (0, 1)]
models[1].load_state_dict(models[0].state_dict())
for step in range(5):
    for device, model in enumerate(models):
        x = torch.full((32, 256), 0.01 * (device + 1), device=device)
        model.zero_grad()
        model(x).square().mean().backward()
    for pair in zip(*[list(m.parameters()) for m in models]):
        torch.cuda.nccl.all_reduce([p.grad for p in pair])
    with torch.no_grad():
        for model in models:
            for p in model.parameters():
                p -= 0.1 * p.grad / 2
    moved = models[0].weight.to(1, non_blocking=True)
    difference = (moved - models[1].weight).abs().max()
print(f"difference {difference.item():.4f}")
