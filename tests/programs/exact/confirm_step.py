"""Training steps of a small transformer with, on a second stream, an average of its embeddings that some rows are copied into; with `race` the
second stream does not wait for the step. Prints the loss, which the clean way must not change, and the time of a step.

Usage: confirm_step.py race|clean [STEPS [SECONDS BETWEEN THEM]]"""
import sys, time
import torch

race, steps = sys.argv[1] == "race", int(sys.argv[2]) if len(sys.argv) > 2 else 8
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
table = torch.nn.Parameter(torch.randn(5000, 256, device="cuda"))
optimiser = torch.optim.AdamW([*model.parameters(), table], lr=1e-3)
average = table.detach().clone()
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
words = torch.randint(0, 5000, (8, 128), device="cuda")
picked = torch.randint(0, 5000, (4096,), device="cuda")
torch.cuda.synchronize()
times = []
for step in range(steps):
    begun = time.perf_counter()
    optimiser.zero_grad()
    loss = model(table[words]).square().mean()
    loss.backward()
    optimiser.step()
    if not race:
        side.wait_stream(main)
    with torch.cuda.stream(side):
        average.index_copy_(0, picked, table.detach()[picked])
        average.lerp_(table.detach(), 0.01)
    if not race:
        main.wait_stream(side)
    torch.cuda.synchronize()
    times.append((time.perf_counter() - begun) * 1e3)
    time.sleep(pause)
print(f"loss {loss.item():.6f}")
print("STEP", " ".join(f"{t:.1f}" for t in times), file=sys.stderr)
