//! Sparse vectors with dense ones.

use super::arrays::bad;
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// What is done with a sparse vector and a dense one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SparseVectorOp {
    /// The sparse values become what the dense vector has at their places.
    Gather,
    /// And back.
    Scatter,
    /// `y = alpha x + beta y`.
    Add(Scalar, Scalar),
    /// The sum of products, into the result; with conjugates of the sparse one, if true.
    Dot(Matrix, bool),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseVector {
    pub op: SparseVectorOp,
    pub indices: Matrix,
    pub base: i64,
    pub values: Matrix,
    pub dense: Matrix,
    pub compute: Compute,
}

impl SparseVector {
    /// What it touches. Elements of the dense vector that no index names are not touched, unless
    /// all are multiplied.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let (indices, values) = (self.indices.read_block(1), self.values.read_block(1));
        let dense = self.dense.read_block(1).in_part();
        match self.op {
            SparseVectorOp::Gather => vec![indices, self.values.write_block(1, false), dense],
            SparseVectorOp::Scatter => {
                let bytes = self.dense.size[0] as u64 * u64::from(self.dense.kind.bytes());
                vec![indices, values, Block::scratch(self.dense.at, bytes)]
            }
            SparseVectorOp::Add(alpha, beta) => {
                vec![indices, values, self.dense.write_block(1, true), alpha.block(), beta.block()]
            }
            SparseVectorOp::Dot(result, _) => vec![indices, values, dense, result.write_block(1, false)],
        }
    }
}

impl Call for SparseVector {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let size = self.dense.size[0];
            let places = self.indices.load::<f64>(memory, 0)?.into_iter();
            let places: Option<Vec<usize>> = places
                .map(|at| usize::try_from(at as i64 - self.base).ok().filter(|&at| at < size))
                .collect();
            let places = places.or_else(|| bad(memory))?;
            let mut y = self.dense.load::<T>(memory, 0)?;
            if let SparseVectorOp::Gather = self.op {
                return self.values.store(memory, 0, &places.iter().map(|&at| y[at]).collect::<Vec<T>>());
            }
            let x = self.values.load::<T>(memory, 0)?;
            match self.op {
                SparseVectorOp::Scatter => {
                    // Only these: what lies between them may belong to others meanwhile.
                    places.iter().zip(x).try_for_each(|(&at, value)| {
                        let bytes = u64::from(self.dense.kind.bytes());
                        let one = Matrix::new(self.dense.at + at as u64 * bytes, self.dense.kind, 1, 1, 1);
                        one.store(memory, 0, &[value])
                    })
                }
                SparseVectorOp::Add(alpha, beta) => {
                    let (alpha, beta) = (alpha.get::<T>(memory)?, beta.get::<T>(memory)?);
                    y.iter_mut().for_each(|value| *value *= beta);
                    places.iter().zip(x).for_each(|(&at, value)| y[at] += alpha * value);
                    self.dense.store(memory, 0, &y)
                }
                SparseVectorOp::Dot(result, conjugate) => {
                    let products = places.iter().zip(x).map(|(&at, x)| if conjugate { x.conj() * y[at] } else { x * y[at] });
                    result.store(memory, 0, &[products.fold(T::of(0.0, 0.0), |sum, value| sum + value)])
                }
                SparseVectorOp::Gather => Some(()),
            }
        })
    }
}
