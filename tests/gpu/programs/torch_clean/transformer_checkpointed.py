"""Clean: transformer layers in bfloat16 with activation checkpointing, foreach AdamW, gradient clipping. Prints the loss."""
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
                             for _ in range(4)).cuda()
optimiser = torch.optim.AdamW(layers.parameters(), lr=1e-3, foreach=True)
x = torch.randn(8, 64, 128, device="cuda")
for _ in range(6):
    optimiser.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        h = x
        for layer in layers:
            h = checkpoint(layer, h, use_reentrant=False)
        loss = (h.float() - x.roll(1, 0)).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(layers.parameters(), 1.0, foreach=True)
    optimiser.step()
print(f"loss {loss.item():.2f}")
