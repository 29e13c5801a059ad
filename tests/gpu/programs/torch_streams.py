"""An operator on the result of itself: `torch_streams.py OPERATOR one|ordered|unordered`.

On one stream, or by turns on two that wait for each other. In `unordered` the second stream does
not wait for the first: one race, about the first result. Operators: Triton's product of matrices by
tensor descriptors, made on the host (`tiles`, `persistent`) or on the device (`device`); PyTorch's
attention by FlashAttention (`flash`), by cuDNN (`cudnn`) and by its own kernel (`efficient`), a
convolution (cuDNN), a product (cuBLAS), and a model by `torch.compile` (`compiled`; `pdl` with
programmatic launches).
"""

import sys

import torch

ROUNDS = 3


def values(*shape, scale=1.0):
    count = 1
    for size in shape:
        count *= size
    flat = (torch.arange(count, device="cuda") * 7 % 13 - 6).float() * (scale / 6)
    return flat.reshape(shape).to(torch.bfloat16)


# ---- Triton


def product(kind):
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor
    from triton_products import device_kernel, persistent_kernel, tiles_kernel

    rows, width, box = 1024, 512, (128, 128, 64)
    m, n, k = box
    weight = values(width, width, scale=1 / 32)
    tiles = triton.cdiv(rows, m) * triton.cdiv(width, n)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    triton.set_allocator(lambda size, *_: torch.empty(size, device="cuda", dtype=torch.int8))

    def run(x):
        to = torch.empty(rows, width, dtype=torch.bfloat16, device="cuda")
        sizes, few = (rows, width, width), (min(tiles, processors // 4),)
        if kind == "device":
            device_kernel[few](x, weight, to, *sizes, *box, num_warps=8)
            return to
        boxes = ((x, (m, k)), (weight, (n, k)), (to, (m, n)))
        maps = [TensorDescriptor.from_tensor(tensor, list(size)) for tensor, size in boxes]
        if kind == "tiles":
            grid = (triton.cdiv(rows, m), triton.cdiv(width, n))
            tiles_kernel[grid](*maps, width, *box, num_warps=8)
        else:
            persistent_kernel[few](*maps, *sizes, *box, num_warps=8)
        return to

    return run, values(rows, width)


# ---- PyTorch


def attention(backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    keys, of_keys = values(2, 8, 512, 64), values(2, 8, 512, 64, scale=2)

    def run(x):
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return scaled_dot_product_attention(x, keys, of_keys)

    return run, values(2, 8, 512, 64)


def convolution():
    weight = values(64, 64, 3, 3, scale=1 / 16).to(memory_format=torch.channels_last)
    x = values(8, 64, 56, 56).to(memory_format=torch.channels_last)
    return lambda x: torch.nn.functional.conv2d(x, weight, padding=1), x


def matmul():
    weight = values(2048, 2048, scale=1 / 64)
    return lambda x: x @ weight, values(1024, 2048)


def compiled(pdl):
    if pdl:
        import torch._inductor.config as inductor

        inductor.triton.enable_pdl = True
    first, second = values(512, 1024, scale=1 / 32), values(1024, 512, scale=1 / 32)

    @torch.compile
    def model(x):
        y = torch.nn.functional.gelu(x @ first)
        return torch.nn.functional.layer_norm(y @ second + x, (512,))

    return model, values(1024, 512)


OPERATORS = {
    **{kind: lambda kind=kind: product(kind) for kind in ("tiles", "persistent", "device")},
    "flash": lambda: attention("FLASH_ATTENTION"),
    "cudnn": lambda: attention("CUDNN_ATTENTION"),
    "efficient": lambda: attention("EFFICIENT_ATTENTION"),
    "convolution": convolution,
    "matmul": matmul,
    "compiled": lambda: compiled(False),
    "pdl": lambda: compiled(True),
}


@torch.no_grad()
def main():
    operator, how = sys.argv[1:3]
    run, x = OPERATORS[operator]()
    a = torch.cuda.Stream()
    b = torch.cuda.Stream() if how != "one" else a
    # Compiled, and libraries set up, on both streams; then nothing is under way.
    kept = []
    for stream in (a, b):
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            kept.append(run(run(x)))
        torch.cuda.synchronize()
    z = x
    for _ in range(ROUNDS):
        with torch.cuda.stream(a):
            y = run(z)
        if how == "ordered":
            b.wait_stream(a)
        with torch.cuda.stream(b):
            z = run(y)
        if b is not a:
            a.wait_stream(b)
        # No memory is used again while another stream may use it.
        kept += [y, z]
    torch.cuda.synchronize()
    bits = z.contiguous().view(torch.int16).long().cpu()
    print("done", int((bits * (torch.arange(bits.numel()) % 251 + 1).reshape(bits.shape)).sum()))


if __name__ == "__main__":
    main()
