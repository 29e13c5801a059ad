"""Two devices under PyTorch: peer copies, NCCL's collectives (alone, grouped, captured), data-parallel and sharded training, each racy and mended.
Usage: two_gpus.py CASE; two_gpus.py --list prints "name race|clean" lines. Exits with 77 when there are not two devices."""
import os
import sys

RACY = ["peer_copy", "grouped_reduce", "all_reduce", "all_gather", "send_receive", "ddp", "fsdp"]
CASES = {name + suffix: verdict for name in RACY for suffix, verdict in (("", "race"), ("_mended", "clean"))}
CASES |= {"to_other_device": "clean", "graphed_reduce": "clean"}


def peer_copy(torch, mended):
    """A side stream of device 0 fills the tensor that the copy on device 0's default stream reads."""
    side = torch.cuda.Stream(0)
    source = torch.zeros(1 << 20, device="cuda:0")
    target = torch.zeros(1 << 20, device="cuda:1")
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    with torch.cuda.stream(side):
        source.add_(1)
    if mended:
        torch.cuda.current_stream(0).wait_stream(side)
    target.copy_(source, non_blocking=True)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)


def to_other_device(torch):
    """PyTorch orders a copy between devices with the current streams of both."""
    x = torch.randn(1 << 20, device="cuda:0")
    for _ in range(5):
        y = (x * 2).to("cuda:1", non_blocking=True)
        x = (y + 1).to("cuda:0", non_blocking=True)
    return float(x.sum())


def grouped_reduce(torch, mended):
    """One thread's collective over both devices, a group of NCCL calls; a side stream of the second device fills that one's part."""
    import torch.cuda.nccl

    parts = [torch.zeros(1 << 18, device=f"cuda:{d}") for d in (0, 1)]
    side = torch.cuda.Stream(1)
    for device in (0, 1):
        torch.cuda.synchronize(device)
    for _ in range(3):
        side.wait_stream(torch.cuda.current_stream(1))
        with torch.cuda.stream(side):
            parts[1].add_(1)
        if mended:
            torch.cuda.current_stream(1).wait_stream(side)
        torch.cuda.nccl.all_reduce(parts)
    for device in (0, 1):
        torch.cuda.synchronize(device)


def all_reduce(torch, dist, rank, mended):
    """The sum is used before the collective, which runs on NCCL's own stream, was waited for."""
    x = torch.full((1 << 18,), float(rank), device="cuda")
    spare = [torch.ones_like(x) for _ in range(4)]
    torch.cuda.synchronize()
    for work in [dist.all_reduce(s, async_op=True) for s in spare]:
        work.wait()
    work = dist.all_reduce(x, async_op=True)
    if mended:
        work.wait()
    y = x + 1
    work.wait()
    torch.cuda.synchronize()
    assert float(x[0]) == 1.0 and len(y) == len(x)


def all_gather(torch, dist, rank, mended):
    """The gathered parts are read before the collective was waited for."""
    part = torch.full((1 << 16,), float(rank), device="cuda")
    whole = torch.empty(2 << 16, device="cuda")
    dist.all_gather_into_tensor(whole, part)
    torch.cuda.synchronize()
    work = dist.all_gather_into_tensor(whole, part, async_op=True)
    if mended:
        work.wait()
    twice = whole * 2
    work.wait()
    torch.cuda.synchronize()
    assert len(twice) == len(whole)


def send_receive(torch, dist, rank, mended):
    """Both ranks send and receive in one group; what arrives is used before it was waited for."""
    mine, other = torch.full((1 << 18,), float(rank), device="cuda"), torch.zeros(1 << 18, device="cuda")
    dist.all_reduce(mine)
    # Loads the kernel: were it loaded below, NCCL's watchdog could see the operations end meanwhile.
    y = other + 1
    torch.cuda.synchronize()
    ops = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    works = dist.batch_isend_irecv(ops)
    if mended:
        for work in works:
            work.wait()
    y = other + 1
    for work in works:
        work.wait()
    torch.cuda.synchronize()
    assert len(y) == len(other)


def graphed_reduce(torch, dist):
    """A collective captured into a graph that is launched several times between other work."""
    x = torch.ones(1 << 16, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 0.5
        dist.all_reduce(y)
        z = y + 1
    for _ in range(4):
        x.fill_(1)
        graph.replay()
        x.mul_(2)
    torch.cuda.synchronize()
    assert float(z[0]) == 2.0


def train(torch, model, side_scales, mended):
    """A training loop whose gradients are scaled on a side stream, which (mended) waits for backward and is waited for."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, 256, device="cuda")
    torch.cuda.synchronize()
    for _ in range(4):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        if mended:
            side.wait_stream(main)
        with torch.cuda.stream(side):
            side_scales(model)
        if mended:
            main.wait_stream(side)
        optimizer.step()
        torch.cuda.synchronize()
    assert loss.item() >= 0


def scale(model):
    for p in model.parameters():
        grad = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
        grad.mul_(0.5)


def worker(rank, case, port):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    mended = case.endswith("_mended")
    collectives = {"all_reduce": all_reduce, "all_gather": all_gather, "send_receive": send_receive}
    if case == "graphed_reduce":
        graphed_reduce(torch, dist)
    elif case.removesuffix("_mended") in collectives:
        collectives[case.removesuffix("_mended")](torch, dist, rank, mended)
    else:
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)]).cuda()
        if case.startswith("ddp"):
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=0.3)
        else:
            from torch.distributed.fsdp import fully_shard

            for layer in model:
                fully_shard(layer)
            fully_shard(model)
        train(torch, model, scale, mended)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def main():
    case = sys.argv[1] if len(sys.argv) > 1 else "--list"
    if case == "--list":
        for name, verdict in CASES.items():
            print(name, verdict)
        return 0
    import torch

    if torch.cuda.device_count() < 2:
        return 77
    if case.startswith("peer_copy"):
        peer_copy(torch, case.endswith("mended"))
    elif case == "to_other_device":
        to_other_device(torch)
    elif case.startswith("grouped_reduce"):
        grouped_reduce(torch, case.endswith("mended"))
    elif case in CASES:
        import torch.multiprocessing as processes

        processes.spawn(worker, args=(case, 30000 + os.getpid() % 2000), nprocs=2)
    else:
        sys.exit(f"no case {case}")
    print(case, "done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
