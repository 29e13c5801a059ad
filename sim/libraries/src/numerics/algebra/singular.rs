//! Singular values and singular vectors, by nalgebra; as in `eigen`, in complex double precision.

use nalgebra::DMatrix;
use nalgebra::linalg::SVD;

use super::eigen::{C, load, most_steps, store};
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::matrix::Matrix;
use crate::numerics::memory::Memory;

/// One call: `A = U S V^H`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Singular {
    pub a: Matrix,
    /// A keeps its value.
    pub keeps: bool,
    pub values: Matrix,
    /// U, and V or its conjugate transpose, with as many vectors as there is room for. Either may
    /// replace a part of A.
    pub u: Option<Matrix>,
    pub v: Option<Matrix>,
    pub adjoint: bool,
    pub info: Matrix,
    pub batch: usize,
    /// Where the host gets the norms of what the values leave out, one 64-bit number for each
    /// matrix; 0 for nowhere. The caller waits for the call.
    pub residuals: usize,
}

impl Singular {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let a = match self.keeps {
            true => self.a.read_block(self.batch),
            false => self.a.write_block(self.batch, true),
        };
        // What replaces a part of A is among A's bytes already.
        let vectors = [self.u, self.v].into_iter().flatten().filter(|vectors| vectors.at != self.a.at);
        let out = [self.values, self.info].into_iter().chain(vectors);
        [a].into_iter().chain(out.map(|matrix| matrix.write_block(self.batch, false))).collect()
    }
}

impl Call for Singular {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        for batch in 0..self.batch {
            let a = load(&self.a, memory, batch)?;
            let found = a.and_then(|a| decompose(a, self.u.is_some() || self.v.is_some()));
            let info = if found.is_some() { 0.0 } else { self.a.size[0].min(self.a.size[1]) as f64 };
            if self.residuals != 0 {
                let left_out = found.as_ref().map_or(f64::NAN, |(values, ..)| {
                    values.iter().skip(self.values.size[0]).map(|value| value.norm_sqr()).sum::<f64>().sqrt()
                });
                // SAFETY: the program's numbers on the host, one for each matrix; the caller waits.
                unsafe { (self.residuals as *mut f64).add(batch).write(left_out) };
            }
            let values = found.as_ref().map(|(values, ..)| values.iter().take(self.values.size[0]));
            store(&self.values, memory, batch, values)?;
            if let Some(to) = self.u {
                let u = found.as_ref().map(|(_, u, _)| with_columns(u, to.size[1]));
                store(&to, memory, batch, u.as_ref())?;
            }
            if let Some(to) = self.v {
                let count = to.size[usize::from(!self.adjoint)];
                let v = found.as_ref().map(|(.., v)| with_columns(v, count));
                let v = v.map(|v| if self.adjoint { v.adjoint() } else { v });
                store(&to, memory, batch, v.as_ref())?;
            }
            if self.info.at != 0 {
                self.info.store(memory, batch, &[info])?;
            }
        }
        Some(())
    }
}

/// Singular values, greatest first, with U and V.
fn decompose(a: DMatrix<C>, vectors: bool) -> Option<(Vec<C>, DMatrix<C>, DMatrix<C>)> {
    let (m, n) = a.shape();
    if m == 0 || n == 0 {
        return Some((Vec::new(), DMatrix::zeros(m, 0), DMatrix::zeros(n, 0)));
    }
    let found = SVD::try_new_unordered(a, vectors, vectors, f64::EPSILON, most_steps(m.max(n)))?;
    let mut order: Vec<usize> = (0..m.min(n)).collect();
    order.sort_by(|&a, &b| found.singular_values[b].total_cmp(&found.singular_values[a]));
    let values = order.iter().map(|&at| found.singular_values[at].into()).collect();
    let none = DMatrix::zeros(0, 0);
    let u = found.u.map_or_else(|| none.clone(), |u| u.select_columns(&order));
    let v = found.v_t.map_or(none, |v| v.adjoint().select_columns(&order));
    Some((values, u, v))
}

/// So many columns: the first of them, or with others that make the basis complete.
fn with_columns(basis: &DMatrix<C>, count: usize) -> DMatrix<C> {
    let (rows, known) = basis.shape();
    let mut out = basis.columns(0, known.min(count)).into_owned().resize_horizontally(count, C::default());
    for column in known..count {
        // The unit vector that is farthest from what is there. Of the squares of all distances,
        // each column takes 1 away; so one is left that is not small.
        let held = |row: usize| out.row(row).iter().map(|value| value.norm_sqr()).sum::<f64>();
        let Some(row) = (0..rows).min_by(|&a, &b| held(a).total_cmp(&held(b))) else { break };
        let mut vector = nalgebra::DVector::zeros(rows);
        vector[row] = C::from(1.0);
        // Twice is enough (Kahan, Parlett).
        for _ in 0..2 {
            for other in 0..column {
                let part = out.column(other).dotc(&vector);
                vector.axpy(-part, &out.column(other), C::from(1.0));
            }
        }
        vector.unscale_mut(vector.norm());
        out.set_column(column, &vector);
    }
    out
}
