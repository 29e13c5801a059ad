"""A small transformer that learns to predict the next token."""

import torch
from torch import nn

import training

TOKENS, WIDTH, HEADS, LENGTH = 64, 32, 2, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.together = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        parts = self.parts(self.before(x)).chunk(3, -1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts]
        seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.together(seen.transpose(1, 2).flatten(2))
        return x + self.wide(self.between(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(Layer(), Layer())
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.out(self.norm(self.layers(self.tokens(tokens) + self.places(places))))


def batch():
    return (torch.randint(TOKENS, (4, LENGTH + 1)),)


def loss_of(model, tokens):
    guesses = model(tokens[:, :-1])
    return nn.functional.cross_entropy(guesses.flatten(0, 1), tokens[:, 1:].flatten())


if __name__ == "__main__":
    training.main(Model, loss_of, batch)
