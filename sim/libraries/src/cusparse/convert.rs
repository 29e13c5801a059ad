//! Indices of sparse matrices, their forms, and dense matrices.

use super::descriptors::{DnMat, SpMat, given};
use super::handle::{SparseCall, SparseResult, SparseStatus, buffer, put_size};
use super::sums::base_of;
use crate::model::block::Block;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;
use crate::numerics::sparse::arrays::{Format, Sparse};
use crate::numerics::sparse::convert::{FromDense, IndexOp, Indices, Recompress, ToDense};

/// An array of indices.
fn indices(at: u64, count: i64) -> Result<Matrix, SparseStatus> {
    if count < 0 || at == 0 && count > 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    Ok(Matrix::new(at, Type::I32, count, 1, count.max(1)))
}

fn enqueue(call: &SparseCall<'_>, op: IndexOp, base: i64, buffer: Option<Block>) -> SparseResult {
    if !matches!(base, 0 | 1) {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let of = Indices { op, base };
    call.enqueue(of.blocks().into_iter().chain(buffer).collect(), &of)
}

fn coo2csr(call: &mut SparseCall<'_>, rows: u64, entries: i64, m: i64, offsets: u64, base: i64) -> SparseResult {
    let op = IndexOp::Compress { from: indices(rows, entries)?, to: indices(offsets, m + 1)? };
    enqueue(call, op, base, None)
}

fn csr2coo(call: &mut SparseCall<'_>, offsets: u64, entries: i64, m: i64, rows: u64, base: i64) -> SparseResult {
    let op = IndexOp::Expand { from: indices(offsets, m + 1)?, to: indices(rows, entries)? };
    enqueue(call, op, base, None)
}

fn identity(call: &mut SparseCall<'_>, n: i64, to: u64) -> SparseResult {
    enqueue(call, IndexOp::Identity { to: indices(to, n)? }, 0, None)
}

fn sort_size(
    _: &mut SparseCall<'_>,
    m: i64,
    _n: i64,
    entries: i64,
    _first: u64,
    _second: u64,
    to: u64,
) -> SparseResult {
    if m < 0 || entries < 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    put_size(to, m as usize, entries as usize)
}

/// The permutation may be left out.
fn permutation(at: u64, entries: i64) -> Matrix {
    Matrix::new(at, Type::I32, entries, 1, entries.max(1))
}

fn coosort(call: &SparseCall<'_>, m: i64, entries: i64, [first, second, order, at]: [u64; 4]) -> SparseResult {
    let op = IndexOp::Sort {
        first: indices(first, entries)?,
        second: indices(second, entries)?,
        permutation: permutation(order, entries),
    };
    enqueue(call, op, 0, Some(buffer(at, m.max(0) as usize, entries as usize)))
}

fn coosort_by_row(
    call: &mut SparseCall<'_>,
    m: i64,
    _n: i64,
    entries: i64,
    rows: u64,
    columns: u64,
    order: u64,
    at: u64,
) -> SparseResult {
    coosort(call, m, entries, [rows, columns, order, at])
}

fn coosort_by_column(
    call: &mut SparseCall<'_>,
    m: i64,
    _n: i64,
    entries: i64,
    rows: u64,
    columns: u64,
    order: u64,
    at: u64,
) -> SparseResult {
    coosort(call, m, entries, [columns, rows, order, at])
}

/// Sorts rows. `m`: how many there are, which is what a buffer's size was asked for.
fn csrsort(
    call: &mut SparseCall<'_>,
    m: i64,
    _n: i64,
    entries: i64,
    descriptor: u64,
    offsets: u64,
    columns: u64,
    order: u64,
    at: u64,
) -> SparseResult {
    sort_rows(call, [m, m], entries, descriptor, [offsets, columns, order, at])
}

fn cscsort(
    call: &mut SparseCall<'_>,
    m: i64,
    n: i64,
    entries: i64,
    descriptor: u64,
    offsets: u64,
    rows: u64,
    order: u64,
    at: u64,
) -> SparseResult {
    sort_rows(call, [m, n], entries, descriptor, [offsets, rows, order, at])
}

fn sort_rows(
    call: &SparseCall<'_>,
    [m, count]: [i64; 2],
    entries: i64,
    descriptor: u64,
    [offsets, second, order, at]: [u64; 4],
) -> SparseResult {
    let op = IndexOp::SortRows {
        offsets: indices(offsets, count + 1)?,
        second: indices(second, entries)?,
        permutation: permutation(order, entries),
    };
    enqueue(call, op, base_of(descriptor)?, Some(buffer(at, m.max(0) as usize, entries as usize)))
}

fn csr2csc_size(
    _: &mut SparseCall<'_>,
    m: i64,
    n: i64,
    entries: i64,
    _values: u64,
    _offsets: u64,
    _columns: u64,
    _to_values: u64,
    _to_offsets: u64,
    _to_rows: u64,
    _kind: i64,
    _action: i64,
    _base: i64,
    _algorithm: i64,
    to: u64,
) -> SparseResult {
    if m < 0 || n < 0 || entries < 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    put_size(to, m as usize, entries as usize)
}

fn csr2csc(
    call: &mut SparseCall<'_>,
    m: i64,
    n: i64,
    entries: i64,
    values: u64,
    offsets: u64,
    columns: u64,
    to_values: u64,
    to_offsets: u64,
    to_rows: u64,
    kind: i64,
    action: i64,
    base: i64,
    _algorithm: i64,
    at: u64,
) -> SparseResult {
    if m < 0 || n < 0 || entries < 0 || !matches!(base, 0 | 1) {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let form = |format, first, second, values, kind| Sparse {
        format,
        size: [m as usize, n as usize],
        entries: entries as usize,
        first,
        second,
        values,
        index_types: [Type::I32; 2],
        base,
        kind,
        strides: [0; 2],
    };
    let kind = call.kind(kind)?;
    let places_only = match action {
        0 => true,
        1 => false,
        _ => return Err(SparseStatus::INVALID_VALUE),
    };
    let from = form(Format::Rows, offsets, columns, values, kind);
    let to = form(Format::Columns, to_offsets, to_rows, to_values, kind);
    let recompress = Recompress { from, to, places_only };
    let mut blocks = recompress.blocks();
    blocks.push(buffer(at, m as usize, entries as usize));
    call.enqueue(blocks, &recompress)
}

fn to_dense_size(_: &mut SparseCall<'_>, a: u64, _b: u64, _algorithm: i64, to: u64) -> SparseResult {
    let a = given::<SpMat>(a)?.sparse;
    put_size(to, a.size[0], a.entries)
}

fn to_dense(call: &mut SparseCall<'_>, a: u64, b: u64, _algorithm: i64, at: u64) -> SparseResult {
    let (from, to) = (given::<SpMat>(a)?.sparse, given::<DnMat>(b)?.matrix);
    if from.size != to.size {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let dense = ToDense { from, to, compute: to.kind.compute() };
    let mut blocks = dense.blocks();
    blocks.push(buffer(at, from.size[0], from.entries));
    call.enqueue(blocks, &dense)
}

fn from_dense_size(_: &mut SparseCall<'_>, a: u64, _b: u64, _algorithm: i64, to: u64) -> SparseResult {
    put_size(to, given::<DnMat>(a)?.matrix.size[0], 0)
}

/// A dense matrix and the sparse one that it becomes.
fn from_dense(a: u64, b: u64) -> Result<FromDense, SparseStatus> {
    let (from, to) = (given::<DnMat>(a)?.matrix, given::<SpMat>(b)?.sparse);
    if from.size != to.size {
        return Err(SparseStatus::INVALID_VALUE);
    }
    Ok(FromDense { from, to, compute: from.kind.compute(), count: 0 })
}

fn from_dense_analysis(call: &mut SparseCall<'_>, a: u64, b: u64, _algorithm: i64, at: u64) -> SparseResult {
    let mut entries = 0_i64;
    let dense = FromDense { count: &raw mut entries as usize, ..from_dense(a, b)? };
    let mut blocks = dense.blocks();
    blocks.push(buffer(at, dense.from.size[0], 0));
    // Where rows begin may be stored already.
    if dense.to.format != Format::Coordinates {
        let first = dense.to.first();
        blocks.push(Block::scratch(first.at, first.size[0] as u64 * u64::from(first.kind.bytes())));
    }
    call.enqueue(blocks, &dense)?;
    // The program asks for the number of entries next.
    call.wait()?;
    given::<SpMat>(b)?.sparse.entries = entries as usize;
    Ok(())
}

fn from_dense_convert(call: &mut SparseCall<'_>, a: u64, b: u64, _algorithm: i64, at: u64) -> SparseResult {
    let dense = from_dense(a, b)?;
    let mut blocks = dense.blocks();
    blocks.push(buffer(at, dense.from.size[0], 0));
    call.enqueue(blocks, &dense)
}

handled! { in cusparse; coo2csr; (rows: P, entries: I, m: I, offsets: P, base: I) cusparseXcoo2csr }
handled! { in cusparse; csr2coo; (offsets: P, entries: I, m: I, rows: P, base: I) cusparseXcsr2coo }
handled! { in cusparse; identity; (n: I, to: P) cusparseCreateIdentityPermutation }
handled! { in cusparse; sort_size; (m: I, n: I, entries: I, first: P, second: P, to: P)
    cusparseXcoosort_bufferSizeExt, cusparseXcsrsort_bufferSizeExt, cusparseXcscsort_bufferSizeExt,
}
handled! { in cusparse; coosort_by_row; (m: I, n: I, entries: I, rows: P, columns: P, order: P, at: P)
    cusparseXcoosortByRow
}
handled! { in cusparse; coosort_by_column; (m: I, n: I, entries: I, rows: P, columns: P, order: P, at: P)
    cusparseXcoosortByColumn
}
handled! { in cusparse; csrsort; (m: I, n: I, entries: I, descriptor: P, offsets: P, columns: P, order: P, at: P)
    cusparseXcsrsort
}
handled! { in cusparse; cscsort; (m: I, n: I, entries: I, descriptor: P, offsets: P, rows: P, order: P, at: P)
    cusparseXcscsort
}
handled! { in cusparse; csr2csc_size;
    (m: I, n: I, entries: I, values: P, offsets: P, columns: P, to_values: P, to_offsets: P, to_rows: P, kind: I,
        action: I, base: I, algorithm: I, to: P)
    cusparseCsr2cscEx2_bufferSize
}
handled! { in cusparse; csr2csc;
    (m: I, n: I, entries: I, values: P, offsets: P, columns: P, to_values: P, to_offsets: P, to_rows: P, kind: I,
        action: I, base: I, algorithm: I, at: P)
    cusparseCsr2cscEx2
}
handled! { in cusparse; to_dense_size; (a: P, b: P, algorithm: I, to: P) cusparseSparseToDense_bufferSize }
handled! { in cusparse; to_dense; (a: P, b: P, algorithm: I, at: P) cusparseSparseToDense }
handled! { in cusparse; from_dense_size; (a: P, b: P, algorithm: I, to: P) cusparseDenseToSparse_bufferSize }
handled! { in cusparse; from_dense_analysis; (a: P, b: P, algorithm: I, at: P) cusparseDenseToSparse_analysis }
handled! { in cusparse; from_dense_convert; (a: P, b: P, algorithm: I, at: P) cusparseDenseToSparse_convert }
