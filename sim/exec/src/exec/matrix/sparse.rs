//! Products with a sparse first factor (`mma.sp`; HMMA.SP, IMMA.SP): of each few neighbours in a
//! row half are zero, and not there. Metadata says which are.
//!
//! What is there lies as the factor of a dense product of half the inner size does; `matrix` has
//! those.

use crate::exec::matrix::{Element, of_a, of_b, of_c};
use crate::exec::per_lane::each;
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// Rows of the first factor.
const ROWS: usize = 16;
/// Columns of the second one.
const COLUMNS: usize = 8;
/// Entries of the first factor that are there, at most.
const MOST: usize = ROWS * 64;

/// Type of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Factor {
    /// Of 8 bits or more.
    Whole(Element),
    /// Of 4 bits.
    Nibble { signed: bool },
}

impl Factor {
    pub(crate) fn bits(self) -> usize {
        match self {
            Factor::Whole(element) => 8 * element.size() as usize,
            Factor::Nibble { .. } => 4,
        }
    }

    fn read(self, bits: u64) -> f64 {
        match self {
            Factor::Whole(element) => element.read(bits),
            Factor::Nibble { signed: true } => f64::from((bits as i8) << 4 >> 4),
            Factor::Nibble { signed: false } => f64::from(bits as u8 & 15),
        }
    }

    fn code(self) -> u64 {
        match self {
            Factor::Whole(element) => element as u64,
            Factor::Nibble { signed } => 8 + u64::from(signed),
        }
    }

    fn from_code(code: u64) -> Factor {
        match code & 15 {
            code @ 0..8 => Factor::Whole(Element::from_code(code)),
            code => Factor::Nibble { signed: code & 1 != 0 },
        }
    }
}

/// What `x` of [`multiply_sparse`] holds. The product has 16 rows and 8 columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseForm {
    pub(crate) a: Factor,
    pub(crate) b: Factor,
    /// Of the sums, before and after.
    pub(crate) sum: Element,
    pub(crate) saturate: bool,
    /// Terms of each dot product, those that are zero included.
    pub(crate) k: usize,
    /// Which lanes of each four hold metadata.
    pub(crate) selector: usize,
}

impl SparseForm {
    /// None where no device has such a product.
    pub(crate) fn new(
        [a, b]: [Factor; 2],
        sum: Element,
        saturate: bool,
        k: usize,
        selector: usize,
    ) -> Option<SparseForm> {
        let form = SparseForm { a, b, sum, saturate, k, selector };
        let sums_fit = match a {
            Factor::Whole(Element::F16) => matches!(sum, Element::F16 | Element::F32),
            Factor::Whole(Element::Bf16 | Element::Tf32) => sum == Element::F32,
            Factor::Whole(Element::S8 | Element::U8) | Factor::Nibble { .. } => sum == Element::S32,
            Factor::Whole(_) => false,
        };
        // A row has 256 bits, or twice as much.
        let fits = matches!(k * a.bits(), 256 | 512) && a.bits() == b.bits() && (a == b || sum == Element::S32);
        (fits && sums_fit && selector < 4 / form.holders()).then_some(form)
    }

    /// Registers of a lane: sums, first factor, second factor.
    pub(crate) fn registers(self) -> [usize; 3] {
        let share = |bits: usize| bits / 32 / LANES;
        let sums = ROWS * COLUMNS * 8 * self.sum.size() as usize;
        [share(sums), share(ROWS * self.k / 2 * self.a.bits()), share(COLUMNS * self.k * self.b.bits())]
    }

    /// Neighbours of which half are there.
    fn chunk(self) -> usize {
        match self.a.bits() {
            32 => 2,
            4 => 8,
            _ => 4,
        }
    }

    /// Lanes of each four that hold metadata: four bits for each chunk of two rows, 32 bits each.
    fn holders(self) -> usize {
        (2 * 4 * self.k / self.chunk() / 32).max(1)
    }

    /// Lane with the metadata of a chunk, and the first of its four bits there.
    fn metadata(self, row: usize, chunk: usize) -> (usize, usize) {
        let (group, high) = (row % 8, row / 8);
        // Half a word is of each of both rows; of small integers each word is of one row.
        let (word, bit) = if self.a.bits() > 8 {
            (chunk / 4, 16 * high + chunk % 4 * 4)
        } else {
            (chunk / 8 * 2 + high, chunk % 8 * 4)
        };
        (group * 4 + self.selector * self.holders() + word, bit)
    }

    /// Where in its chunk an entry is that is there as number `at`, by the chunk's four bits.
    fn place(self, bits: u32, at: usize) -> usize {
        match self.a.bits() {
            // One of two; the bits are those of its two halves among four.
            32 => (bits >> 1 & 1) as usize,
            // Pairs of neighbours.
            4 => (bits >> (2 * (at / 2)) & 3) as usize * 2 + at % 2,
            _ => (bits >> (2 * at) & 3) as usize,
        }
    }

    /// The first factor, row by row, with zeros where entries are not there: `stored` has those
    /// that are, half of each row.
    pub(crate) fn spread(self, stored: &[f64], metadata: &[u32; LANES]) -> Vec<f64> {
        let (half, kept) = (self.k / 2, self.chunk() / 2);
        let mut whole = vec![0.0; ROWS * self.k];
        for (at, &value) in stored.iter().enumerate() {
            let (row, chunk, number) = (at / half, at % half / kept, at % half % kept);
            let (lane, bit) = self.metadata(row, chunk);
            let place = self.place(metadata[lane] >> bit & 15, number);
            whole[row * self.k + chunk * self.chunk() + place] = value;
        }
        whole
    }

    pub(crate) fn pack(self) -> u64 {
        self.a.code()
            | self.b.code() << 4
            | (self.sum as u64) << 8
            | u64::from(self.saturate) << 12
            | (self.selector as u64) << 16
            | (self.k as u64) << 24
    }

    fn unpack(x: u64) -> SparseForm {
        SparseForm {
            a: Factor::from_code(x),
            b: Factor::from_code(x >> 4),
            sum: Element::from_code(x >> 8),
            saturate: x >> 12 & 1 != 0,
            selector: (x >> 16 & 3) as usize,
            k: (x >> 24 & 0xff) as usize,
        }
    }
}

/// `mma.sp`: slots of d, c, a, b and the metadata follow each other. Each sum
/// grows in the order of the inner index and is rounded once.
#[inline(never)]
pub(crate) fn multiply_sparse(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MultiplySparse::of(i);
    let form = SparseForm::unpack(i.form());
    let [sums, of_first, of_second] = form.registers();
    let slots: &[Slot] = &w.env.program.slots[i.slots() as usize..];
    let (to, rest) = slots.split_at(sums);
    let (c, rest) = rest.split_at(sums);
    let (a, rest) = rest.split_at(of_first);
    let (b, rest) = rest.split_at(of_second);
    let metadata = rest[0];
    let read = |w: &Warp<'_>, slots: &[Slot], (lane, at): (usize, usize), bits: usize| {
        w.get(slots[at * bits / 32], lane) >> (at * bits % 32)
    };
    let (packed_a, packed_b) = (32 / form.a.bits(), 32 / form.b.bits());
    let (there, chunk) = (form.k / 2, form.chunk());
    let mut second = [0.0; MOST];
    for (at, value) in second.iter_mut().enumerate().take(form.k * COLUMNS) {
        let place = of_b(at / COLUMNS, at % COLUMNS, packed_b);
        *value = form.b.read(read(w, b, place, form.b.bits()));
    }
    let width = 8 * form.sum.size() as usize;
    let mut out = vec![[0u64; LANES]; sums];
    for row in 0..ROWS {
        let mut totals = [0.0; COLUMNS];
        for (column, total) in totals.iter_mut().enumerate() {
            *total = form.sum.read(read(w, c, of_c(row, column), width));
        }
        for entry in 0..there {
            let (number, at) = (entry / (chunk / 2), entry % (chunk / 2));
            let (lane, bit) = form.metadata(row, number);
            let inner = number * chunk + form.place(w.get(metadata, lane) as u32 >> bit & 15, at);
            let value = form.a.read(read(w, a, of_a(row, entry, packed_a), form.a.bits()));
            for (column, total) in totals.iter_mut().enumerate() {
                *total += value * second[inner * COLUMNS + column];
            }
        }
        for (column, total) in totals.into_iter().enumerate() {
            let (lane, at) = of_c(row, column);
            out[at * width / 32][lane] |= form.sum.write(total, form.saturate) << (at * width % 32);
        }
    }
    for (&slot, row) in to.iter().zip(&out) {
        each(mask, |l| w.set(slot, l, row[l]));
    }
    Next::Step
}
