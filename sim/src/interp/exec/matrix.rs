//! Matrix instructions of a warp. Products are summed in doubles and rounded once, which is closer
//! than what the hardware promises.

use std::cell::RefCell;
use std::rc::Rc;

use crate::interp::exec::load_store::{Cell, GENERIC, GLOBAL, SHARED};
use crate::interp::exec::per_lane::each;
use crate::interp::float::Rounding;
use crate::interp::float16::{Brain, Half, Small};
use crate::interp::interface::AccessKind;
use crate::interp::program::{Inst, LANES, Next, Slot};
use crate::interp::warp::Warp;

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
    fn packed(self) -> usize {
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
    pub a: Element,
    pub b: Element,
    pub c: Element,
    pub d: Element,
    pub saturate: bool,
    pub m: usize,
    pub n: usize,
    pub k: usize,
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

    fn unpack(x: u64) -> Form {
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
fn of_fragment(row: usize, column: usize, columns: usize, total: usize) -> (usize, usize) {
    let (index, each) = (row * columns + column, (total / LANES).max(1));
    (index / each, index % each)
}

/// `mma.sync` and (bit 31 of `z` set) `wmma.mma`: slots of d, c, a, b from `y` on, their numbers in
/// `z` (6 bits each).
#[inline(never)]
pub(crate) fn multiply(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let form = Form::unpack(i.x);
    let opaque = i.z >> 31 != 0;
    let counts = [0, 6, 12, 18].map(|at| (i.z >> at & 63) as usize);
    let program = w.env.program;
    let mut rest = &program.slots[i.y as usize..];
    let mut slots: [&[Slot]; 4] = [&[]; 4];
    for (list, count) in slots.iter_mut().zip(counts) {
        (*list, rest) = rest.split_at(count);
    }
    let [to, c, a, b] = slots;
    let Form { m, n, k, .. } = form;
    let places = places(form, opaque);
    let factor_a = entries(w, form.a, a, &places.a);
    let factor_b = entries(w, form.b, b, &places.b);
    let mut sums = entries(w, form.c, c, &places.sum);
    add_product([m, n, k], &factor_a, &factor_b, &mut sums);
    each(mask, |l| to.iter().for_each(|&slot| w.set(slot, l, 0)));
    let packed = form.d.packed();
    for (&(lane, at), &sum) in places.sum.iter().zip(&sums) {
        let (lane, at) = (usize::from(lane), usize::from(at));
        let bits = form.d.write(sum, form.saturate);
        let slot = to[at / packed];
        let shift = at % packed * 8 * form.d.size() as usize;
        let old = w.get(slot, lane);
        w.set(slot, lane, old | bits << shift);
    }
    Next::Step
}

/// Lane and element of each entry of the factors and the sum, row by row.
struct Places {
    a: Vec<(u8, u8)>,
    b: Vec<(u8, u8)>,
    sum: Vec<(u8, u8)>,
}

/// Where the entries of a product are. What was worked out once is kept.
fn places(form: Form, opaque: bool) -> Rc<Places> {
    thread_local! {
        static KNOWN: RefCell<Vec<(u64, bool, Rc<Places>)>> = const { RefCell::new(Vec::new()) };
    }
    let key = form.pack();
    KNOWN.with_borrow_mut(|known| {
        if let Some((.., places)) = known.iter().find(|(form, kind, _)| *form == key && *kind == opaque) {
            return places.clone();
        }
        let Form { m, n, k, .. } = form;
        let list = |rows: usize, columns: usize, place: &dyn Fn(usize, usize) -> (usize, usize)| {
            let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            all.map(|(row, column)| place(row, column)).map(|(lane, at)| (lane as u8, at as u8)).collect::<Vec<_>>()
        };
        let places = Rc::new(if opaque {
            Places {
                a: list(m, k, &|row, column| of_fragment(row, column, k, m * k)),
                b: list(k, n, &|row, column| of_fragment(row, column, n, k * n)),
                sum: list(m, n, &|row, column| of_fragment(row, column, n, m * n)),
            }
        } else {
            Places {
                a: list(m, k, &|row, column| of_a(row, column, form.a.packed())),
                b: list(k, n, &|row, column| of_b(row, column, form.b.packed())),
                sum: list(m, n, &of_c),
            }
        });
        known.push((key, opaque, places.clone()));
        places
    })
}

/// A matrix that a warp has in its registers.
fn entries(w: &Warp<'_>, element: Element, slots: &[Slot], places: &[(u8, u8)]) -> Vec<f64> {
    let (packed, bits) = (element.packed(), 8 * element.size() as usize);
    let raw = |&(lane, at): &(u8, u8)| {
        let (lane, at) = (usize::from(lane), usize::from(at));
        w.get(slots[at / packed], lane) >> (at % packed * bits)
    };
    macro_rules! of {
        ($($kind:ident),*) => {
            match element {
                $(Element::$kind => places.iter().map(|place| Element::$kind.read(raw(place))).collect(),)*
            }
        };
    }
    of!(F16, Bf16, Tf32, F32, F64, S8, U8, S32)
}

/// Adds a product to sums. Each sum grows in the order of the inner index.
fn add_product(sizes: [usize; 3], a: &[f64], b: &[f64], sums: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(sizes: [usize; 3], a: &[f64], b: &[f64], sums: &mut [f64]) {
            add_rows(sizes, a, b, sums);
        }
        // SAFETY: the processor has them.
        unsafe { wide(sizes, a, b, sums) };
        return;
    }
    add_rows(sizes, a, b, sums);
}

#[inline(always)]
fn add_rows([m, n, k]: [usize; 3], a: &[f64], b: &[f64], sums: &mut [f64]) {
    for (row, sums) in sums.chunks_exact_mut(n).enumerate().take(m) {
        for (inner, b) in b.chunks_exact(n).enumerate().take(k) {
            let factor = a[row * k + inner];
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += factor * b;
            }
        }
    }
}

/// `wmma.load` and `wmma.store`: fragment slots from `y` on, `z` of them (bits 8 and up; bit 30 set
/// for a store) at address `a` with the stride `b` (elements) in the space of the low bits of `z`.
/// `x` is a [`Form`]: element `a`, rows `m`, columns `n`, and `k` is 1 for columns one after the
/// other.
#[inline(never)]
pub(crate) fn transfer(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let form = Form::unpack(i.x);
    let (space, count, store) = (i.z & 15, (i.z >> 8 & 63) as usize, i.z >> 30 & 1 != 0);
    let slots = &w.env.program.slots[i.y as usize..][..count];
    let (size, packed) = (form.a.size(), form.a.packed());
    let (rows, columns) = (form.m, form.n);
    let kind = if store { AccessKind::Write } else { AccessKind::Read };
    if !store {
        each(mask, |l| slots.iter().for_each(|&slot| w.set(slot, l, 0)));
    }
    let each_lane = (rows * columns / LANES).max(1);
    let whole = if mask == u32::MAX && !w.env.observing { whole_matrix(w, i, form, kind) } else { None };
    for row in 0..rows {
        for column in 0..columns {
            let (lane, at) = of_fragment(row, column, columns, rows * columns);
            if mask >> lane & 1 == 0 {
                continue;
            }
            let stride = w.get(i.b, lane);
            let (major, minor) = if form.k == 1 { (column, row) } else { (row, column) };
            let index = (major as u64).wrapping_mul(stride).wrapping_add(minor as u64);
            let address =
                w.get(i.a, lane).wrapping_add(u64::from(i.line_offset())).wrapping_add(index * u64::from(size));
            let host = match whole {
                Some((first, host)) => host + (address - first),
                None => match w.resolve(space, address, size, kind, lane) {
                    Ok(host) => host,
                    Err(kind) => return w.fail(kind, 1 << lane),
                },
            };
            if w.env.observing && space != SHARED && w.env.device.allocation(address).is_some() {
                w.observe(i, 1 << lane, size, kind, &[address; LANES]);
            }
            if store {
                let bits = w.get(slots[at / packed], lane) >> (at % packed * 8 * size as usize);
                // SAFETY: `resolve` vouches for the element.
                unsafe {
                    match size {
                        1 => u8::write(host, bits),
                        2 => u16::write(host, bits),
                        4 => u32::write(host, bits),
                        _ => u64::write(host, bits),
                    }
                }
                continue;
            }
            // SAFETY: as above.
            let bits = unsafe {
                match size {
                    1 => u8::read(host),
                    2 => u16::read(host),
                    4 => u32::read(host),
                    _ => u64::read(host),
                }
            };
            // Registers beyond the lane's share hold copies.
            for copy in (at..count * packed).step_by(each_lane) {
                let slot = slots[copy / packed];
                let old = w.get(slot, lane);
                w.set(slot, lane, old | bits << (copy % packed * 8 * size as usize));
            }
        }
    }
    Next::Step
}

/// The first address of a fragment, and where it is in the host's memory, if all lanes name the
/// same matrix and one check answers for all of it.
fn whole_matrix(w: &mut Warp<'_>, i: &Inst, form: Form, kind: AccessKind) -> Option<(u64, u64)> {
    let (base, stride) = (w.get(i.a, 0), w.get(i.b, 0));
    let same = (1..LANES).all(|lane| w.get(i.a, lane) == base && w.get(i.b, lane) == stride);
    let size = form.a.size();
    let (majors, minors) = if form.k == 1 { (form.n, form.m) } else { (form.m, form.n) };
    let far = (majors as u64 - 1).checked_mul(stride)?.checked_add(minors as u64 - 1)?;
    let (first, space) = (base.wrapping_add(u64::from(i.line_offset())), i.z & 15);
    let last = first.checked_add(far.checked_mul(u64::from(size))?)?;
    if !same || !matches!(space, SHARED | GLOBAL | GENERIC) {
        return None;
    }
    let from = w.resolve(space, first, size, kind, 0).ok()?;
    let to = w.resolve(space, last, size, kind, 0).ok()?;
    let together = space == SHARED || w.extent(first).is_some_and(|extent| last < extent.end);
    (together && to.wrapping_sub(from) == last - first).then_some((first, from))
}

/// `ldmatrix` and (`x` = 1) `stmatrix`: `z` (bits 4 and up) matrices of 8 by 8 elements of 16 bits,
/// their rows at the addresses of lanes; slots from `y` on. Bit 30 of `z`: transposed.
#[inline(never)]
pub(crate) fn rows(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let count = (i.z >> 4 & 15) as usize;
    let (transposed, store) = (i.z >> 30 & 1 != 0, i.x == 1);
    let slots = &w.env.program.slots[i.y as usize..][..count];
    let kind = if store { AccessKind::Write } else { AccessKind::Read };
    for (matrix, &slot) in slots.iter().enumerate() {
        let mut hosts = [0; 8];
        for (row, host) in hosts.iter_mut().enumerate() {
            let lane = matrix * 8 + row;
            let address = w.get(i.a, lane).wrapping_add(u64::from(i.line_offset())) & 0xffff_ffff;
            *host = match w.resolve(SHARED, address, 16, kind, lane) {
                Ok(host) => host,
                Err(kind) => return w.fail(kind, 1 << lane),
            };
        }
        each(mask, |l| {
            let mut bits = if store { w.get(slot, l) } else { 0 };
            for element in 0..2 {
                let (row, column) =
                    if transposed { (l % 4 * 2 + element, l / 4) } else { (l / 4, l % 4 * 2 + element) };
                let at = hosts[row] + column as u64 * 2;
                // SAFETY: `resolve` vouches for the row.
                unsafe {
                    if store {
                        u16::write(at, bits >> (16 * element));
                    } else {
                        bits |= u16::read(at) << (16 * element);
                    }
                }
            }
            if !store {
                w.set(slot, l, bits);
            }
        });
    }
    Next::Step
}

/// `movmatrix`: `d` = the tile of 8 by 8 halves that the warp has in `a`, transposed.
#[inline(never)]
pub(crate) fn transpose(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let tile: [u64; LANES] = std::array::from_fn(|lane| w.get(i.a, lane));
    // A lane has two neighbours of one row.
    let at = |row: usize, column: usize| tile[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    each(mask, |l| {
        let (row, column) = (l / 4, l % 4 * 2);
        w.set(i.d, l, at(column, row) | at(column + 1, row) << 16);
    });
    Next::Step
}

impl Inst {
    /// The constant part of a matrix address, which `d` holds.
    fn line_offset(&self) -> u32 {
        self.d.0
    }
}
