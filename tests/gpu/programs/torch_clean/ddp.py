"""Clean: DistributedDataParallel and fully_shard over NCCL, one process a GPU (all that are there; one is enough). Prints the loss
of rank 0."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    for shard in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
        if shard:
            from torch.distributed.fsdp import fully_shard
            fully_shard(model)
        else:
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=1)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x = torch.randn(32, 256, device="cuda")
        for _ in range(5):
            optimiser.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            optimiser.step()
        if rank == 0:
            print(f"{'fsdp' if shard else 'ddp'} loss {loss.item():.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    world = torch.cuda.device_count()
    if world == 1:
        train(0, 1)
    else:
        mp.spawn(train, (world,), nprocs=world)
