"""Two tests of which one races: `pytest --streamsan` must charge the race to that one."""
import torch
side = torch.cuda.Stream()
torch.cuda.synchronize()


def test_ordered():
    a = torch.rand(1 << 16, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (a + 1).sum().item()


def test_racy():
    a = torch.rand(1 << 16, device="cuda")
    with torch.cuda.stream(side):
        (a + 1).sum().item()
