//! Eigenvalues and eigenvectors, by nalgebra.
//!
//! All types compute in complex double precision: one instance of the algorithms is compiled, and
//! the real parts of real matrices are exact in it.

use nalgebra::linalg::{Schur, SymmetricEigen};
use nalgebra::{DMatrix, DVector};
use num_complex::Complex;

use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::{Fill, Matrix};
use crate::numerics::memory::Memory;
use crate::numerics::number::Type;

/// A number to compute with.
pub(crate) type C = Complex<f64>;

/// What a value is that could not be computed.
pub(crate) const NONE: C = C::new(f64::NAN, f64::NAN);

/// Steps after which an algorithm gives up.
pub(crate) fn most_steps(n: usize) -> usize {
    1000 + 100 * n
}

/// Loads a matrix. The answer to one that is not finite is `None` inside: the algorithms compare
/// numbers.
pub(crate) fn load(matrix: &Matrix, memory: &Memory<'_>, batch: usize) -> Option<Option<DMatrix<C>>> {
    let values = matrix.load::<C>(memory, batch)?;
    let finite = values.iter().all(|value| value.is_finite());
    Some(finite.then(|| DMatrix::from_vec(matrix.size[0], matrix.size[1], values)))
}

/// Stores numbers, or NaN where there are none.
pub(crate) fn store<'v>(
    matrix: &Matrix,
    memory: &Memory<'_>,
    batch: usize,
    values: Option<impl IntoIterator<Item = &'v C>>,
) -> Option<()> {
    let values: Vec<C> = match values {
        Some(values) => values.into_iter().copied().collect(),
        None => vec![NONE; matrix.size[0] * matrix.size[1]],
    };
    matrix.store(memory, batch, &values)
}

/// Of a symmetric or Hermitian matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symmetric {
    /// The matrix, and the part of it that is read.
    pub a: Matrix,
    pub part: Part,
    /// Eigenvectors replace the matrix; otherwise the part of it is destroyed.
    pub vectors: bool,
    pub values: Matrix,
    pub info: Matrix,
    pub batch: usize,
}

impl Symmetric {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let a = match self.vectors {
            true => self.a,
            false => self.a.filled(Fill::Triangular(self.part, false)),
        };
        let out = [self.values, self.info].map(|matrix| matrix.write_block(self.batch, false));
        [a.write_block(self.batch, true)].into_iter().chain(out).collect()
    }
}

impl Call for Symmetric {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let n = self.a.size[0];
        for batch in 0..self.batch {
            let a = load(&self.a.filled(Fill::Hermitian(self.part)), memory, batch)?;
            let found = a.and_then(|a| SymmetricEigen::try_new(a, f64::EPSILON, most_steps(n)));
            let info = if found.is_some() { 0.0 } else { n as f64 };
            let found = found.map(|found| {
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| found.eigenvalues[a].total_cmp(&found.eigenvalues[b]));
                let values: Vec<C> = order.iter().map(|&at| found.eigenvalues[at].into()).collect();
                (values, found.eigenvectors.select_columns(&order))
            });
            store(&self.values, memory, batch, found.as_ref().map(|(values, _)| values))?;
            if self.vectors {
                store(&self.a, memory, batch, found.as_ref().map(|(_, vectors)| vectors))?;
            }
            if self.info.at != 0 {
                self.info.store(memory, batch, &[info])?;
            }
        }
        Some(())
    }
}

/// Of any matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct General {
    /// The matrix, which is destroyed.
    pub a: Matrix,
    /// Complex numbers; or real ones, then the real parts and behind them the imaginary ones.
    pub values: Matrix,
    /// Right eigenvectors. Real ones hold those of a pair as its real and its imaginary part.
    pub vectors: Option<Matrix>,
    pub info: Matrix,
}

impl General {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = vec![self.a.write_block(1, true), self.values.write_block(1, false)];
        out.extend(self.vectors.map(|vectors| vectors.write_block(1, false)));
        out.push(self.info.write_block(1, false));
        out
    }
}

impl Call for General {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let n = self.a.size[0];
        let a = load(&self.a, memory, 0)?;
        let found = a.and_then(|a| general(a, self.a.kind.real() == self.a.kind));
        let info = if found.is_some() { 0.0 } else { n as f64 };
        let values = found.as_ref().map(|(values, _)| match self.values.kind {
            Type::C32 | Type::C64 => values.clone(),
            _ => values.iter().map(|value| value.re).chain(values.iter().map(|value| value.im)).map(C::from).collect(),
        });
        store(&self.values, memory, 0, values.as_ref())?;
        if let Some(to) = self.vectors {
            let vectors = found.map(|(values, mut vectors)| {
                if to.kind.real() == to.kind {
                    for at in (0..n).filter(|&at| values[at].im > 0.0) {
                        let imaginary = vectors.column(at).map(|value| C::from(value.im));
                        vectors.set_column(at + 1, &imaginary);
                    }
                }
                vectors
            });
            store(&to, memory, 0, vectors.as_ref())?;
        }
        if self.info.at == 0 { Some(()) } else { self.info.store(memory, 0, &[info]) }
    }
}

/// Eigenvalues and eigenvectors. Those of a real matrix come in pairs, the one with the positive
/// imaginary part first.
fn general(a: DMatrix<C>, real: bool) -> Option<(Vec<C>, DMatrix<C>)> {
    let n = a.nrows();
    let scale = a.norm();
    let (q, t) = Schur::try_new(a, f64::EPSILON, most_steps(n))?.unpack();
    let mut found: Vec<(C, DVector<C>)> = (0..n).map(|k| (t[(k, k)], &q * eigenvector(&t, k, scale))).collect();
    for (_, vector) in &mut found {
        let largest = vector.iter().copied().max_by(|a, b| a.norm_sqr().total_cmp(&b.norm_sqr())).unwrap_or_default();
        let turn = largest.conj() / (largest.norm() * vector.norm());
        vector.iter_mut().for_each(|value| *value *= turn);
    }
    if real {
        found = in_pairs(found, 64.0 * n as f64 * f64::EPSILON * scale);
    }
    let columns: Vec<DVector<C>> = found.iter().map(|(_, vector)| vector.clone()).collect();
    let vectors = if n == 0 { DMatrix::zeros(0, 0) } else { DMatrix::from_columns(&columns) };
    Some((found.into_iter().map(|(value, _)| value).collect(), vectors))
}

/// The eigenvector of a triangular matrix for the value at a place of its diagonal.
fn eigenvector(t: &DMatrix<C>, k: usize, scale: f64) -> DVector<C> {
    let mut y = DVector::zeros(t.nrows());
    y[k] = C::from(1.0);
    // Equal eigenvalues: a value as small as the error of the others.
    let least = (f64::EPSILON * scale).max(f64::MIN_POSITIVE);
    for i in (0..k).rev() {
        let sum: C = (i + 1..=k).map(|j| t[(i, j)] * y[j]).sum();
        let distance = t[(i, i)] - t[(k, k)];
        y[i] = -sum / if distance.norm() < least { C::from(least) } else { distance };
    }
    y
}

/// The eigenvalues of a real matrix: real ones, and conjugates side by side.
fn in_pairs(mut found: Vec<(C, DVector<C>)>, error: f64) -> Vec<(C, DVector<C>)> {
    let mut out = Vec::with_capacity(found.len());
    while !found.is_empty() {
        let (value, vector) = found.remove(0);
        let distance = |other: &(C, DVector<C>)| (other.0.conj() - value).norm();
        let partner = (0..found.len()).min_by(|&a, &b| distance(&found[a]).total_cmp(&distance(&found[b])));
        match partner.filter(|_| value.im.abs() > error) {
            Some(partner) => {
                let (other, other_vector) = found.remove(partner);
                let (value, vector) = if value.im > 0.0 { (value, vector) } else { (other, other_vector) };
                out.push((value, vector.clone()));
                out.push((value.conj(), vector.conjugate()));
            }
            None => out.push((value.re.into(), vector.map(|value| value.re.into()))),
        }
    }
    out
}
