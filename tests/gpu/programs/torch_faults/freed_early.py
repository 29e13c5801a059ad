"""Racy: given back while the side stream may still read it, without record_stream; nothing has reused it yet."""
import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
keep = []
for _ in range(3):
    x = torch.ones(1 << 22, device="cuda")
    hold = torch.empty(1 << 20, device="cuda")
    del hold  # a smaller block, which the next allocation takes
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x * 2
    del x
    keep += [torch.empty(1 << 20, device="cuda"), y]
    torch.cuda.synchronize()
print("done")
