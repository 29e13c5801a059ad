"""Clean: every way to hand a tensor to another stream and give it back in time. Prints a sum."""
import torch

torch.manual_seed(0)
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
total = torch.zeros((), device="cuda")

for _ in range(20):  # recorded: freed at once, given out again when the side stream is done
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x * 2
        x.record_stream(side)
    del x
    junk = torch.zeros(1 << 20, device="cuda")
    main.wait_stream(side)
    y.record_stream(main)
    total += y[0] + junk[0]
    del y, junk

for _ in range(20):  # waited for before the free
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x + 1
    main.wait_stream(side)
    total += y[0]
    del x
    side.wait_stream(main)  # y belongs to the side stream's pool and is read on this one
    del y
    junk = torch.zeros(1 << 20, device="cuda")

for _ in range(20):  # freed first, waited for before anything is allocated
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x + 1
    del x
    main.wait_stream(side)
    junk = torch.zeros(1 << 20, device="cuda")
    total += y[0] + junk[0]
    side.wait_stream(main)

for _ in range(20):  # the host waits
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        y = x + 1
    side.synchronize()
    del x
    junk = torch.zeros(1 << 20, device="cuda")
    total += y[0] + junk[0]
    main.synchronize()
print(f"sum {total.item():.0f}")
