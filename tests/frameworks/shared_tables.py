"""What serving and training share between streams: a cache of keys and values, its pages, a table of
embeddings, the workspace of a convolution.

`shared_tables.py race CASE...` leaves one wait of each case out, `shared_tables.py wait CASE...` has
all. Each pair is as a program makes it: both sides are right by themselves.
"""

import sys

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

STEPS = 3


def cache(wait):
    """Decoding: the keys and values of the next token are appended to the cache on one stream, while
    attention over all tokens so far runs on another one."""
    keys, values = (torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
    fresh = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.float16)
    query = torch.randn(1, 2, 1, 64, device="cuda", dtype=torch.float16)

    def append(step):
        # The oldest token goes: a window that slides.
        keys[:, :, step].copy_(fresh[:, :, step])  # races
        values[:, :, step].copy_(fresh[:, :, step])

    def attend(step):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            functional.scaled_dot_product_attention(query, keys, values)

    alternate(append, attend, wait)


def pages(wait):
    """The same with pages: a table says where the blocks of a sequence lie."""
    blocks = torch.randn(16, 4, 32, device="cuda")
    table = torch.tensor([3, 1, 7, 2], device="cuda")
    fresh, query = torch.randn(4, 32, device="cuda"), torch.randn(1, 32, device="cuda")
    free = torch.tensor([3], device="cuda")

    def append(step):
        blocks.index_copy_(0, free, fresh.unsqueeze(0))  # races

    def attend(step):
        tokens = blocks.index_select(0, table).view(-1, 32)
        torch.softmax(query @ tokens.t(), dim=-1)

    alternate(append, attend, wait)


def embedding(wait):
    """A table of embeddings: the update of some rows against the lookup of the next batch."""
    table = torch.randn(100, 16, device="cuda")
    rows = torch.arange(0, 40, 4, device="cuda")
    step_of = torch.randn(10, 16, device="cuda")
    batch = torch.arange(0, 20, device="cuda")

    def update(step):
        table.index_add_(0, rows, step_of)  # races

    def look_up(step):
        functional.embedding(batch, table)

    alternate(update, look_up, wait)


def workspace(wait):
    """A convolution by columns: two streams share the workspace that the columns are written to."""
    images = torch.randn(2, 4, 3, 12, 12, device="cuda")
    weights = torch.randn(8, 27, device="cuda")
    columns = torch.empty(27, 100, device="cuda")

    def convolve(which):
        def run(step):
            unfolded = functional.unfold(images[which][step : step + 1], 3)
            columns.copy_(unfolded[0])  # races
            torch.relu(columns)

        return run

    alternate(convolve(0), convolve(1), wait)


def alternate(first, second, wait):
    """Runs the two on a stream each, in turn, ordered by events where they should be."""
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    done = None
    for step in range(STEPS):
        with torch.cuda.stream(streams[0]):
            # What the second reads must be over before the first writes again.
            if done and wait:
                streams[0].wait_event(done)
            first(step)
            ready = streams[0].record_event()
        with torch.cuda.stream(streams[1]):
            streams[1].wait_event(ready)
            second(step)
            done = streams[1].record_event()
    torch.cuda.synchronize()


if __name__ == "__main__":
    torch.manual_seed(0)
    cases = {"cache": cache, "pages": pages, "embedding": embedding, "workspace": workspace}
    for name in sys.argv[2:]:
        cases[name](sys.argv[1] == "wait")
    print("done")
