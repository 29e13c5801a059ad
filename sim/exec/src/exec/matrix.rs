//! Matrix instructions of a warp. Products are summed in doubles and rounded once, which is closer
//! than what the hardware promises.

pub(super) mod fragment_words;
pub(crate) mod group_product;
pub(crate) mod group_registers;
pub(crate) mod held_registers;
pub(crate) mod narrow;
pub(crate) mod product_rows;
pub(crate) mod sparse;
pub(super) mod whole_product;

use std::cell::RefCell;
use std::rc::Rc;

use crate::arch::in_widest_vectors;
use crate::exec::load_store::{Cell, SHARED};
use crate::exec::per_lane::each;
use crate::exec::told;
use crate::exec::told::strength::PLAIN;
use crate::float::Rounding;
use crate::float::float16::{Brain, Half, Small};
use crate::interface::AccessKind;
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// Type of a matrix element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub(crate) enum Element {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    S8,
    U8,
    S32,
}

impl Element {
    pub(crate) fn from_code(code: u64) -> Element {
        [Element::F16, Element::Bf16, Element::Tf32, Element::F32, Element::F64, Element::S8, Element::U8, Element::S32]
            [(code & 7) as usize]
    }

    /// Bytes.
    pub(crate) fn size(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 2,
            Element::S8 | Element::U8 => 1,
            Element::F64 => 8,
            _ => 4,
        }
    }

    /// Elements in one register.
    pub(super) fn packed(self) -> usize {
        if self == Element::F64 { 1 } else { 4 / self.size() as usize }
    }

    #[inline(always)]
    fn read(self, bits: u64) -> f64 {
        match self {
            Element::F16 => f64::from(Half::widen(bits as u16)),
            Element::Bf16 => f64::from(Brain::widen(bits as u16)),
            // The lower fraction bits are ignored.
            Element::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::F64 => f64::from_bits(bits),
            Element::S8 => f64::from(bits as i8),
            Element::U8 => f64::from(bits as u8),
            Element::S32 => f64::from(bits as i32),
        }
    }

    /// Gives out the bits of the entries of some lanes.
    fn write_row(self, sums: &[f64; MOST], places: &[u16; LANES], saturate: bool, mut out: impl FnMut(usize, u64)) {
        macro_rules! of {
            ($($kind:ident),*) => {
                match self {
                    $(Element::$kind => {
                        for (lane, &at) in places.iter().enumerate() {
                            out(lane, Element::$kind.write(sums[usize::from(at.min(NOWHERE))], saturate));
                        }
                    })*
                }
            };
        }
        of!(F16, Bf16, Tf32, F32, F64, S8, U8, S32)
    }

    #[inline(always)]
    fn write(self, value: f64, saturate: bool) -> u64 {
        match self {
            Element::F16 => u64::from(Half::cut(value, Rounding::Nearest)),
            Element::Bf16 => u64::from(Brain::cut(value, Rounding::Nearest)),
            Element::Tf32 | Element::F32 => u64::from((value as f32).to_bits()),
            Element::F64 => value.to_bits(),
            // Sums of products of bytes fit a double exactly.
            Element::S32 if saturate => u64::from(value as i32 as u32),
            _ => u64::from(value as i64 as u32),
        }
    }
}

/// What `x` of the matrix instructions holds: element types (4 bits each: a, b, c, d), flags, sizes
/// (8 bits each).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) c: Element,
    pub(crate) d: Element,
    pub(crate) saturate: bool,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Form {
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.a as u8)
            | u64::from(self.b as u8) << 4
            | u64::from(self.c as u8) << 8
            | u64::from(self.d as u8) << 12
            | u64::from(self.saturate) << 16
            | (self.m as u64) << 24
            | (self.n as u64) << 32
            | (self.k as u64) << 40
    }

    pub(super) fn unpack(x: u64) -> Form {
        let size = |at: u32| (x >> at & 0xff) as usize;
        Form {
            a: Element::from_code(x),
            b: Element::from_code(x >> 4),
            c: Element::from_code(x >> 8),
            d: Element::from_code(x >> 12),
            saturate: x >> 16 & 1 != 0,
            m: size(24),
            n: size(32),
            k: size(40),
        }
    }
}

/// Lane and element of an entry of `mma`'s first factor.
pub(crate) fn of_a(row: usize, column: usize, packed: usize) -> (usize, usize) {
    let (group, high) = (row % 8, row / 8);
    let (chunk, within) = (column / (4 * packed), column % (4 * packed));
    (group * 4 + within / packed, (chunk * 2 + high) * packed + within % packed)
}

/// Lane and element of an entry of `mma`'s second factor.
pub(crate) fn of_b(row: usize, column: usize, packed: usize) -> (usize, usize) {
    let (chunk, within) = (row / (4 * packed), row % (4 * packed));
    (column * 4 + within / packed, chunk * packed + within % packed)
}

/// Lane and element of an entry of `mma`'s sum.
pub(crate) fn of_c(row: usize, column: usize) -> (usize, usize) {
    (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2)
}

/// Lane and element of an entry of a `wmma` fragment, which is opaque: rows one after the other,
/// spread evenly.
pub(super) fn of_fragment(row: usize, column: usize, columns: usize, total: usize) -> (usize, usize) {
    let (index, each) = (row * columns + column, (total / LANES).max(1));
    (index / each, index % each)
}

/// `mma.sync` and (`opaque`) `wmma.mma`.
#[inline(never)]
pub(crate) fn multiply(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Multiply::of(i);
    let (form, opaque) = (Form::unpack(i.form()), i.opaque() != 0);
    let program = w.env.program;
    let slots = [i.d(program), i.c(program), i.a(program), i.b(program)];
    if !(opaque && mask == u32::MAX && whole_product::multiply(w, form, slots)) {
        multiply_entries(w, form, opaque, slots, mask);
    }
    Next::Step
}

/// The product entry by entry: kilobytes on the stack, which `multiply` does not need otherwise.
#[inline(never)]
fn multiply_entries(w: &mut Warp<'_>, form: Form, opaque: bool, [to, c, a, b]: [&[Slot]; 4], mask: u32) {
    let Form { m, n, k, .. } = form;
    let layouts = layouts(form, opaque);
    let (mut factor_a, mut factor_b, mut sums) = ([0.0; MOST], [0.0; MOST], [0.0; MOST]);
    entries(w, form.a, a, &layouts.a, &mut factor_a);
    entries(w, form.b, b, &layouts.b, &mut factor_b);
    entries(w, form.c, c, &layouts.sum, &mut sums);
    add_product([m, n, k], &factor_a, &factor_b, &mut sums);
    sums[usize::from(NOWHERE)] = 0.0;
    let (packed, width) = (form.d.packed(), 8 * form.d.size() as usize);
    for (&slot, places) in to.iter().zip(layouts.sum_out.chunks(packed)) {
        let mut row = [0u64; LANES];
        for (sub, places) in places.iter().enumerate() {
            form.d.write_row(&sums, places, form.saturate, |lane, bits| row[lane] |= bits << (sub * width));
        }
        if mask == u32::MAX {
            // SAFETY: a live row; no other reference to it is there.
            unsafe { (*w.row_mut(slot)).0 = row };
        } else {
            each(mask, |l| w.set(slot, l, row[l]));
        }
    }
}

/// Entries that a factor or sum has at most, and behind them what has no place.
const MOST: usize = 512 + 1;
const NOWHERE: u16 = MOST as u16 - 1;

/// Of each element that a lane's registers hold, one after the other: which entry it is, lane by
/// lane.
type Layout = Vec<[u16; LANES]>;

/// Where the factors and the sum of a product are.
struct Layouts {
    a: Layout,
    b: Layout,
    sum: Layout,
    /// Of the result, which may have another type.
    sum_out: Layout,
}

/// Where the entries of a product are. What was worked out once is kept.
fn layouts(form: Form, opaque: bool) -> Rc<Layouts> {
    thread_local! {
        static KNOWN: RefCell<Vec<(u64, bool, Rc<Layouts>)>> = const { RefCell::new(Vec::new()) };
    }
    let key = form.pack();
    KNOWN.with_borrow_mut(|known| {
        if let Some((.., layouts)) = known.iter().find(|(form, kind, _)| *form == key && *kind == opaque) {
            return layouts.clone();
        }
        let Form { m, n, k, .. } = form;
        let list = |rows: usize, columns: usize, packed: usize, place: &dyn Fn(usize, usize) -> (usize, usize)| {
            debug_assert!(rows * columns < MOST);
            let mut layout: Layout = Vec::new();
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let (lane, at) = place(row, column);
                if layout.len() <= at {
                    layout.resize((at + 1).next_multiple_of(packed), [NOWHERE; LANES]);
                }
                layout[at][lane] = (row * columns + column) as u16;
            }
            layout
        };
        let sum = |packed: usize| match opaque {
            true => list(m, n, packed, &|row, column| of_fragment(row, column, n, m * n)),
            false => list(m, n, packed, &of_c),
        };
        let (packed_a, packed_b) = (form.a.packed(), form.b.packed());
        let (a, b) = if opaque {
            (
                list(m, k, packed_a, &|row, column| of_fragment(row, column, k, m * k)),
                list(k, n, packed_b, &|row, column| of_fragment(row, column, n, k * n)),
            )
        } else {
            (
                list(m, k, packed_a, &|row, column| of_a(row, column, packed_a)),
                list(k, n, packed_b, &|row, column| of_b(row, column, packed_b)),
            )
        };
        let layouts = Rc::new(Layouts { a, b, sum: sum(form.c.packed()), sum_out: sum(form.d.packed()) });
        known.push((key, opaque, layouts.clone()));
        layouts
    })
}

/// A matrix that a warp has in its registers.
fn entries(w: &Warp<'_>, element: Element, slots: &[Slot], layout: &Layout, into: &mut [f64; MOST]) {
    let (packed, bits) = (element.packed(), 8 * element.size() as usize);
    for (&slot, places) in slots.iter().zip(layout.chunks(packed)) {
        // SAFETY: a live row, which nobody writes meanwhile.
        let row = unsafe { &(*w.row(slot)).0 };
        for (sub, places) in places.iter().enumerate() {
            macro_rules! of {
                ($($kind:ident),*) => {
                    match element {
                        $(Element::$kind => {
                            let values: [f64; LANES] =
                                std::array::from_fn(|lane| Element::$kind.read(row[lane] >> (sub * bits)));
                            places.iter().zip(values).for_each(|(&at, value)| into[usize::from(at.min(NOWHERE))] = value);
                        })*
                    }
                };
            }
            of!(F16, Bf16, Tf32, F32, F64, S8, U8, S32)
        }
    }
}

/// Adds a product to sums. Each sum grows in the order of the inner index, by a product that is not
/// rounded. PTX ISA promises that for doubles (`wmma.mma`); other products are exact anyway.
fn add_product(sizes: [usize; 3], a: &[f64; MOST], b: &[f64; MOST], sums: &mut [f64; MOST]) {
    in_widest_vectors!(add_rows(sizes: [usize; 3], a: &[f64; MOST], b: &[f64; MOST], sums: &mut [f64; MOST]));
}

#[inline(always)]
fn add_rows([m, n, k]: [usize; 3], a: &[f64; MOST], b: &[f64; MOST], sums: &mut [f64; MOST]) {
    match n {
        8 => add_rows_of::<8>([m, k], a, b, sums),
        16 => add_rows_of::<16>([m, k], a, b, sums),
        32 => add_rows_of::<32>([m, k], a, b, sums),
        _ => {
            for (at, sum) in sums.iter_mut().enumerate().take(m * n) {
                let (row, column) = (at / n, at % n);
                (0..k).for_each(|inner| *sum = a[row * k + inner].mul_add(b[inner * n + column], *sum));
            }
        }
    }
}

/// A row of sums stays in registers.
#[inline(always)]
fn add_rows_of<const N: usize>([m, k]: [usize; 2], a: &[f64; MOST], b: &[f64; MOST], sums: &mut [f64; MOST]) {
    for row in 0..m {
        let Some(place) = sums[row * N..].first_chunk_mut::<N>() else { return };
        let mut sum = *place;
        for (&factor, b) in a[row * k..(row + 1) * k].iter().zip(b.as_chunks::<N>().0) {
            for at in 0..N {
                sum[at] = factor.mul_add(b[at], sum[at]);
            }
        }
        *place = sum;
    }
}

/// `ldmatrix` and `stmatrix`: matrices of 8 by 8 elements of 16 bits, their rows at the addresses
/// of lanes.
#[inline(never)]
pub(crate) fn rows(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MatrixRows::of(i);
    let (transposed, store) = (i.transposed() != 0, i.store() == 1);
    let slots = if store { i.from(w.env.program) } else { i.into(w.env.program) };
    let kind = if store { AccessKind::Write } else { AccessKind::Read };
    for (matrix, &slot) in slots.iter().enumerate() {
        let mut hosts = [0; 8];
        for (row, host) in hosts.iter_mut().enumerate() {
            let lane = matrix * 8 + row;
            let address = w.get(i.address(), lane).wrapping_add(u64::from(i.offset())) & 0xffff_ffff;
            *host = match w.resolve(SHARED, address, 16, kind, lane) {
                Ok(host) => host,
                Err(kind) => return w.fail(kind, 1 << lane),
            };
            told::lane(w, SHARED, PLAIN, (address, 16), kind, lane);
        }
        if store {
            each(mask, |l| {
                let bits = w.get(slot, l);
                for element in 0..2 {
                    let (row, column) = place_of(transposed, l, element);
                    // SAFETY: `resolve` vouches for the row.
                    unsafe { u16::write(hosts[row] + column as u64 * 2, bits >> (16 * element)) };
                }
            });
            continue;
        }
        // SAFETY: as above; the memory is the block's, and one thread runs the block.
        let tile: [[u16; 8]; 8] = hosts.map(|host| unsafe { (host as *const [u16; 8]).read() });
        let value = |l: usize| {
            let [low, high] = [0, 1].map(|element| {
                let (row, column) = place_of(transposed, l, element);
                u64::from(tile[row][column])
            });
            low | high << 16
        };
        each(mask, |l| w.set(slot, l, value(l)));
    }
    Next::Step
}

/// Row and column of an element of a lane in a tile of 8 by 8.
#[inline(always)]
fn place_of(transposed: bool, lane: usize, element: usize) -> (usize, usize) {
    let (major, minor) = (lane / 4 % 8, lane % 4 * 2 + element);
    if transposed { (minor, major) } else { (major, minor) }
}

/// `movmatrix`: `d` = the tile of 8 by 8 halves that the warp has in `a`, transposed.
#[inline(never)]
pub(crate) fn transpose(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Transpose::of(i);
    let tile: [u64; LANES] = std::array::from_fn(|lane| w.get(i.a(), lane));
    // A lane has two neighbours of one row.
    let at = |row: usize, column: usize| tile[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    each(mask, |l| {
        let (row, column) = (l / 4, l % 4 * 2);
        w.set(i.d(), l, at(column, row) | at(column + 1, row) << 16);
    });
    Next::Step
}
