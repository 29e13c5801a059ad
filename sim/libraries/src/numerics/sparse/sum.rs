//! Products and sums of sparse matrices, whose result is sparse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use num_complex::Complex;

use super::arrays::{Entry, Sparse, bad, compress, merged};
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// Entries of all types; values of each are exact in this one.
type Entries = Vec<Entry<Complex<f64>>>;

/// A product between the call that computes it and the one that stores it: a number, because calls
/// are plain data, and may run after the program has destroyed what they belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept(u64);

#[derive(Default)]
struct Place {
    entries: Arc<Entries>,
    /// Calls that will store it.
    pending: usize,
    released: bool,
}

static PLACES: Mutex<BTreeMap<u64, Place>> = Mutex::new(BTreeMap::new());

fn places() -> MutexGuard<'static, BTreeMap<u64, Place>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// A place without entries.
    pub(crate) fn new() -> Kept {
        let mut places = places();
        let number = places.last_key_value().map_or(1, |(&last, _)| last + 1);
        places.insert(number, Place::default());
        Kept(number)
    }

    /// Number of entries.
    pub(crate) fn len(self) -> usize {
        places().get(&self.0).map_or(0, |place| place.entries.len())
    }

    fn put(self, entries: Entries) {
        if let Some(place) = places().get_mut(&self.0) {
            place.entries = Arc::new(entries);
        }
    }

    /// One more call will store it.
    pub(crate) fn expect(self) {
        if let Some(place) = places().get_mut(&self.0) {
            place.pending += 1;
        }
    }

    fn take(self) -> Option<Arc<Entries>> {
        let mut places = places();
        let place = places.get_mut(&self.0)?;
        place.pending = place.pending.saturating_sub(1);
        let entries = place.entries.clone();
        if place.released && place.pending == 0 {
            places.remove(&self.0);
        }
        Some(entries)
    }

    /// The program has destroyed it; calls that are enqueued still store it.
    pub(crate) fn release(self) {
        let mut places = places();
        if let Some(place) = places.get_mut(&self.0) {
            place.released = true;
            if place.pending == 0 {
                places.remove(&self.0);
            }
        }
    }
}

/// `alpha A B`, which is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseProduct {
    pub a: Sparse,
    pub b: Sparse,
    pub alpha: Scalar,
    pub compute: Compute,
    pub to: Kept,
}

impl SparseProduct {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let operands = [self.a, self.b];
        operands.iter().flat_map(|matrix| matrix.read_blocks(1)).chain([self.alpha.block()]).collect()
    }
}

impl Call for SparseProduct {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let alpha = self.alpha.get::<T>(memory)?;
            let mut rows = vec![Vec::new(); self.b.size[0]];
            for (row, column, value) in self.b.load::<T>(memory, 0)? {
                rows[row].push((column, value));
            }
            let mut out = Vec::new();
            for (row, at, value) in self.a.load::<T>(memory, 0)? {
                out.extend(rows[at].iter().map(|&(column, other)| (row, column, alpha * value * other)));
            }
            let wide = merged(out).into_iter().map(|(row, column, value)| {
                let (re, im) = value.parts();
                (row, column, Complex::new(re, im))
            });
            self.to.put(wide.collect());
            Some(())
        })
    }
}

/// Stores a product that was kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub c: Sparse,
    pub from: Kept,
}

impl Store {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.c.write_blocks().to_vec()
    }
}

impl Call for Store {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let entries = self.from.take()?;
        if entries.len() != self.c.entries { bad(memory) } else { self.c.store(memory, &entries) }
    }
}

/// `C = alpha A + beta B`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseSum {
    pub a: Sparse,
    pub b: Sparse,
    pub c: Sparse,
    pub alpha: Scalar,
    pub beta: Scalar,
    pub compute: Compute,
    /// Only where the rows of C begin, and how many entries it has, into here.
    pub count: Option<Matrix>,
}

impl SparseSum {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let operands = [self.a, self.b];
        if let Some(count) = self.count {
            let read = operands.iter().flat_map(|matrix| matrix.read_places(1));
            return read.chain([self.c.first(), count].map(|array| array.write_block(1, false))).collect();
        }
        let mut out: Vec<Block> = operands.iter().flat_map(|matrix| matrix.read_blocks(1)).collect();
        out.push(self.c.first().read_block(1));
        out.extend([self.c.second(), self.c.values()].map(|array| array.write_block(1, false)));
        out.extend([self.alpha.block(), self.beta.block()]);
        out
    }
}

impl Call for SparseSum {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        if let Some(count) = self.count {
            let (a, b) = (self.a.places(memory, 0)?, self.b.places(memory, 0)?);
            let all = merged(a.into_iter().chain(b).map(|(row, column)| (row, column, 0.0)).collect());
            let rows: Vec<usize> = all.iter().map(|&(row, ..)| row).collect();
            let offsets = compress(&rows, self.c.size[0]).into_iter().map(|at| (at as i64 + self.c.base) as f64);
            self.c.first().store(memory, 0, &offsets.collect::<Vec<f64>>())?;
            return count.store(memory, 0, &[all.len() as f64]);
        }
        with_number!(self.compute, T => {
            let (alpha, beta) = (self.alpha.get::<T>(memory)?, self.beta.get::<T>(memory)?);
            let mut all: Vec<Entry<T>> = Vec::new();
            for (matrix, factor) in [(&self.a, alpha), (&self.b, beta)] {
                let entries = matrix.load::<T>(memory, 0)?;
                all.extend(entries.into_iter().map(|(row, column, value)| (row, column, factor * value)));
            }
            let all = merged(all);
            if all.len() != self.c.entries {
                return bad(memory);
            }
            let columns: Vec<f64> = all.iter().map(|&(_, column, _)| (column as i64 + self.c.base) as f64).collect();
            self.c.second().store(memory, 0, &columns)?;
            self.c.values().store(memory, 0, &all.iter().map(|&(.., value)| value).collect::<Vec<T>>())
        })
    }
}
