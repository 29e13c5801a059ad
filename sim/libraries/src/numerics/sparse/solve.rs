//! Triangular systems with a sparse matrix: `op(A) X = alpha B`.

use super::arrays::Sparse;
use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseTriangular {
    pub a: Sparse,
    /// The part of A that counts, before the operation.
    pub part: Part,
    /// Its diagonal is one, whatever is stored.
    pub unit: bool,
    /// The operation on A, as a `cusparseOperation_t`.
    pub operation: i32,
    pub b: Matrix,
    pub x: Matrix,
    pub alpha: Scalar,
    pub compute: Compute,
}

impl SparseTriangular {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = self.a.read_blocks(1).to_vec();
        let in_place = self.b.at == self.x.at;
        if !in_place {
            out.push(self.b.read_block(1));
        }
        out.extend([self.x.write_block(1, in_place), self.alpha.block()]);
        out
    }
}

impl Call for SparseTriangular {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let alpha = self.alpha.get::<T>(memory)?;
            let n = self.a.size[0];
            let turned = self.operation != 0;
            // By columns, for the substitution: it takes a solved unknown out of all others.
            let (mut columns, mut diagonal) = (vec![Vec::new(); n], vec![T::of(0.0, 0.0); n]);
            for (row, column, value) in self.a.load::<T>(memory, 0)? {
                let value = if self.operation == 2 { value.conj() } else { value };
                if row == column {
                    diagonal[row] += value;
                } else if (row > column) == (self.part == Part::Lower) {
                    let (row, column) = if turned { (column, row) } else { (row, column) };
                    columns[column].push((row, value));
                }
            }
            let mut x = self.b.load::<T>(memory, 0)?;
            for x in x.chunks_mut(n.max(1)).take(self.b.size[1]) {
                x.iter_mut().for_each(|value| *value *= alpha);
                let mut step = |j: usize| {
                    if !self.unit {
                        x[j] /= diagonal[j];
                    }
                    let value = x[j];
                    columns[j].iter().for_each(|&(row, factor)| x[row] -= factor * value);
                };
                if (self.part == Part::Lower) != turned {
                    (0..n).for_each(&mut step);
                } else {
                    (0..n).rev().for_each(&mut step);
                }
            }
            self.x.store(memory, 0, &x)
        })
    }
}
