"""Steps of programs as people run them, for `python3 tests/gpu cost --workloads`. Needs torch, a GPU (two of them for the last three),
and what each of them imports.

    workloads.py NAME            says "ready"; then, for each number read, takes as many steps and says their median, in nanoseconds

StreamSan finds nothing in any of them.
"""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"


def hf_llama():
    """A training step with a batch that is uploaded ahead."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=8, num_attention_heads=24, num_key_value_heads=12,
                         vocab_size=32000)
    model = LlamaForCausalLM(config).to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    side, host = torch.cuda.Stream(), [torch.randint(0, config.vocab_size, (8, 512)).pin_memory() for _ in range(8)]
    done, ahead = [torch.cuda.Event() for _ in host], []

    def fetch(i):
        with torch.cuda.stream(side):
            ahead.append(host[i % 8].to(DEVICE, non_blocking=True))
            done[i % 8].record(side)
    fetch(0)

    def step(i):
        current = torch.cuda.current_stream()
        current.wait_event(done[i % 8])
        x = ahead.pop()
        x.record_stream(current)
        fetch(i + 1)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(input_ids=x, labels=x).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return step


def kv_offload():
    """Attention whose keys and values come back from pinned memory, 32 MiB a step, and go there again."""
    batch, heads, width, page_size, layers, pages, resident = 8, 8, 64, 64, 4, 64, 8
    shape = (layers, pages, 2, batch, heads, page_size, width)
    pool, host = torch.zeros(shape, device=DEVICE, dtype=torch.float16), torch.zeros(shape, dtype=torch.float16).pin_memory()
    away, back = torch.cuda.Stream(), torch.cuda.Stream()
    ready = [torch.cuda.Event() for _ in range(layers)]
    weights = [torch.randn(heads * width, 3 * heads * width, device=DEVICE, dtype=torch.float16) * .02 for _ in range(layers)]
    first = torch.randn(batch, page_size, heads * width, device=DEVICE, dtype=torch.float16)

    def step(i):
        page, x, current = i % pages, first, torch.cuda.current_stream()
        begin = max(0, page - resident)
        back.wait_stream(current)
        back.wait_stream(away)
        with torch.cuda.stream(back):
            for layer in range(layers):
                for other in range(begin, page):
                    pool[layer, other].copy_(host[layer, other], non_blocking=True)
                ready[layer].record(back)
        for layer in range(layers):
            q, k, v = (x @ weights[layer]).view(batch, page_size, 3, heads, width).permute(2, 0, 3, 1, 4)
            pool[layer, page, 0].copy_(k)
            pool[layer, page, 1].copy_(v)
            current.wait_event(ready[layer])
            keys, values = (pool[layer, begin:page + 1, n].permute(1, 2, 0, 3, 4).reshape(batch, heads, -1, width) for n in range(2))
            x = F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(batch, page_size, heads * width)
        away.wait_stream(current)
        with torch.cuda.stream(away):
            for layer in range(layers):
                host[layer, page].copy_(pool[layer, page], non_blocking=True)
        current.wait_stream(back)
    return step


def cupy_pipeline():
    """Four uploads in turns, each with a kernel of its own."""
    import cupy as cp
    import numpy as np
    count, ring = 1 << 20, 4
    kernel = cp.RawKernel('extern "C" __global__ void s(const float* x, float* y, int n) {'
                          ' for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)'
                          ' y[i] = x[i] * 2.f + (i ? x[i - 1] : 0.f); }', "s")
    streams, main = [cp.cuda.Stream(non_blocking=True) for _ in range(ring)], cp.cuda.Stream(non_blocking=True)
    x, y, total = [cp.zeros(count, cp.float32) for _ in range(ring)], [cp.zeros(count, cp.float32) for _ in range(ring)], cp.zeros(count, cp.float32)
    host = [np.frombuffer(cp.cuda.alloc_pinned_memory(4 * count), np.float32, count) for _ in range(ring)]
    events = [cp.cuda.Event() for _ in range(ring)]
    cp.cuda.runtime.deviceSynchronize()

    def step(i):
        j = i % ring
        streams[j].synchronize()
        host[j][:] = i
        with streams[j]:
            x[j].set(host[j], stream=streams[j])
            kernel((64,), (256,), (x[j], y[j], np.int32(count)))
            y[j] *= 0.5
            events[j].record(streams[j])
        with main:
            main.wait_event(events[j])
            cp.add(total, y[j], out=total)
            done = cp.cuda.Event()
            done.record(main)
        streams[j].wait_event(done)
    return step


def jax_train():
    """A compiled training step that takes over its buffers."""
    # All ways are loaded at once: three quarters of the memory are left for one of them only.
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".1")
    import jax
    import jax.numpy as jnp
    width, key = 512, jax.random.PRNGKey(0)
    held = [[jax.random.normal(key, (width, width)) * width ** -.5 for _ in range(6)]]
    x = jax.random.normal(key, (64, width))

    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight) + x
        return (x ** 2).mean()
    train = jax.jit(lambda p, x: jax.tree.map(lambda a, g: a - 1e-3 * g, p, jax.grad(loss)(p, x)), donate_argnums=0)

    def step(i):
        held.append(train(held.pop(), x))
        jax.block_until_ready(held[0])
    return step


def rnn_ctc_fft():
    """A speech model: an LSTM of cuDNN's with a hundred steps, a Fourier transform beside it, a CTC loss."""
    width, length, batch = 256, 100, 16
    rnn, head = nn.LSTM(width, width, 2, bidirectional=True, batch_first=True).to(DEVICE), nn.Linear(2 * width, 40).to(DEVICE)
    convolution, side = nn.Conv1d(1, width, 400, 160).to(DEVICE), torch.cuda.Stream()
    wave, window = torch.randn(batch, 160 * length + 240, device=DEVICE), torch.hann_window(400, device=DEVICE)
    wanted = torch.randint(1, 40, (batch, 10), device=DEVICE)

    def step(i):
        current = torch.cuda.current_stream()
        features = convolution(wave[:, None]).transpose(1, 2)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            power = torch.stft(wave, 400, 160, window=window, return_complex=True).abs().mean() + features.square().sum()
            features.record_stream(side)
        out = head(rnn(features)[0]).log_softmax(-1).transpose(0, 1)
        loss = F.ctc_loss(out, wanted, torch.full((batch,), out.shape[0]), torch.full((batch,), 10))
        current.wait_stream(side)
        power.record_stream(current)
        (loss + 1e-6 * power).backward()
    return step


def triton_tma():
    """Two matrix products by tensor maps, each on a stream of its own."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    import workloads_triton
    size = 1024
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2))
    out, streams = [torch.zeros(size, size, device=DEVICE, dtype=torch.float16) for _ in range(2)], [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()

    def step(i):
        current = torch.cuda.current_stream()
        for c, stream in zip(out, streams):
            with torch.cuda.stream(stream):
                maps = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (a, b, c)]
                workloads_triton.matmul[(size // 64, size // 64)](*maps, size, 64, 64, 64)
        for stream in streams:
            current.wait_stream(stream)
        for stream in streams:
            stream.wait_stream(current)
    return step


def batch_p2p(rank):
    """A ring exchange by grouped sends and receives."""
    import torch.distributed as dist
    a, peer = torch.randn(1 << 20, device=DEVICE), 1 - rank
    b = torch.zeros_like(a)

    def step(i):
        for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, a, peer), dist.P2POp(dist.irecv, b, peer)]):
            request.wait()
        b.add_(1)
        a.mul_(0.5)
    return step


def async_reduce(rank):
    """Four all-reduces in flight."""
    import torch.distributed as dist
    tensors = [torch.randn(1 << 20, device=DEVICE) for _ in range(4)]

    def step(i):
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        for work, x in zip(works, tensors):
            work.wait()
            x.mul_(0.5)
    return step


def symmetric(rank):
    """All-reduces over symmetric memory, whose kernels order themselves by flags."""
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric_memory
    t = symmetric_memory.empty(1 << 16, device=DEVICE, dtype=torch.bfloat16)
    handle, name = symmetric_memory.rendezvous(t, dist.group.WORLD), dist.group.WORLD.group_name

    def step(i):
        t.fill_(i % 7)
        out = torch.ops.symm_mem.one_shot_all_reduce(t, "sum", name)
        handle.barrier(channel=1)
        out.mul_(0.5)
        torch.ops.symm_mem.two_shot_all_reduce_(t, "sum", name)
        t.mul_(0.5)
        handle.barrier(channel=2)
        peer = handle.get_buffer(1 - rank, (1 << 16,), torch.bfloat16)
        handle.barrier(channel=3)
        out.copy_(peer)
        handle.barrier(channel=0)
    return step


ONE = [hf_llama, kv_offload, cupy_pipeline, jax_train, rnn_ctc_fft, triton_tma]
TWO = [batch_p2p, async_reduce, symmetric]


def turns(step, asked, says):
    """For each number that is asked for as many steps, and their median to who is told."""
    number = 0

    def median(count):
        nonlocal number
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            step(number)
            torch.cuda.synchronize()
            times.append(time.perf_counter_ns() - start)
            number += 1
        return sorted(times)[count // 2]

    median(10)
    says("ready")
    for count in asked:
        says(median(count))


def rank(number, work, port):
    """One of two processes. The first is asked, and tells the other."""
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(number), WORLD_SIZE="2", LOCAL_RANK=str(number))
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", device_id=torch.device("cuda", number))
    lines = os.fdopen(0) if number == 0 else None

    def asked():
        while True:
            count = [int((lines.readline().strip() if lines else "") or 0)]
            dist.broadcast_object_list(count)
            if not count[0]:
                return
            yield count[0]
    says = (lambda what: print(what, flush=True)) if number == 0 else lambda _: None
    turns(globals()[work](number), asked(), says)
    dist.barrier()
    dist.destroy_process_group()


def main():
    torch.manual_seed(0)
    work = sys.argv[1]
    if work in {f.__name__ for f in TWO}:
        port = 20000 + os.getpid() % 20000
        pids = []
        for number in range(2):
            command = [sys.executable, __file__, work, str(number), str(port)]
            pids.append(os.spawnv(os.P_NOWAIT, sys.executable, command))
        sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids))
    step = {f.__name__: f for f in ONE}[work]()
    turns(step, map(int, sys.stdin), lambda what: print(what, flush=True))
    torch.cuda.synchronize()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        rank(int(sys.argv[2]), sys.argv[1], sys.argv[3])
    else:
        main()
