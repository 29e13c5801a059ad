//! From one form of a sparse matrix to another, and to and from dense ones.

use num_complex::Complex;

use super::arrays::{Entry, Sparse, bad, compress, expand};
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::matrix::Matrix;
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// What is done with arrays of indices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexOp {
    /// The rows of entries become where rows begin.
    Compress { from: Matrix, to: Matrix },
    /// And back.
    Expand { from: Matrix, to: Matrix },
    /// 0, 1, 2, ...
    Identity { to: Matrix },
    /// Sorts entries by the first index, then by the second. What else belongs to an entry, an
    /// index of the permutation, goes with it.
    Sort { first: Matrix, second: Matrix, permutation: Matrix },
    /// Sorts the entries of each row.
    SortRows { offsets: Matrix, second: Matrix, permutation: Matrix },
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indices {
    pub op: IndexOp,
    /// The number of the first row: 0 or 1.
    pub base: i64,
}

impl Indices {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        match self.op {
            IndexOp::Compress { from, to } | IndexOp::Expand { from, to } => {
                vec![from.read_block(1), to.write_block(1, false)]
            }
            IndexOp::Identity { to } => vec![to.write_block(1, false)],
            IndexOp::Sort { first, second, permutation } => {
                [first, second, permutation].map(|array| array.write_block(1, true)).to_vec()
            }
            IndexOp::SortRows { offsets, second, permutation } => {
                vec![offsets.read_block(1), second.write_block(1, true), permutation.write_block(1, true)]
            }
        }
    }

    fn load(&self, array: &Matrix, memory: &Memory<'_>) -> Option<Vec<i64>> {
        Some(array.load::<f64>(memory, 0)?.into_iter().map(|value| value as i64 - self.base).collect())
    }

    fn store(&self, array: &Matrix, memory: &Memory<'_>, values: impl Iterator<Item = i64>) -> Option<()> {
        let values: Vec<f64> = values.map(|value| (value + self.base) as f64).collect();
        array.store(memory, 0, &values)
    }

    /// Stores an array in another order, if there is one.
    fn reorder(memory: &Memory<'_>, array: &Matrix, order: &[usize]) -> Option<()> {
        if array.at == 0 {
            return Some(());
        }
        let values = array.load::<f64>(memory, 0)?;
        array.store(memory, 0, &order.iter().map(|&at| values[at]).collect::<Vec<f64>>())
    }
}

impl Call for Indices {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        match self.op {
            IndexOp::Compress { from, to } => {
                let count = to.size[0] - 1;
                let rows = self.load(&from, memory)?.into_iter();
                let rows: Option<Vec<usize>> =
                    rows.map(|row| usize::try_from(row).ok().filter(|&row| row < count)).collect();
                let offsets = compress(&rows.or_else(|| bad(memory))?, count);
                self.store(&to, memory, offsets.into_iter().map(|at| at as i64))
            }
            IndexOp::Expand { from, to } => {
                let offsets = self.load(&from, memory)?;
                let rows = expand(&offsets, to.size[0]).or_else(|| bad(memory))?;
                self.store(&to, memory, rows.into_iter())
            }
            IndexOp::Identity { to } => self.store(&to, memory, 0..to.size[0] as i64),
            IndexOp::Sort { first, second, permutation } => {
                let (a, b) = (self.load(&first, memory)?, self.load(&second, memory)?);
                let mut order: Vec<usize> = (0..a.len()).collect();
                order.sort_by_key(|&at| (a[at], b[at]));
                [first, second, permutation].iter().try_for_each(|array| Self::reorder(memory, array, &order))
            }
            IndexOp::SortRows { offsets, second, permutation } => {
                let offsets = self.load(&offsets, memory)?;
                let rows = expand(&offsets, second.size[0]).or_else(|| bad(memory))?;
                let columns = self.load(&second, memory)?;
                let mut order: Vec<usize> = (0..rows.len()).collect();
                order.sort_by_key(|&at| (rows[at], columns[at]));
                [second, permutation].iter().try_for_each(|array| Self::reorder(memory, array, &order))
            }
        }
    }
}

/// Entries by rows become entries by columns: A compressed otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recompress {
    pub from: Sparse,
    pub to: Sparse,
    /// Only where entries are.
    pub places_only: bool,
}

impl Recompress {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let count = if self.places_only { 2 } else { 3 };
        self.from.read_blocks(1).into_iter().take(count).chain(self.to.write_blocks().into_iter().take(count)).collect()
    }
}

impl Call for Recompress {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let mut entries: Vec<Entry<Complex<f64>>> = match self.places_only {
            true => self.from.places(memory, 0)?.into_iter().map(|(row, column)| (row, column, 0.0.into())).collect(),
            false => self.from.load(memory, 0)?,
        };
        entries.sort_by_key(|&(row, column, _)| (column, row));
        if self.places_only { self.to.store_places(memory, &entries) } else { self.to.store(memory, &entries) }
    }
}

/// A sparse matrix becomes a dense one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToDense {
    pub from: Sparse,
    pub to: Matrix,
    pub compute: Compute,
}

impl ToDense {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.from.read_blocks(1).into_iter().chain([self.to.write_block(1, false)]).collect()
    }
}

impl Call for ToDense {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let [rows, columns] = self.to.size;
            let mut out = vec![T::of(0.0, 0.0); rows * columns];
            self.from.load::<T>(memory, 0)?.into_iter().for_each(|(row, column, value)| out[row + column * rows] = value);
            self.to.store(memory, 0, &out)
        })
    }
}

/// A dense matrix becomes a sparse one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromDense {
    pub from: Matrix,
    pub to: Sparse,
    pub compute: Compute,
    /// Only how many entries it has, into a 64-bit number on the host; the caller waits. 0: stores
    /// the matrix.
    pub count: usize,
}

impl FromDense {
    /// What it touches. Where rows begin may be known, and stored, once entries are counted.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = vec![self.from.read_block(1)];
        if self.count == 0 {
            out.extend(self.to.write_blocks());
        }
        out
    }
}

impl Call for FromDense {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let [rows, columns] = self.from.size;
            let values = self.from.load::<T>(memory, 0)?;
            let mut entries: Vec<Entry<T>> = Vec::new();
            let by_columns = self.to.format == super::arrays::Format::Columns;
            let (outer, inner) = if by_columns { (columns, rows) } else { (rows, columns) };
            for a in 0..outer {
                for b in 0..inner {
                    let (row, column) = if by_columns { (b, a) } else { (a, b) };
                    let value = values[row + column * rows];
                    if value != T::of(0.0, 0.0) {
                        entries.push((row, column, value));
                    }
                }
            }
            if self.count != 0 {
                // SAFETY: as the field says.
                unsafe { (self.count as *mut i64).write(entries.len() as i64) };
                return Some(());
            }
            if entries.len() != self.to.entries { bad(memory) } else { self.to.store(memory, &entries) }
        })
    }
}
