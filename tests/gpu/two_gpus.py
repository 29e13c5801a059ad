"""Two devices under PyTorch: peer copies, racy and mended, and a clean data-parallel training loop over NCCL.
Usage: two_gpus.py CASE; two_gpus.py --list prints "name race|clean" lines. Exits with 77 when there are not two devices."""
import os
import sys

CASES = {"peer_copy": "race", "peer_copy_mended": "clean", "to_other_device": "clean", "ddp": "clean", "all_reduce": "clean"}


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


def worker(rank, case, port):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    if case == "all_reduce":
        x = torch.full((1 << 18,), float(rank), device="cuda")
        work = [dist.all_reduce(x.clone(), async_op=True) for _ in range(4)]
        for w in work:
            w.wait()
        dist.all_reduce(x)
        assert float(x[0]) == 1.0
    else:
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)]).cuda()
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=0.3)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(4):
            loss = model(torch.randn(64, 256, device="cuda")).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        assert loss.item() > 0
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
    else:
        import torch.multiprocessing as processes

        processes.spawn(worker, args=(case, 29500 + os.getpid() % 1000), nprocs=2)
    print(case, "done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
