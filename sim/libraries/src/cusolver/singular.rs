//! Singular values.

use super::handle::{SolverCall, SolverResult, SolverStatus, info, matrix, put, sizes, vectors, work};
use crate::numerics::algebra::singular::Singular;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

/// Elements of a workspace.
pub(super) fn size(m: i64, n: i64) -> i64 {
    let (long, short) = (m.max(n), m.min(n));
    (4 * short * short + 32 * long + 7 * short).max(1)
}

/// Where vectors go: the address, what lies between columns, and between matrices of a batch.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub at: u64,
    pub ld: i64,
    pub stride: i64,
}

impl Target {
    pub(super) fn new(at: u64, ld: i64) -> Target {
        Target { at, ld, stride: 0 }
    }
}

/// The matrix of a `jobu` or `jobvt`: all vectors, as many as there are values, over A, none.
fn wanted(
    job: u8,
    a: Matrix,
    place: Target,
    rows: i64,
    columns: i64,
    most: [i64; 2],
) -> Result<Option<Matrix>, SolverStatus> {
    let [all_rows, all_columns] = most;
    match job {
        b'A' => matrix(place.at, a.kind, all_rows, all_columns, place.ld).map(Some),
        b'S' => matrix(place.at, a.kind, rows, columns, place.ld).map(Some),
        b'O' => Ok(Some(Matrix { size: [rows as usize, columns as usize], ..a })),
        b'N' => Ok(None),
        _ => Err(SolverStatus::INVALID_VALUE),
    }
}

/// `A = U S V^H` with letters for what is wanted.
pub(super) fn by_letters(
    call: &SolverCall<'_>,
    [jobu, jobvt]: [u8; 2],
    a: Matrix,
    values: u64,
    [u, vt]: [Target; 2],
    infos: u64,
    work: (u64, u64),
) -> SolverResult {
    let [m, n] = a.size.map(|side| side as i64);
    let k = m.min(n);
    // As in NVIDIA's library.
    if m < n || [jobu, jobvt] == [b'O', b'O'] {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let singular = Singular {
        a,
        keeps: false,
        values: Matrix::new(values, a.kind.real(), k, 1, k.max(1)),
        u: wanted(jobu, a, u, m, k, [m, m])?,
        v: wanted(jobvt, a, vt, k, n, [n, n])?,
        adjoint: true,
        info: info(infos),
        batch: 1,
        residuals: 0,
    };
    call.enqueue(singular.blocks(), work, &singular)
}

/// `A = U S V^H` with V, all vectors or as many as there are values.
pub(super) fn by_mode(
    call: &SolverCall<'_>,
    (jobz, economic): (i64, bool),
    a: Matrix,
    values: u64,
    [u, v]: [Target; 2],
    infos: u64,
    batch: i64,
    work: (u64, u64),
) -> SolverResult {
    let [m, n] = a.size.map(|side| side as i64);
    let k = m.min(n);
    if batch < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let place = |place: Target, rows: i64| -> Result<Option<Matrix>, SolverStatus> {
        let columns = if economic { k } else { rows };
        Ok(match vectors(jobz)? {
            true => Some(matrix(place.at, a.kind, rows, columns, place.ld)?.batched(place.stride)),
            false => None,
        })
    };
    let singular = Singular {
        a,
        keeps: false,
        values: Matrix::new(values, a.kind.real(), k, 1, k.max(1)).batched(k),
        u: place(u, m)?,
        v: place(v, n)?,
        adjoint: false,
        info: info(infos),
        batch: batch as usize,
        residuals: 0,
    };
    call.enqueue(singular.blocks(), work, &singular)
}

fn gesvd_size(_: &mut SolverCall<'_>, _kind: Type, m: i64, n: i64, to: u64) -> SolverResult {
    if m < n || n < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    put(to, size(m, n))
}

/// `rwork` gets what a failed iteration leaves; there is none here.
fn gesvd(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobu: u8,
    jobvt: u8,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    u: u64,
    ldu: i64,
    vt: u64,
    ldvt: i64,
    buffer: u64,
    length: i64,
    _rwork: u64,
    infos: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, size(m, n))?;
    let places = [Target::new(u, ldu), Target::new(vt, ldvt)];
    by_letters(call, [jobu, jobvt], matrix(a, kind, m, n, lda)?, values, places, infos, work)
}

fn gesvdj_size(
    _: &mut SolverCall<'_>,
    _kind: Type,
    jobz: i64,
    _economic: i64,
    m: i64,
    n: i64,
    _a: u64,
    _lda: i64,
    _values: u64,
    _u: u64,
    _ldu: i64,
    _v: u64,
    _ldv: i64,
    to: u64,
    _params: u64,
) -> SolverResult {
    vectors(jobz)?;
    sizes(&[m, n])?;
    put(to, size(m, n))
}

fn gesvdj(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    economic: i64,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    u: u64,
    ldu: i64,
    v: u64,
    ldv: i64,
    buffer: u64,
    length: i64,
    infos: u64,
    _params: u64,
) -> SolverResult {
    let work = work(buffer, kind, length, size(m, n))?;
    let places = [Target::new(u, ldu), Target::new(v, ldv)];
    by_mode(call, (jobz, economic != 0), matrix(a, kind, m, n, lda)?, values, places, infos, 1, work)
}

fn gesvdj_batched_size(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    u: u64,
    ldu: i64,
    v: u64,
    ldv: i64,
    to: u64,
    params: u64,
    _batch: i64,
) -> SolverResult {
    gesvdj_size(call, kind, jobz, 0, m, n, a, lda, values, u, ldu, v, ldv, to, params)
}

fn gesvdj_batched(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    values: u64,
    u: u64,
    ldu: i64,
    v: u64,
    ldv: i64,
    buffer: u64,
    length: i64,
    infos: u64,
    _params: u64,
    batch: i64,
) -> SolverResult {
    // As in NVIDIA's library.
    if m > 32 || n > 32 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let work = work(buffer, kind, length, size(m, n))?;
    let places = [Target { at: u, ld: ldu, stride: ldu * m }, Target { at: v, ld: ldv, stride: ldv * n }];
    let a = matrix(a, kind, m, n, lda)?.batched(lda * n);
    by_mode(call, (jobz, false), a, values, places, infos, batch, work)
}

fn gesvda_size(
    _: &mut SolverCall<'_>,
    _kind: Type,
    jobz: i64,
    rank: i64,
    m: i64,
    n: i64,
    _a: u64,
    _lda: i64,
    _stride_a: i64,
    _values: u64,
    _stride_values: i64,
    _u: u64,
    _ldu: i64,
    _stride_u: i64,
    _v: u64,
    _ldv: i64,
    _stride_v: i64,
    to: u64,
    _batch: i64,
) -> SolverResult {
    vectors(jobz)?;
    if !(0..=m.min(n)).contains(&rank) {
        return Err(SolverStatus::INVALID_VALUE);
    }
    sizes(&[m, n])?;
    put(to, size(m, n))
}

fn gesvda(
    call: &mut SolverCall<'_>,
    kind: Type,
    jobz: i64,
    rank: i64,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    stride_a: i64,
    values: u64,
    stride_values: i64,
    u: u64,
    ldu: i64,
    stride_u: i64,
    v: u64,
    ldv: i64,
    stride_v: i64,
    buffer: u64,
    length: i64,
    infos: u64,
    residuals: u64,
    batch: i64,
) -> SolverResult {
    if !(0..=m.min(n)).contains(&rank) || batch < 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let work = work(buffer, kind, length, size(m, n))?;
    let place = |at: u64, rows: i64, ld: i64, stride: i64| -> Result<Option<Matrix>, SolverStatus> {
        Ok(match vectors(jobz)? {
            true => Some(matrix(at, kind, rows, rank, ld)?.batched(stride)),
            false => None,
        })
    };
    let singular = Singular {
        a: matrix(a, kind, m, n, lda)?.batched(stride_a),
        keeps: true,
        values: Matrix::new(values, kind.real(), rank, 1, rank.max(1)).batched(stride_values),
        u: place(u, m, ldu, stride_u)?,
        v: place(v, n, ldv, stride_v)?,
        adjoint: false,
        info: info(infos),
        batch: batch as usize,
        residuals: residuals as usize,
    };
    call.enqueue(singular.blocks(), work, &singular)?;
    if residuals != 0 {
        let stream = call.handle.stream;
        cu!(cuStreamSynchronize(stream))?;
    }
    Ok(())
}

handled! { in cusolver; gesvd_size; (m: I, n: I, to: P)
    cusolverDnSgesvd_bufferSize = F32, cusolverDnDgesvd_bufferSize = F64, cusolverDnCgesvd_bufferSize = C32,
    cusolverDnZgesvd_bufferSize = C64,
}
handled! { in cusolver; gesvd;
    (jobu: C, jobvt: C, m: I, n: I, a: P, lda: I, values: P, u: P, ldu: I, vt: P, ldvt: I, buffer: P, length: I,
        rwork: P, infos: P)
    cusolverDnSgesvd = F32, cusolverDnDgesvd = F64, cusolverDnCgesvd = C32, cusolverDnZgesvd = C64,
}
handled! { in cusolver; gesvdj_size;
    (jobz: I, economic: I, m: I, n: I, a: P, lda: I, values: P, u: P, ldu: I, v: P, ldv: I, to: P, params: P)
    cusolverDnSgesvdj_bufferSize = F32, cusolverDnDgesvdj_bufferSize = F64, cusolverDnCgesvdj_bufferSize = C32,
    cusolverDnZgesvdj_bufferSize = C64,
}
handled! { in cusolver; gesvdj;
    (jobz: I, economic: I, m: I, n: I, a: P, lda: I, values: P, u: P, ldu: I, v: P, ldv: I, buffer: P, length: I,
        infos: P, params: P)
    cusolverDnSgesvdj = F32, cusolverDnDgesvdj = F64, cusolverDnCgesvdj = C32, cusolverDnZgesvdj = C64,
}
handled! { in cusolver; gesvdj_batched_size;
    (jobz: I, m: I, n: I, a: P, lda: I, values: P, u: P, ldu: I, v: P, ldv: I, to: P, params: P, batch: I)
    cusolverDnSgesvdjBatched_bufferSize = F32, cusolverDnDgesvdjBatched_bufferSize = F64,
    cusolverDnCgesvdjBatched_bufferSize = C32, cusolverDnZgesvdjBatched_bufferSize = C64,
}
handled! { in cusolver; gesvdj_batched;
    (jobz: I, m: I, n: I, a: P, lda: I, values: P, u: P, ldu: I, v: P, ldv: I, buffer: P, length: I, infos: P,
        params: P, batch: I)
    cusolverDnSgesvdjBatched = F32, cusolverDnDgesvdjBatched = F64, cusolverDnCgesvdjBatched = C32,
    cusolverDnZgesvdjBatched = C64,
}
handled! { in cusolver; gesvda_size;
    (jobz: I, rank: I, m: I, n: I, a: P, lda: I, stride_a: L, values: P, stride_values: L, u: P, ldu: I,
        stride_u: L, v: P, ldv: I, stride_v: L, to: P, batch: I)
    cusolverDnSgesvdaStridedBatched_bufferSize = F32, cusolverDnDgesvdaStridedBatched_bufferSize = F64,
    cusolverDnCgesvdaStridedBatched_bufferSize = C32, cusolverDnZgesvdaStridedBatched_bufferSize = C64,
}
handled! { in cusolver; gesvda;
    (jobz: I, rank: I, m: I, n: I, a: P, lda: I, stride_a: L, values: P, stride_values: L, u: P, ldu: I,
        stride_u: L, v: P, ldv: I, stride_v: L, buffer: P, length: I, infos: P, residuals: P, batch: I)
    cusolverDnSgesvdaStridedBatched = F32, cusolverDnDgesvdaStridedBatched = F64,
    cusolverDnCgesvdaStridedBatched = C32, cusolverDnZgesvdaStridedBatched = C64,
}
