//! Q of a QR factorisation, kept as Householder's reflectors: applied to a matrix, or made.

use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::{Fill, Matrix};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reflectors {
    /// The matrix in whose columns, below the diagonal, the reflectors lie.
    pub a: Matrix,
    /// Their factors.
    pub tau: Matrix,
    /// What Q is applied to, and from which side; without it Q replaces A.
    pub target: Option<(Matrix, bool)>,
    /// The conjugate transpose of Q.
    pub adjoint: bool,
    pub info: Matrix,
    pub compute: Compute,
}

impl Reflectors {
    /// The reflectors without what lies above them: R, which is not looked at.
    fn below(&self) -> Matrix {
        self.a.filled(Fill::Triangular(Part::Lower, true))
    }

    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = match self.target {
            Some((c, _)) => vec![self.below().read_block(1), c.write_block(1, true)],
            None => vec![self.a.write_block(1, true)],
        };
        out.extend([self.tau.read_block(1), self.info.write_block(1, false)]);
        out
    }

    fn one<T: Number>(&self, memory: &Memory<'_>) -> Option<()> {
        let tau = self.tau.load::<T>(memory, 0)?;
        let v = self.below().load::<T>(memory, 0)?;
        let order = self.a.size[0];
        match self.target {
            None => {
                let columns = self.a.size[1];
                let mut q = vec![T::zero(); order * columns];
                (0..columns.min(order)).for_each(|j| q[j + j * order] = T::one());
                apply(&v, &tau, order, &mut q, false);
                self.a.store(memory, 0, &q)
            }
            Some((c, true)) => {
                let mut x = c.load::<T>(memory, 0)?;
                apply(&v, &tau, order, &mut x, self.adjoint);
                c.store(memory, 0, &x)
            }
            // C Q is the adjoint of Q^H C^H.
            Some((c, false)) => {
                let [rows, columns] = c.size;
                let mut x = c.operated(2).load::<T>(memory, 0)?;
                apply(&v, &tau, order, &mut x, !self.adjoint);
                let turned: Vec<T> = (0..rows * columns).map(|at| x[at / rows + at % rows * columns].conj()).collect();
                c.store(memory, 0, &turned)
            }
        }
    }
}

impl Call for Reflectors {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => self.one::<T>(memory))?;
        if self.info.at == 0 { Some(()) } else { self.info.store(memory, 0, &[0.0_f64]) }
    }
}

/// Applies `H_1 ... H_k`, or its adjoint, to the columns of `x`, with `H = I - tau v v^H`.
fn apply<T: Number>(v: &[T], tau: &[T], order: usize, x: &mut [T], adjoint: bool) {
    let mut step = |j: usize| {
        let v = &v[j * order..][..order];
        let tau = if adjoint { tau[j].conj() } else { tau[j] };
        for x in x.chunks_mut(order.max(1)) {
            let mut sum = x[j];
            (j + 1..order).for_each(|i| sum += v[i].conj() * x[i]);
            sum *= tau;
            x[j] -= sum;
            (j + 1..order).for_each(|i| x[i] -= v[i] * sum);
        }
    };
    if adjoint { (0..tau.len()).for_each(&mut step) } else { (0..tau.len()).rev().for_each(&mut step) }
}
