"""PyTorch's symmetric memory on two devices, a process each: buffers of peers, barriers and all-reduces. Arguments: mistakes to make, or none.

`early`: a rank reads the other's buffer before the barrier behind the
fill. `reused`: a rank fills its buffer again before the barrier behind the reads. `reduced`: behind
all-reduces and a barrier, a rank writes its buffer while the other one reads it."""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm
import torch.multiprocessing as mp

N = 1 << 12
MISTAKES = sys.argv[1:]


def ranks(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo")
    group = dist.group.WORLD.group_name
    mine = symm.empty(N, device="cuda", dtype=torch.float32)
    handle = symm.rendezvous(mine, dist.group.WORLD)
    theirs = handle.get_buffer(1 - rank, (N,), torch.float32)
    out = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    dist.barrier()
    for step in range(3):
        mine.fill_(step + rank)  # writes
        if "early" in MISTAKES:
            out.copy_(theirs)  # races: reads too early
        handle.barrier(channel=0)
        out.copy_(theirs)  # reads
        if "reused" in MISTAKES:
            mine.fill_(-1)  # races: writes too early
        handle.barrier(channel=1)
        assert MISTAKES or out[N - 1].item() == step + 1 - rank
    for step in range(2 if not MISTAKES or "reduced" in MISTAKES else 0):
        mine.fill_(step + rank)
        reduced = torch.ops.symm_mem.one_shot_all_reduce(mine, "sum", group)
        torch.ops.symm_mem.two_shot_all_reduce_(mine, "sum", group)
        assert MISTAKES or reduced[N - 1].item() == 2 * step + 1
        handle.barrier(channel=1)
        if MISTAKES and rank == 0:
            mine.copy_(theirs)  # races: writes what the other one reads
        else:
            out.copy_(theirs)
        handle.barrier(channel=0)
        assert MISTAKES or out[N - 1].item() == 2 * step + 1
    if MISTAKES:
        torch.cuda.synchronize()
    else:
        mine.fill_(2 + rank)
        reduced = torch.ops.symm_mem.one_shot_all_reduce(mine, "sum", group)
        assert reduced[N - 1].item() == 5.0
        handle.barrier(channel=0)
        torch.ops.symm_mem.two_shot_all_reduce_(mine, "sum", group)
        assert mine[N - 1].item() == 5.0
        handle.put_signal(dst_rank=1 - rank, channel=2)
        handle.wait_signal(src_rank=1 - rank, channel=2)
        torch.cuda.synchronize()
        for name in ["multimem_all_reduce_", "multimem_one_shot_all_reduce"]:
            try:
                getattr(torch.ops.symm_mem, name)(mine, "sum", group)
            except RuntimeError as refused:
                assert "multicast support" in str(refused), refused
            else:
                raise AssertionError(name)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("MASTER_PORT", str(20000 + os.getpid() % 20000))
    mp.spawn(ranks, nprocs=2)
