//! LU and QR factors of batches of matrices, and what is solved with them.

use num_traits::{Float, Zero};

use super::solve::solve;
use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::Matrix;
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number, Type};

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FactorOp {
    /// A = P L U, in place.
    Lu,
    /// Solves with the factors; the operation on A as a `cublasOperation_t`. `other` holds B.
    LuSolve(i32),
    /// The inverse from the factors, into `other`.
    LuInverse,
    /// The inverse, into `other`; A keeps its value.
    Inverse,
    /// A = Q R, in place; `other` holds the factors of the reflectors.
    Qr,
    /// The least squares solution, where A has at least as many rows as columns. `other` holds B.
    LeastSquares,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    pub op: FactorOp,
    pub a: Matrix,
    pub other: Option<Matrix>,
    /// Pivots, as many as the shorter side has for each matrix. 0 for none.
    pub pivots: u64,
    /// Their type: integers of 32 or of 64 bits.
    pub pivot_type: Type,
    /// One 32-bit number for each matrix. 0 for none.
    pub info: u64,
    pub batch: usize,
    pub compute: Compute,
}

impl Factor {
    fn pivots(&self) -> Matrix {
        let n = self.a.size[0].min(self.a.size[1]) as i64;
        Matrix::new(self.pivots, self.pivot_type, n, 1, n).batched(n)
    }

    fn info(&self) -> Matrix {
        Matrix::new(self.info, Type::I32, 1, 1, 1).batched(1)
    }

    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let keeps = matches!(self.op, FactorOp::LuSolve(_) | FactorOp::LuInverse | FactorOp::Inverse);
        let a = match keeps {
            true => self.a.read_block(self.batch),
            false => self.a.write_block(self.batch, true),
        };
        let updates = matches!(self.op, FactorOp::LuSolve(_) | FactorOp::LeastSquares);
        let pivots = match self.op {
            FactorOp::Lu => self.pivots().write_block(self.batch, false),
            _ => self.pivots().read_block(self.batch),
        };
        let mut out = vec![a, pivots, self.info().write_block(self.batch, false)];
        out.extend(self.other.map(|other| other.write_block(self.batch, updates)));
        out
    }
}

impl Call for Factor {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => (0..self.batch).try_for_each(|batch| one::<T>(self, memory, batch)))
    }
}

fn one<T: Number>(call: &Factor, memory: &Memory<'_>, batch: usize) -> Option<()> {
    let [m, n] = call.a.size;
    let mut a = call.a.load::<T>(memory, batch)?;
    let mut info = 0;
    match call.op {
        FactorOp::Lu => {
            let (pivots, singular) = factor(&mut a, m, n, call.pivots != 0);
            info = singular;
            call.a.store(memory, batch, &a)?;
            if call.pivots != 0 {
                let pivots: Vec<f64> = pivots.iter().map(|&pivot| pivot as f64 + 1.0).collect();
                call.pivots().store(memory, batch, &pivots)?;
            }
        }
        FactorOp::LuSolve(operation) => {
            let b = call.other?;
            let pivots = pivots(call, memory, batch)?;
            let mut x = b.load::<T>(memory, batch)?;
            x.chunks_mut(n.max(1)).take(b.size[1]).for_each(|x| lu_solve(&a, n, &pivots, operation, x));
            b.store(memory, batch, &x)?;
        }
        FactorOp::LuInverse | FactorOp::Inverse => {
            let out = call.other?;
            let mut found = pivots(call, memory, batch)?;
            if matches!(call.op, FactorOp::Inverse) {
                (found, info) = factor(&mut a, n, n, true);
            } else {
                info = (0..n).find(|&j| a[j + j * n].is_zero()).map_or(0, |j| j as i32 + 1);
            }
            let mut x = vec![T::zero(); n * n];
            (0..n).for_each(|j| x[j + j * n] = T::one());
            x.chunks_mut(n.max(1)).for_each(|x| lu_solve(&a, n, &found, 0, x));
            out.store(memory, batch, &x)?;
        }
        FactorOp::Qr => {
            let tau = reflect(&mut a, m, n);
            call.a.store(memory, batch, &a)?;
            call.other?.store(memory, batch, &tau)?;
        }
        FactorOp::LeastSquares => {
            let b = call.other?;
            let mut x = b.load::<T>(memory, batch)?;
            info = least_squares(&mut a, [m, n], &mut x, b.size);
            call.a.store(memory, batch, &a)?;
            b.store(memory, batch, &x)?;
        }
    }
    if call.info == 0 { Some(()) } else { call.info().store(memory, batch, &[f64::from(info)]) }
}

/// The pivots as the factors hold them, from 0; without any each row stays where it is.
fn pivots(call: &Factor, memory: &Memory<'_>, batch: usize) -> Option<Vec<usize>> {
    let n = call.a.size[1];
    if call.pivots == 0 {
        return Some((0..n).collect());
    }
    let pivots = call.pivots().load::<f64>(memory, batch)?;
    Some(pivots.iter().map(|&pivot| (pivot as usize).clamp(1, n) - 1).collect())
}

/// LU factors in place; the row that each row changed places with, and the first zero on the
/// diagonal, counted from 1.
fn factor<T: Number>(a: &mut [T], m: usize, n: usize, pivoting: bool) -> (Vec<usize>, i32) {
    let (mut pivots, mut singular) = (Vec::new(), 0);
    for j in 0..m.min(n) {
        let mut best = j;
        for i in j + 1..if pivoting { m } else { 0 } {
            if a[i + j * m].abs() > a[best + j * m].abs() {
                best = i;
            }
        }
        pivots.push(best);
        if best != j {
            (0..n).for_each(|column| a.swap(j + column * m, best + column * m));
        }
        let pivot = a[j + j * m];
        if pivot.is_zero() {
            singular = if singular == 0 { j as i32 + 1 } else { singular };
            continue;
        }
        (j + 1..m).for_each(|i| a[i + j * m] /= pivot);
        for column in j + 1..n {
            let value = a[j + column * m];
            if !value.is_zero() {
                (j + 1..m).for_each(|i| {
                    let lower = a[i + j * m];
                    a[i + column * m] -= lower * value;
                });
            }
        }
    }
    (pivots, singular)
}

/// Solves with LU factors for one right side.
fn lu_solve<T: Number>(lu: &[T], n: usize, pivots: &[usize], operation: i32, x: &mut [T]) {
    let mut unit = lu.to_vec();
    (0..n).for_each(|j| unit[j + j * n] = T::one());
    if operation == 0 {
        pivots.iter().enumerate().for_each(|(i, &pivot)| x.swap(i, pivot));
        solve(&unit, n, Part::Lower, x);
        solve(lu, n, Part::Upper, x);
        return;
    }
    let turn = |a: &[T]| {
        let turned = super::solve::transpose(a, n, n);
        if operation == 2 { turned.iter().map(|value| value.conj()).collect() } else { turned }
    };
    solve(&turn(lu), n, Part::Lower, x);
    solve(&turn(&unit), n, Part::Upper, x);
    pivots.iter().enumerate().rev().for_each(|(i, &pivot)| x.swap(i, pivot));
}

/// QR factors in place by Householder's reflectors, as LAPACK's `geqrf` keeps them.
fn reflect<T: Number>(a: &mut [T], m: usize, n: usize) -> Vec<T> {
    let mut factors = Vec::new();
    for j in 0..m.min(n) {
        let alpha = a[j + j * m];
        let tail = (j + 1..m).map(|i| a[i + j * m].abs()).fold(T::Real::zero(), |sum, x| sum + x * x);
        let imaginary = alpha.parts().1;
        if tail.is_zero() && imaginary == 0.0 {
            factors.push(T::zero());
            continue;
        }
        let norm = (alpha.abs() * alpha.abs() + tail).sqrt();
        let beta = if alpha.re() >= T::Real::zero() { -norm } else { norm };
        let beta = T::of_real(beta);
        let tau = (beta - alpha) / beta;
        factors.push(tau);
        (j + 1..m).for_each(|i| a[i + j * m] /= alpha - beta);
        a[j + j * m] = beta;
        for column in j + 1..n {
            apply(a, m, j, column, tau.conj());
        }
    }
    factors
}

/// Applies reflector `j`, which lies below the diagonal, to another column of the same matrix.
fn apply<T: Number>(a: &mut [T], m: usize, j: usize, column: usize, tau: T) {
    let mut sum = a[j + column * m];
    (j + 1..m).for_each(|i| sum += a[i + j * m].conj() * a[i + column * m]);
    sum *= tau;
    a[j + column * m] -= sum;
    (j + 1..m).for_each(|i| {
        let v = a[i + j * m];
        a[i + column * m] -= v * sum;
    });
}

/// Least squares by QR. Answers 1 more than the first zero on the diagonal, or 0.
fn least_squares<T: Number>(a: &mut [T], [m, n]: [usize; 2], x: &mut [T], size: [usize; 2]) -> i32 {
    let tau = reflect(a, m, n);
    if let Some(j) = (0..n).find(|&j| a[j + j * m].is_zero()) {
        return j as i32 + 1;
    }
    let r: Vec<T> = (0..n * n).map(|at| a[at % n + at / n * m]).collect();
    for x in x.chunks_mut(size[0].max(1)).take(size[1]) {
        for (j, tau) in tau.iter().enumerate() {
            let mut sum = x[j];
            (j + 1..m).for_each(|i| sum += a[i + j * m].conj() * x[i]);
            sum *= tau.conj();
            x[j] -= sum;
            (j + 1..m).for_each(|i| x[i] -= a[i + j * m] * sum);
        }
        solve(&r, n, Part::Upper, &mut x[..n]);
    }
    0
}
