"""The stream semantics that PyTorch's CUDA notes describe, one case a run:  torch_semantics.py CASE.
Without a case it lists them, with `documented`, `truth` and `why` behind tabulators.

`documented` is what the notes say of the form; `truth` is whether its memory is in fact unordered, and `why` says what orders it where the
two differ. Each case runs an ordered step first, so that nothing is loaded or allocated for the first time where it would order things.
"""
import sys

CASES = {}


def case(documented, truth, why):
    return lambda function: CASES.setdefault(function.__name__, (documented, truth, why, function))[3]


N = 1024


class Setting:
    """A leaf, an input, two side streams; `forward(stream)` gives rows that need a gradient."""

    def __init__(self):
        import torch
        self.torch = torch
        self.default, self.side, self.other = torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()
        self.weight = torch.randn(N, N, device="cuda", requires_grad=True)
        self.x = torch.randn(N, N, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(self.side):  # warms up: every kernel of the cases, on both streams
            self.rows().backward(gradient=torch.ones(N, device="cuda"))
        torch.cuda.synchronize()
        self.rows().backward(gradient=torch.ones(N, device="cuda"))
        (self.weight.grad * 2).sum()
        torch.cuda.synchronize()
        self.weight.grad = None

    def rows(self):
        return (self.weight * self.x).sum(dim=1)

    def on(self, stream):
        return self.torch.cuda.stream(stream)

    def forward(self, stream):
        with self.on(stream):
            rows = self.rows()
        self.torch.cuda.synchronize()
        return rows

    def ones(self):
        return self.torch.ones(N, device="cuda")

    def use(self):
        return (self.weight.grad * 2).sum()


# ---- supplying the initial gradient ---------------------------------------------------------------------------------------------------
@case("safe", "clean", "")
def seed_in_the_same_context(s):
    rows = s.forward(s.side)
    with s.on(s.side):
        rows.backward(gradient=s.ones())


@case("unsafe", "race", "")
def seed_in_another_context(s):
    rows = s.forward(s.side)
    seed = s.ones()
    with s.on(s.side):
        rows.backward(gradient=seed)
    s.torch.cuda.synchronize()


@case("unsafe", "clean", "the forward ran on the default stream, so the backward kernel that reads the seed does too")
def seed_in_another_context_forward_on_default(s):
    rows = s.forward(s.default)
    seed = s.ones()
    with s.on(s.side):
        rows.backward(gradient=seed)
    s.torch.cuda.synchronize()


@case("safe", "clean", "")
def seed_waited_for_and_recorded(s):
    rows = s.forward(s.side)
    seed = s.ones()
    s.side.wait_stream(s.default)
    with s.on(s.side):
        seed.record_stream(s.side)
        rows.backward(gradient=seed)
    del seed
    s.ones()


@case("unsafe", "race", "")
def seed_waited_for_but_not_recorded(s):
    rows = s.forward(s.side)
    seed = s.ones()
    s.side.wait_stream(s.default)
    with s.on(s.side):
        rows.backward(gradient=seed)
    del seed
    s.ones()


@case("safe", "clean", "")
def implicit_seed_on_another_stream_than_the_forward(s):
    loss = s.forward(s.default).sum()
    with s.on(s.side):
        loss.backward()
        s.use()


# ---- using the gradients ---------------------------------------------------------------------------------------------------------------
@case("safe", "clean", "")
def gradients_used_in_the_same_context(s):
    with s.on(s.side):
        s.rows().sum().backward()
        s.use()


@case("unsafe", "race", "")
def gradients_used_in_another_context(s):
    with s.on(s.side):
        s.rows().sum().backward()
    s.use()


@case("unsafe", "clean", "forward and backward ran on the default stream, where the gradients are used")
def gradients_used_in_another_context_forward_on_default(s):
    loss = s.rows().sum()
    with s.on(s.side):
        loss.backward()
    s.use()


@case("safe", "clean", "")
def gradients_used_in_another_context_waited(s):
    with s.on(s.side):
        s.rows().sum().backward()
    s.default.wait_stream(s.side)
    s.use()


@case("safe", "clean", "backward() makes the stream that called it wait for the streams of the leaves")
def gradients_used_where_backward_was_called(s):
    with s.on(s.side):
        loss = s.rows().sum()
    s.default.wait_stream(s.side)
    loss.backward()
    s.use()


# ---- the root of the graph --------------------------------------------------------------------------------------------------------------
@case("safe", "clean", "the first node waits for the stream on which backward() was called (GraphRoot's)")
def root_seed_on_the_calling_stream(s):
    rows = s.forward(s.default)
    with s.on(s.side):
        rows.backward(gradient=s.ones())
        s.use()


@case("safe", "clean", "the same between two side streams")
def root_seed_on_the_calling_side_stream(s):
    rows = s.forward(s.side)
    s.other.wait_stream(s.side)
    with s.on(s.other):
        rows.backward(gradient=s.ones())
        s.use()


@case("unsafe", "race", "")
def root_seed_on_a_side_stream_called_on_default(s):
    rows = s.forward(s.default)
    with s.on(s.side):
        seed = s.ones()
    rows.backward(gradient=seed)
    s.torch.cuda.synchronize()


@case("safe", "clean", "")
def root_seed_on_a_side_stream_waited(s):
    rows = s.forward(s.default)
    with s.on(s.side):
        seed = s.ones()
    s.default.wait_stream(s.side)
    rows.backward(gradient=seed)
    s.torch.cuda.synchronize()


# ---- streams, without gradients ----------------------------------------------------------------------------------------------------------
@case("unsafe", "race", "")
def sum_without_waiting(s):
    a = s.torch.empty(N, N, device="cuda").normal_(0.0, 1.0)
    with s.on(s.side):
        s.torch.sum(a)
    s.torch.cuda.synchronize()


@case("safe", "clean", "")
def sum_waited_and_recorded(s):
    a = s.torch.empty(N, N, device="cuda").normal_(0.0, 1.0)
    s.side.wait_stream(s.default)
    with s.on(s.side):
        s.torch.sum(a)
    a.record_stream(s.side)
    del a
    s.torch.empty(N, N, device="cuda").normal_(0.0, 1.0)


@case("unsafe", "race", "")
def sum_waited_but_not_recorded(s):
    a = s.torch.empty(N, N, device="cuda").normal_(0.0, 1.0)
    s.side.wait_stream(s.default)
    with s.on(s.side):
        s.torch.sum(a)
    del a
    s.torch.empty(N, N, device="cuda").normal_(0.0, 1.0)


# ---- graphs -------------------------------------------------------------------------------------------------------------------------------
def captured(s):
    static = s.torch.zeros(N, N, device="cuda")
    s.side.wait_stream(s.default)
    with s.on(s.side):
        for _ in range(3):
            (static * 2).sum()
    s.default.wait_stream(s.side)
    graph = s.torch.cuda.CUDAGraph()
    with s.torch.cuda.graph(graph):
        out = (static * 2).sum()
    s.torch.cuda.synchronize()
    return static, graph, out


@case("safe", "clean", "")
def graph_warmed_up_filled_and_replayed(s):
    static, graph, out = captured(s)
    for n in range(3):
        static.copy_(s.x)
        graph.replay()
        out + n


@case("unsafe", "race", "")
def graph_filled_on_another_stream(s):
    static, graph, out = captured(s)
    graph.replay()
    with s.on(s.side):
        static.copy_(s.x)
    s.torch.cuda.synchronize()


# ---- pinned memory ------------------------------------------------------------------------------------------------------------------------
@case("safe", "clean", "")
def pinned_copies_waited_for(s):
    host = s.torch.randn(N, N).pin_memory()
    device = host.to("cuda", non_blocking=True)
    back = (device * 2).to("cpu", non_blocking=True)
    s.torch.cuda.synchronize()
    host.zero_()
    back.sum()


@case("unsafe", "race", "")
def pinned_source_written_too_early(s):
    host = s.torch.randn(N, N).pin_memory()
    s.torch.cuda.synchronize()
    host.to("cuda", non_blocking=True)
    host.zero_()
    s.torch.cuda.synchronize()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join("\t".join([name, *about]) for name, (*about, _) in CASES.items()))
    else:
        CASES[sys.argv[1]][3](Setting())
        import torch
        torch.cuda.synchronize()
        print("done")
