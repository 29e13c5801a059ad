//! Products of a sparse matrix with a dense one, and of dense ones at the entries of a sparse one.

use super::arrays::{Entry, Sparse};
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// `C = alpha op(A) B + beta C` with a sparse A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimesDense {
    pub a: Sparse,
    /// The operation on A, as a `cusparseOperation_t`.
    pub operation: i32,
    pub b: Matrix,
    pub c: Matrix,
    pub alpha: Scalar,
    pub beta: Scalar,
    pub batch: usize,
    pub compute: Compute,
}

impl TimesDense {
    /// What it touches. Rows of B that no entry names are not read.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = self.a.read_blocks(self.batch).to_vec();
        out.push(self.b.read_block(self.batch).in_part());
        out.push(self.c.write_block(self.batch, !self.beta.is_zero()));
        out.extend([self.alpha.block(), self.beta.block()]);
        out
    }
}

/// An entry of `op(A)`.
fn operated<T: Number>((row, column, value): Entry<T>, operation: i32) -> Entry<T> {
    match operation {
        0 => (row, column, value),
        1 => (column, row, value),
        _ => (column, row, value.conj()),
    }
}

impl Call for TimesDense {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let (alpha, beta) = (self.alpha.get::<T>(memory)?, self.beta.get::<T>(memory)?);
            for batch in 0..self.batch {
                let (a, b) = (self.a.load::<T>(memory, batch)?, self.b.load::<T>(memory, batch)?);
                let [rows, columns] = self.c.size;
                let inner = self.b.size[0];
                let mut sum = vec![T::of(0.0, 0.0); rows * columns];
                for (row, at, value) in a.into_iter().map(|entry| operated(entry, self.operation)) {
                    (0..columns).for_each(|column| sum[row + column * rows] += value * b[at + column * inner]);
                }
                sum.iter_mut().for_each(|value| *value *= alpha);
                if !self.beta.is_zero() {
                    let c = self.c.load::<T>(memory, batch)?;
                    sum.iter_mut().zip(c).for_each(|(value, c)| *value += beta * c);
                }
                self.c.store(memory, batch, &sum)?;
            }
            Some(())
        })
    }
}

/// `C = alpha (A B) + beta C` at the entries of a sparse C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub a: Matrix,
    pub b: Matrix,
    pub c: Sparse,
    pub alpha: Scalar,
    pub beta: Scalar,
    pub batch: usize,
    pub compute: Compute,
}

impl Sampled {
    /// What it touches. Rows of A and columns of B without an entry are not read.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = self.c.read_places(self.batch).to_vec();
        out.push(self.c.values().write_block(self.batch, !self.beta.is_zero()));
        out.extend([self.a, self.b].map(|matrix| matrix.read_block(self.batch).in_part()));
        out.extend([self.alpha.block(), self.beta.block()]);
        out
    }
}

impl Call for Sampled {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let (alpha, beta) = (self.alpha.get::<T>(memory)?, self.beta.get::<T>(memory)?);
            for batch in 0..self.batch {
                let (a, b) = (self.a.load::<T>(memory, batch)?, self.b.load::<T>(memory, batch)?);
                let [rows, inner] = self.a.size;
                let places = self.c.places(memory, batch)?;
                let mut out: Vec<T> = places
                    .iter()
                    .map(|&(row, column)| {
                        let products = (0..inner).map(|at| a[row + at * rows] * b[at + column * inner]);
                        alpha * products.fold(T::of(0.0, 0.0), |sum, product| sum + product)
                    })
                    .collect();
                if !self.beta.is_zero() {
                    let c = self.c.values().load::<T>(memory, batch)?;
                    out.iter_mut().zip(c).for_each(|(value, c)| *value += beta * c);
                }
                self.c.values().store(memory, batch, &out)?;
            }
            Some(())
        })
    }
}
