//! Eigenvalues of symmetric and Hermitian matrices.

use super::handle::{SolverCall, SolverResult, SolverStatus, info, matrix, part, put, sizes, vectors, work};
use crate::numerics::algebra::eigen::Symmetric;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

/// Elements of a workspace.
pub(super) fn size(n: i64) -> i64 {
    1 + 6 * n + 2 * n * n
}

/// Enqueues a call.
pub(super) fn symmetric(
    call: &SolverCall<'_>,
    (jobz, uplo): (i64, i64),
    a: Matrix,
    values: u64,
    infos: u64,
    batch: i64,
    work: (u64, u64),
) -> SolverResult {
    let n = a.size[0] as i64;
    if batch < 0 || values == 0 && n > 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let symmetric = Symmetric {
        a,
        part: part(uplo)?,
        vectors: vectors(jobz)?,
        values: Matrix::new(values, a.kind.real(), n, 1, n.max(1)).batched(n),
        info: info(infos),
        batch: batch as usize,
    };
    call.enqueue(symmetric.blocks(), work, &symmetric)
}

fn syevd_size(
    _: &mut SolverCall<'_>,
    _kind: Type,
    _jobz: i64,
    uplo: i64,
    n: i64,
    _a: u64,
    _lda: i64,
    _values: u64,
    to: u64,
) -> SolverResult {
    part(uplo)?;
    sizes(&[n])?;
    put(to, size(n))
}

fn syevj_size(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    to: u64,
    _params: u64,
) -> SolverResult {
    syevd_size(call, kind, jobz, uplo, n, a, lda, values, to)
}

fn syevj_batched_size(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    to: u64,
    _params: u64,
    _batch: i64,
) -> SolverResult {
    syevd_size(call, kind, jobz, uplo, n, a, lda, values, to)
}

fn syevd(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    buffer: u64,
    length: i64,
    to: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, size(n))?;
    symmetric(call, (jobz, uplo), matrix(a, kind, n, n, lda)?, values, to, 1, work)
}

fn syevj(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    buffer: u64,
    length: i64,
    to: u64,
    _params: u64,
) -> SolverResult {
    syevd(call, kind, jobz, uplo, n, a, lda, values, buffer, length, to)
}

fn syevj_batched(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    uplo: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    buffer: u64,
    length: i64,
    to: u64,
    _params: u64,
    batch: i64,
) -> SolverResult {
    let work = work(buffer, kind, length, size(n))?;
    symmetric(call, (jobz, uplo), matrix(a, kind, n, n, lda)?.batched(lda * n), values, to, batch, work)
}

handled! { in cusolver; syevd_size; (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, to: P)
    cusolverDnSsyevd_bufferSize = F32, cusolverDnDsyevd_bufferSize = F64, cusolverDnCheevd_bufferSize = C32,
    cusolverDnZheevd_bufferSize = C64,
}
handled! { in cusolver; syevj_size; (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, to: P, params: P)
    cusolverDnSsyevj_bufferSize = F32, cusolverDnDsyevj_bufferSize = F64, cusolverDnCheevj_bufferSize = C32,
    cusolverDnZheevj_bufferSize = C64,
}
handled! { in cusolver; syevj_batched_size;
    (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, to: P, params: P, batch: I)
    cusolverDnSsyevjBatched_bufferSize = F32, cusolverDnDsyevjBatched_bufferSize = F64,
    cusolverDnCheevjBatched_bufferSize = C32, cusolverDnZheevjBatched_bufferSize = C64,
}
handled! { in cusolver; syevd;
    (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, buffer: P, length: I, to: P)
    cusolverDnSsyevd = F32, cusolverDnDsyevd = F64, cusolverDnCheevd = C32, cusolverDnZheevd = C64,
}
handled! { in cusolver; syevj;
    (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, buffer: P, length: I, to: P, params: P)
    cusolverDnSsyevj = F32, cusolverDnDsyevj = F64, cusolverDnCheevj = C32, cusolverDnZheevj = C64,
}
handled! { in cusolver; syevj_batched;
    (jobz: I, uplo: I, n: I, a: P, lda: I, values: P, buffer: P, length: I, to: P, params: P, batch: I)
    cusolverDnSsyevjBatched = F32, cusolverDnDsyevjBatched = F64, cusolverDnCheevjBatched = C32,
    cusolverDnZheevjBatched = C64,
}
