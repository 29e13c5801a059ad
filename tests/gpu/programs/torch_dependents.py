"""PyTorch's products of matrices, eager, compiled, and compiled with programmatic launches.

cuBLAS launches its kernels for 9.0 as dependents, Inductor does with `triton.enable_pdl`; all of
them wait. Nothing races. `torch_dependents.py eager|compiled|pdl`.
"""

import sys

import torch


def step(x, first, second):
    y = torch.nn.functional.gelu(x @ first)
    return torch.nn.functional.layer_norm(y @ second, (x.shape[1],)) + x


def main():
    how = sys.argv[1]
    if how == "pdl":
        import torch._inductor.config as inductor

        inductor.triton.enable_pdl = True
    run = step if how == "eager" else torch.compile(step)
    torch.manual_seed(0)
    x = torch.randn(256, 512, dtype=torch.bfloat16, device="cuda")
    first = torch.randn(512, 1024, dtype=torch.bfloat16, device="cuda") / 32
    second = torch.randn(1024, 512, dtype=torch.bfloat16, device="cuda") / 32
    with torch.no_grad():
        for _ in range(8):
            x = run(x, first, second)
    torch.cuda.synchronize()
    print("done", bool(torch.isfinite(x).all()))


main()
