"""Graphs as PyTorch's own tests and serving engines make and replay them. Arguments: the forms, one after the other; without any, all but
`generators`.

`generators` is a race of PyTorch 2.11's own: it fills the seed of a generator on the stream that captures, in front of the capture, and
again on the stream that replays. Nothing orders the two unless the program does."""
import sys
import torch

dev = "cuda"


def simple():
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        a = torch.full((1000,), 1, device=dev)
        g = torch.cuda.CUDAGraph()
        torch.cuda.empty_cache()
        g.capture_begin()
        b = a
        for _ in range(10):
            b = b + 1
        g.capture_end()
    torch.cuda.current_stream().wait_stream(s)
    g.replay()
    assert b.sum().item() == 11000.0


def side_branch():
    """A fork to a side stream within the capture, and its join."""
    x = torch.randn(64, 64, device=dev)
    side = torch.cuda.Stream()
    main = torch.cuda.Stream()
    main.wait_stream(torch.cuda.current_stream())
    g = torch.cuda.CUDAGraph()
    with torch.cuda.stream(main):
        (x @ x).relu()
    torch.cuda.current_stream().wait_stream(main)
    with torch.cuda.graph(g, stream=main):
        a = x * 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            b = a + 1
        c = a - 1
        main.wait_stream(side)
        d = b * c
    for _ in range(3):
        x.normal_()
        g.replay()
        d.sum().item()


def two_share_pool():
    """Two graphs, one pool, replayed in the order of their capture."""
    x = torch.ones(4096, device=dev)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    g0, g1 = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g0, stream=s):
        a = x + 1
        t = a * 2
        b = t + 1
        del t
    with torch.cuda.graph(g1, stream=s, pool=g0.pool()):
        c = b * 3
        t = c + 1
        e = t - 1
        del t
    for i in range(3):
        x.fill_(i)
        g0.replay()
        g1.replay()
        assert e[0].item() == ((i + 1) * 2 + 1) * 3


def training():
    """A whole step in a graph, with static inputs that are refilled."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(dev)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(16, 32, device=dev), torch.randn(16, 8, device=dev)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(2):
            opt.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(x), y).backward()
            opt.step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    opt.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
    for _ in range(3):
        x.copy_(torch.randn(16, 32).pin_memory(), non_blocking=True)
        y.copy_(torch.randn(16, 8, device=dev))
        g.replay()
    loss.item()


def graphed_callable():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to(dev)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)
    model = torch.cuda.make_graphed_callables(model, (torch.randn(8, 32, device=dev, requires_grad=True),))
    for _ in range(3):
        opt.zero_grad(set_to_none=True)
        model(torch.randn(8, 32, device=dev, requires_grad=True)).sum().backward()
        opt.step()
    torch.cuda.synchronize()


def reset_and_again():
    """Graphs that are made, replayed and reset in a loop; memory goes back in between."""
    x = torch.ones(1 << 14, device=dev)
    for i in range(3):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = x * 2 + i
        g.replay()
        assert y[0].item() == 2 + i
        del y
        g.reset()
        del g
        torch.cuda.empty_cache()


def generators():
    """Generators within graphs."""
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        a = torch.randn(512, device=dev)
        b = torch.nn.functional.dropout(a, 0.3)
    for _ in range(3):
        g.replay()
        b.sum().item()


def generators_waited():
    """The same, as PyTorch's own test has it: the current stream waits for the one that captured."""
    stream = torch.cuda.Stream()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, stream=stream):
        a = torch.randn(512, device=dev)
        b = torch.nn.functional.dropout(a, 0.3)
    torch.cuda.current_stream().wait_stream(stream)
    for _ in range(3):
        g.replay()
        b.sum().item()


def runner():
    """As vLLM's and SGLang's runners: a graph for each batch size, largest first, one pool, static buffers that are filled from
    pinned memory on the current stream, outputs that are copied before the next step."""
    hidden = 64
    w = torch.randn(hidden, hidden, device=dev)
    sizes = [8, 4, 2, 1]
    ids = torch.zeros(8, dtype=torch.int64, device=dev)
    table = torch.randn(100, hidden, device=dev)
    cache = torch.zeros(8, 16, hidden, device=dev)
    slot = torch.zeros(8, dtype=torch.int64, device=dev)
    out = torch.empty(8, hidden, device=dev)
    stream = torch.cuda.Stream()

    def forward(n):
        h = table[ids[:n]]
        cache[torch.arange(n, device=dev), slot[:n]] = h
        h = (h + cache[:n].mean(1)) @ w
        return torch.nn.functional.silu(h)

    pool, graphs, outs = None, {}, {}
    stream.wait_stream(torch.cuda.current_stream())
    for n in sizes:
        with torch.cuda.stream(stream):
            forward(n)
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=pool, stream=stream):
                o = forward(n)
                out[:n].copy_(o)
            pool = pool or g.pool()
            graphs[n] = g
            del o
    torch.cuda.current_stream().wait_stream(stream)
    copies = torch.cuda.Stream()
    done = torch.cuda.Event()
    host = [torch.empty(8, dtype=torch.int64).pin_memory() for _ in range(2)]
    free = [torch.cuda.Event() for _ in range(2)]
    result = torch.empty(8, hidden).pin_memory()
    for step in range(6):
        n = sizes[step % 4]
        mine = host[step % 2]
        free[step % 2].synchronize()
        mine.copy_(torch.arange(8) * (step + 1) % 100)
        ids.copy_(mine, non_blocking=True)
        free[step % 2].record()
        slot.fill_(step)
        graphs[n].replay()
        final = out[:n].clone()
        ready = torch.cuda.Event()
        ready.record()
        # The sampled result goes to the host on a stream of its own.
        with torch.cuda.stream(copies):
            copies.wait_event(ready)
            done.synchronize()
            result[:n].copy_(final, non_blocking=True)
            final.record_stream(copies)
            done.record(copies)
    done.synchronize()
    result.sum().item()


CLEAN = [simple, side_branch, two_share_pool, training, graphed_callable, reset_and_again, generators_waited, runner]
for form in [globals()[name] for name in sys.argv[1:]] or CLEAN:
    form()
    torch.cuda.synchronize()
print("done")
