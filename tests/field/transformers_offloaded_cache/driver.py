"""Three steps of a model of four layers whose cache of keys and values is kept on the CPU."""
import torch
import torch_alone  # before transformers
from transformers import LlamaConfig
from transformers.cache_utils import DynamicCache

config = LlamaConfig(num_hidden_layers=4, hidden_size=64, num_attention_heads=4)
cache = DynamicCache(config=config, offloading=True)
state = torch.ones(1, 4, 256, 16, device="cuda")
torch.cuda.synchronize()
for _ in range(3):
    for layer in range(4):
        keys, values = cache.update(state * 2, state * 3, layer)
        attended = keys * values
        del keys, values
torch.cuda.synchronize()
