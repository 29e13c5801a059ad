"""Started by torchrun: each rank copies a pinned batch on a side stream and reads it on the default stream. `wait`: in order."""
import os
import sys

import torch

rank, wait = int(os.environ["RANK"]), "wait" in sys.argv
torch.distributed.init_process_group("gloo")
host = torch.full((1 << 18,), float(rank + 1)).pin_memory()
batch = torch.empty(1 << 18, device="cuda")
out = torch.empty(1 << 18, device="cuda")
side = torch.cuda.Stream()
for step in range(3):
    torch.distributed.barrier()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        batch.copy_(host, non_blocking=True)  # writes
    if wait:
        torch.cuda.current_stream().wait_stream(side)
    out.copy_(batch)  # reads
torch.cuda.synchronize()
if wait:
    assert out.cpu()[0].item() == rank + 1
torch.distributed.destroy_process_group()
