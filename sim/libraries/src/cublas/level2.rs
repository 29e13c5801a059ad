//! Matrices and vectors.

use super::handle::{Entered, Res, Status, operation};
use super::level3::{part, triangular, whole};
use crate::numerics::matrix::{Fill, Matrix, Scalar};
use crate::numerics::number::Type;
use crate::numerics::product::Product;

fn one() -> Scalar {
    Scalar::known(1.0, 0.0)
}

fn zero() -> Scalar {
    Scalar::known(0.0, 0.0)
}

fn enqueue(call: &mut Entered<'_>, product: &Product) -> Res {
    if product.d.size.contains(&0) || product.batch == 0 {
        return Ok(());
    }
    call.enqueue(&product.blocks(), product)
}

fn gemv(
    call: &mut Entered<'_>,
    kind: Type,
    trans: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    x: u64,
    incx: i64,
    beta: u64,
    y: u64,
    incy: i64,
) -> Res {
    if m < 0 || n < 0 || lda < m.max(1) || incx == 0 || incy == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let a = Matrix::new(a, kind, m, n, lda).operated(operation(call.name, trans)?);
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let x = Matrix::vector(x, kind, a.size[1] as i64, incx);
    let y = Matrix::vector(y, kind, a.size[0] as i64, incy);
    enqueue(call, &Product::new(alpha, a, x, beta, y))
}

fn gemv_strided(
    call: &mut Entered<'_>,
    kind: Type,
    trans: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    sa: i64,
    x: u64,
    incx: i64,
    sx: i64,
    beta: u64,
    y: u64,
    incy: i64,
    sy: i64,
    batch: i64,
) -> Res {
    if m < 0 || n < 0 || lda < m.max(1) || incx == 0 || incy == 0 || batch < 0 {
        return Err(Status::INVALID_VALUE);
    }
    let a = Matrix::new(a, kind, m, n, lda).operated(operation(call.name, trans)?).batched(sa);
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let x = Matrix::vector(x, kind, a.size[1] as i64, incx).batched(sx);
    let y = Matrix::vector(y, kind, a.size[0] as i64, incy).batched(sy);
    enqueue(call, &Product { batch: batch as usize, ..Product::new(alpha, a, x, beta, y) })
}

/// `A = alpha x op(y) + A`, of which a part counts.
fn outer(call: &mut Entered<'_>, x: Matrix, y: Matrix, operation: i32, alpha: Scalar, a: Matrix) -> Res {
    enqueue(call, &Product::new(alpha, x, y.operated(operation), one(), a))
}

fn ger(
    call: &mut Entered<'_>,
    kind: Type,
    m: i64,
    n: i64,
    alpha: u64,
    x: u64,
    incx: i64,
    y: u64,
    incy: i64,
    a: u64,
    lda: i64,
) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let (x, y) = (Matrix::vector(x, kind, m, incx), Matrix::vector(y, kind, n, incy));
    outer(call, x, y, 1, alpha, Matrix::new(a, kind, m, n, lda))
}

fn gerc(
    call: &mut Entered<'_>,
    kind: Type,
    m: i64,
    n: i64,
    alpha: u64,
    x: u64,
    incx: i64,
    y: u64,
    incy: i64,
    a: u64,
    lda: i64,
) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let (x, y) = (Matrix::vector(x, kind, m, incx), Matrix::vector(y, kind, n, incy));
    outer(call, x, y, 2, alpha, Matrix::new(a, kind, m, n, lda))
}

fn syr(call: &mut Entered<'_>, kind: Type, uplo: i32, n: i64, alpha: u64, x: u64, incx: i64, a: u64, lda: i64) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let x = Matrix::vector(x, kind, n, incx);
    outer(call, x, x, 1, alpha, Matrix::new(a, kind, n, n, lda).filled(Fill::Symmetric(part(uplo)?)))
}

fn her(call: &mut Entered<'_>, kind: Type, uplo: i32, n: i64, alpha: u64, x: u64, incx: i64, a: u64, lda: i64) -> Res {
    let alpha = call.scalar(alpha, kind.real())?;
    let x = Matrix::vector(x, kind, n, incx);
    outer(call, x, x, 2, alpha, Matrix::new(a, kind, n, n, lda).filled(Fill::Hermitian(part(uplo)?)))
}

fn syr2(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    n: i64,
    alpha: u64,
    x: u64,
    incx: i64,
    y: u64,
    incy: i64,
    a: u64,
    lda: i64,
) -> Res {
    let a = Matrix::new(a, kind, n, n, lda).filled(Fill::Symmetric(part(uplo)?));
    twice(call, Matrix::vector(x, kind, n, incx), Matrix::vector(y, kind, n, incy), 1, alpha, a)
}

fn her2(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    n: i64,
    alpha: u64,
    x: u64,
    incx: i64,
    y: u64,
    incy: i64,
    a: u64,
    lda: i64,
) -> Res {
    let a = Matrix::new(a, kind, n, n, lda).filled(Fill::Hermitian(part(uplo)?));
    twice(call, Matrix::vector(x, kind, n, incx), Matrix::vector(y, kind, n, incy), 2, alpha, a)
}

fn twice(call: &mut Entered<'_>, x: Matrix, y: Matrix, operation: i32, alpha: u64, a: Matrix) -> Res {
    let alpha = call.scalar(alpha, a.kind)?;
    let product = Product::new(alpha, x, y.operated(operation), one(), a);
    let second = Some([y, x.operated(operation)]);
    enqueue(call, &Product { second, second_conjugate: operation == 2, ..product })
}

fn filled_times_vector(
    call: &mut Entered<'_>,
    a: Matrix,
    alpha: u64,
    x: u64,
    incx: i64,
    beta: u64,
    y: u64,
    incy: i64,
) -> Res {
    let (kind, n) = (a.kind, a.size[0] as i64);
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let (x, y) = (Matrix::vector(x, kind, n, incx), Matrix::vector(y, kind, n, incy));
    enqueue(call, &Product::new(alpha, a, x, beta, y))
}

fn symv<const HERMITIAN: bool>(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    x: u64,
    incx: i64,
    beta: u64,
    y: u64,
    incy: i64,
) -> Res {
    let a = Matrix::new(a, kind, n, n, lda).filled(whole::<HERMITIAN>(uplo)?);
    filled_times_vector(call, a, alpha, x, incx, beta, y, incy)
}

fn trmv(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
    diag: i32,
    n: i64,
    a: u64,
    lda: i64,
    x: u64,
    incx: i64,
) -> Res {
    let a = Matrix::new(a, kind, n, n, lda).filled(Fill::Triangular(part(uplo)?, diag == 1));
    let a = a.operated(operation(call.name, trans)?);
    let x = Matrix::vector(x, kind, n, incx);
    enqueue(call, &Product::new(one(), a, x, zero(), x))
}

fn trsv(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
    diag: i32,
    n: i64,
    a: u64,
    lda: i64,
    x: u64,
    incx: i64,
) -> Res {
    let a = Matrix::new(a, kind, n, n, lda).filled(Fill::Triangular(part(uplo)?, diag == 1));
    triangular(call, true, a, trans, one(), Matrix::vector(x, kind, n, incx), 1)
}

api! { gemv; (trans: E, m: I, n: I, alpha: P, a: P, lda: I, x: P, incx: I, beta: P, y: P, incy: I)
    cublasSgemv_v2 / cublasSgemv_v2_64 = F32, cublasDgemv_v2 / cublasDgemv_v2_64 = F64,
    cublasCgemv_v2 / cublasCgemv_v2_64 = C32, cublasZgemv_v2 / cublasZgemv_v2_64 = C64,
}
api! { gemv_strided;
    (trans: E, m: I, n: I, alpha: P, a: P, lda: I, sa: L, x: P, incx: I, sx: L, beta: P, y: P, incy: I, sy: L, batch: I)
    cublasSgemvStridedBatched / cublasSgemvStridedBatched_64 = F32,
    cublasDgemvStridedBatched / cublasDgemvStridedBatched_64 = F64,
    cublasCgemvStridedBatched / cublasCgemvStridedBatched_64 = C32,
    cublasZgemvStridedBatched / cublasZgemvStridedBatched_64 = C64,
}
api! { ger; (m: I, n: I, alpha: P, x: P, incx: I, y: P, incy: I, a: P, lda: I)
    cublasSger_v2 / cublasSger_v2_64 = F32, cublasDger_v2 / cublasDger_v2_64 = F64,
    cublasCgeru_v2 / cublasCgeru_v2_64 = C32, cublasZgeru_v2 / cublasZgeru_v2_64 = C64,
}
api! { gerc; (m: I, n: I, alpha: P, x: P, incx: I, y: P, incy: I, a: P, lda: I)
    cublasCgerc_v2 / cublasCgerc_v2_64 = C32, cublasZgerc_v2 / cublasZgerc_v2_64 = C64,
}
api! { syr; (uplo: E, n: I, alpha: P, x: P, incx: I, a: P, lda: I)
    cublasSsyr_v2 / cublasSsyr_v2_64 = F32, cublasDsyr_v2 / cublasDsyr_v2_64 = F64,
    cublasCsyr_v2 / cublasCsyr_v2_64 = C32, cublasZsyr_v2 / cublasZsyr_v2_64 = C64,
}
api! { her; (uplo: E, n: I, alpha: P, x: P, incx: I, a: P, lda: I)
    cublasCher_v2 / cublasCher_v2_64 = C32, cublasZher_v2 / cublasZher_v2_64 = C64,
}
api! { syr2; (uplo: E, n: I, alpha: P, x: P, incx: I, y: P, incy: I, a: P, lda: I)
    cublasSsyr2_v2 / cublasSsyr2_v2_64 = F32, cublasDsyr2_v2 / cublasDsyr2_v2_64 = F64,
    cublasCsyr2_v2 / cublasCsyr2_v2_64 = C32, cublasZsyr2_v2 / cublasZsyr2_v2_64 = C64,
}
api! { her2; (uplo: E, n: I, alpha: P, x: P, incx: I, y: P, incy: I, a: P, lda: I)
    cublasCher2_v2 / cublasCher2_v2_64 = C32, cublasZher2_v2 / cublasZher2_v2_64 = C64,
}
api! { symv::<false>; (uplo: E, n: I, alpha: P, a: P, lda: I, x: P, incx: I, beta: P, y: P, incy: I)
    cublasSsymv_v2 / cublasSsymv_v2_64 = F32, cublasDsymv_v2 / cublasDsymv_v2_64 = F64,
    cublasCsymv_v2 / cublasCsymv_v2_64 = C32, cublasZsymv_v2 / cublasZsymv_v2_64 = C64,
}
api! { symv::<true>; (uplo: E, n: I, alpha: P, a: P, lda: I, x: P, incx: I, beta: P, y: P, incy: I)
    cublasChemv_v2 / cublasChemv_v2_64 = C32, cublasZhemv_v2 / cublasZhemv_v2_64 = C64,
}
api! { trmv; (uplo: E, trans: E, diag: E, n: I, a: P, lda: I, x: P, incx: I)
    cublasStrmv_v2 / cublasStrmv_v2_64 = F32, cublasDtrmv_v2 / cublasDtrmv_v2_64 = F64,
    cublasCtrmv_v2 / cublasCtrmv_v2_64 = C32, cublasZtrmv_v2 / cublasZtrmv_v2_64 = C64,
}
api! { trsv; (uplo: E, trans: E, diag: E, n: I, a: P, lda: I, x: P, incx: I)
    cublasStrsv_v2 / cublasStrsv_v2_64 = F32, cublasDtrsv_v2 / cublasDtrsv_v2_64 = F64,
    cublasCtrsv_v2 / cublasCtrsv_v2_64 = C32, cublasZtrsv_v2 / cublasZtrsv_v2_64 = C64,
}
