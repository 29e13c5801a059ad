# expect: clean
# pair: none
# needs: transparency
# why: an ordinary training loop on the default stream; output and exit code must be those of a run without StreamSan.
import torch

torch.manual_seed(7)
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Dropout(0.1), torch.nn.Linear(512, 10)
).cuda()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
source = torch.utils.data.TensorDataset(torch.randn(2048, 256), torch.randint(0, 10, (2048,)))
loader = torch.utils.data.DataLoader(source, batch_size=128, shuffle=True, pin_memory=True)
for epoch in range(3):
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print("epoch", epoch, "loss", f"{loss.item():.3f}")
print("cpu", f"{sum(p.detach().abs().sum().item() for p in model.parameters()):.1f}")
