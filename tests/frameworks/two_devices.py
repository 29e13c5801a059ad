"""Two devices, a process each. Argument: `fsdp` (FSDP 2), or `tensor` (asynchronous tensor parallelism through symmetric memory)."""
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def fsdp(rank):
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)) for _ in range(3)]).cuda()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        opt.zero_grad()
        model(torch.randn(8, 32, device="cuda")).square().mean().backward()
        opt.step()
    torch.cuda.synchronize()


def tensor(rank):
    import torch.distributed._symmetric_memory as symm
    group = dist.group.WORLD.group_name
    symm.enable_symm_mem_for_group(group)
    a = torch.randn(16, 32, device="cuda")
    b = torch.randn(32, 24, device="cuda")
    for _ in range(2):
        gathered, [out] = torch.ops.symm_mem.fused_all_gather_matmul(a, [b], gather_dim=0, group_name=group)
        torch.ops.symm_mem.fused_matmul_reduce_scatter(out, torch.randn(24, 16, device="cuda"), "sum", scatter_dim=0, group_name=group)
        torch.cuda.synchronize()


def ranks(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"], RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    dist.init_process_group("cuda:nccl,cpu:gloo", device_id=torch.device("cuda", rank))
    {"fsdp": fsdp, "tensor": tensor}[sys.argv[1]](rank)
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        os.environ["PORT"] = str(probe.getsockname()[1])
    mp.spawn(ranks, nprocs=2)
