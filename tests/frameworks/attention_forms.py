"""Attention in its three forms (flash, memory-efficient, plain mathematics), forward and backward:
plain, causal, masked, and with heads that share keys and values.

PyTorch's table of operators leaves the form to PyTorch; here each is asked for by name. Results and
gradients must be those of the CPU within half precision: exit code 0. A form that PyTorch refuses
is named, and is an error.
"""

import itertools
import sys

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

BATCH, HEADS, LENGTH, WIDTH = 2, 4, 40, 32
FORMS = {
    "flash": (SDPBackend.FLASH_ATTENTION, ["plain", "causal", "grouped"]),
    "efficient": (SDPBackend.EFFICIENT_ATTENTION, ["plain", "causal", "masked"]),
    "math": (SDPBackend.MATH, ["plain", "causal", "masked"]),
}
TOLERANCE = 1e-2


def inputs(kind):
    generator = torch.Generator().manual_seed(3)
    shared = HEADS // 2 if kind == "grouped" else HEADS
    shapes = [(BATCH, heads, LENGTH, WIDTH) for heads in (HEADS, shared, shared, HEADS)]
    made = [torch.randn(shape, generator=generator).half() for shape in shapes]
    mask = torch.rand(LENGTH, LENGTH, generator=generator) < 0.8
    mask.fill_diagonal_(True)
    return made, mask


def attended(kind, device, form, backward):
    """The result, and the gradients of query, key and value if wanted."""
    (query, key, value, seed), mask = inputs(kind)
    # The CPU calculates in single precision what the GPU does in half.
    dtype = torch.float16 if device == "cuda" else torch.float32
    query, key, value = (part.to(device, dtype).requires_grad_(backward) for part in (query, key, value))
    options = {"is_causal": kind == "causal", "enable_gqa": kind == "grouped"}
    if kind == "masked":
        options["attn_mask"] = mask.to(device)
    with sdpa_kernel(form):
        out = functional.scaled_dot_product_attention(query, key, value, **options)
    found = [out]
    if backward:
        found += torch.autograd.grad(out, (query, key, value), seed.to(device, dtype))
    return [part.detach().float().cpu() for part in found]


def main():
    wrong = 0
    for name, (form, kinds) in FORMS.items():
        for kind, backward in itertools.product(kinds, (False, True)):
            said = "right"
            try:
                ours = attended(kind, "cuda", form, backward)
                theirs = attended(kind, "cpu", SDPBackend.MATH, backward)
                furthest = max(float((mine - other).abs().max()) for mine, other in zip(ours, theirs, strict=True))
                if not furthest <= TOLERANCE:
                    said = f"wrong by {furthest:.3g}"
            except RuntimeError as error:
                said = f"refused: {' '.join(str(error).split())[:200]}"
            wrong += said != "right"
            print(f"{name}, {kind}, {'backward' if backward else 'forward'}: {said}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
