"""Serving steps of a small transformer: a prompt is read at once (prefill), then one token after the
other is generated (decode) from a cache of keys and values.

The tokens must be those that the CPU generates: exit code 0. What else a server does (batches that
change, pages) is not here; `shared_tables.py` has what streams share.
"""

import sys

import torch
from torch import nn

import train_transformer

PROMPT, GENERATED, BATCH = 7, 6, 2


class Cache:
    """Keys and values of all tokens so far, in one block for each layer."""

    def __init__(self, layers, device):
        width = train_transformer.WIDTH // train_transformer.HEADS
        shape = (layers, 2, BATCH, train_transformer.HEADS, PROMPT + GENERATED, width)
        self.blocks, self.length = torch.zeros(shape, device=device), 0


def attended(layer, x, block, begin):
    """What a layer makes of the new tokens `x`, which begin at place `begin`."""
    end = begin + x.shape[1]
    parts = layer.parts(layer.before(x)).chunk(3, -1)
    query, key, value = (part.unflatten(-1, (train_transformer.HEADS, -1)).transpose(1, 2) for part in parts)
    block[0, :, :, begin:end].copy_(key)
    block[1, :, :, begin:end].copy_(value)
    seen = nn.functional.scaled_dot_product_attention(
        query, block[0, :, :, :end], block[1, :, :, :end], is_causal=begin == 0
    )
    x = x + layer.together(seen.transpose(1, 2).flatten(2))
    return x + layer.wide(layer.between(x))


def step(model, cache, tokens):
    """The next token of each sequence."""
    places = torch.arange(cache.length, cache.length + tokens.shape[1], device=tokens.device)
    x = model.tokens(tokens) + model.places(places)
    for layer, block in zip(model.layers, cache.blocks, strict=True):
        x = attended(layer, x, block, cache.length)
    cache.length += tokens.shape[1]
    return model.out(model.norm(x[:, -1:])).argmax(-1)


@torch.inference_mode()
def generated(device):
    torch.manual_seed(0)
    model = train_transformer.Model().to(device).eval()
    torch.manual_seed(1)
    tokens = torch.randint(train_transformer.TOKENS, (BATCH, PROMPT)).to(device)
    cache = Cache(len(model.layers), device)
    made = []
    for _ in range(GENERATED):
        tokens = step(model, cache, tokens)
        made.append(tokens)
    return torch.cat(made, 1).cpu()


if __name__ == "__main__":
    ours, theirs = generated("cuda"), generated("cpu")
    print(ours.tolist())
    sys.exit(0 if torch.equal(ours, theirs) else 1)
