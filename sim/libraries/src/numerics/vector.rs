//! What goes over vectors, element by element.

use super::matrix::{Matrix, Scalar};
use super::memory::Memory;
use super::number::{Compute, Number, Type};
use crate::model::block::Block;
use crate::model::launch::Call;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VectorOp {
    /// `y = alpha x + y`.
    Axpy(Scalar),
    /// `x = alpha x`.
    Scale(Scalar),
    /// `y = x`.
    Copy,
    /// `x` and `y` change places.
    Swap,
    /// `x = c x + s y`, `y = c y - conj(s) x`.
    Rotate(Scalar, Scalar),
    /// The root of the sum of squares, into the result.
    Norm,
    /// The sum of absolute values (of both parts of a complex number), into the result.
    AbsoluteSum,
    /// The place, counted from 1, of the greatest absolute value, into the result.
    Greatest,
    /// Of the smallest.
    Smallest,
}

/// One call. Operations on one vector leave `y` out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vectors {
    pub op: VectorOp,
    pub x: Matrix,
    pub y: Option<Matrix>,
    /// Where a number is written.
    pub result: Option<Matrix>,
    pub compute: Compute,
}

impl Vectors {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = match (self.op, self.y) {
            (VectorOp::Axpy(alpha), Some(y)) => vec![self.x.read_block(1), y.write_block(1, true), alpha.block()],
            (VectorOp::Copy, Some(y)) => vec![self.x.read_block(1), y.write_block(1, false)],
            (VectorOp::Rotate(c, s), Some(y)) => {
                vec![self.x.write_block(1, true), y.write_block(1, true), c.block(), s.block()]
            }
            (_, Some(y)) => vec![self.x.write_block(1, true), y.write_block(1, true)],
            (VectorOp::Scale(alpha), None) => vec![self.x.write_block(1, true), alpha.block()],
            (_, None) => vec![self.x.read_block(1)],
        };
        out.extend(self.result.map(|result| result.write_block(1, false)));
        out
    }
}

impl Call for Vectors {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => run::<T>(self, memory))
    }
}

/// Both parts' absolute values, as BLAS compares complex numbers.
fn size<T: Number>(value: T) -> f64 {
    let (re, im) = value.parts();
    re.abs() + im.abs()
}

fn run<T: Number>(call: &Vectors, memory: &Memory<'_>) -> Option<()> {
    let mut x = call.x.load::<T>(memory, 0)?;
    let mut y = match &call.y {
        Some(y) => y.load::<T>(memory, 0)?,
        None => Vec::new(),
    };
    let number = |value: f64| call.result.map_or(Some(()), |result| result.store(memory, 0, &[value]));
    match call.op {
        VectorOp::Axpy(alpha) => {
            let alpha = alpha.get::<T>(memory)?;
            y.iter_mut().zip(&x).for_each(|(y, &x)| *y += alpha * x);
            call.y?.store(memory, 0, &y)
        }
        VectorOp::Scale(alpha) => {
            let alpha = alpha.get::<T>(memory)?;
            x.iter_mut().for_each(|x| *x *= alpha);
            call.x.store(memory, 0, &x)
        }
        VectorOp::Copy => call.y?.store(memory, 0, &x),
        VectorOp::Swap => {
            call.x.store(memory, 0, &y)?;
            call.y?.store(memory, 0, &x)
        }
        VectorOp::Rotate(c, s) => {
            let (c, s) = (c.get::<T>(memory)?, s.get::<T>(memory)?);
            for (x, y) in x.iter_mut().zip(&mut y) {
                (*x, *y) = (c * *x + s * *y, c * *y - s.conj() * *x);
            }
            call.x.store(memory, 0, &x)?;
            call.y?.store(memory, 0, &y)
        }
        VectorOp::Norm => {
            let squares = x.iter().map(|x| x.parts()).map(|(re, im)| re * re + im * im);
            number(squares.sum::<f64>().sqrt())
        }
        VectorOp::AbsoluteSum => number(x.iter().map(|&x| size(x)).sum()),
        VectorOp::Greatest | VectorOp::Smallest => {
            let mut best: Option<(usize, f64)> = None;
            for (at, size) in x.iter().map(|&x| size(x)).enumerate() {
                let is_better = best.is_none_or(|(_, so_far)| match call.op {
                    VectorOp::Greatest => size > so_far,
                    _ => size < so_far,
                });
                if is_better {
                    best = Some((at, size));
                }
            }
            number(best.map_or(0.0, |(at, _)| at as f64 + 1.0))
        }
    }
}

/// A place for one number.
pub(crate) fn result(at: u64, kind: Type) -> Matrix {
    Matrix::new(at, kind, 1, 1, 1)
}
