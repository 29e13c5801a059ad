//! Descriptors of the generic functions: sparse and dense matrices and vectors.

use std::ffi::{c_int, c_void};

use sim_driver_link::refused;

use super::handle::{SparseResult, SparseStatus, answer, part};
use crate::model::block::Part;
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;
use crate::numerics::sparse::arrays::{Format, Sparse};

/// What a `cusparseSpMatDescr_t` points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpMat {
    pub sparse: Sparse,
    pub batch: usize,
    /// The triangle that counts where one does.
    pub part: Part,
    pub unit: bool,
}

/// What a `cusparseDnMatDescr_t` points to; a dense vector is one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct DnMat {
    pub matrix: Matrix,
    ld: i64,
    by_rows: bool,
    pub batch: usize,
}

/// What a `cusparseSpVecDescr_t` points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpVec {
    pub size: usize,
    pub indices: Matrix,
    pub values: Matrix,
    pub base: i64,
}

/// What a program hands in as a descriptor.
pub(super) fn given<T>(at: u64) -> Result<&'static mut T, SparseStatus> {
    // SAFETY: the C interface: a descriptor is null or came from the function that creates it, and
    // is used by one thread at a time.
    unsafe { (at as *mut T).as_mut() }.ok_or(SparseStatus::INVALID_VALUE)
}

/// The number of a `cudaDataType`.
fn number_of(kind: Type) -> c_int {
    (0..16).find(|&number| Type::of_cuda(number) == Some(kind)).unwrap_or_default()
}

fn kind_of(number: c_int) -> Result<Type, SparseStatus> {
    Type::of_cuda(number).ok_or_else(|| {
        refused(&format!("cuSPARSE: cudaDataType {number} is not simulated"));
        SparseStatus::NOT_SUPPORTED
    })
}

/// A `cusparseIndexType_t`.
fn index_type(number: c_int) -> Result<Type, SparseStatus> {
    match number {
        2 => Ok(Type::I32),
        3 => Ok(Type::I64),
        _ => {
            refused(&format!("cuSPARSE: cusparseIndexType_t {number} is not simulated"));
            Err(SparseStatus::NOT_SUPPORTED)
        }
    }
}

fn index_number(kind: Type) -> c_int {
    if kind == Type::I64 { 3 } else { 2 }
}

fn size(number: i64) -> Result<usize, SparseStatus> {
    usize::try_from(number).map_err(|_| SparseStatus::INVALID_VALUE)
}

fn base_of(number: c_int) -> Result<i64, SparseStatus> {
    if matches!(number, 0 | 1) { Ok(number.into()) } else { Err(SparseStatus::INVALID_VALUE) }
}

/// Creates a descriptor.
fn create<T>(to: *mut *mut T, new: Result<T, SparseStatus>) -> c_int {
    answer(new.and_then(|new| {
        if to.is_null() {
            return Err(SparseStatus::INVALID_VALUE);
        }
        // SAFETY: the C interface: a non-null output pointer is writable.
        unsafe { to.write(Box::into_raw(Box::new(new))) };
        Ok(())
    }))
}

/// # Safety
/// `what` is null or came from [`create`], and is not used again.
unsafe fn destroy<T>(what: *mut T) -> c_int {
    if what.is_null() {
        return SparseStatus::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(what) });
    0
}

/// Hands a value out, if it is asked for.
fn tell<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the C interface: a non-null output pointer is writable.
        unsafe { to.write(value) };
    }
}

fn sparse(
    format: Format,
    [rows, columns, entries]: [i64; 3],
    [first, second, values]: [*mut c_void; 3],
    types: [c_int; 2],
    base: c_int,
    kind: c_int,
) -> Result<SpMat, SparseStatus> {
    let sparse = Sparse {
        format,
        size: [size(rows)?, size(columns)?],
        entries: size(entries)?,
        first: first as u64,
        second: second as u64,
        values: values as u64,
        index_types: [index_type(types[0])?, index_type(types[1])?],
        base: base_of(base)?,
        kind: kind_of(kind)?,
        strides: [0; 2],
    };
    Ok(SpMat { sparse, batch: 1, part: Part::Lower, unit: false })
}

fn dense(
    rows: i64,
    columns: i64,
    ld: i64,
    values: *mut c_void,
    kind: c_int,
    order: c_int,
) -> Result<DnMat, SparseStatus> {
    size(rows)?;
    size(columns)?;
    let by_rows = match order {
        1 => false,
        2 => true,
        _ => return Err(SparseStatus::INVALID_VALUE),
    };
    if ld < if by_rows { columns } else { rows } {
        return Err(SparseStatus::INVALID_VALUE);
    }
    let mut matrix = Matrix::new(values as u64, kind_of(kind)?, rows, columns, ld);
    if by_rows {
        matrix.strides = [ld, 1];
    }
    Ok(DnMat { matrix, ld, by_rows, batch: 1 })
}

fn sparse_vector(
    length: i64,
    entries: i64,
    indices: *mut c_void,
    values: *mut c_void,
    index: c_int,
    base: c_int,
    kind: c_int,
) -> Result<SpVec, SparseStatus> {
    let entries = size(entries)? as i64;
    Ok(SpVec {
        size: size(length)?,
        indices: Matrix::new(indices as u64, index_type(index)?, entries, 1, entries.max(1)),
        values: Matrix::new(values as u64, kind_of(kind)?, entries, 1, entries.max(1)),
        base: base_of(base)?,
    })
}

/// Changes a sparse matrix.
fn change(of: *mut SpMat, body: impl FnOnce(&mut SpMat) -> SparseResult) -> c_int {
    answer(given::<SpMat>(of as u64).and_then(body))
}

/// Tells of a sparse matrix in one of the formats.
fn get(
    of: *mut SpMat,
    format: Format,
    sizes: [*mut i64; 3],
    arrays: [*mut *mut c_void; 3],
    types: [*mut c_int; 2],
    base: *mut c_int,
    kind: *mut c_int,
) -> c_int {
    change(of, |of| {
        let sparse = of.sparse;
        if sparse.format != format {
            return Err(SparseStatus::INVALID_VALUE);
        }
        let [rows, columns] = sparse.size;
        sizes.into_iter().zip([rows, columns, sparse.entries]).for_each(|(to, size)| tell(to, size as i64));
        let addresses = [sparse.first, sparse.second, sparse.values];
        arrays.into_iter().zip(addresses).for_each(|(to, address)| tell(to, address as *mut c_void));
        types.into_iter().zip(sparse.index_types).for_each(|(to, index)| tell(to, index_number(index)));
        tell(base, sparse.base as c_int);
        tell(kind, number_of(sparse.kind));
        Ok(())
    })
}

macro_rules! functions {
    ($($(fn $name:ident),+ ($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        functions! { @each [$($name)+] ($($arg: $ty),*) $body }
    )* };
    (@each [$($name:ident)+] $args:tt $body:block) => { $( functions! { @one $name $args $body } )+ };
    (@one $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        const _: () = {
            /// # Safety
            /// As cuSPARSE's: descriptors are null or those of its functions, and are not used
            /// after they were destroyed.
            // SAFETY: cuSPARSE's name and signature.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $ty),*) -> c_int $body
        };
    };
}

functions! {
    fn cusparseCreateCsr, fn cusparseCreateConstCsr(
        to: *mut *mut SpMat, rows: i64, columns: i64, entries: i64, first: *mut c_void, second: *mut c_void,
        values: *mut c_void, first_type: c_int, second_type: c_int, base: c_int, kind: c_int,
    ) {
        let arrays = [first, second, values];
        create(to, sparse(Format::Rows, [rows, columns, entries], arrays, [first_type, second_type], base, kind))
    }
    fn cusparseCreateCsc, fn cusparseCreateConstCsc(
        to: *mut *mut SpMat, rows: i64, columns: i64, entries: i64, first: *mut c_void, second: *mut c_void,
        values: *mut c_void, first_type: c_int, second_type: c_int, base: c_int, kind: c_int,
    ) {
        let arrays = [first, second, values];
        create(to, sparse(Format::Columns, [rows, columns, entries], arrays, [first_type, second_type], base, kind))
    }
    fn cusparseCreateCoo, fn cusparseCreateConstCoo(
        to: *mut *mut SpMat, rows: i64, columns: i64, entries: i64, first: *mut c_void, second: *mut c_void,
        values: *mut c_void, index: c_int, base: c_int, kind: c_int,
    ) {
        let arrays = [first, second, values];
        create(to, sparse(Format::Coordinates, [rows, columns, entries], arrays, [index, index], base, kind))
    }
    fn cusparseDestroySpMat(of: *mut SpMat) {
        // SAFETY: the caller's promise.
        unsafe { destroy(of) }
    }
    fn cusparseCsrGet, fn cusparseConstCsrGet(
        of: *mut SpMat, rows: *mut i64, columns: *mut i64, entries: *mut i64, first: *mut *mut c_void,
        second: *mut *mut c_void, values: *mut *mut c_void, first_type: *mut c_int, second_type: *mut c_int,
        base: *mut c_int, kind: *mut c_int,
    ) {
        let arrays = [first, second, values];
        get(of, Format::Rows, [rows, columns, entries], arrays, [first_type, second_type], base, kind)
    }
    fn cusparseCscGet, fn cusparseConstCscGet(
        of: *mut SpMat, rows: *mut i64, columns: *mut i64, entries: *mut i64, first: *mut *mut c_void,
        second: *mut *mut c_void, values: *mut *mut c_void, first_type: *mut c_int, second_type: *mut c_int,
        base: *mut c_int, kind: *mut c_int,
    ) {
        let arrays = [first, second, values];
        get(of, Format::Columns, [rows, columns, entries], arrays, [first_type, second_type], base, kind)
    }
    fn cusparseCooGet, fn cusparseConstCooGet(
        of: *mut SpMat, rows: *mut i64, columns: *mut i64, entries: *mut i64, first: *mut *mut c_void,
        second: *mut *mut c_void, values: *mut *mut c_void, index: *mut c_int, base: *mut c_int, kind: *mut c_int,
    ) {
        let types = [index, std::ptr::null_mut()];
        get(of, Format::Coordinates, [rows, columns, entries], [first, second, values], types, base, kind)
    }
    fn cusparseCsrSetPointers, fn cusparseCscSetPointers, fn cusparseCooSetPointers(
        of: *mut SpMat, first: *mut c_void, second: *mut c_void, values: *mut c_void,
    ) {
        change(of, |of| {
            (of.sparse.first, of.sparse.second, of.sparse.values) = (first as u64, second as u64, values as u64);
            Ok(())
        })
    }
    fn cusparseCsrSetStridedBatch(of: *mut SpMat, count: c_int, first: i64, others: i64) {
        change(of, |of| {
            (of.batch, of.sparse.strides) = (size(count.into())?, [first, others]);
            Ok(())
        })
    }
    fn cusparseCooSetStridedBatch(of: *mut SpMat, count: c_int, stride: i64) {
        change(of, |of| {
            (of.batch, of.sparse.strides) = (size(count.into())?, [stride; 2]);
            Ok(())
        })
    }
    fn cusparseSpMatGetStridedBatch(of: *mut SpMat, count: *mut c_int) {
        change(of, |of| {
            tell(count, of.batch as c_int);
            Ok(())
        })
    }
    fn cusparseSpMatGetSize(of: *mut SpMat, rows: *mut i64, columns: *mut i64, entries: *mut i64) {
        change(of, |of| {
            tell(rows, of.sparse.size[0] as i64);
            tell(columns, of.sparse.size[1] as i64);
            tell(entries, of.sparse.entries as i64);
            Ok(())
        })
    }
    fn cusparseSpMatGetFormat(of: *mut SpMat, format: *mut c_int) {
        change(of, |of| {
            tell(format, match of.sparse.format {
                Format::Rows => 1,
                Format::Columns => 2,
                Format::Coordinates => 3,
            });
            Ok(())
        })
    }
    fn cusparseSpMatGetIndexBase(of: *mut SpMat, base: *mut c_int) {
        change(of, |of| {
            tell(base, of.sparse.base as c_int);
            Ok(())
        })
    }
    fn cusparseSpMatGetValues, fn cusparseConstSpMatGetValues(of: *mut SpMat, values: *mut *mut c_void) {
        change(of, |of| {
            tell(values, of.sparse.values as *mut c_void);
            Ok(())
        })
    }
    fn cusparseSpMatSetValues(of: *mut SpMat, values: *mut c_void) {
        change(of, |of| {
            of.sparse.values = values as u64;
            Ok(())
        })
    }
    fn cusparseSpMatSetAttribute(of: *mut SpMat, attribute: c_int, data: *const c_int, bytes: usize) {
        change(of, |of| {
            if data.is_null() || bytes != size_of::<c_int>() {
                return Err(SparseStatus::INVALID_VALUE);
            }
            // SAFETY: the caller's promise: an enumeration.
            let value = i64::from(unsafe { data.read() });
            match attribute {
                0 => of.part = part(value)?,
                1 => of.unit = value == 1,
                _ => return Err(SparseStatus::INVALID_VALUE),
            }
            Ok(())
        })
    }
    fn cusparseSpMatGetAttribute(of: *mut SpMat, attribute: c_int, data: *mut c_int, bytes: usize) {
        change(of, |of| {
            if bytes != size_of::<c_int>() {
                return Err(SparseStatus::INVALID_VALUE);
            }
            tell(data, match attribute {
                0 => (of.part == Part::Upper).into(),
                1 => of.unit.into(),
                _ => return Err(SparseStatus::INVALID_VALUE),
            });
            Ok(())
        })
    }
    fn cusparseCreateDnMat, fn cusparseCreateConstDnMat(
        to: *mut *mut DnMat, rows: i64, columns: i64, ld: i64, values: *mut c_void, kind: c_int, order: c_int,
    ) {
        create(to, dense(rows, columns, ld, values, kind, order))
    }
    fn cusparseCreateDnVec, fn cusparseCreateConstDnVec(
        to: *mut *mut DnMat, length: i64, values: *mut c_void, kind: c_int,
    ) {
        create(to, dense(length, 1, length, values, kind, 1))
    }
    fn cusparseDestroyDnMat, fn cusparseDestroyDnVec(of: *mut DnMat) {
        // SAFETY: the caller's promise.
        unsafe { destroy(of) }
    }
    fn cusparseDnMatGet, fn cusparseConstDnMatGet(
        of: *mut DnMat, rows: *mut i64, columns: *mut i64, ld: *mut i64, values: *mut *mut c_void, kind: *mut c_int,
        order: *mut c_int,
    ) {
        answer(given::<DnMat>(of as u64).map(|of| {
            tell(rows, of.matrix.size[0] as i64);
            tell(columns, of.matrix.size[1] as i64);
            tell(ld, of.ld);
            tell(values, of.matrix.at as *mut c_void);
            tell(kind, number_of(of.matrix.kind));
            tell(order, if of.by_rows { 2 } else { 1 });
        }))
    }
    fn cusparseDnVecGet, fn cusparseConstDnVecGet(
        of: *mut DnMat, length: *mut i64, values: *mut *mut c_void, kind: *mut c_int,
    ) {
        answer(given::<DnMat>(of as u64).map(|of| {
            tell(length, of.matrix.size[0] as i64);
            tell(values, of.matrix.at as *mut c_void);
            tell(kind, number_of(of.matrix.kind));
        }))
    }
    fn cusparseDnMatGetValues, fn cusparseConstDnMatGetValues, fn cusparseDnVecGetValues,
    fn cusparseConstDnVecGetValues(of: *mut DnMat, values: *mut *mut c_void) {
        answer(given::<DnMat>(of as u64).map(|of| tell(values, of.matrix.at as *mut c_void)))
    }
    fn cusparseDnMatSetValues, fn cusparseDnVecSetValues(of: *mut DnMat, values: *mut c_void) {
        answer(given::<DnMat>(of as u64).map(|of| of.matrix.at = values as u64))
    }
    fn cusparseDnMatSetStridedBatch(of: *mut DnMat, count: c_int, stride: i64) {
        answer(given::<DnMat>(of as u64).and_then(|of| {
            (of.batch, of.matrix.batch_stride) = (size(count.into())?, stride);
            Ok(())
        }))
    }
    fn cusparseDnMatGetStridedBatch(of: *mut DnMat, count: *mut c_int, stride: *mut i64) {
        answer(given::<DnMat>(of as u64).map(|of| {
            tell(count, of.batch as c_int);
            tell(stride, of.matrix.batch_stride);
        }))
    }
    fn cusparseCreateSpVec, fn cusparseCreateConstSpVec(
        to: *mut *mut SpVec, length: i64, entries: i64, indices: *mut c_void, values: *mut c_void, index: c_int,
        base: c_int, kind: c_int,
    ) {
        create(to, sparse_vector(length, entries, indices, values, index, base, kind))
    }
    fn cusparseDestroySpVec(of: *mut SpVec) {
        // SAFETY: the caller's promise.
        unsafe { destroy(of) }
    }
    fn cusparseSpVecGet, fn cusparseConstSpVecGet(
        of: *mut SpVec, length: *mut i64, entries: *mut i64, indices: *mut *mut c_void, values: *mut *mut c_void,
        index: *mut c_int, base: *mut c_int, kind: *mut c_int,
    ) {
        answer(given::<SpVec>(of as u64).map(|of| {
            tell(length, of.size as i64);
            tell(entries, of.values.size[0] as i64);
            tell(indices, of.indices.at as *mut c_void);
            tell(values, of.values.at as *mut c_void);
            tell(index, index_number(of.indices.kind));
            tell(base, of.base as c_int);
            tell(kind, number_of(of.values.kind));
        }))
    }
    fn cusparseSpVecGetIndexBase(of: *mut SpVec, base: *mut c_int) {
        answer(given::<SpVec>(of as u64).map(|of| tell(base, of.base as c_int)))
    }
    fn cusparseSpVecGetValues, fn cusparseConstSpVecGetValues(of: *mut SpVec, values: *mut *mut c_void) {
        answer(given::<SpVec>(of as u64).map(|of| tell(values, of.values.at as *mut c_void)))
    }
    fn cusparseSpVecSetValues(of: *mut SpVec, values: *mut c_void) {
        answer(given::<SpVec>(of as u64).map(|of| of.values.at = values as u64))
    }
}
