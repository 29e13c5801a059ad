//! LU and QR factors of batches of matrices, and what is solved with them.

use super::handle::{Entered, Res, Status, not_simulated, operation};
use crate::numerics::algebra::factor::{Factor, FactorOp};
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

fn enqueue(
    call: &mut Entered<'_>,
    op: FactorOp,
    a: Matrix,
    other: Option<Matrix>,
    pivots: u64,
    info: u64,
    batch: i64,
) -> Res {
    if batch == 0 || a.size.contains(&0) {
        return Ok(());
    }
    let compute = a.kind.compute();
    let factor = Factor { op, a, other, pivots, pivot_type: Type::I32, info, batch: batch as usize, compute };
    call.enqueue(&factor.blocks(), &factor)
}

/// The host's `info`: arguments were right.
fn host_info(info: u64) -> Res {
    if info == 0 {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { (info as *mut i32).write(0) };
    Ok(())
}

fn getrf(call: &mut Entered<'_>, kind: Type, n: i64, a: u64, lda: i64, pivots: u64, info: u64, batch: i64) -> Res {
    enqueue(call, FactorOp::Lu, Matrix::new(a, kind, n, n, lda).pointers(), None, pivots, info, batch)
}

fn getri(
    call: &mut Entered<'_>,
    kind: Type,
    n: i64,
    a: u64,
    lda: i64,
    pivots: u64,
    c: u64,
    ldc: i64,
    info: u64,
    batch: i64,
) -> Res {
    let out = Matrix::new(c, kind, n, n, ldc).pointers();
    enqueue(call, FactorOp::LuInverse, Matrix::new(a, kind, n, n, lda).pointers(), Some(out), pivots, info, batch)
}

fn matinv(
    call: &mut Entered<'_>,
    kind: Type,
    n: i64,
    a: u64,
    lda: i64,
    c: u64,
    ldc: i64,
    info: u64,
    batch: i64,
) -> Res {
    let out = Matrix::new(c, kind, n, n, ldc).pointers();
    enqueue(call, FactorOp::Inverse, Matrix::new(a, kind, n, n, lda).pointers(), Some(out), 0, info, batch)
}

fn getrs(
    call: &mut Entered<'_>,
    kind: Type,
    trans: i32,
    n: i64,
    count: i64,
    a: u64,
    lda: i64,
    pivots: u64,
    b: u64,
    ldb: i64,
    info: u64,
    batch: i64,
) -> Res {
    host_info(info)?;
    let op = FactorOp::LuSolve(operation(call.name, trans)?);
    let b = Matrix::new(b, kind, n, count, ldb).pointers();
    enqueue(call, op, Matrix::new(a, kind, n, n, lda).pointers(), Some(b), pivots, 0, batch)
}

fn geqrf(call: &mut Entered<'_>, kind: Type, m: i64, n: i64, a: u64, lda: i64, tau: u64, info: u64, batch: i64) -> Res {
    host_info(info)?;
    let tau = Matrix::new(tau, kind, m.min(n), 1, m.min(n).max(1)).pointers();
    enqueue(call, FactorOp::Qr, Matrix::new(a, kind, m, n, lda).pointers(), Some(tau), 0, 0, batch)
}

fn gels(
    call: &mut Entered<'_>,
    kind: Type,
    trans: i32,
    m: i64,
    n: i64,
    count: i64,
    a: u64,
    lda: i64,
    c: u64,
    ldc: i64,
    info: u64,
    device_info: u64,
    batch: i64,
) -> Res {
    host_info(info)?;
    // As in NVIDIA's library.
    if trans != 0 || m < n {
        return Err(not_simulated(call.name, "a transposed or underdetermined system"));
    }
    let c = Matrix::new(c, kind, m, count, ldc).pointers();
    enqueue(call, FactorOp::LeastSquares, Matrix::new(a, kind, m, n, lda).pointers(), Some(c), 0, device_info, batch)
}

api! { getrf; (n: I, a: P, lda: I, pivots: P, info: P, batch: I)
    cublasSgetrfBatched = F32, cublasDgetrfBatched = F64, cublasCgetrfBatched = C32, cublasZgetrfBatched = C64,
}
api! { getri; (n: I, a: P, lda: I, pivots: P, c: P, ldc: I, info: P, batch: I)
    cublasSgetriBatched = F32, cublasDgetriBatched = F64, cublasCgetriBatched = C32, cublasZgetriBatched = C64,
}
api! { matinv; (n: I, a: P, lda: I, c: P, ldc: I, info: P, batch: I)
    cublasSmatinvBatched = F32, cublasDmatinvBatched = F64, cublasCmatinvBatched = C32, cublasZmatinvBatched = C64,
}
api! { getrs;
    (trans: E, n: I, count: I, a: P, lda: I, pivots: P, b: P, ldb: I, info: P, batch: I)
    cublasSgetrsBatched = F32, cublasDgetrsBatched = F64, cublasCgetrsBatched = C32, cublasZgetrsBatched = C64,
}
api! { geqrf; (m: I, n: I, a: P, lda: I, tau: P, info: P, batch: I)
    cublasSgeqrfBatched = F32, cublasDgeqrfBatched = F64, cublasCgeqrfBatched = C32, cublasZgeqrfBatched = C64,
}
api! { gels;
    (trans: E, m: I, n: I, count: I, a: P, lda: I, c: P, ldc: I, info: P, device_info: P, batch: I)
    cublasSgelsBatched = F32, cublasDgelsBatched = F64, cublasCgelsBatched = C32, cublasZgelsBatched = C64,
}
