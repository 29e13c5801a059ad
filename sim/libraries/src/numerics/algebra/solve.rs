//! Triangular systems: `op(A) X = alpha B` and `X op(A) = alpha B`.

use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// One call. X replaces B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangular {
    /// The triangle, operated on.
    pub a: Matrix,
    pub b: Matrix,
    pub left: bool,
    pub alpha: Scalar,
    /// The part of `a` that is stored, after the operation.
    pub part: Part,
    pub batch: usize,
    pub compute: Compute,
}

impl Triangular {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        vec![self.a.read_block(self.batch), self.b.write_block(self.batch, true), self.alpha.block()]
    }
}

impl Call for Triangular {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let alpha = self.alpha.get::<T>(memory)?;
            for batch in 0..self.batch {
                let a = self.a.load::<T>(memory, batch)?;
                let mut b = self.b.load::<T>(memory, batch)?;
                b.iter_mut().for_each(|value| *value *= alpha);
                let [rows, columns] = self.b.size;
                if self.left {
                    b.chunks_mut(rows.max(1)).take(columns).for_each(|x| solve(&a, rows, self.part, x));
                } else {
                    // X A = B is A^T X^T = B^T.
                    let transposed = transpose(&a, columns, columns);
                    let mut x = transpose(&b, rows, columns);
                    let part = if self.part == Part::Lower { Part::Upper } else { Part::Lower };
                    x.chunks_mut(columns.max(1)).take(rows).for_each(|x| solve(&transposed, columns, part, x));
                    b = transpose(&x, columns, rows);
                }
                self.b.store(memory, batch, &b)?;
            }
            Some(())
        })
    }
}

/// The transpose of a matrix by columns.
pub(crate) fn transpose<T: Number>(a: &[T], rows: usize, columns: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(a.len());
    for i in 0..rows {
        out.extend((0..columns).map(|j| a[i + j * rows]));
    }
    out
}

/// Solves a triangular system for one right side. The other part of `a` is not looked at.
pub(crate) fn solve<T: Number>(a: &[T], n: usize, part: Part, x: &mut [T]) {
    let mut step = |j: usize, rest: std::ops::Range<usize>| {
        x[j] /= a[j + j * n];
        let value = x[j];
        if !value.is_zero() {
            rest.for_each(|i| x[i] -= a[i + j * n] * value);
        }
    };
    match part {
        Part::Upper => (0..n).rev().for_each(|j| step(j, 0..j)),
        _ => (0..n).for_each(|j| step(j, j + 1..n)),
    }
}
