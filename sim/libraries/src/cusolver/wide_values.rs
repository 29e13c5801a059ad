//! The functions with 64-bit integers: eigenvalues and singular values.

use super::eigen::{self, symmetric};
use super::handle::{SolverCall, SolverResult, SolverStatus, info, matrix, part, sizes, vectors};
use super::singular::{self, Target, by_letters, by_mode};
use super::wide::{put_bytes, work};
use crate::numerics::algebra::eigen::General;
use crate::numerics::matrix::Matrix;

fn syevd_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    jobz: i64,
    uplo: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    kind_w: i64,
    _values: u64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    call.same(kind, &[compute])?;
    let kind = call.with_real(kind, kind_w)?;
    vectors(jobz)?;
    part(uplo)?;
    sizes(&[n])?;
    put_bytes(kind, eigen::size(n), device, host)
}

fn syevd(
    call: &mut SolverCall<'_>,
    params: u64,
    jobz: i64,
    uplo: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_w: i64,
    values: u64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    host: u64,
    host_bytes: u64,
    to: u64,
) -> SolverResult {
    let batch = 1;
    syev_batched(
        call, params, jobz, uplo, n, kind, a, lda, kind_w, values, compute, buffer, bytes, host, host_bytes, to, batch,
    )
}

fn syev_batched_size(
    call: &mut SolverCall<'_>,
    params: u64,
    jobz: i64,
    uplo: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_w: i64,
    values: u64,
    compute: i64,
    device: u64,
    host: u64,
    _batch: i64,
) -> SolverResult {
    syevd_size(call, params, jobz, uplo, n, kind, a, lda, kind_w, values, compute, device, host)
}

fn syev_batched(
    call: &mut SolverCall<'_>,
    _params: u64,
    jobz: i64,
    uplo: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_w: i64,
    values: u64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
    batch: i64,
) -> SolverResult {
    call.same(kind, &[compute])?;
    let kind = call.with_real(kind, kind_w)?;
    let work = work(buffer, bytes, kind, eigen::size(n))?;
    symmetric(call, (jobz, uplo), matrix(a, kind, n, n, lda)?.batched(lda * n), values, to, batch, work)
}

fn gesvd_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    _jobu: u8,
    _jobvt: u8,
    m: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    kind_s: i64,
    _values: u64,
    kind_u: i64,
    _u: u64,
    _ldu: i64,
    kind_vt: i64,
    _vt: u64,
    _ldvt: i64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    call.same(kind, &[kind_u, kind_vt, compute])?;
    let kind = call.with_real(kind, kind_s)?;
    sizes(&[m, n])?;
    put_bytes(kind, singular::size(m, n), device, host)
}

fn gesvd(
    call: &mut SolverCall<'_>,
    _params: u64,
    jobu: u8,
    jobvt: u8,
    m: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_s: i64,
    values: u64,
    kind_u: i64,
    u: u64,
    ldu: i64,
    kind_vt: i64,
    vt: u64,
    ldvt: i64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
) -> SolverResult {
    call.same(kind, &[kind_u, kind_vt, compute])?;
    let kind = call.with_real(kind, kind_s)?;
    let work = work(buffer, bytes, kind, singular::size(m, n))?;
    let places = [Target::new(u, ldu), Target::new(vt, ldvt)];
    by_letters(call, [jobu, jobvt], matrix(a, kind, m, n, lda)?, values, places, to, work)
}

fn gesvdp_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    jobz: i64,
    _economic: i64,
    m: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    kind_s: i64,
    _values: u64,
    kind_u: i64,
    _u: u64,
    _ldu: i64,
    kind_v: i64,
    _v: u64,
    _ldv: i64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    vectors(jobz)?;
    call.same(kind, &[kind_u, kind_v, compute])?;
    let kind = call.with_real(kind, kind_s)?;
    sizes(&[m, n])?;
    put_bytes(kind, singular::size(m, n), device, host)
}

fn gesvdp(
    call: &mut SolverCall<'_>,
    _params: u64,
    jobz: i64,
    economic: i64,
    m: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_s: i64,
    values: u64,
    kind_u: i64,
    u: u64,
    ldu: i64,
    kind_v: i64,
    v: u64,
    ldv: i64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
    perturbation: u64,
) -> SolverResult {
    call.same(kind, &[kind_u, kind_v, compute])?;
    let kind = call.with_real(kind, kind_s)?;
    let work = work(buffer, bytes, kind, singular::size(m, n))?;
    let places = [Target::new(u, ldu), Target::new(v, ldv)];
    by_mode(call, (jobz, economic != 0), matrix(a, kind, m, n, lda)?, values, places, to, 1, work)?;
    if perturbation != 0 {
        // Nothing is perturbed here.
        // SAFETY: the C interface: a non-null output pointer to a number on the host is writable.
        unsafe { (perturbation as *mut f64).write(0.0) };
    }
    Ok(())
}

fn geev_size(
    call: &mut SolverCall<'_>,
    _params: u64,
    left: i64,
    right: i64,
    n: i64,
    kind: i64,
    _a: u64,
    _lda: i64,
    kind_w: i64,
    _values: u64,
    _kind_vl: i64,
    _vl: u64,
    _ldvl: i64,
    _kind_vr: i64,
    _vr: u64,
    _ldvr: i64,
    compute: i64,
    device: u64,
    host: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    vectors(left)?;
    vectors(right)?;
    call.kind(kind_w)?;
    sizes(&[n])?;
    put_bytes(kind, eigen::size(n), device, host)
}

fn geev(
    call: &mut SolverCall<'_>,
    _params: u64,
    left: i64,
    right: i64,
    n: i64,
    kind: i64,
    a: u64,
    lda: i64,
    kind_w: i64,
    values: u64,
    _kind_vl: i64,
    _vl: u64,
    _ldvl: i64,
    kind_vr: i64,
    vr: u64,
    ldvr: i64,
    compute: i64,
    buffer: u64,
    bytes: u64,
    _host: u64,
    _host_bytes: u64,
    to: u64,
) -> SolverResult {
    let kind = call.same(kind, &[compute])?;
    // As in NVIDIA's library.
    if vectors(left)? {
        return Err(call.not_simulated("left eigenvectors"));
    }
    let kind_w = call.kind(kind_w)?;
    let count = if kind_w.real() == kind_w { 2 * n } else { n };
    if kind_w.real() != kind.real() || count == 2 * n && kind.real() != kind || values == 0 && n > 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let work = work(buffer, bytes, kind, eigen::size(n))?;
    let vectors = match vectors(right)? {
        true => Some(matrix(vr, call.kind(kind_vr)?, n, n, ldvr)?),
        false => None,
    };
    // Real vectors hold pairs of conjugates, which only real matrices have.
    let fits = |vectors: Matrix| vectors.kind == kind || vectors.kind.real() == kind;
    if !vectors.is_none_or(fits) {
        return Err(SolverStatus::INVALID_VALUE);
    }
    let values = Matrix::new(values, kind_w, count, 1, count.max(1));
    let general = General { a: matrix(a, kind, n, n, lda)?, values, vectors, info: info(to) };
    call.enqueue(general.blocks(), work, &general)
}

handled! { in cusolver; syevd_size;
    (params: P, jobz: I, uplo: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, compute: I, device: P, host: P)
    cusolverDnXsyevd_bufferSize
}
handled! { in cusolver; syevd;
    (params: P, jobz: I, uplo: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, compute: I, buffer: P,
        bytes: B, host: P, host_bytes: B, to: P)
    cusolverDnXsyevd
}
handled! { in cusolver; syev_batched_size;
    (params: P, jobz: I, uplo: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, compute: I, device: P,
        host: P, batch: L)
    cusolverDnXsyevBatched_bufferSize
}
handled! { in cusolver; syev_batched;
    (params: P, jobz: I, uplo: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, compute: I, buffer: P,
        bytes: B, host: P, host_bytes: B, to: P, batch: L)
    cusolverDnXsyevBatched
}
handled! { in cusolver; gesvd_size;
    (params: P, jobu: C, jobvt: C, m: L, n: L, kind: I, a: P, lda: L, kind_s: I, values: P, kind_u: I, u: P,
        ldu: L, kind_vt: I, vt: P, ldvt: L, compute: I, device: P, host: P)
    cusolverDnXgesvd_bufferSize
}
handled! { in cusolver; gesvd;
    (params: P, jobu: C, jobvt: C, m: L, n: L, kind: I, a: P, lda: L, kind_s: I, values: P, kind_u: I, u: P,
        ldu: L, kind_vt: I, vt: P, ldvt: L, compute: I, buffer: P, bytes: B, host: P, host_bytes: B, to: P)
    cusolverDnXgesvd
}
handled! { in cusolver; gesvdp_size;
    (params: P, jobz: I, economic: I, m: L, n: L, kind: I, a: P, lda: L, kind_s: I, values: P, kind_u: I, u: P,
        ldu: L, kind_v: I, v: P, ldv: L, compute: I, device: P, host: P)
    cusolverDnXgesvdp_bufferSize
}
handled! { in cusolver; gesvdp;
    (params: P, jobz: I, economic: I, m: L, n: L, kind: I, a: P, lda: L, kind_s: I, values: P, kind_u: I, u: P,
        ldu: L, kind_v: I, v: P, ldv: L, compute: I, buffer: P, bytes: B, host: P, host_bytes: B, to: P,
        perturbation: P)
    cusolverDnXgesvdp
}
handled! { in cusolver; geev_size;
    (params: P, left: I, right: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, kind_vl: I, vl: P, ldvl: L,
        kind_vr: I, vr: P, ldvr: L, compute: I, device: P, host: P)
    cusolverDnXgeev_bufferSize
}
handled! { in cusolver; geev;
    (params: P, left: I, right: I, n: L, kind: I, a: P, lda: L, kind_w: I, values: P, kind_vl: I, vl: P, ldvl: L,
        kind_vr: I, vr: P, ldvr: L, compute: I, buffer: P, bytes: B, host: P, host_bytes: B, to: P)
    cusolverDnXgeev
}
