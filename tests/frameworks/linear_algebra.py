"""Linear algebra and sparse products with PyTorch, against the CPU's: factors, solutions,
eigenvalues, singular values, alone and in batches, of two types (`all`: of four).
`race`: a factor is overwritten on another stream that does not wait for its factorisation."""

import sys

import torch

waits = "race" not in sys.argv[1:]
torch.manual_seed(7)
furthest, compared, wrong = 0.0, 0, []
TOLERANCES = {torch.float32: 2e-3, torch.complex64: 2e-3, torch.float64: 1e-9, torch.complex128: 1e-9}


def same(what, got, wanted):
    """Compares a result with the CPU's."""
    global furthest, compared
    got = got.to_dense() if got.layout != torch.strided else got
    wanted = wanted.to_dense() if wanted.layout != torch.strided else wanted
    got, compared = got.cpu(), compared + 1
    apart = float((got - wanted).abs().max() / (1 + wanted.abs().max())) if wanted.numel() else 0.0
    furthest = max(furthest, apart)
    if not apart <= TOLERANCES[wanted.dtype] or got.shape != wanted.shape:
        wrong.append(f"{what} {wanted.dtype} {tuple(wanted.shape)}: {apart:.1e} apart")


def dense(dtype, batch, n):
    general = torch.randn(*batch, n, n, dtype=dtype) + n * torch.eye(n, dtype=dtype)
    tall, right = torch.randn(*batch, n + 3, n, dtype=dtype), torch.randn(*batch, n, 2, dtype=dtype)
    positive = general @ general.mH
    g, t, r, p = (part.cuda() for part in (general, tall, right, positive))
    linalg = torch.linalg
    same("cholesky", linalg.cholesky(p), linalg.cholesky(positive))
    same("cholesky upper", linalg.cholesky(p, upper=True), linalg.cholesky(positive, upper=True))
    same("cholesky_solve", torch.cholesky_solve(r, linalg.cholesky(p)), linalg.solve(positive, right))
    same("cholesky_inverse", torch.cholesky_inverse(linalg.cholesky(p)), linalg.inv(positive))
    same("solve", linalg.solve(g, r), linalg.solve(general, right))
    same("inv", linalg.inv(g), linalg.inv(general))
    same("det", linalg.det(g), linalg.det(general))
    same("slogdet", linalg.slogdet(g)[1], linalg.slogdet(general)[1])
    same("solve_triangular", linalg.solve_triangular(g.tril(), r, upper=False),
         linalg.solve_triangular(general.tril(), right, upper=False))
    factors = linalg.lu_factor(g)
    for adjoint in (False, True):
        same("lu_solve", linalg.lu_solve(*factors, r, adjoint=adjoint), linalg.solve(general.mH if adjoint else general, right))
    for mode in ("reduced", "complete"):
        q, upper = linalg.qr(t, mode=mode)
        same("qr", q @ upper, tall)
        same("qr's Q", q.mH @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*batch, -1, -1))
    values, vectors = linalg.eigh(p)
    same("eigh", vectors @ (values.unsqueeze(-1) * vectors.mH), positive)
    same("eigvalsh", linalg.eigvalsh(p), linalg.eigvalsh(positive))
    for full in (False, True):
        u, s, v = linalg.svd(t, full_matrices=full)
        same("svd", u[..., :, :n] @ (s.unsqueeze(-1) * v), tall)
        same("svd's U", u.mH @ u, torch.eye(u.shape[-1], dtype=dtype).expand(*batch, -1, -1))
    for driver in ("gesvd", "gesvdj", "gesvda"):
        same(driver, linalg.svd(t, full_matrices=False, driver=driver)[1], linalg.svdvals(tall))
    same("svd wide", linalg.svdvals(t.mT.contiguous()), linalg.svdvals(tall))
    same("pinv", linalg.pinv(t), linalg.pinv(tall))
    same("norm", linalg.matrix_norm(t, ord=2), linalg.matrix_norm(tall, ord=2))
    same("lstsq", linalg.lstsq(t, t @ r).solution, right)
    if dtype.is_complex or not batch:
        values, vectors = linalg.eig(g)
        same("eig", g.to(values.dtype) @ vectors, (vectors * values.unsqueeze(-2)).cpu())
    if not batch:
        q, tau = torch.geqrf(t)
        other = torch.randn(n + 3, 4, dtype=dtype)
        whole = linalg.householder_product(q, tau)
        same("householder_product", whole.mH @ whole, torch.eye(n, dtype=dtype))
        same("ormqr", torch.ormqr(q, tau, torch.ormqr(q, tau, other.cuda()), transpose=True), other)


def sparse(dtype):
    keep = torch.rand(9, 7) < 0.4
    a = torch.randn(9, 7, dtype=dtype) * keep
    b, c, x = torch.randn(7, 5, dtype=dtype), torch.randn(9, 5, dtype=dtype), torch.randn(7, dtype=dtype)
    for name, of in (("COO", a.to_sparse()), ("CSR", a.to_sparse_csr())):
        d = of.cuda()
        same(f"{name} mm", d @ b.cuda(), a @ b)
        same(f"{name} mv", d @ x.cuda(), a @ x)
        same(f"{name} addmm", torch.addmm(c.cuda(), d, b.cuda(), beta=2, alpha=3), 2 * c + 3 * a @ b)
        other = (torch.randn(7, 6, dtype=dtype) * (torch.rand(7, 6) < 0.5))
        second = (other.to_sparse() if name == "COO" else other.to_sparse_csr()).cuda()
        same(f"{name} times sparse", torch.mm(d, second), a @ other)
    csr = a.to_sparse_csr().cuda()
    same("CSR sum", csr + csr, 2 * a)
    same("CSC mm", a.to_sparse_csc().cuda() @ b.cuda(), a @ b)
    same("sampled", torch.sparse.sampled_addmm(csr, c.cuda(), b.cuda().mT.contiguous(), beta=0.5), 0.5 * a + (c @ b.mT) * keep)
    lower = (torch.randn(6, 6, dtype=dtype).tril(-1) * 0.3 + 2 * torch.eye(6, dtype=dtype))
    right = torch.randn(6, 2, dtype=dtype)
    solved = torch.triangular_solve(right.cuda(), lower.to_sparse_csr().cuda(), upper=False)[0]
    same("CSR triangular", solved, torch.linalg.solve_triangular(lower, right, upper=False))


if waits:
    for dtype in TOLERANCES if "all" in sys.argv[1:] else (torch.float32, torch.complex128):
        for batch, n in (((), 6), ((3,), 4)):
            dense(dtype, batch, n)
        sparse(dtype)
    print(f"{compared} comparisons, {len(wrong)} wrong, furthest apart: {furthest:.1e}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)

matrix = torch.eye(64, device="cuda") * 4
torch.linalg.cholesky(matrix)  # The library's handle and workspace are there.
torch.cuda.synchronize()
with torch.cuda.stream(torch.cuda.Stream()):
    factor = torch.linalg.cholesky_ex(matrix).L
with torch.cuda.stream(torch.cuda.Stream()):
    factor.zero_()  # Nothing has waited for the factorisation.
torch.cuda.synchronize()
