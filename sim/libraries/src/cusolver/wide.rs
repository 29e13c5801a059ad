//! The functions with 64-bit integers, whose types of elements are arguments: factors, and what
//! is solved with them. `wide_values` has the others.

use super::factors::{cholesky, factor, panel, solve};
use super::handle::{SolverCall, SolverResult, SolverStatus, info, matrix, part, sizes};
use crate::numerics::algebra::cholesky::CholeskyOp;
use crate::numerics::algebra::factor::FactorOp;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

/// Hands the bytes of both workspaces out: that on the host has none.
pub(super) fn put_bytes(kind: Type, elements: i64, device: u64, host: u64) -> SolverResult {
    if device == 0 || host == 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    // SAFETY: the C interface: non-null output pointers are writable.
    unsafe {
        (device as *mut usize).write(elements as usize * usize::from(kind.bytes()));
        (host as *mut usize).write(0);
    }
    Ok(())
}

/// The workspace, which must have at least as many elements.
pub(super) fn work(at: u64, bytes: u64, kind: Type, needed: i64) -> Result<(u64, u64), SolverStatus> {
    if at == 0 || bytes < needed as u64 * u64::from(kind.bytes()) {
        return Err(SolverStatus::INVALID_VALUE);
    }
    Ok((at, bytes))
}

impl SolverCall<'_> {
    /// Types that must be the same.
    pub(crate) fn same(&self, kind: i64, others: &[i64]) -> Result<Type, SolverStatus> {
        match others.iter().find(|&&other| other != kind) {
            None => self.kind(kind),
            Some(other) => Err(self.not_simulated(&format!("cudaDataType {kind} with {other}"))),
        }
    }

    /// A type, and that of its absolute values.
    pub(crate) fn with_real(&self, kind: i64, real: i64) -> Result<Type, SolverStatus> {
        let (kind, found) = (self.kind(kind)?, self.kind(real)?);
        if found == kind.real() { Ok(kind) } else { Err(self.not_simulated(&format!("cudaDataType {real} of values"))) }
    }
}

fn potrf_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    uplo: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    part(uplo)?;
    sizes(&[n])?;
    put_bytes(kind, panel(n, n), device, host)
}

fn potrf(
    call: &mut SolverCall<'_>,
    _params: u64,
    uplo: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    let work = work(buffer, bytes, kind, panel(n, n))?;
    cholesky(call, CholeskyOp::Factor, uplo, matrix(a, kind, n, n, lda)?, info(to), 1, work)
}

fn potrs(
    call: &mut SolverCall<'_>,
    _params: u64,
    uplo: i64,
    n: i64,
    count: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_b: i64,
    b: u64,
    ldb: i64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[kind_b])?;
    let b = matrix(b, kind, n, count, ldb)?;
    cholesky(call, CholeskyOp::Solve(b), uplo, matrix(a, kind, n, n, lda)?, info(to), 1, (0, 0))
}

fn getrf_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    m: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    sizes(&[m, n])?;
    put_bytes(kind, panel(m, n), device, host)
}

fn getrf(
    call: &mut SolverCall<'_>,
    _params: u64,
    m: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    pivots: u64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    let work = work(buffer, bytes, kind, panel(m, n))?;
    factor(call, FactorOp::Lu, matrix(a, kind, m, n, lda)?, None, (pivots, Type::I64), to, work)
}

fn getrs(
    call: &mut SolverCall<'_>,
    _params: u64,
    trans: i64,
    n: i64,
    count: i64,
    kind: i64,
    a: u64,
    lda: i64,
    pivots: u64,
    kind_b: i64,
    b: u64,
    ldb: i64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[kind_b])?;
    let (a, b) = (matrix(a, kind, n, n, lda)?, matrix(b, kind, n, count, ldb)?);
    solve(call, trans, a, (pivots, Type::I64), b, to)
}

fn geqrf_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    m: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    kind_tau: i64,
    _tau: u64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    let kind = call.same(kind, &[kind_tau, compute])?;
    sizes(&[m, n])?;
    put_bytes(kind, panel(m, n), device, host)
}

fn geqrf(
    call: &mut SolverCall<'_>,
    _params: u64,
    m: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_tau: i64,
    tau: u64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[kind_tau, compute])?;
    let work = work(buffer, bytes, kind, panel(m, n))?;
    let tau = Matrix::new(tau, kind, m.min(n), 1, m.min(n).max(1));
    factor(call, FactorOp::Qr, matrix(a, kind, m, n, lda)?, Some(tau), (0, Type::I32), to, work)
}

handled! { in cusolver; potrf_size;
    (params: P, uplo: I, n: L, kind: I, a: P, lda: L, compute: I, device: P, host: P)
    cusolverDnXpotrf_bufferSize
}
handled! { in cusolver; potrf;
    (params: P, uplo: I, n: L, kind: I, a: P, lda: L, compute: I, buffer: P, bytes: B, host: P, host_bytes: B, to: P)
    cusolverDnXpotrf
}
handled! { in cusolver; potrs;
    (params: P, uplo: I, n: L, count: L, kind: I, a: P, lda: L, kind_b: I, b: P, ldb: L, to: P) cusolverDnXpotrs
}
handled! { in cusolver; getrf_size;
    (params: P, m: L, n: L, kind: I, a: P, lda: L, compute: I, device: P, host: P) cusolverDnXgetrf_bufferSize
}
handled! { in cusolver; getrf;
    (params: P, m: L, n: L, kind: I, a: P, lda: L, pivots: P, compute: I, buffer: P, bytes: B, host: P,
        host_bytes: B, to: P)
    cusolverDnXgetrf
}
handled! { in cusolver; getrs;
    (params: P, trans: I, n: L, count: L, kind: I, a: P, lda: L, pivots: P, kind_b: I, b: P, ldb: L, to: P)
    cusolverDnXgetrs
}
handled! { in cusolver; geqrf_size;
    (params: P, m: L, n: L, kind: I, a: P, lda: L, kind_tau: I, tau: P, compute: I, device: P, host: P)
    cusolverDnXgeqrf_bufferSize
}
handled! { in cusolver; geqrf;
    (params: P, m: L, n: L, kind: I, a: P, lda: L, kind_tau: I, tau: P, compute: I, buffer: P, bytes: B, host: P,
        host_bytes: B, to: P)
    cusolverDnXgeqrf
}
