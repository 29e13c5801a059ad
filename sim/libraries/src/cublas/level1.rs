//! Vectors.

use super::handle::{Entered, Res};
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::number::Type;
use crate::numerics::product::Product;
use crate::numerics::vector::{VectorOp, Vectors};

/// Enqueues an operation on one or two vectors, which do nothing when they are empty.
fn vectors(call: &mut Entered<'_>, op: VectorOp, x: Matrix, y: Option<Matrix>) -> Res {
    if x.size[0] == 0 {
        return Ok(());
    }
    let vectors = Vectors { op, x, y, result: None, compute: x.kind.compute() };
    call.enqueue(&vectors.blocks(), &vectors)
}

fn axpy(call: &mut Entered<'_>, kind: Type, n: i64, alpha: u64, x: u64, incx: i64, y: u64, incy: i64) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    vectors(call, VectorOp::Axpy(alpha), Matrix::vector(x, kind, n, incx), Some(Matrix::vector(y, kind, n, incy)))
}

fn axpy_ex(
    call: &mut Entered<'_>,
    n: i64,
    alpha: u64,
    at: i32,
    x: u64,
    xt: i32,
    incx: i64,
    y: u64,
    yt: i32,
    incy: i64,
    _et: i32,
) -> Res {
    let alpha = call.scalar(alpha, call.kind(at)?)?;
    let (x, y) = (Matrix::vector(x, call.kind(xt)?, n, incx), Matrix::vector(y, call.kind(yt)?, n, incy));
    vectors(call, VectorOp::Axpy(alpha), x, Some(y))
}

fn scal(call: &mut Entered<'_>, kind: Type, n: i64, alpha: u64, x: u64, incx: i64) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    vectors(call, VectorOp::Scale(alpha), Matrix::vector(x, kind, n, incx), None)
}

/// A complex vector, a real factor.
fn real_scal(call: &mut Entered<'_>, kind: Type, n: i64, alpha: u64, x: u64, incx: i64) -> Res {
    let alpha = call.scalar(alpha, kind.real())?;
    vectors(call, VectorOp::Scale(alpha), Matrix::vector(x, kind, n, incx), None)
}

fn scal_ex(call: &mut Entered<'_>, n: i64, alpha: u64, at: i32, x: u64, xt: i32, incx: i64, _et: i32) -> Res {
    let alpha = call.scalar(alpha, call.kind(at)?)?;
    let x = Matrix::vector(x, call.kind(xt)?, n, incx);
    vectors(call, VectorOp::Scale(alpha), x, None)
}

fn copy(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, y: u64, incy: i64) -> Res {
    vectors(call, VectorOp::Copy, Matrix::vector(x, kind, n, incx), Some(Matrix::vector(y, kind, n, incy)))
}

fn swap(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, y: u64, incy: i64) -> Res {
    vectors(call, VectorOp::Swap, Matrix::vector(x, kind, n, incx), Some(Matrix::vector(y, kind, n, incy)))
}

fn rotate(
    call: &mut Entered<'_>,
    kind: Type,
    sine: Type,
    n: i64,
    [x, y]: [u64; 2],
    [incx, incy]: [i64; 2],
    [c, s]: [u64; 2],
) -> Res {
    let (c, s) = (call.scalar(c, kind.real())?, call.scalar(s, sine)?);
    vectors(call, VectorOp::Rotate(c, s), Matrix::vector(x, kind, n, incx), Some(Matrix::vector(y, kind, n, incy)))
}

fn rot(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, y: u64, incy: i64, c: u64, s: u64) -> Res {
    rotate(call, kind, kind, n, [x, y], [incx, incy], [c, s])
}

fn real_rot(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, y: u64, incy: i64, c: u64, s: u64) -> Res {
    rotate(call, kind, kind.real(), n, [x, y], [incx, incy], [c, s])
}

/// Enqueues a reduction of a vector to one number.
fn reduce(call: &mut Entered<'_>, op: VectorOp, x: Matrix, result: u64, kind: Type) -> Res {
    call.with_result(result, kind, |call, result| {
        let vectors = Vectors { op, x, y: None, result: Some(result), compute: x.kind.compute() };
        call.enqueue(&vectors.blocks(), &vectors)
    })
}

fn nrm2(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, result: u64) -> Res {
    reduce(call, VectorOp::Norm, Matrix::vector(x, kind, n, incx), result, kind.real())
}

fn nrm2_ex(call: &mut Entered<'_>, n: i64, x: u64, xt: i32, incx: i64, result: u64, rt: i32, _et: i32) -> Res {
    let (x, kind) = (Matrix::vector(x, call.kind(xt)?, n, incx), call.kind(rt)?);
    reduce(call, VectorOp::Norm, x, result, kind)
}

fn asum(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, result: u64) -> Res {
    reduce(call, VectorOp::AbsoluteSum, Matrix::vector(x, kind, n, incx), result, kind.real())
}

fn greatest(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, result: u64) -> Res {
    reduce(call, VectorOp::Greatest, Matrix::vector(x, kind, n, incx), result, Type::I32)
}

fn smallest(call: &mut Entered<'_>, kind: Type, n: i64, x: u64, incx: i64, result: u64) -> Res {
    reduce(call, VectorOp::Smallest, Matrix::vector(x, kind, n, incx), result, Type::I32)
}

/// A scalar product is the product of a row and a column.
fn inner(call: &mut Entered<'_>, x: Matrix, y: Matrix, operation: i32, result: u64, kind: Type) -> Res {
    call.with_result(result, kind, |call, result| {
        let (one, zero) = (Scalar::known(1.0, 0.0), Scalar::known(0.0, 0.0));
        let mut product = Product::new(one, x.operated(operation), y, zero, result);
        product.compute = y.kind.compute();
        call.enqueue(&product.blocks(), &product)
    })
}

/// With `x` as it is (1), or conjugated (2).
fn dot<const OPERATION: i32>(
    call: &mut Entered<'_>,
    kind: Type,
    n: i64,
    x: u64,
    incx: i64,
    y: u64,
    incy: i64,
    result: u64,
) -> Res {
    inner(call, Matrix::vector(x, kind, n, incx), Matrix::vector(y, kind, n, incy), OPERATION, result, kind)
}

fn dot_ex<const OPERATION: i32>(
    call: &mut Entered<'_>,
    n: i64,
    x: u64,
    xt: i32,
    incx: i64,
    y: u64,
    yt: i32,
    incy: i64,
    result: u64,
    rt: i32,
    _et: i32,
) -> Res {
    let (x, y) = (Matrix::vector(x, call.kind(xt)?, n, incx), Matrix::vector(y, call.kind(yt)?, n, incy));
    let kind = call.kind(rt)?;
    inner(call, x, y, OPERATION, result, kind)
}

api! { axpy; (n: I, alpha: P, x: P, incx: I, y: P, incy: I)
    cublasSaxpy_v2 / cublasSaxpy_v2_64 = F32, cublasDaxpy_v2 / cublasDaxpy_v2_64 = F64,
    cublasCaxpy_v2 / cublasCaxpy_v2_64 = C32, cublasZaxpy_v2 / cublasZaxpy_v2_64 = C64,
}
api! { axpy_ex; (n: I, alpha: P, at: E, x: P, xt: E, incx: I, y: P, yt: E, incy: I, et: E)
    cublasAxpyEx / cublasAxpyEx_64,
}
api! { scal; (n: I, alpha: P, x: P, incx: I)
    cublasSscal_v2 / cublasSscal_v2_64 = F32, cublasDscal_v2 / cublasDscal_v2_64 = F64,
    cublasCscal_v2 / cublasCscal_v2_64 = C32, cublasZscal_v2 / cublasZscal_v2_64 = C64,
}
api! { real_scal; (n: I, alpha: P, x: P, incx: I)
    cublasCsscal_v2 / cublasCsscal_v2_64 = C32, cublasZdscal_v2 / cublasZdscal_v2_64 = C64,
}
api! { scal_ex; (n: I, alpha: P, at: E, x: P, xt: E, incx: I, et: E) cublasScalEx / cublasScalEx_64 }
api! { copy; (n: I, x: P, incx: I, y: P, incy: I)
    cublasScopy_v2 / cublasScopy_v2_64 = F32, cublasDcopy_v2 / cublasDcopy_v2_64 = F64,
    cublasCcopy_v2 / cublasCcopy_v2_64 = C32, cublasZcopy_v2 / cublasZcopy_v2_64 = C64,
}
api! { swap; (n: I, x: P, incx: I, y: P, incy: I)
    cublasSswap_v2 / cublasSswap_v2_64 = F32, cublasDswap_v2 / cublasDswap_v2_64 = F64,
    cublasCswap_v2 / cublasCswap_v2_64 = C32, cublasZswap_v2 / cublasZswap_v2_64 = C64,
}
api! { rot; (n: I, x: P, incx: I, y: P, incy: I, c: P, s: P)
    cublasSrot_v2 / cublasSrot_v2_64 = F32, cublasDrot_v2 / cublasDrot_v2_64 = F64,
    cublasCrot_v2 / cublasCrot_v2_64 = C32, cublasZrot_v2 / cublasZrot_v2_64 = C64,
}
api! { real_rot; (n: I, x: P, incx: I, y: P, incy: I, c: P, s: P)
    cublasCsrot_v2 / cublasCsrot_v2_64 = C32, cublasZdrot_v2 / cublasZdrot_v2_64 = C64,
}
api! { nrm2; (n: I, x: P, incx: I, result: P)
    cublasSnrm2_v2 / cublasSnrm2_v2_64 = F32, cublasDnrm2_v2 / cublasDnrm2_v2_64 = F64,
    cublasScnrm2_v2 / cublasScnrm2_v2_64 = C32, cublasDznrm2_v2 / cublasDznrm2_v2_64 = C64,
}
api! { nrm2_ex; (n: I, x: P, xt: E, incx: I, result: P, rt: E, et: E) cublasNrm2Ex / cublasNrm2Ex_64 }
api! { asum; (n: I, x: P, incx: I, result: P)
    cublasSasum_v2 / cublasSasum_v2_64 = F32, cublasDasum_v2 / cublasDasum_v2_64 = F64,
    cublasScasum_v2 / cublasScasum_v2_64 = C32, cublasDzasum_v2 / cublasDzasum_v2_64 = C64,
}
// The twins with 64-bit integers have 64-bit results, which are refused.
api! { greatest; (n: I, x: P, incx: I, result: P)
    cublasIsamax_v2 = F32, cublasIdamax_v2 = F64, cublasIcamax_v2 = C32, cublasIzamax_v2 = C64,
}
api! { smallest; (n: I, x: P, incx: I, result: P)
    cublasIsamin_v2 = F32, cublasIdamin_v2 = F64, cublasIcamin_v2 = C32, cublasIzamin_v2 = C64,
}
api! { dot::<1>; (n: I, x: P, incx: I, y: P, incy: I, result: P)
    cublasSdot_v2 / cublasSdot_v2_64 = F32, cublasDdot_v2 / cublasDdot_v2_64 = F64,
    cublasCdotu_v2 / cublasCdotu_v2_64 = C32, cublasZdotu_v2 / cublasZdotu_v2_64 = C64,
}
api! { dot::<2>; (n: I, x: P, incx: I, y: P, incy: I, result: P)
    cublasCdotc_v2 / cublasCdotc_v2_64 = C32, cublasZdotc_v2 / cublasZdotc_v2_64 = C64,
}
api! { dot_ex::<1>; (n: I, x: P, xt: E, incx: I, y: P, yt: E, incy: I, result: P, rt: E, et: E)
    cublasDotEx / cublasDotEx_64,
}
api! { dot_ex::<2>; (n: I, x: P, xt: E, incx: I, y: P, yt: E, incy: I, result: P, rt: E, et: E)
    cublasDotcEx / cublasDotcEx_64,
}
