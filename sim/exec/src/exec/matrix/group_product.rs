//! Products of warp groups (`wgmma.mma_async`): the second factor, and the first one unless it is
//! in registers, lie in shared memory as descriptors say (PTX ISA, "Asynchronous warpgroup level
//! matrix instructions"). Each warp makes 16 of the 64 rows.
//!
//! A product is carried out where it is issued; for the detector of races it is an operation of
//! the asynchronous proxy until its group has been waited for. Sums are rounded once, as those of
//! `mma`. How matrices lie in shared memory is the canonical layout of their major and swizzle, in
//! units of 16 bytes.

use crate::exec::bulk::{number_of, thread_of};
use crate::exec::load_store::SHARED;
use crate::exec::matrix::sparse::{Factor, SparseForm};
use crate::exec::matrix::{Element, group_registers};
use crate::exec::per_lane::each;
use crate::exec::told;
use crate::exec::told::strength::PLAIN;
use crate::exec::unsupported;
use crate::float::eight;
use crate::groups::{Group, Wait};
use crate::interface::{AccessKind, FaultKind};
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// Type of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupFactor {
    Whole(Element),
    /// Numbers of 8 bits with so many bits of fraction: e4m3 has three, e5m2 two.
    Eight(u32),
    /// Eight numbers of one bit in a byte: of two, the bits that both have are counted.
    Bits,
}

/// The code of [`GroupFactor::Bits`].
const BITS: u64 = 15;

impl GroupFactor {
    fn code(self) -> u64 {
        match self {
            GroupFactor::Whole(element) => element as u64,
            GroupFactor::Eight(fraction) => 8 + u64::from(fraction),
            GroupFactor::Bits => BITS,
        }
    }

    fn from_code(code: u64) -> GroupFactor {
        match code & 15 {
            code @ 0..8 => GroupFactor::Whole(Element::from_code(code)),
            BITS => GroupFactor::Bits,
            code => GroupFactor::Eight(code as u32 - 8),
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            GroupFactor::Whole(element) => element.size() as usize,
            GroupFactor::Eight(_) | GroupFactor::Bits => 1,
        }
    }

    fn read(self, bits: u64) -> f64 {
        match self {
            GroupFactor::Whole(element) => element.read(bits),
            GroupFactor::Eight(fraction) => eight::read(bits as u8, fraction),
            GroupFactor::Bits => f64::from(bits as u8),
        }
    }
}

/// What `x` of [`multiply`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupForm {
    pub(crate) factors: [GroupFactor; 2],
    pub(crate) sum: Element,
    pub(crate) n: usize,
    /// The first factor is in four registers.
    pub(crate) registers: bool,
    pub(crate) negate: [bool; 2],
    /// Rows and columns are exchanged: the inner index is not the one that is contiguous.
    pub(crate) transpose: [bool; 2],
    pub(crate) saturate: bool,
    /// Of each few neighbours in a row of the first factor half are there, and which says metadata
    /// in the lanes of that number.
    pub(crate) sparse: Option<usize>,
}

impl GroupForm {
    pub(crate) fn pack(self) -> u64 {
        let pair = |flags: [bool; 2]| u64::from(flags[0]) | u64::from(flags[1]) << 1;
        self.factors[0].code()
            | self.factors[1].code() << 4
            | (self.sum as u64) << 8
            | pair(self.negate) << 12
            | pair(self.transpose) << 14
            | u64::from(self.registers) << 16
            | u64::from(self.saturate) << 17
            | u64::from(self.sparse.is_some()) << 18
            | (self.sparse.unwrap_or(0) as u64) << 29
            | (self.n as u64) << 20
    }

    pub(super) fn unpack(x: u64) -> GroupForm {
        let pair = |at: u32| [x >> at & 1 != 0, x >> at & 2 != 0];
        GroupForm {
            factors: [GroupFactor::from_code(x), GroupFactor::from_code(x >> 4)],
            sum: Element::from_code(x >> 8),
            n: (x >> 20 & 0x1ff) as usize,
            registers: x >> 16 & 1 != 0,
            negate: pair(12),
            transpose: pair(14),
            saturate: x >> 17 & 1 != 0,
            sparse: (x >> 18 & 1 != 0).then_some((x >> 29 & 3) as usize),
        }
    }

    /// Elements of the inner dimension of the first factor that are there: 32 bytes.
    fn inner(self) -> usize {
        32 / self.factors[0].size()
    }

    /// How the metadata of a sparse first factor lie: as those of the product of one warp that has
    /// as many terms (`mma.sp`).
    pub(crate) fn metadata(self) -> Option<SparseForm> {
        let element = match self.factors[0] {
            GroupFactor::Whole(element) => element,
            GroupFactor::Eight(_) => Element::S8,
            GroupFactor::Bits => return None,
        };
        let sum = if element == Element::S8 || element == Element::U8 { Element::S32 } else { Element::F32 };
        SparseForm::new([Factor::Whole(element); 2], sum, false, 2 * self.inner(), self.sparse?)
    }

    /// Registers of the sums in each lane.
    pub(crate) fn sums(self) -> usize {
        self.n / 2 * self.sum.size() as usize / 4
    }
}

/// A matrix in shared memory, as a descriptor says.
#[derive(Debug, Clone, Copy)]
struct Layout {
    start: u64,
    leading: u64,
    stride: u64,
    /// Units of 16 bytes that a swizzle has in a row: 1 is none.
    units: u64,
}

impl Layout {
    /// `None`: a descriptor that is not executed.
    fn of(descriptor: u64) -> Option<Layout> {
        let bytes = |at: u32| (descriptor >> at & 0x3fff) << 4;
        let units = [1, 8, 4, 2][(descriptor >> 62) as usize];
        let based = descriptor >> 49 & 7 != 0;
        (!based).then_some(Layout { start: bytes(0), leading: bytes(16), stride: bytes(32), units })
    }

    /// Where the unit is that has an element: its row or column, and its inner index. `lane`
    /// elements are in a unit; with `transposed` it is those outside that are.
    fn unit(&self, outside: u64, inner: u64, lane: u64, transposed: bool) -> u64 {
        let at = match (transposed, self.units) {
            (false, 1) => outside % 8 * 16 + outside / 8 * self.stride + inner / lane * self.leading,
            (false, units) => outside % 8 * units * 16 + outside / 8 * self.stride + inner / lane * 16,
            (true, 1) => outside / lane * self.stride + inner % 8 * 16 + inner / 8 * self.leading,
            (true, units) => {
                let unit = outside / lane;
                unit % units * 16 + unit / units * self.leading + inner % 8 * units * 16 + inner / 8 * self.stride
            }
        };
        let address = self.start + at;
        // As tensor maps swizzle: by the address.
        address ^ (address >> 7 & (self.units - 1)) << 4
    }
}

/// Reads a factor of `count` rows or columns from `first` on: those one after the other.
fn from_shared(
    w: &mut Warp<'_>,
    descriptor: u64,
    (first, count): (usize, usize),
    (factor, inner, transposed): (GroupFactor, usize, bool),
    (lane, number): (usize, u64),
) -> Result<Vec<f64>, FaultKind> {
    let layout = Layout::of(descriptor).ok_or_else(|| unsupported(w, "wgmma of a matrix with a base offset"))?;
    let size = factor.size();
    let mut out = vec![0.0; count * inner];
    let mut last: Option<(u64, u64)> = None;
    // Units are whole along what is contiguous.
    let order: Vec<(usize, usize)> = match transposed {
        false => (0..count).flat_map(|at| (0..inner).map(move |k| (at, k))).collect(),
        true => (0..inner).flat_map(|k| (0..count).map(move |at| (at, k))).collect(),
    };
    for (at, k) in order {
        let place = layout.unit((first + at) as u64, k as u64, (16 / size) as u64, transposed);
        let host = match last {
            Some((before, host)) if before == place => host,
            _ => {
                let host = w.resolve(SHARED, place, 16, AccessKind::Read, lane)?;
                told::bulk(w, SHARED, PLAIN, (place, 16), AccessKind::Read, lane, number);
                last = Some((place, host));
                host
            }
        };
        let within = if transposed { first + at } else { k } % (16 / size) * size;
        let mut bytes = [0; 8];
        // SAFETY: `resolve` vouches for the unit.
        unsafe { std::ptr::copy_nonoverlapping((host + within as u64) as *const u8, bytes.as_mut_ptr(), size) };
        out[at * inner + k] = factor.read(u64::from_le_bytes(bytes));
    }
    Ok(out)
}

/// The 16 rows of the first factor that a warp has in its registers: as of `mma`.
fn from_registers(w: &Warp<'_>, slots: &[Slot], factor: GroupFactor, inner: usize) -> Vec<f64> {
    let packed = 4 / factor.size();
    let mut out = vec![0.0; 16 * inner];
    for lane in 0..LANES {
        for (register, &slot) in slots.iter().enumerate() {
            let bits = w.get(slot, lane);
            let row = lane / 4 + register % 2 * 8;
            for part in 0..packed {
                let k = (lane % 4) * packed + part + register / 2 * (inner / 2);
                let element = bits >> (8 * factor.size() * part);
                out[row * inner + k] = factor.read(element & (u64::MAX >> (64 - 8 * factor.size())));
            }
        }
    }
    out
}

/// The bits of bytes, one by one.
fn bits_of(bytes: &[f64]) -> Vec<f64> {
    bytes.iter().flat_map(|&byte| (0..8).map(move |bit| f64::from(byte as u8 >> bit & 1))).collect()
}

/// `wgmma.mma_async`: rows of the sums, then the first factor's rows or descriptor, then the
/// second's descriptor, then the metadata of a sparse first factor. `keep` says whether the sums of
/// before are added.
#[inline(never)]
pub(crate) fn multiply(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    match product(w, operands::MultiplyGroup::of(i), mask) {
        Ok(()) => Next::Step,
        Err(kind) => w.fail(kind, mask),
    }
}

fn product(w: &mut Warp<'_>, i: operands::MultiplyGroup<'_>, mask: u32) -> Result<(), FaultKind> {
    let form = GroupForm::unpack(i.form());
    let (inner, lane) = (form.inner(), mask.trailing_zeros() as usize);
    let slots: &[Slot] = &w.env.program.slots[i.slots() as usize..];
    let (to, rest) = slots.split_at(form.sums());
    let (first, second) = rest.split_at(if form.registers { 4 } else { 1 });
    let keep = w.pred(i.keep()) & mask != 0;
    group_registers::issue(w, (to, if form.registers { first } else { &[] }), keep);
    let mut terms = if form.sparse.is_some() { 2 * inner } else { inner };
    let number = number_of(w, true);
    let issuer = (lane, number);
    let [a_type, b_type] = form.factors;
    let rows = w.index as usize % 4 * 16;
    let mut a = if form.registers {
        from_registers(w, first, a_type, inner)
    } else {
        from_shared(w, w.get(first[0], lane), (rows, 16), (a_type, inner, form.transpose[0]), issuer)?
    };
    if let Some(metadata) = form.metadata() {
        let words: [u32; LANES] = std::array::from_fn(|lane| w.get(second[1], lane) as u32);
        a = metadata.spread(&a, &words);
    }
    let mut b = from_shared(w, w.get(second[0], lane), (0, form.n), (b_type, terms, form.transpose[1]), issuer)?;
    if a_type == GroupFactor::Bits {
        (a, b, terms) = (bits_of(&a), bits_of(&b), terms * 8);
    }
    if form.negate[0] != form.negate[1] {
        a.iter_mut().for_each(|value| *value = -*value);
    }
    let per_register = 4 / form.sum.size() as usize;
    for (register, &slot) in to.iter().enumerate() {
        for l in 0..LANES {
            let before = w.get(slot, l);
            let mut after = 0;
            for part in 0..per_register {
                let entry = register * per_register + part;
                let (row, column) = (l / 4 + entry / 2 % 2 * 8, entry / 4 * 8 + l % 4 * 2 + entry % 2);
                let shift = part * 16;
                let kept = if per_register == 2 { before >> shift & 0xffff } else { before };
                let start = if keep { form.sum.read(kept) } else { 0.0 };
                let (x, y) = (&a[row * terms..][..terms], &b[column * terms..][..terms]);
                let sum = x.iter().zip(y).fold(start, |sum, (x, y)| sum + x * y);
                after |= form.sum.write(sum, form.saturate) << shift;
            }
            w.set(slot, l, after);
        }
    }
    // Only who looks for races has to know that it is not done.
    if w.env.events.is_some() {
        let warp = w.index;
        w.block().bulk.products.begin(warp, number);
        w.tell_lanes(mask, |events, lanes| events.product_issued(lanes, number));
    }
    Ok(())
}

/// `wgmma.fence`: what came before is there at once, so only who looks for races has to know.
#[inline(never)]
pub(crate) fn fence(w: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    if let Some(registers) = &mut w.registers {
        registers.fence();
    }
    Next::Step
}

/// `wgmma.commit_group`.
#[inline(never)]
pub(crate) fn commit(w: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    if let Some(registers) = &mut w.registers {
        registers.commit();
    }
    let warp = w.index;
    w.block().bulk.products.close(warp);
    Next::Step
}

/// `wgmma.wait_group`: until all warps of the warp group have issued those groups. A part that
/// another warp is yet to carry out reads what the program may overwrite behind this wait.
#[inline(never)]
pub(crate) fn wait(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let (groups, warp) = (operands::AwaitProducts::of(i).pending(), w.index);
    let done = w.block().bulk.products.closed(warp).saturating_sub(u64::from(groups));
    if !w.block().has_issued_products(warp, done) {
        let group = Group { wait: Wait::Products(done), ..w.here(w.pc) };
        w.send(mask, group);
        w.pc += 1;
        return Next::Repick;
    }
    if let Some(registers) = &mut w.registers {
        registers.wait(groups);
    }
    if let Some(events) = w.env.events {
        let mut threads = Vec::new();
        each(mask, |l| threads.push(thread_of(w, l)));
        w.block().bulk.products.awaited(warp, &threads, done, events);
    }
    Next::Step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_survives_being_packed() {
        for (code, factor) in [
            (GroupFactor::Eight(3), GroupFactor::Eight(2)),
            (GroupFactor::Whole(Element::U8), GroupFactor::Whole(Element::S8)),
        ] {
            for n in [8, 248, 256] {
                for bits in 0..64u32 {
                    let flag = |at: u32| bits >> at & 1 != 0;
                    let form = GroupForm {
                        factors: [code, factor],
                        sum: if flag(5) { Element::F16 } else { Element::S32 },
                        n,
                        registers: flag(0),
                        negate: [flag(1), flag(2)],
                        transpose: [flag(3), flag(4)],
                        saturate: flag(5),
                        sparse: flag(4).then_some(bits as usize & 3),
                    };
                    assert_eq!(GroupForm::unpack(form.pack()), form);
                }
            }
        }
    }

    #[test]
    fn units_of_a_matrix_do_not_overlap() {
        for units in [1, 2, 4, 8] {
            for transposed in [false, true] {
                // Rows of the swizzle close to each other, tiles behind each other.
                let (leading, stride) = match (transposed, units) {
                    (false, 1) => (128, 256),
                    (true, 1) => (16 * 128, 128),
                    (false, _) => (0, 128 * units),
                    (true, _) => (128 * units * 2, 128 * units),
                };
                let layout = Layout { start: 1024, leading, stride, units };
                let mut seen = std::collections::HashSet::new();
                for outside in 0..64 {
                    for inner in 0..16 {
                        let contiguous = if transposed { outside } else { inner };
                        assert!(
                            seen.insert((layout.unit(outside, inner, 8, transposed), contiguous % 8)),
                            "{units} {transposed}"
                        );
                    }
                }
            }
        }
    }
}
