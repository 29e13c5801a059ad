"""A block that is read too early, and one that is handed out again while another stream still writes it. `wait`: neither."""
import sys

import torch

wait = "wait" in sys.argv
n = 1 << 22
side = torch.cuda.Stream()
# Segments that come and go, so that blocks lie in the middle of one.
held = [torch.empty(n, device="cuda") for _ in range(6)]
del held[1::2]
torch.cuda.empty_cache()
host = torch.ones(n).pin_memory()
x = torch.empty(n, device="cuda")
y = torch.empty(n, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    x.copy_(host, non_blocking=True)  # writes x
if wait:
    torch.cuda.current_stream().wait_stream(side)
y.copy_(x)  # reads x
torch.cuda.synchronize()
short = torch.empty(n, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    short.copy_(host, non_blocking=True)  # writes short
if wait:
    short.record_stream(side)
del short  # gives short back
again = torch.empty(n, device="cuda")
again.copy_(y)  # writes again
torch.cuda.synchronize()
