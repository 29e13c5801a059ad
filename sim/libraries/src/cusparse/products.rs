//! Products of sparse matrices with dense vectors and matrices, at the entries of a sparse matrix,
//! and with sparse matrices.

use super::descriptors::{DnMat, SpMat, given};
use super::handle::{SparseCall, SparseResult, SparseStatus, buffer, operation, put, put_size};
use crate::model::block::Block;
use crate::numerics::matrix::Matrix;
use crate::numerics::sparse::arrays::Format;
use crate::numerics::sparse::product::{Sampled, TimesDense};
use crate::numerics::sparse::sum::{Kept, SparseProduct, Store};

/// A matrix that the program vouches for, operated on.
fn operated(matrix: Matrix, by: i32) -> Matrix {
    matrix.operated(by)
}

/// The size of `op(A)`.
fn size_of(a: &SpMat, by: i32) -> [usize; 2] {
    let [rows, columns] = a.sparse.size;
    if by == 0 { [rows, columns] } else { [columns, rows] }
}

/// `C = alpha op(A) op(B) + beta C`.
fn times_dense(
    call: &SparseCall<'_>,
    (by_a, by_b): (i64, i64),
    alpha: u64,
    a: u64,
    b: u64,
    beta: u64,
    c: u64,
    compute: i64,
    at: u64,
) -> SparseResult {
    let (a, b, c) = (given::<SpMat>(a)?, given::<DnMat>(b)?, given::<DnMat>(c)?);
    let (compute, kind) = call.compute(compute)?;
    let by_a = operation(by_a)?;
    let b_matrix = operated(b.matrix, operation(by_b)?);
    let [rows, inner] = size_of(a, by_a);
    if b_matrix.size != [inner, c.matrix.size[1]] || c.matrix.size[0] != rows {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let batch = c.batch.max(b.batch).max(a.batch);
    let times = TimesDense {
        a: a.sparse,
        operation: by_a,
        b: b_matrix,
        c: c.matrix,
        alpha: call.scalar(alpha, kind)?,
        beta: call.scalar(beta, kind)?,
        batch,
        compute,
    };
    let mut blocks = times.blocks();
    blocks.push(buffer(at, a.sparse.size[0], a.sparse.entries));
    call.enqueue(blocks, &times)
}

fn spmv(
    call: &mut SparseCall<'_>,
    by: i64,
    alpha: u64,
    a: u64,
    x: u64,
    beta: u64,
    y: u64,
    compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    times_dense(call, (by, 0), alpha, a, x, beta, y, compute, at)
}

fn spmm(
    call: &mut SparseCall<'_>,
    by_a: i64,
    by_b: i64,
    alpha: u64,
    a: u64,
    b: u64,
    beta: u64,
    c: u64,
    compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    times_dense(call, (by_a, by_b), alpha, a, b, beta, c, compute, at)
}

/// What prepares the buffer: reads where the entries are.
fn prepare(call: &SparseCall<'_>, a: u64, at: u64) -> SparseResult {
    let a = given::<SpMat>(a)?;
    let mut blocks: Vec<Block> = a.sparse.read_places(a.batch).map(Block::in_part).to_vec();
    blocks.push(buffer(at, a.sparse.size[0], a.sparse.entries));
    call.enqueue(blocks, &super::handle::Nothing)
}

fn spmv_prepare(
    call: &mut SparseCall<'_>,
    _by: i64,
    _alpha: u64,
    a: u64,
    _x: u64,
    _beta: u64,
    _y: u64,
    _compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    prepare(call, a, at)
}

fn spmm_prepare(
    call: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _beta: u64,
    _c: u64,
    _compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    prepare(call, a, at)
}

fn put_size_of(a: u64, to: u64) -> SparseResult {
    let a = given::<SpMat>(a)?;
    put_size(to, a.sparse.size[0], a.sparse.entries)
}

fn spmv_size(
    _: &mut SparseCall<'_>,
    _by: i64,
    _alpha: u64,
    a: u64,
    _x: u64,
    _beta: u64,
    _y: u64,
    _compute: i64,
    _algorithm: i64,
    to: u64,
) -> SparseResult {
    put_size_of(a, to)
}

fn spmm_size(
    _: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _beta: u64,
    _c: u64,
    _compute: i64,
    _algorithm: i64,
    to: u64,
) -> SparseResult {
    put_size_of(a, to)
}

fn sddmm(
    call: &mut SparseCall<'_>,
    by_a: i64,
    by_b: i64,
    alpha: u64,
    a: u64,
    b: u64,
    beta: u64,
    c: u64,
    compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    let (a, b, c) = (given::<DnMat>(a)?, given::<DnMat>(b)?, given::<SpMat>(c)?);
    let (compute, kind) = call.compute(compute)?;
    let matrices = [operated(a.matrix, operation(by_a)?), operated(b.matrix, operation(by_b)?)];
    let [rows, columns] = c.sparse.size;
    if matrices[0].size[0] != rows || matrices[1].size[1] != columns || matrices[0].size[1] != matrices[1].size[0] {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let sampled = Sampled {
        a: matrices[0],
        b: matrices[1],
        c: c.sparse,
        alpha: call.scalar(alpha, kind)?,
        beta: call.scalar(beta, kind)?,
        batch: c.batch.max(a.batch).max(b.batch),
        compute,
    };
    let mut blocks = sampled.blocks();
    blocks.push(buffer(at, rows, c.sparse.entries));
    call.enqueue(blocks, &sampled)
}

fn sddmm_size(
    _: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    _a: u64,
    _b: u64,
    _beta: u64,
    c: u64,
    _compute: i64,
    _algorithm: i64,
    to: u64,
) -> SparseResult {
    put_size_of(c, to)
}

fn sddmm_prepare(
    call: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    _a: u64,
    _b: u64,
    _beta: u64,
    c: u64,
    _compute: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    prepare(call, c, at)
}

/// What a `cusparseSpGEMMDescr_t` points to.
#[derive(Debug)]
pub(super) struct Gemm {
    kept: Kept,
    /// The buffers, which the program leaves alone until it has the result.
    buffers: [u64; 2],
}

/// The matrices of a product of sparse ones, if they fit.
fn sparse_result(
    call: &SparseCall<'_>,
    (by_a, by_b): (i64, i64),
    [alpha, a, b, beta, c]: [u64; 5],
    compute: i64,
    to: Kept,
) -> Result<SparseProduct, SparseStatus> {
    let (a, b, c) = (given::<SpMat>(a)?, given::<SpMat>(b)?, given::<SpMat>(c)?);
    let (compute, kind) = call.compute(compute)?;
    // As in NVIDIA's library.
    if (by_a, by_b) != (0, 0) || [&*a, b, c].iter().any(|matrix| matrix.sparse.format != Format::Rows) {
        return Err(call.not_simulated("an operation on a matrix, or a matrix that is not compressed by rows,"));
    }
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    if !beta.is_zero() && c.sparse.entries > 0 {
        return Err(call.not_simulated("a sum with the old entries of the result"));
    }
    if a.sparse.size[1] != b.sparse.size[0] || c.sparse.size != [a.sparse.size[0], b.sparse.size[1]] {
        return Err(SparseStatus::INVALID_VALUE);
    }
    Ok(SparseProduct { a: a.sparse, b: b.sparse, alpha, compute, to })
}

fn work_estimation(
    call: &mut SparseCall<'_>,
    by_a: i64,
    by_b: i64,
    alpha: u64,
    a: u64,
    b: u64,
    beta: u64,
    c: u64,
    compute: i64,
    _algorithm: i64,
    descriptor: u64,
    bytes: u64,
    at: u64,
) -> SparseResult {
    let gemm = given::<Gemm>(descriptor)?;
    let product = sparse_result(call, (by_a, by_b), [alpha, a, b, beta, c], compute, gemm.kept)?;
    let (rows, entries) = (product.a.size[0], product.a.entries + product.b.entries);
    if at == 0 {
        return put_size(bytes, rows, entries);
    }
    gemm.buffers[0] = at;
    let places = [product.a, product.b].into_iter().flat_map(|matrix| matrix.read_places(1)).map(Block::in_part);
    call.enqueue(places.chain([buffer(at, rows, entries)]).collect(), &super::handle::Nothing)
}

fn sparse_compute(
    call: &mut SparseCall<'_>,
    by_a: i64,
    by_b: i64,
    alpha: u64,
    a: u64,
    b: u64,
    beta: u64,
    c: u64,
    compute: i64,
    _algorithm: i64,
    descriptor: u64,
    bytes: u64,
    at: u64,
) -> SparseResult {
    let gemm = given::<Gemm>(descriptor)?;
    let product = sparse_result(call, (by_a, by_b), [alpha, a, b, beta, c], compute, gemm.kept)?;
    let (rows, entries) = (product.a.size[0], product.a.entries + product.b.entries);
    if at == 0 {
        return put_size(bytes, rows, entries);
    }
    gemm.buffers[1] = at;
    let mut blocks = product.blocks();
    blocks.extend(gemm.buffers.map(|at| buffer(at, rows, entries)));
    call.enqueue(blocks, &product)?;
    // The program asks for the number of entries next.
    call.wait()?;
    given::<SpMat>(c)?.sparse.entries = gemm.kept.len();
    Ok(())
}

fn sparse_copy(
    call: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    a: u64,
    b: u64,
    _beta: u64,
    c: u64,
    _compute: i64,
    _algorithm: i64,
    descriptor: u64,
) -> SparseResult {
    let (a, b) = (given::<SpMat>(a)?.sparse, given::<SpMat>(b)?.sparse);
    let (c, gemm) = (given::<SpMat>(c)?.sparse, given::<Gemm>(descriptor)?);
    if c.entries != gemm.kept.len() {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let store = Store { c, from: gemm.kept };
    let mut blocks = store.blocks();
    blocks.extend(gemm.buffers.map(|at| buffer(at, a.size[0], a.entries + b.entries)));
    gemm.kept.expect();
    call.enqueue(blocks, &store)
}

handled! { in cusparse; spmv_size;
    (by: I, alpha: P, a: P, x: P, beta: P, y: P, compute: I, algorithm: I, to: P) cusparseSpMV_bufferSize
}
handled! { in cusparse; spmv_prepare;
    (by: I, alpha: P, a: P, x: P, beta: P, y: P, compute: I, algorithm: I, at: P) cusparseSpMV_preprocess
}
handled! { in cusparse; spmv;
    (by: I, alpha: P, a: P, x: P, beta: P, y: P, compute: I, algorithm: I, at: P) cusparseSpMV
}
handled! { in cusparse; spmm_size;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, to: P) cusparseSpMM_bufferSize
}
handled! { in cusparse; spmm_prepare;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, at: P) cusparseSpMM_preprocess
}
handled! { in cusparse; spmm;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, at: P) cusparseSpMM
}
handled! { in cusparse; sddmm_size;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, to: P) cusparseSDDMM_bufferSize
}
handled! { in cusparse; sddmm_prepare;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, at: P) cusparseSDDMM_preprocess
}
handled! { in cusparse; sddmm;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, at: P) cusparseSDDMM
}
handled! { in cusparse; work_estimation;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, descriptor: P, bytes: P, at: P)
    cusparseSpGEMM_workEstimation
}
handled! { in cusparse; sparse_compute;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, descriptor: P, bytes: P, at: P)
    cusparseSpGEMM_compute
}
handled! { in cusparse; sparse_copy;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, beta: P, c: P, compute: I, algorithm: I, descriptor: P)
    cusparseSpGEMM_copy
}

// SAFETY: cuSPARSE's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cusparseSpGEMM_createDescr(to: *mut *mut Gemm) -> i32 {
    super::handle::answer(put(to as u64, Box::into_raw(Box::new(Gemm { kept: Kept::new(), buffers: [0; 2] }))))
}

/// # Safety
/// A descriptor of [`cusparseSpGEMM_createDescr`] that is not used again, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cusparseSpGEMM_destroyDescr(of: *mut Gemm) -> i32 {
    if of.is_null() {
        return SparseStatus::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    unsafe { Box::from_raw(of) }.kept.release();
    0
}
