//! Matrices in device memory.

use super::memory::Memory;
use super::number::{Number, Type, load, store};
use crate::model::block::{Block, Dim, Part};

/// What the elements that are not stored are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// All elements are stored.
    Full,
    /// The transpose of what is.
    Symmetric(Part),
    /// The conjugate transpose of what is; the diagonal is real.
    Hermitian(Part),
    /// Zero; and the diagonal one, if true.
    Triangular(Part, bool),
}

/// A batch of matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// The first element, or the array of addresses of first elements.
    pub at: u64,
    /// It is such an array.
    pub by_pointer: bool,
    /// Of the elements.
    pub kind: Type,
    /// Rows and columns.
    pub size: [usize; 2],
    /// From one row, and from one column, to the next; in elements.
    pub strides: [i64; 2],
    /// From one matrix to the next, in elements.
    pub batch_stride: i64,
    /// Which elements are stored.
    pub fill: Fill,
    /// The conjugates count.
    pub conjugate: bool,
}

impl Matrix {
    /// A matrix by columns.
    pub(crate) fn new(at: u64, kind: Type, rows: i64, columns: i64, ld: i64) -> Matrix {
        Matrix {
            at,
            by_pointer: false,
            kind,
            size: [rows.max(0) as usize, columns.max(0) as usize],
            strides: [1, ld],
            batch_stride: 0,
            fill: Fill::Full,
            conjugate: false,
        }
    }

    /// A vector, as a column. Of a negative increment the last element comes first.
    pub(crate) fn vector(at: u64, kind: Type, n: i64, increment: i64) -> Matrix {
        let back = if increment < 0 { (n - 1).max(0) * -increment } else { 0 };
        let mut vector = Matrix::new(at + (back * i64::from(kind.bytes())) as u64, kind, n, 1, 0);
        vector.strides = [increment, 0];
        vector
    }

    /// One matrix of several, whose number the call knows.
    pub(crate) fn batched(mut self, stride: i64) -> Matrix {
        self.batch_stride = stride;
        self
    }

    /// The same where `at` is an array of addresses.
    pub(crate) fn pointers(mut self) -> Matrix {
        self.by_pointer = true;
        self
    }

    /// The same of which not all elements are stored.
    pub(crate) fn filled(mut self, fill: Fill) -> Matrix {
        self.fill = fill;
        self
    }

    /// As `cublasOperation_t` says: 0 as it is, 1 transposed, 2 and conjugated.
    pub(crate) fn operated(mut self, operation: i32) -> Matrix {
        if operation != 0 {
            self.size.reverse();
            self.strides.reverse();
            self.fill = match self.fill {
                Fill::Full => Fill::Full,
                Fill::Symmetric(part) => Fill::Symmetric(turned(part)),
                Fill::Hermitian(part) => Fill::Hermitian(turned(part)),
                Fill::Triangular(part, unit) => Fill::Triangular(turned(part), unit),
            };
            self.conjugate ^= operation == 2;
        }
        self
    }

    fn dims(&self, batch: usize) -> [Dim; 3] {
        let bytes = i64::from(self.kind.bytes());
        let dim = |count: usize, stride: i64| Dim { count: count as u64, stride: stride * bytes };
        [
            dim(self.size[0], self.strides[0]),
            dim(self.size[1], self.strides[1]),
            dim(batch, if self.by_pointer { 0 } else { self.batch_stride }),
        ]
    }

    fn stored(&self, block: Block) -> Block {
        let block = block.by_pointer(self.by_pointer);
        match self.fill {
            Fill::Full => block,
            Fill::Symmetric(part) | Fill::Hermitian(part) => block.part(part, true),
            Fill::Triangular(part, unit) => block.part(part, !unit),
        }
    }

    /// What reading it touches.
    pub(crate) fn read_block(&self, batch: usize) -> Block {
        self.stored(Block::read(self.at, self.kind.bytes(), self.dims(batch)))
    }

    /// What writing it touches; `reads`: it is read too.
    pub(crate) fn write_block(&self, batch: usize, reads: bool) -> Block {
        self.stored(Block::write(self.at, self.kind.bytes(), self.dims(batch), reads))
    }

    /// Where element (0, 0) of one matrix lies for the CPU.
    fn origin(&self, memory: &Memory<'_>, batch: usize, write: bool) -> Option<*mut u8> {
        let bytes = i64::from(self.kind.bytes());
        let at = match self.by_pointer {
            true => memory.get::<u64>(self.at + 8 * batch as u64)?,
            false => self.at.wrapping_add_signed(self.batch_stride * batch as i64 * bytes),
        };
        let reach = |axis: usize| (self.size[axis] as i64 - 1) * self.strides[axis];
        let low = reach(0).min(0) + reach(1).min(0);
        let high = reach(0).max(0) + reach(1).max(0) + 1;
        let view = memory.view(at.wrapping_add_signed(low * bytes), ((high - low) * bytes) as u64, write)?;
        Some(view.wrapping_offset((-low * bytes) as isize))
    }

    fn is_empty(&self) -> bool {
        self.size.contains(&0)
    }

    /// Where the elements lie, if they can be computed with as they are.
    pub(crate) fn in_place<T: Number>(&self, memory: &Memory<'_>, batch: usize) -> Option<Option<*const T>> {
        if self.is_empty() || self.kind != T::TYPE || self.conjugate || self.fill != Fill::Full {
            return Some(None);
        }
        let at = self.origin(memory, batch, false)?.cast::<T>();
        Some(at.is_aligned().then_some(at.cast_const()))
    }

    /// A copy of one matrix, by columns, with all elements.
    pub(crate) fn load<T: Number>(&self, memory: &Memory<'_>, batch: usize) -> Option<Vec<T>> {
        let [rows, columns] = self.size;
        let mut out = vec![T::zero(); rows * columns];
        if self.is_empty() {
            return Some(out);
        }
        let origin = self.origin(memory, batch, false)?;
        let bytes = i64::from(self.kind.bytes());
        let element = |i: usize, j: usize| {
            let offset = (i as i64 * self.strides[0] + j as i64 * self.strides[1]) * bytes;
            // SAFETY: `origin` has vouched for all elements.
            unsafe { load::<T>(origin.wrapping_offset(offset as isize), self.kind) }
        };
        for j in 0..columns {
            for i in 0..rows {
                let value = match self.fill {
                    Fill::Full => element(i, j),
                    Fill::Symmetric(part) if is_in(part, i, j) => element(i, j),
                    Fill::Symmetric(_) => element(j, i),
                    Fill::Hermitian(_) if i == j => T::of_real(element(i, i).re()),
                    Fill::Hermitian(part) if is_in(part, i, j) => element(i, j),
                    Fill::Hermitian(_) => element(j, i).conj(),
                    Fill::Triangular(_, true) if i == j => T::one(),
                    Fill::Triangular(part, _) if is_in(part, i, j) => element(i, j),
                    Fill::Triangular(..) => T::zero(),
                };
                out[i + j * rows] = if self.conjugate { value.conj() } else { value };
            }
        }
        Some(out)
    }

    /// Writes one matrix: what is stored of it.
    pub(crate) fn store<T: Number>(&self, memory: &Memory<'_>, batch: usize, values: &[T]) -> Option<()> {
        let [rows, columns] = self.size;
        if self.is_empty() {
            return Some(());
        }
        let origin = self.origin(memory, batch, true)?;
        let bytes = i64::from(self.kind.bytes());
        for j in 0..columns {
            for i in 0..rows {
                let mut value = values[i + j * rows];
                match self.fill {
                    Fill::Symmetric(part) | Fill::Hermitian(part) | Fill::Triangular(part, _) if !is_in(part, i, j) => {
                        continue;
                    }
                    Fill::Triangular(_, true) if i == j => continue,
                    Fill::Hermitian(_) if i == j => value = T::of_real(value.re()),
                    _ => {}
                }
                let offset = (i as i64 * self.strides[0] + j as i64 * self.strides[1]) * bytes;
                // SAFETY: `origin` has vouched for all elements.
                unsafe { store(origin.wrapping_offset(offset as isize), self.kind, value) };
            }
        }
        Some(())
    }
}

fn turned(part: Part) -> Part {
    match part {
        Part::Full => Part::Full,
        Part::Lower => Part::Upper,
        Part::Upper => Part::Lower,
    }
}

fn is_in(part: Part, i: usize, j: usize) -> bool {
    match part {
        Part::Full => true,
        Part::Lower => i >= j,
        Part::Upper => i <= j,
    }
}

/// A number that a call multiplies with: known when it is made, or read when it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar {
    /// Real and imaginary part, if known.
    value: [f64; 2],
    /// Where it lies on the device; 0 when known.
    at: u64,
    kind: Type,
}

impl Scalar {
    /// A known one.
    pub(crate) fn known(re: f64, im: f64) -> Scalar {
        Scalar { value: [re, im], at: 0, kind: Type::F64 }
    }

    /// One that lies on the host.
    ///
    /// # Safety
    /// A number of the type lies there.
    pub(crate) unsafe fn host(at: *const u8, kind: Type) -> Scalar {
        // SAFETY: the caller's promise.
        let value: num_complex::Complex<f64> = unsafe { load(at, kind) };
        Scalar { value: [value.re, value.im], at: 0, kind }
    }

    /// One that lies on the device.
    pub(crate) fn device(at: u64, kind: Type) -> Scalar {
        Scalar { value: [0.0; 2], at, kind }
    }

    /// It is known to be zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.at == 0 && self.value == [0.0; 2]
    }

    /// What reading it touches: nothing when it is known.
    pub(crate) fn block(&self) -> Block {
        Matrix::new(self.at, self.kind, 1, 1, 1).read_block(1)
    }

    /// Its value.
    pub(crate) fn get<T: Number>(&self, memory: &Memory<'_>) -> Option<T> {
        if self.at == 0 {
            return Some(T::of(self.value[0], self.value[1]));
        }
        let at = memory.view(self.at, u64::from(self.kind.bytes()), false)?;
        // SAFETY: the view holds one number.
        Some(unsafe { load(at, self.kind) })
    }
}
