"""Elementwise, reduction, copy, index and matmul operators of PyTorch over several shapes, strides and types."""
import torch

torch.manual_seed(0)
dev = "cuda"


def f32(*shape):
    return torch.randn(*shape, device=dev)


def elementwise():
    for n in (1, 7, 1000, 1 << 16, 123457):
        a, b, c = f32(n), f32(n), f32(n)
        for op in (torch.add, torch.mul, torch.sub, torch.div, torch.maximum, torch.atan2):
            op(a, b)
        for op in (torch.exp, torch.relu, torch.sigmoid, torch.tanh, torch.abs, torch.neg, torch.sqrt, torch.isnan):
            op(a)
        torch.where(a > 0, b, c), torch.addcmul(a, b, c), torch.lerp(a, b, 0.3), a.clamp(-1, 1), a.to(torch.bfloat16)
        a.add_(b), a.zero_(), a.fill_(2.0), torch.nn.functional.gelu(a)
        (a.half() + b.half()), (a.double() * 2), (a.int() + 1), (a > b)
    a, b = f32(33, 65), f32(65)
    a + b, a.t() + f32(65, 33), a[::2, 1::3] * 2, a[:, :1] + b, f32(4, 1, 9, 1) + f32(1, 5, 1, 7), a.t().contiguous()
    torch.rand(1000, device=dev), torch.randn(1000, device=dev), torch.dropout(a, 0.5, True), torch.arange(100, device=dev)


def reductions():
    for shape in ((1000,), (64, 1000), (1000, 64), (3, 5, 7, 11), (1 << 18,)):
        a = f32(*shape)
        for op in (torch.sum, torch.mean, torch.amax, torch.prod, torch.norm, torch.argmax, torch.var, torch.logsumexp):
            op(a) if op is not torch.logsumexp else op(a, 0)
        for dim in range(a.dim()):
            a.sum(dim), a.max(dim), a.softmax(dim), a.log_softmax(dim), a.cumsum(dim), a.std(dim)
    torch.nn.functional.layer_norm(f32(64, 512), (512,)), torch.nn.functional.group_norm(f32(4, 32, 9, 9), 8)
    f32(100, 100).bool().any(), torch.allclose(f32(10), f32(10))


def copies():
    a = f32(32, 48, 20)
    a.permute(2, 0, 1).contiguous(), a.transpose(1, 2).contiguous(), torch.cat([a, a, a], 1), torch.cat([a, a[:, :5]], 1)
    torch.stack([a[0], a[1]]), a.flip(0), a.roll(3, 1), a.repeat(2, 1, 1), torch.nn.functional.pad(a, (1, 2)), a.clone()
    a.cpu().to(dev), a[:, ::2].clone(), a.half().float(), torch.tril(a[0]), a.expand(32, 48, 20).reshape(-1)


def indexing():
    a, i = f32(1000, 64), torch.randint(0, 1000, (300,), device=dev)
    a[i], a.index_select(0, i), torch.gather(a, 0, i[:64].view(1, -1)), torch.nn.functional.embedding(i, a)
    a.clone().index_add_(0, i, f32(300, 64)), a.clone().scatter_(0, i[:64].view(1, -1), 1.0), a[a > 0]
    torch.sort(a, 1), torch.topk(a, 5, 1), torch.nonzero(a[:10] > 0), torch.unique(i), torch.bincount(i), torch.cumsum(i, 0)
    torch.nn.functional.one_hot(i % 10, 10), torch.searchsorted(a[0].sort()[0], a[1]), torch.histc(a, 10)


def matmuls():
    for t in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for m, n, k in ((64, 64, 64), (128, 256, 512), (1000, 30, 77), (1, 512, 512), (333, 1, 100)):
            a, b = f32(m, k).to(t), f32(k, n).to(t)
            a @ b, a @ b.t().contiguous().t(), torch.addmm(f32(n).to(t), a, b)
        torch.bmm(f32(12, 33, 64).to(t), f32(12, 64, 20).to(t)), f32(100, 64).to(t) @ f32(64).to(t)
    torch.nn.functional.linear(f32(8, 128, 256), f32(512, 256), f32(512)), torch.einsum("bij,bjk->bik", f32(4, 5, 6), f32(4, 6, 7))
    q = f32(2, 8, 100, 64).half()
    torch.nn.functional.scaled_dot_product_attention(q, q, q), torch.dot(f32(1000), f32(1000))


for part in (elementwise, reductions, copies, indexing, matmuls):
    part()
torch.cuda.synchronize()
