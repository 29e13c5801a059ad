//! Sums of sparse matrices (`csrgeam2`), and the matrix descriptors of the older functions.

use std::ffi::c_int;

use super::descriptors::given;
use super::handle::{SparseCall, SparseResult, SparseStatus, answer, buffer, put, put_size};
use crate::numerics::matrix::Scalar;
use crate::numerics::number::Type;
use crate::numerics::sparse::arrays::{Format, Sparse};
use crate::numerics::sparse::sum::SparseSum;

/// What a `cusparseMatDescr_t` points to.
#[derive(Debug, Default)]
pub(super) struct MatDescr {
    kind: c_int,
    fill: c_int,
    diagonal: c_int,
    base: c_int,
}

/// The base of a descriptor's indices.
pub(super) fn base_of(descriptor: u64) -> Result<i64, SparseStatus> {
    Ok(given::<MatDescr>(descriptor)?.base.into())
}

/// An operand: its descriptor, number of entries, and arrays.
type Operand = (u64, i64, [u64; 3]);

fn matrix(
    kind: Type,
    [m, n]: [i64; 2],
    (descriptor, entries, [values, first, second]): Operand,
) -> Result<Sparse, SparseStatus> {
    if m < 0 || n < 0 || entries < 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    Ok(Sparse {
        format: Format::Rows,
        size: [m as usize, n as usize],
        entries: entries as usize,
        first,
        second,
        values,
        index_types: [Type::I32; 2],
        base: base_of(descriptor)?,
        kind,
        strides: [0; 2],
    })
}

fn geam_size(
    _: &mut SparseCall<'_>,
    _kind: Type,
    m: i64,
    _n: i64,
    _alpha: u64,
    _da: u64,
    na: i64,
    _va: u64,
    _fa: u64,
    _sa: u64,
    _beta: u64,
    _db: u64,
    nb: i64,
    _vb: u64,
    _fb: u64,
    _sb: u64,
    _dc: u64,
    _vc: u64,
    _fc: u64,
    _sc: u64,
    to: u64,
) -> SparseResult {
    if m < 0 || na < 0 || nb < 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    put_size(to, m as usize, (na + nb) as usize)
}

fn geam_entries(
    call: &mut SparseCall<'_>,
    m: i64,
    n: i64,
    da: u64,
    na: i64,
    fa: u64,
    sa: u64,
    db: u64,
    nb: i64,
    fb: u64,
    sb: u64,
    dc: u64,
    fc: u64,
    total: u64,
    at: u64,
) -> SparseResult {
    let of = |operand| matrix(Type::F32, [m, n], operand);
    let (a, b) = (of((da, na, [0, fa, sa]))?, of((db, nb, [0, fb, sb]))?);
    let c = of((dc, 0, [0, fc, 0]))?;
    call.with_result(total, Type::I32, |call, total| {
        let none = Scalar::known(0.0, 0.0);
        let (compute, count) = (Type::F32.compute(), Some(total));
        let sum = SparseSum { a, b, c, alpha: none, beta: none, compute, count };
        let mut blocks = sum.blocks();
        blocks.push(buffer(at, m as usize, (na + nb) as usize));
        call.enqueue(blocks, &sum)
    })?;
    if call.handle.device_pointers {
        call.handle.sums.remove(&fc);
    } else {
        // SAFETY: in this mode the program's pointer is to a number on the host, which was written.
        let entries = unsafe { (total as *const c_int).read() };
        call.handle.sums.insert(fc, entries.max(0) as usize);
    }
    Ok(())
}

fn geam(
    call: &mut SparseCall<'_>,
    kind: Type,
    m: i64,
    n: i64,
    alpha: u64,
    da: u64,
    na: i64,
    va: u64,
    fa: u64,
    sa: u64,
    beta: u64,
    db: u64,
    nb: i64,
    vb: u64,
    fb: u64,
    sb: u64,
    dc: u64,
    vc: u64,
    fc: u64,
    sc: u64,
    at: u64,
) -> SparseResult {
    let of = |operand| matrix(kind, [m, n], operand);
    let (a, b) = (of((da, na, [va, fa, sa]))?, of((db, nb, [vb, fb, sb]))?);
    // Which bytes it writes, nobody else tells.
    let Some(&entries) = call.handle.sums.get(&fc) else {
        return Err(call.not_simulated("a sum whose entries cusparseXcsrgeam2Nnz has not told the host"));
    };
    let c = of((dc, entries as i64, [vc, fc, sc]))?;
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let sum = SparseSum { a, b, c, alpha, beta, compute: kind.compute(), count: None };
    let mut blocks = sum.blocks();
    blocks.push(buffer(at, m as usize, (na + nb) as usize));
    call.enqueue(blocks, &sum)
}

handled! { in cusparse; geam_size;
    (m: I, n: I, alpha: P, da: P, na: I, va: P, fa: P, sa: P, beta: P, db: P, nb: I, vb: P, fb: P, sb: P, dc: P,
        vc: P, fc: P, sc: P, to: P)
    cusparseScsrgeam2_bufferSizeExt = F32, cusparseDcsrgeam2_bufferSizeExt = F64,
    cusparseCcsrgeam2_bufferSizeExt = C32, cusparseZcsrgeam2_bufferSizeExt = C64,
}
handled! { in cusparse; geam_entries;
    (m: I, n: I, da: P, na: I, fa: P, sa: P, db: P, nb: I, fb: P, sb: P, dc: P, fc: P, total: P, at: P)
    cusparseXcsrgeam2Nnz
}
handled! { in cusparse; geam;
    (m: I, n: I, alpha: P, da: P, na: I, va: P, fa: P, sa: P, beta: P, db: P, nb: I, vb: P, fb: P, sb: P, dc: P,
        vc: P, fc: P, sc: P, at: P)
    cusparseScsrgeam2 = F32, cusparseDcsrgeam2 = F64, cusparseCcsrgeam2 = C32, cusparseZcsrgeam2 = C64,
}

// SAFETY: cuSPARSE's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cusparseCreateMatDescr(to: *mut *mut MatDescr) -> c_int {
    answer(put(to as u64, Box::into_raw(Box::<MatDescr>::default())))
}

/// # Safety
/// A descriptor of [`cusparseCreateMatDescr`] that is not used again, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cusparseDestroyMatDescr(of: *mut MatDescr) -> c_int {
    // Without one, there is nothing to do.
    if !of.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(of) });
    }
    0
}

macro_rules! settings {
    ($($field:ident $set:ident $get:ident $most:literal)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $set(of: *mut MatDescr, value: c_int) -> c_int {
            answer(given::<MatDescr>(of as u64).and_then(|of| {
                if !(0..=$most).contains(&value) {
                    return Err(SparseStatus::INVALID_VALUE);
                }
                of.$field = value;
                Ok(())
            }))
        }

        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $get(of: *const MatDescr) -> c_int {
            given::<MatDescr>(of as u64).map_or(0, |of| of.$field)
        }
    )* };
}

settings! {
    kind cusparseSetMatType cusparseGetMatType 3
    fill cusparseSetMatFillMode cusparseGetMatFillMode 1
    diagonal cusparseSetMatDiagType cusparseGetMatDiagType 1
    base cusparseSetMatIndexBase cusparseGetMatIndexBase 1
}
