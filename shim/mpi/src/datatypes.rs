//! The bytes of a datatype, asked of the library: MPI 4.1, chapter 5.
//!
//! Owns taking derived datatypes apart (`MPI_Type_get_envelope`, `MPI_Type_get_contents`) into
//! patterns of equal pieces. What is too irregular (distributed arrays, more than [`MOST`]
//! patterns) is known by its bounds only.

use std::ffi::c_int;

use super::abi::{Abi, ask};

/// Patterns that are kept of one datatype.
const MOST: usize = 256;
/// How deep datatypes may be nested.
const DEEPEST: u32 = 16;

/// Equal pieces at equal distances, in up to any number of dimensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Offset of the first byte.
    pub start: i64,
    /// Bytes of a piece.
    pub width: u64,
    /// Distance and number, innermost first.
    pub dims: Vec<(i64, u64)>,
}

/// What a number of elements of a datatype touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Offsets from the buffer's address.
    pub patterns: Vec<Pattern>,
    /// Whether every byte of the patterns is touched.
    pub exact: bool,
}

impl Shape {
    fn contiguous(start: i64, width: u64) -> Self {
        Self { patterns: vec![Pattern { start, width, dims: Vec::new() }], exact: true }
    }

    /// The same again and again, `stride` bytes apart.
    fn repeat(mut self, count: u64, stride: i64) -> Self {
        if count == 0 {
            self.patterns.clear();
        }
        if count <= 1 {
            return self;
        }
        for pattern in &mut self.patterns {
            match pattern.dims.last_mut() {
                None if stride >= 0 && pattern.width == stride as u64 => {
                    pattern.width = pattern.width.saturating_mul(count);
                }
                Some((inner, n)) if i128::from(*inner) * i128::from(*n) == i128::from(stride) => {
                    *n = n.saturating_mul(count);
                }
                _ => pattern.dims.push((stride, count)),
            }
        }
        self
    }

    fn moved(mut self, by: i64) -> Self {
        self.patterns.iter_mut().for_each(|pattern| pattern.start = pattern.start.saturating_add(by));
        self
    }

    fn with(&mut self, other: Self) -> Option<()> {
        self.exact &= other.exact;
        self.patterns.extend(other.patterns);
        (self.patterns.len() <= MOST).then_some(())
    }
}

/// Extent of a datatype: its lower bound and how far apart its elements lie.
pub fn extent(datatype: usize) -> Option<(i64, i64)> {
    let (mut lower, mut extent) = (0_i64, 0_i64);
    ask!(c"MPI_Type_get_extent"(datatype => usize, &raw mut lower => *mut i64, &raw mut extent => *mut i64))
        .then_some((lower, extent))
}

/// Bytes of data in one element.
pub fn size(datatype: usize) -> Option<u64> {
    let mut size: c_int = 0;
    ask!(c"MPI_Type_size"(datatype => usize, &raw mut size => *mut c_int)).then_some(())?;
    u64::try_from(size).ok()
}

/// What `count` elements touch; `None`: the library does not say.
pub fn shape(abi: &Abi, datatype: usize, count: u64) -> Option<Shape> {
    let mut size: c_int = 0;
    let (mut start, mut span) = (0_i64, 0_i64);
    if !ask!(c"MPI_Type_size"(datatype => usize, &raw mut size => *mut c_int))
        || !ask!(c"MPI_Type_get_true_extent"(datatype => usize, &raw mut start => *mut i64, &raw mut span => *mut i64))
    {
        return None;
    }
    let (_, extent) = extent(datatype)?;
    if count == 0 || size == 0 {
        return Some(Shape { patterns: Vec::new(), exact: true });
    }
    // A size too large for an int is undefined, and so is known by its bounds.
    let one = if i64::from(size) == span {
        Shape::contiguous(start, span as u64)
    } else {
        taken_apart(abi, datatype, DEEPEST)
            .unwrap_or_else(|| Shape { exact: false, ..Shape::contiguous(start, u64::try_from(span).unwrap_or(0)) })
    };
    Some(one.repeat(count, extent))
}

/// Kinds of derived datatypes, whatever their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Combiner {
    Named,
    Same,
    Contiguous,
    Vector,
    HVector,
    Indexed,
    HIndexed,
    IndexedBlock,
    HIndexedBlock,
    Struct,
    Subarray,
    Other,
}

fn combiner(abi: &Abi, number: c_int) -> Combiner {
    use Combiner::*;
    // Open MPI and MPICH number alike; MPI 5 leaves out what MPI 3 has removed.
    const NUMBERED: [Combiner; 19] = [
        Named,
        Same,
        Contiguous,
        Vector,
        HVector,
        HVector,
        Indexed,
        HIndexed,
        HIndexed,
        IndexedBlock,
        Struct,
        Struct,
        Subarray,
        Other,
        Named,
        Named,
        Named,
        Same,
        HIndexedBlock,
    ];
    const STANDARD: [Combiner; 16] = [
        Named,
        Same,
        Contiguous,
        Vector,
        HVector,
        Indexed,
        HIndexed,
        IndexedBlock,
        HIndexedBlock,
        Struct,
        Subarray,
        Other,
        Named,
        Named,
        Named,
        Same,
    ];
    let (table, first): (&[Combiner], _) = abi.named.map_or((&STANDARD, 101), |first| (&NUMBERED, first));
    usize::try_from(number - first).ok().and_then(|at| table.get(at).copied()).unwrap_or(Other)
}

/// The arguments that a datatype was made with.
struct Contents {
    integers: Vec<c_int>,
    addresses: Vec<i64>,
    types: Vec<usize>,
}

fn taken_apart(abi: &Abi, datatype: usize, deep: u32) -> Option<Shape> {
    let (mut integers, mut addresses, mut types, mut number) = (0, 0, 0, 0);
    if deep == 0
        || !ask!(c"MPI_Type_get_envelope"(
            datatype => usize,
            &raw mut integers => *mut c_int,
            &raw mut addresses => *mut c_int,
            &raw mut types => *mut c_int,
            &raw mut number => *mut c_int,
        ))
    {
        return None;
    }
    let combiner = combiner(abi, number);
    if combiner == Combiner::Named {
        return named(datatype);
    }
    if combiner == Combiner::Other || [integers, addresses, types].iter().any(|n| *n < 0 || *n > 1 << 16) {
        return None;
    }
    let mut contents = Contents {
        integers: vec![0; integers as usize],
        addresses: vec![0; addresses as usize],
        types: vec![0; types as usize],
    };
    if !ask!(c"MPI_Type_get_contents"(
        datatype => usize,
        integers => c_int,
        addresses => c_int,
        types => c_int,
        contents.integers.as_mut_ptr() => *mut c_int,
        contents.addresses.as_mut_ptr() => *mut i64,
        contents.types.as_mut_ptr() => *mut usize,
    )) {
        return None;
    }
    if abi.handle == 4 {
        // The library has filled in handles of 32 bits.
        let halves: Vec<usize> = contents.types.iter().flat_map(|two| [two & 0xffff_ffff, two >> 32]).collect();
        contents.types = halves[..types as usize].to_vec();
    }
    let shape = assembled(abi, combiner, &contents, deep - 1);
    contents.types.into_iter().for_each(|inner| release(abi, inner));
    shape
}

/// Derived datatypes that `MPI_Type_get_contents` returns are the caller's to free.
fn release(abi: &Abi, mut datatype: usize) {
    let (mut a, mut b, mut c, mut number) = (0, 0, 0, 0);
    let known = ask!(c"MPI_Type_get_envelope"(
        datatype => usize,
        &raw mut a => *mut c_int,
        &raw mut b => *mut c_int,
        &raw mut c => *mut c_int,
        &raw mut number => *mut c_int,
    ));
    if known && combiner(abi, number) != Combiner::Named {
        ask!(c"MPI_Type_free"(&raw mut datatype => *mut usize));
    }
}

/// A datatype of MPI's own. Those with gaps (`MPI_SHORT_INT`) are pairs, known by their bounds.
fn named(datatype: usize) -> Option<Shape> {
    let mut size: c_int = 0;
    let (mut start, mut span) = (0_i64, 0_i64);
    let known = ask!(c"MPI_Type_size"(datatype => usize, &raw mut size => *mut c_int))
        && ask!(c"MPI_Type_get_true_extent"(datatype => usize, &raw mut start => *mut i64, &raw mut span => *mut i64));
    let width = u64::try_from(span).ok().filter(|_| known)?;
    Some(Shape { exact: i64::from(size) == span, ..Shape::contiguous(start, width) })
}

fn assembled(abi: &Abi, combiner: Combiner, contents: &Contents, deep: u32) -> Option<Shape> {
    let Contents { integers, addresses, types } = contents;
    let int = |at: usize| integers.get(at).copied().map(i64::from);
    let count = |at: usize| integers.get(at).and_then(|n| u64::try_from(*n).ok());
    let child = |at: usize| {
        let datatype = *types.get(at)?;
        Some((taken_apart(abi, datatype, deep)?, extent(datatype)?.1))
    };
    // Several blocks of one datatype.
    let blocks = |n: u64, length: &dyn Fn(usize) -> Option<u64>, offset: &dyn Fn(usize, i64) -> Option<i64>| {
        let (inner, apart) = child(0)?;
        let mut all = Shape { patterns: Vec::new(), exact: true };
        for at in 0..usize::try_from(n).ok()? {
            all.with(inner.clone().repeat(length(at)?, apart).moved(offset(at, apart)?))?;
        }
        Some(all)
    };
    match combiner {
        Combiner::Same => child(0).map(|(inner, _)| inner),
        Combiner::Contiguous => child(0).and_then(|(inner, apart)| Some(inner.repeat(count(0)?, apart))),
        Combiner::Vector => {
            let (inner, apart) = child(0)?;
            Some(inner.repeat(count(1)?, apart).repeat(count(0)?, int(2)?.checked_mul(apart)?))
        }
        Combiner::HVector => {
            let (inner, apart) = child(0)?;
            Some(inner.repeat(count(1)?, apart).repeat(count(0)?, *addresses.first()?))
        }
        Combiner::Indexed => {
            let n = count(0)?;
            let n_here = usize::try_from(n).ok()?;
            blocks(n, &|at| count(1 + at), &|at, apart| int(1 + n_here + at)?.checked_mul(apart))
        }
        Combiner::HIndexed => blocks(count(0)?, &|at| count(1 + at), &|at, _| addresses.get(at).copied()),
        Combiner::IndexedBlock => blocks(count(0)?, &|_| count(1), &|at, apart| int(2 + at)?.checked_mul(apart)),
        Combiner::HIndexedBlock => blocks(count(0)?, &|_| count(1), &|at, _| addresses.get(at).copied()),
        Combiner::Struct => {
            let mut all = Shape { patterns: Vec::new(), exact: true };
            for at in 0..usize::try_from(count(0)?).ok()? {
                let (inner, apart) = child(at)?;
                all.with(inner.repeat(count(1 + at)?, apart).moved(*addresses.get(at)?))?;
            }
            Some(all)
        }
        Combiner::Subarray => {
            let n = usize::try_from(count(0)?).ok()?;
            let (mut inner, mut apart) = child(0)?;
            let fortran = int(1 + 3 * n)? == i64::from(abi.order_fortran);
            for step in 0..n {
                let dim = if fortran { step } else { n - 1 - step };
                let start = int(1 + 2 * n + dim)?.checked_mul(apart)?;
                inner = inner.repeat(count(1 + n + dim)?, apart).moved(start);
                apart = apart.checked_mul(int(1 + dim)?)?;
            }
            Some(inner)
        }
        Combiner::Named | Combiner::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_pieces_join_where_they_touch() {
        let piece = Shape::contiguous(0, 4);
        assert_eq!(piece.clone().repeat(8, 4), Shape::contiguous(0, 32));
        let column = piece.clone().repeat(2, 4).repeat(3, 64);
        assert_eq!(column.patterns, [Pattern { start: 0, width: 8, dims: vec![(64, 3)] }]);
        assert_eq!(column.repeat(2, 192).patterns, [Pattern { start: 0, width: 8, dims: vec![(64, 6)] }]);
        assert!(piece.repeat(0, 4).patterns.is_empty());
    }

    #[test]
    fn combiners_have_the_numbers_of_their_library() {
        let abi = |named| Abi {
            in_place: 1,
            proc_null: -2,
            root: -4,
            handle: 8,
            named,
            order_fortran: 1,
            undefined: 0,
            cart: 1,
            dist_graph: 3,
        };
        let of = |named, number| combiner(&abi(named), number);
        // mpi.h of Open MPI 4.1, of MPICH 4.0, of MPI 5.0.
        assert_eq!([of(Some(0), 3), of(Some(1), 4), of(None, 104)], [Combiner::Vector; 3]);
        assert_eq!([of(Some(0), 12), of(Some(1), 13), of(None, 111)], [Combiner::Subarray; 3]);
        assert_eq!([of(Some(0), 18), of(Some(1), 19), of(None, 109)], [Combiner::HIndexedBlock; 3]);
        assert_eq!([of(Some(0), 13), of(Some(1), 14), of(None, 112)], [Combiner::Other; 3]);
        assert_eq!([of(Some(0), 99), of(Some(1), 0), of(None, -5)], [Combiner::Other; 3]);
    }
}
