//! Cholesky, LU and QR factors, and what is solved and made with them.

use super::handle::{SolverCall, SolverResult, SolverStatus, info, matrix, part, put, sizes, work};
use crate::numerics::algebra::cholesky::{Cholesky, CholeskyOp};
use crate::numerics::algebra::factor::{Factor, FactorOp};
use crate::numerics::algebra::reflectors::Reflectors;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

/// Elements of a workspace: a panel of columns, as blocked algorithms have it.
pub(super) fn panel(rows: i64, columns: i64) -> i64 {
    32 * rows.max(columns).max(1)
}

/// One matrix of Cholesky's factors; `op` gets a right side, if there is one.
pub(super) fn cholesky(
    call: &SolverCall<'_>,
    op: CholeskyOp,
    uplo: i64,
    a: Matrix,
    infos: Matrix,
    batch: i64,
    work: (u64, u64),
) -> SolverResult {
    if batch < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let compute = a.kind.compute();
    let cholesky = Cholesky { op, a, part: part(uplo)?, info: infos, batch: batch as usize, compute };
    call.enqueue(cholesky.blocks(), work, &cholesky)
}

fn potrf_size(_: &mut SolverCall<'_>, _kind: Type, uplo: i64, n: i64, _a: u64, _lda: i64, to: u64) -> SolverResult {
    part(uplo)?;
    sizes(&[n])?;
    put(to, panel(n, n))
}

fn potrf(
    call: &mut SolverCall<'_>,
    kind: Type,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    buffer: u64,
    length: i64,
    to: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, panel(n, n))?;
    cholesky(call, CholeskyOp::Factor, uplo, matrix(a, kind, n, n, lda)?, info(to), 1, work)
}

fn potri(
    call: &mut SolverCall<'_>,
    kind: Type,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    buffer: u64,
    length: i64,
    to: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, panel(n, n))?;
    cholesky(call, CholeskyOp::Inverse, uplo, matrix(a, kind, n, n, lda)?, info(to), 1, work)
}

fn potrs(
    call: &mut SolverCall<'_>,
    kind: Type,
    uplo: i64,
    n: i64,
    count: i64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    to: u64,
) -> SolverResult {
    let b = matrix(b, kind, n, count, ldb)?;
    cholesky(call, CholeskyOp::Solve(b), uplo, matrix(a, kind, n, n, lda)?, info(to), 1, (0, 0))
}

fn potrf_batched(
    call: &mut SolverCall<'_>,
    kind: Type,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    to: u64,
    batch: i64,
) -> SolverResult {
    let a = matrix(a, kind, n, n, lda)?.pointers();
    cholesky(call, CholeskyOp::Factor, uplo, a, info(to), batch, (0, 0))
}

/// One right side for each matrix, as in NVIDIA's library.
fn potrs_batched(
    call: &mut SolverCall<'_>,
    kind: Type,
    uplo: i64,
    n: i64,
    count: i64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    to: u64,
    batch: i64,
) -> SolverResult {
    if count != 1 {
        return Err(call.not_simulated("several right sides (nor does cuSOLVER take them)"));
    }
    let (a, b) = (matrix(a, kind, n, n, lda)?.pointers(), matrix(b, kind, n, count, ldb)?.pointers());
    cholesky(call, CholeskyOp::Solve(b), uplo, a, info(to).batched(0), batch, (0, 0))
}

/// LU and QR factors of one matrix, and solutions with the former.
pub(super) fn factor(
    call: &SolverCall<'_>,
    op: FactorOp,
    a: Matrix,
    other: Option<Matrix>,
    (pivots, pivot_type): (u64, Type),
    info: u64,
    work: (u64, u64),
) -> SolverResult {
    let factor = Factor { op, a, other, pivots, pivot_type, info, batch: 1, compute: a.kind.compute() };
    call.enqueue(factor.blocks(), work, &factor)
}

fn getrf_size(_: &mut SolverCall<'_>, _kind: Type, m: i64, n: i64, _a: u64, _lda: i64, to: u64) -> SolverResult {
    sizes(&[m, n])?;
    put(to, panel(m, n))
}

fn getrf(
    call: &mut SolverCall<'_>,
    kind: Type,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    buffer: u64,
    pivots: u64,
    info: u64,
) -> SolverResult {
    let size = panel(m, n);
    let work = work(buffer, kind, size, size)?;
    factor(call, FactorOp::Lu, matrix(a, kind, m, n, lda)?, None, (pivots, Type::I32), info, work)
}

fn getrs(
    call: &mut SolverCall<'_>,
    kind: Type,
    trans: i64,
    n: i64,
    count: i64,
    a: u64,
    lda: i64,
    pivots: u64,
    b: u64,
    ldb: i64,
    info: u64,
) -> SolverResult {
    solve(call, trans, matrix(a, kind, n, n, lda)?, (pivots, Type::I32), matrix(b, kind, n, count, ldb)?, info)
}

/// Solves with LU factors.
pub(super) fn solve(
    call: &SolverCall<'_>,
    trans: i64,
    a: Matrix,
    pivots: (u64, Type),
    b: Matrix,
    info: u64,
) -> SolverResult {
    if !(0..=2).contains(&trans) {
        return Err(SolverStatus::INVALID_VALUE);
    }
    factor(call, FactorOp::LuSolve(trans as i32), a, Some(b), pivots, info, (0, 0))
}

fn geqrf(
    call: &mut SolverCall<'_>,
    kind: Type,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    tau: u64,
    buffer: u64,
    length: i64,
    info: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, panel(m, n))?;
    let tau = Matrix::new(tau, kind, m.min(n), 1, m.min(n).max(1));
    factor(call, FactorOp::Qr, matrix(a, kind, m, n, lda)?, Some(tau), (0, Type::I32), info, work)
}

fn orgqr_size(
    _: &mut SolverCall<'_>,
    _kind: Type,
    m: i64,
    n: i64,
    k: i64,
    _a: u64,
    _lda: i64,
    _tau: u64,
    to: u64,
) -> SolverResult {
    if n > m || k > n || k < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    sizes(&[m, n])?;
    put(to, panel(m, n))
}

fn orgqr(
    call: &mut SolverCall<'_>,
    kind: Type,
    m: i64,
    n: i64,
    k: i64,
    a: u64,
    lda: i64,
    tau: u64,
    buffer: u64,
    length: i64,
    to: u64,
) -> SolverResult {
    if n > m || k > n || k < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let work = work(buffer, kind, length, panel(m, n))?;
    let (a, tau) = (matrix(a, kind, m, n, lda)?, Matrix::new(tau, kind, k, 1, k.max(1)));
    let call_of = Reflectors { a, tau, target: None, adjoint: false, info: info(to), compute: kind.compute() };
    call.enqueue(call_of.blocks(), work, &call_of)
}

fn ormqr_size(
    _: &mut SolverCall<'_>,
    _kind: Type,
    _side: i64,
    _trans: i64,
    m: i64,
    n: i64,
    k: i64,
    _a: u64,
    _lda: i64,
    _tau: u64,
    _c: u64,
    _ldc: i64,
    to: u64,
) -> SolverResult {
    sizes(&[m, n, k])?;
    put(to, panel(m, n))
}

fn ormqr(
    call: &mut SolverCall<'_>,
    kind: Type,
    side: i64,
    trans: i64,
    m: i64,
    n: i64,
    k: i64,
    a: u64,
    lda: i64,
    tau: u64,
    c: u64,
    ldc: i64,
    buffer: u64,
    length: i64,
    to: u64,
) -> SolverResult {
    let order = if side == 0 { m } else { n };
    let is_real = kind.real() == kind;
    // The transpose of a complex Q is not among LAPACK's operations.
    if !matches!(side, 0 | 1) || k < 0 || k > order || !(matches!(trans, 0 | 2) || is_real && trans == 1) {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let work = work(buffer, kind, length, panel(m, n))?;
    let target = Some((matrix(c, kind, m, n, ldc)?, side == 0));
    let (a, tau) = (matrix(a, kind, order, k, lda)?, Matrix::new(tau, kind, k, 1, k.max(1)));
    let call_of = Reflectors { a, tau, target, adjoint: trans != 0, info: info(to), compute: kind.compute() };
    call.enqueue(call_of.blocks(), work, &call_of)
}

handled! { in cusolver; potrf_size; (uplo: I, n: I, a: P, lda: I, to: P)
    cusolverDnSpotrf_bufferSize = F32, cusolverDnDpotrf_bufferSize = F64, cusolverDnCpotrf_bufferSize = C32,
    cusolverDnZpotrf_bufferSize = C64, cusolverDnSpotri_bufferSize = F32, cusolverDnDpotri_bufferSize = F64,
    cusolverDnCpotri_bufferSize = C32, cusolverDnZpotri_bufferSize = C64,
}
handled! { in cusolver; potrf; (uplo: I, n: I, a: P, lda: I, buffer: P, length: I, to: P)
    cusolverDnSpotrf = F32, cusolverDnDpotrf = F64, cusolverDnCpotrf = C32, cusolverDnZpotrf = C64,
}
handled! { in cusolver; potri; (uplo: I, n: I, a: P, lda: I, buffer: P, length: I, to: P)
    cusolverDnSpotri = F32, cusolverDnDpotri = F64, cusolverDnCpotri = C32, cusolverDnZpotri = C64,
}
handled! { in cusolver; potrs; (uplo: I, n: I, count: I, a: P, lda: I, b: P, ldb: I, to: P)
    cusolverDnSpotrs = F32, cusolverDnDpotrs = F64, cusolverDnCpotrs = C32, cusolverDnZpotrs = C64,
}
handled! { in cusolver; potrf_batched; (uplo: I, n: I, a: P, lda: I, to: P, batch: I)
    cusolverDnSpotrfBatched = F32, cusolverDnDpotrfBatched = F64, cusolverDnCpotrfBatched = C32,
    cusolverDnZpotrfBatched = C64,
}
handled! { in cusolver; potrs_batched; (uplo: I, n: I, count: I, a: P, lda: I, b: P, ldb: I, to: P, batch: I)
    cusolverDnSpotrsBatched = F32, cusolverDnDpotrsBatched = F64, cusolverDnCpotrsBatched = C32,
    cusolverDnZpotrsBatched = C64,
}
handled! { in cusolver; getrf_size; (m: I, n: I, a: P, lda: I, to: P)
    cusolverDnSgetrf_bufferSize = F32, cusolverDnDgetrf_bufferSize = F64, cusolverDnCgetrf_bufferSize = C32,
    cusolverDnZgetrf_bufferSize = C64, cusolverDnSgeqrf_bufferSize = F32, cusolverDnDgeqrf_bufferSize = F64,
    cusolverDnCgeqrf_bufferSize = C32, cusolverDnZgeqrf_bufferSize = C64,
}
handled! { in cusolver; getrf; (m: I, n: I, a: P, lda: I, buffer: P, pivots: P, info: P)
    cusolverDnSgetrf = F32, cusolverDnDgetrf = F64, cusolverDnCgetrf = C32, cusolverDnZgetrf = C64,
}
handled! { in cusolver; getrs; (trans: I, n: I, count: I, a: P, lda: I, pivots: P, b: P, ldb: I, info: P)
    cusolverDnSgetrs = F32, cusolverDnDgetrs = F64, cusolverDnCgetrs = C32, cusolverDnZgetrs = C64,
}
handled! { in cusolver; geqrf; (m: I, n: I, a: P, lda: I, tau: P, buffer: P, length: I, info: P)
    cusolverDnSgeqrf = F32, cusolverDnDgeqrf = F64, cusolverDnCgeqrf = C32, cusolverDnZgeqrf = C64,
}
handled! { in cusolver; orgqr_size; (m: I, n: I, k: I, a: P, lda: I, tau: P, to: P)
    cusolverDnSorgqr_bufferSize = F32, cusolverDnDorgqr_bufferSize = F64, cusolverDnCungqr_bufferSize = C32,
    cusolverDnZungqr_bufferSize = C64,
}
handled! { in cusolver; orgqr; (m: I, n: I, k: I, a: P, lda: I, tau: P, buffer: P, length: I, to: P)
    cusolverDnSorgqr = F32, cusolverDnDorgqr = F64, cusolverDnCungqr = C32, cusolverDnZungqr = C64,
}
handled! { in cusolver; ormqr_size;
    (side: I, trans: I, m: I, n: I, k: I, a: P, lda: I, tau: P, c: P, ldc: I, to: P)
    cusolverDnSormqr_bufferSize = F32, cusolverDnDormqr_bufferSize = F64, cusolverDnCunmqr_bufferSize = C32,
    cusolverDnZunmqr_bufferSize = C64,
}
handled! { in cusolver; ormqr;
    (side: I, trans: I, m: I, n: I, k: I, a: P, lda: I, tau: P, c: P, ldc: I, buffer: P, length: I, to: P)
    cusolverDnSormqr = F32, cusolverDnDormqr = F64, cusolverDnCunmqr = C32, cusolverDnZunmqr = C64,
}
