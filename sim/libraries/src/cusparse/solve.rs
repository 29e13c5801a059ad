//! Triangular systems with a sparse matrix, for one right side (`SpSV`) and for several (`SpSM`).

use super::descriptors::{DnMat, SpMat, given};
use super::handle::{Nothing, SparseCall, SparseResult, SparseStatus, answer, buffer, operation, put, put_size};
use crate::model::block::Block;
use crate::numerics::sparse::solve::SparseTriangular;

/// What a `cusparseSpSVDescr_t` and a `cusparseSpSMDescr_t` point to: the buffer that the analysis
/// has filled, which the solution uses.
#[derive(Debug, Default)]
pub(super) struct Analysed {
    buffer: u64,
}

fn size(a: u64, to: u64) -> SparseResult {
    let a = given::<SpMat>(a)?.sparse;
    put_size(to, a.size[0], a.entries)
}

fn analyse(call: &SparseCall<'_>, a: u64, descriptor: u64, at: u64) -> SparseResult {
    let a = given::<SpMat>(a)?.sparse;
    given::<Analysed>(descriptor)?.buffer = at;
    let mut blocks: Vec<Block> = a.read_blocks(1).map(Block::in_part).to_vec();
    blocks.push(buffer(at, a.size[0], a.entries));
    call.enqueue(blocks, &Nothing)
}

fn solve(
    call: &SparseCall<'_>,
    (by_a, by_b): (i64, i64),
    [alpha, a, b, x]: [u64; 4],
    compute: i64,
    descriptor: u64,
) -> SparseResult {
    let (a, b, x) = (given::<SpMat>(a)?, given::<DnMat>(b)?.matrix, given::<DnMat>(x)?.matrix);
    let b = b.operated(operation(by_b)?);
    let (compute, kind) = call.compute(compute)?;
    let [rows, columns] = a.sparse.size;
    if rows != columns || b.size[0] != rows || b.size != x.size {
        return Err(SparseStatus::INVALID_VALUE);
    }
    if a.batch > 1 {
        return Err(call.not_simulated("a batch"));
    }
    let system = SparseTriangular {
        a: a.sparse,
        part: a.part,
        unit: a.unit,
        operation: operation(by_a)?,
        b,
        x,
        alpha: call.scalar(alpha, kind)?,
        compute,
    };
    let mut blocks = system.blocks();
    blocks.push(buffer(given::<Analysed>(descriptor)?.buffer, rows, a.sparse.entries));
    call.enqueue(blocks, &system)
}

fn spsv_size(
    _: &mut SparseCall<'_>,
    _by: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _x: u64,
    _compute: i64,
    _algorithm: i64,
    _descriptor: u64,
    to: u64,
) -> SparseResult {
    size(a, to)
}

fn spsv_analysis(
    call: &mut SparseCall<'_>,
    _by: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _x: u64,
    _compute: i64,
    _algorithm: i64,
    descriptor: u64,
    at: u64,
) -> SparseResult {
    analyse(call, a, descriptor, at)
}

fn spsv_solve(
    call: &mut SparseCall<'_>,
    by: i64,
    alpha: u64,
    a: u64,
    b: u64,
    x: u64,
    compute: i64,
    _algorithm: i64,
    descriptor: u64,
) -> SparseResult {
    solve(call, (by, 0), [alpha, a, b, x], compute, descriptor)
}

fn spsm_size(
    _: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _x: u64,
    _compute: i64,
    _algorithm: i64,
    _descriptor: u64,
    to: u64,
) -> SparseResult {
    size(a, to)
}

fn spsm_analysis(
    call: &mut SparseCall<'_>,
    _by_a: i64,
    _by_b: i64,
    _alpha: u64,
    a: u64,
    _b: u64,
    _x: u64,
    _compute: i64,
    _algorithm: i64,
    descriptor: u64,
    at: u64,
) -> SparseResult {
    analyse(call, a, descriptor, at)
}

fn spsm_solve(
    call: &mut SparseCall<'_>,
    by_a: i64,
    by_b: i64,
    alpha: u64,
    a: u64,
    b: u64,
    x: u64,
    compute: i64,
    _algorithm: i64,
    descriptor: u64,
) -> SparseResult {
    solve(call, (by_a, by_b), [alpha, a, b, x], compute, descriptor)
}

handled! { in cusparse; spsv_size;
    (by: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P, to: P) cusparseSpSV_bufferSize
}
handled! { in cusparse; spsv_analysis;
    (by: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P, at: P) cusparseSpSV_analysis
}
handled! { in cusparse; spsv_solve;
    (by: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P) cusparseSpSV_solve
}
handled! { in cusparse; spsm_size;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P, to: P)
    cusparseSpSM_bufferSize
}
handled! { in cusparse; spsm_analysis;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P, at: P)
    cusparseSpSM_analysis
}
handled! { in cusparse; spsm_solve;
    (by_a: I, by_b: I, alpha: P, a: P, b: P, x: P, compute: I, algorithm: I, descriptor: P) cusparseSpSM_solve
}

macro_rules! descriptors {
    ($($create:ident $destroy:ident)*) => { $(
        // SAFETY: cuSPARSE's name and signature.
        #[unsafe(no_mangle)]
        extern "C" fn $create(to: *mut *mut Analysed) -> i32 {
            answer(put(to as u64, Box::into_raw(Box::<Analysed>::default())))
        }

        /// # Safety
        /// A descriptor of the function that creates it, which is not used again, or null.
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $destroy(of: *mut Analysed) -> i32 {
            if of.is_null() {
                return SparseStatus::INVALID_VALUE.0;
            }
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(of) });
            0
        }
    )* };
}

descriptors! {
    cusparseSpSV_createDescr cusparseSpSV_destroyDescr
    cusparseSpSM_createDescr cusparseSpSM_destroyDescr
}
