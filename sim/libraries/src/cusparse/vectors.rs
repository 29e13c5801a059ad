//! Sparse vectors with dense ones.

use super::descriptors::{DnMat, SpVec, given};
use super::handle::{SparseCall, SparseResult, SparseStatus, operation, put};
use crate::numerics::number::Compute;
use crate::numerics::sparse::vector::{SparseVector, SparseVectorOp};

/// Enqueues a call.
fn enqueue(
    call: &SparseCall<'_>,
    op: SparseVectorOp,
    sparse: u64,
    dense: u64,
    compute: Option<Compute>,
) -> SparseResult {
    let (sparse, dense) = (given::<SpVec>(sparse)?, given::<DnMat>(dense)?);
    if sparse.size != dense.matrix.size[0] {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let compute = compute.unwrap_or_else(|| sparse.values.kind.compute());
    let vector = SparseVector {
        op,
        indices: sparse.indices,
        base: sparse.base,
        values: sparse.values,
        dense: dense.matrix,
        compute,
    };
    call.enqueue(vector.blocks(), &vector)
}

fn gather(call: &mut SparseCall<'_>, dense: u64, sparse: u64) -> SparseResult {
    enqueue(call, SparseVectorOp::Gather, sparse, dense, None)
}

fn scatter(call: &mut SparseCall<'_>, sparse: u64, dense: u64) -> SparseResult {
    enqueue(call, SparseVectorOp::Scatter, sparse, dense, None)
}

fn axpby(call: &mut SparseCall<'_>, alpha: u64, sparse: u64, beta: u64, dense: u64) -> SparseResult {
    // The factors' type is that of the computation: of half precision, single.
    let compute = given::<SpVec>(sparse)?.values.kind.compute();
    let kind = compute.kind();
    let op = SparseVectorOp::Add(call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    enqueue(call, op, sparse, dense, Some(compute))
}

fn spvv_size(_: &mut SparseCall<'_>, _by: i64, _x: u64, _y: u64, _result: u64, _compute: i64, to: u64) -> SparseResult {
    put(to, 0_usize)
}

fn spvv(call: &mut SparseCall<'_>, by: i64, x: u64, y: u64, result: u64, compute: i64, _at: u64) -> SparseResult {
    let (compute, kind) = call.compute(compute)?;
    let conjugate = operation(by)? == 2;
    call.with_result(result, kind, |call, result| {
        enqueue(call, SparseVectorOp::Dot(result, conjugate), x, y, Some(compute))
    })
}

handled! { in cusparse; gather; (dense: P, sparse: P) cusparseGather }
handled! { in cusparse; scatter; (sparse: P, dense: P) cusparseScatter }
handled! { in cusparse; axpby; (alpha: P, sparse: P, beta: P, dense: P) cusparseAxpby }
handled! { in cusparse; spvv_size; (by: I, x: P, y: P, result: P, compute: I, to: P) cusparseSpVV_bufferSize }
handled! { in cusparse; spvv; (by: I, x: P, y: P, result: P, compute: I, at: P) cusparseSpVV }
