//! Matrices that are combined element by element.

use super::matrix::{Matrix, Scalar};
use super::memory::Memory;
use super::number::{Compute, Number};
use crate::model::block::Block;
use crate::model::launch::Call;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementOp {
    /// `C = alpha A + beta B` (`geam`).
    Sum(Scalar, Scalar),
    /// `C = A diag(b)`, or `diag(b) A` if true (`dgmm`).
    Diagonal(bool),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elementwise {
    pub op: ElementOp,
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub compute: Compute,
}

impl Elementwise {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let replaces = [self.a.at, self.b.at].contains(&self.c.at);
        let (alpha, beta) = match self.op {
            ElementOp::Sum(alpha, beta) => (alpha, beta),
            ElementOp::Diagonal(_) => (Scalar::known(1.0, 0.0), Scalar::known(1.0, 0.0)),
        };
        let operand = |matrix: Matrix, factor: Scalar| {
            let at = if factor.is_zero() { 0 } else { matrix.at };
            Matrix { at, ..matrix }.read_block(1)
        };
        let c = self.c.write_block(1, replaces);
        vec![operand(self.a, alpha), operand(self.b, beta), c, alpha.block(), beta.block()]
    }
}

impl Call for Elementwise {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => run::<T>(self, memory))
    }
}

fn run<T: Number>(call: &Elementwise, memory: &Memory<'_>) -> Option<()> {
    let [rows, columns] = call.c.size;
    let mut out = vec![T::zero(); rows * columns];
    match call.op {
        ElementOp::Sum(alpha, beta) => {
            for (matrix, factor) in [(&call.a, alpha), (&call.b, beta)] {
                let factor = factor.get::<T>(memory)?;
                if !factor.is_zero() {
                    let values = matrix.load::<T>(memory, 0)?;
                    out.iter_mut().zip(values).for_each(|(out, value)| *out += factor * value);
                }
            }
        }
        ElementOp::Diagonal(left) => {
            let (a, b) = (call.a.load::<T>(memory, 0)?, call.b.load::<T>(memory, 0)?);
            for (at, out) in out.iter_mut().enumerate() {
                *out = a[at] * b[if left { at % rows } else { at / rows }];
            }
        }
    }
    call.c.store(memory, 0, &out)
}
