"""Training steps of a transformer: attention, layer norm, GELU, dropout, cross entropy, AdamW, mixed precision in the second half."""
import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.1, activation="gelu")
body = torch.nn.TransformerEncoder(layer, 4).cuda()
words, head = torch.nn.Embedding(1000, 256).cuda(), torch.nn.Linear(256, 1000).cuda()
params = [*body.parameters(), *words.parameters(), *head.parameters()]
mask = torch.nn.Transformer.generate_square_subsequent_mask(100, device="cuda")
tokens = torch.randint(0, 1000, (8, 101), device="cuda")
for foreach, low in ((False, False), (True, False), (True, True)):
    optimiser = torch.optim.AdamW(params, lr=1e-4, foreach=foreach)
    for _ in range(2):
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=low):
            out = head(body(words(tokens[:, :-1]), mask=mask))
            loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimiser.step()
torch.cuda.synchronize()
