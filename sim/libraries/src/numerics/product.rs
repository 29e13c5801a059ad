//! Everything that is a product of two matrices: `D = alpha op(A) op(B) + beta C`, with a batch, a
//! second product (`syr2k`), and what cuBLASLt does to a result before it is stored.

use super::matrix::{Matrix, Scalar};
use super::memory::Memory;
use super::number::{Compute, Number};
use crate::model::block::Block;
use crate::model::launch::Call;

/// What happens to an element behind the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    None,
    Relu,
    /// By the tangent, as cuBLASLt does.
    Gelu,
    /// The gradient: times the derivative at what the auxiliary buffer holds.
    ReluGradient,
    GeluGradient,
}

/// Vectors and buffers beside the product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epilogue {
    /// Added to each column.
    pub bias: Option<Matrix>,
    pub activation: Activation,
    /// What goes into the activation, written for the gradient or read by it. Of ReLU it is one bit
    /// an element.
    pub aux: Option<Matrix>,
    /// The sums of the result's rows, of A's or of B's columns (`BGRAD`, `BGRADA`, `BGRADB`).
    pub sums: Option<(SumsOf, Matrix)>,
}

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumsOf {
    Result,
    A,
    B,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub a: Matrix,
    pub b: Matrix,
    /// A second product that is added.
    pub second: Option<[Matrix; 2]>,
    /// What the second product is multiplied with: the conjugate of `alpha`, if true.
    pub second_conjugate: bool,
    pub c: Matrix,
    pub d: Matrix,
    pub alpha: Scalar,
    pub beta: Scalar,
    pub batch: usize,
    pub compute: Compute,
    pub epilogue: Option<Epilogue>,
}

impl Product {
    /// A product whose result replaces C.
    pub(crate) fn new(alpha: Scalar, a: Matrix, b: Matrix, beta: Scalar, c: Matrix) -> Product {
        Product {
            a,
            b,
            second: None,
            second_conjugate: false,
            c,
            d: c,
            alpha,
            beta,
            batch: 1,
            compute: c.kind.compute(),
            epilogue: None,
        }
    }

    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = Vec::new();
        let none = |matrix: &Matrix| Matrix { at: 0, ..*matrix };
        // Where nothing is multiplied, nothing is read.
        let idle = self.alpha.is_zero();
        for operand in [Some([self.a, self.b]), self.second].into_iter().flatten().flatten() {
            out.push(if idle { none(&operand) } else { operand }.read_block(self.batch));
        }
        let adds = !self.beta.is_zero();
        let in_place = self.c.at == self.d.at;
        if !in_place {
            out.push(if adds { self.c } else { none(&self.c) }.read_block(self.batch));
        }
        // `trmm` may replace an operand, which a model must store back as it was.
        let replaces = [self.a.at, self.b.at].contains(&self.d.at);
        out.push(self.d.write_block(self.batch, adds && in_place || replaces && !idle));
        out.extend([self.alpha, self.beta].iter().map(Scalar::block));
        if let Some(epilogue) = &self.epilogue {
            out.extend(epilogue.bias.map(|bias| bias.read_block(self.batch)));
            out.extend(epilogue.aux.map(|aux| match epilogue.activation {
                Activation::ReluGradient | Activation::GeluGradient => aux.read_block(self.batch),
                _ => aux.write_block(self.batch, false),
            }));
            out.extend(epilogue.sums.map(|(_, sums)| sums.write_block(self.batch, false)));
        }
        out
    }
}

impl Call for Product {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            let (alpha, beta) = (self.alpha.get::<T>(memory)?, self.beta.get::<T>(memory)?);
            for batch in 0..self.batch {
                one(self, memory, batch, alpha, beta)?;
            }
            Some(())
        })
    }
}

/// `alpha a b`, by columns.
fn multiply<T: Number>(memory: &Memory<'_>, batch: usize, a: &Matrix, b: &Matrix) -> Option<Vec<T>> {
    let ([m, k], n) = (a.size, b.size[1]);
    let mut out = vec![T::zero(); m * n];
    if m * n * k == 0 {
        return Some(out);
    }
    let strides = |matrix: &Matrix| [matrix.strides[0] as isize, matrix.strides[1] as isize];
    let (mut copies, mut sides) = ([Vec::new(), Vec::new()], Vec::new());
    for (matrix, copy) in [a, b].into_iter().zip(&mut copies) {
        match matrix.in_place::<T>(memory, batch)? {
            Some(at) => sides.push((at, strides(matrix))),
            None => {
                *copy = matrix.load::<T>(memory, batch)?;
                sides.push((copy.as_ptr(), [1, matrix.size[0] as isize]));
            }
        }
    }
    // SAFETY: both sides have all their elements, `out` has as many as the result.
    unsafe { T::product(m, k, n, sides[0].0, sides[0].1, sides[1].0, sides[1].1, out.as_mut_ptr()) };
    Some(out)
}

fn one<T: Number>(call: &Product, memory: &Memory<'_>, batch: usize, alpha: T, beta: T) -> Option<()> {
    let mut out = match alpha.is_zero() {
        true => vec![T::zero(); call.d.size[0] * call.d.size[1]],
        false => multiply(memory, batch, &call.a, &call.b)?,
    };
    if alpha != T::one() {
        out.iter_mut().for_each(|value| *value *= alpha);
    }
    if let Some([a, b]) = call.second.filter(|_| !alpha.is_zero()) {
        let factor = if call.second_conjugate { alpha.conj() } else { alpha };
        let more = multiply(memory, batch, &a, &b)?;
        out.iter_mut().zip(more).for_each(|(value, more)| *value += factor * more);
    }
    if !beta.is_zero() {
        let c = call.c.load::<T>(memory, batch)?;
        out.iter_mut().zip(c).for_each(|(value, c)| *value += beta * c);
    }
    if let Some(epilogue) = &call.epilogue {
        finish(epilogue, call, memory, batch, &mut out)?;
    }
    call.d.store(memory, batch, &out)
}

/// `gelu(x)` by the tangent, and its derivative.
fn gelu(x: f64) -> (f64, f64) {
    let c = (2.0 / std::f64::consts::PI).sqrt();
    let t = (c * (x + 0.044_715 * x * x * x)).tanh();
    let slope = c * (1.0 + 3.0 * 0.044_715 * x * x);
    (0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
}

fn finish<T: Number>(
    epilogue: &Epilogue,
    call: &Product,
    memory: &Memory<'_>,
    batch: usize,
    out: &mut [T],
) -> Option<()> {
    let [rows, columns] = call.d.size;
    if let Some(bias) = epilogue.bias {
        let bias = bias.load::<T>(memory, batch)?;
        out.iter_mut().enumerate().for_each(|(at, value)| *value += bias[at % rows]);
    }
    let is_bits = matches!(epilogue.activation, Activation::Relu | Activation::ReluGradient);
    let aux = epilogue.aux.filter(|_| !is_bits);
    // One bit for each element, the rows of a column in bytes.
    let bits = epilogue.aux.filter(|_| is_bits);
    match epilogue.activation {
        Activation::None => {}
        Activation::Relu => {
            if let Some(bits) = bits {
                let mut mask = vec![0.0_f64; bits.size[0] * columns];
                for (at, value) in out.iter().enumerate().filter(|(_, value)| value.parts().0 > 0.0) {
                    debug_assert!(value.parts().0 > 0.0);
                    let byte = &mut mask[at % rows / 8 + at / rows * bits.size[0]];
                    *byte = f64::from((*byte as i64 as u8 | 1 << (at % rows % 8)) as i8);
                }
                bits.store(memory, batch, &mask)?;
            }
            out.iter_mut().for_each(|value| {
                if value.parts().0 <= 0.0 {
                    *value = T::zero();
                }
            });
        }
        Activation::Gelu => {
            if let Some(aux) = aux {
                aux.store(memory, batch, out)?;
            }
            out.iter_mut().for_each(|value| *value = T::of(gelu(value.parts().0).0, 0.0));
        }
        Activation::ReluGradient => {
            let bits = bits?;
            let mask = bits.load::<f64>(memory, batch)?;
            out.iter_mut().enumerate().for_each(|(at, value)| {
                let byte = mask[at % rows / 8 + at / rows * bits.size[0]] as i64 as u8;
                if byte >> (at % rows % 8) & 1 == 0 {
                    *value = T::zero();
                }
            });
        }
        Activation::GeluGradient => {
            let into = aux?.load::<T>(memory, batch)?;
            out.iter_mut().zip(into).for_each(|(value, x)| *value *= T::of(gelu(x.parts().0).1, 0.0));
        }
    }
    match epilogue.sums {
        None => Some(()),
        Some((of, sums)) => {
            let loaded;
            let (values, rows, by_row) = match of {
                SumsOf::Result => (&*out, rows, true),
                SumsOf::A => {
                    loaded = call.a.load::<T>(memory, batch)?;
                    (&loaded[..], call.a.size[0], true)
                }
                SumsOf::B => {
                    loaded = call.b.load::<T>(memory, batch)?;
                    (&loaded[..], call.b.size[0], false)
                }
            };
            let mut total = vec![T::zero(); sums.size[0]];
            values
                .iter()
                .enumerate()
                .for_each(|(at, value)| total[if by_row { at % rows } else { at / rows }] += *value);
            sums.store(memory, batch, &total)
        }
    }
}
