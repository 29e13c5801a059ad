//! Discrete Fourier transforms in up to three dimensions, of strided batches.
//!
//! Computes in double precision whatever lies in memory, by the crate `rustfft`: one instance of
//! its generic code, and results that are at least as exact as a device's.

use std::cell::RefCell;

use half::{bf16, f16};
use num_complex::Complex;
use rustfft::{FftDirection, FftPlannerScalar};

use super::memory::Memory;
use crate::model::block::{Block, Dim, ONE};
use crate::model::launch::Call;

/// What the parts of an element are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    F16,
    Bf16,
    F32,
    F64,
}

impl Precision {
    fn bytes(self) -> u64 {
        match self {
            Precision::F16 | Precision::Bf16 => 2,
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }

    /// # Safety
    /// `at` holds a number of this type.
    unsafe fn load(self, at: *const u8) -> f64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Precision::F16 => at.cast::<f16>().read_unaligned().to_f64(),
                Precision::Bf16 => at.cast::<bf16>().read_unaligned().to_f64(),
                Precision::F32 => f64::from(at.cast::<f32>().read_unaligned()),
                Precision::F64 => at.cast::<f64>().read_unaligned(),
            }
        }
    }

    /// # Safety
    /// `at` has room for a number of this type.
    unsafe fn store(self, at: *mut u8, value: f64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Precision::F16 => at.cast::<f16>().write_unaligned(f16::from_f64(value)),
                Precision::Bf16 => at.cast::<bf16>().write_unaligned(bf16::from_f64(value)),
                Precision::F32 => at.cast::<f32>().write_unaligned(value as f32),
                Precision::F64 => at.cast::<f64>().write_unaligned(value),
            }
        }
    }
}

/// Where the elements of one side lie. Strides and distances count elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub base: u64,
    pub part: Precision,
    pub complex: bool,
    /// How many, slowest dimension first.
    pub size: [u64; 3],
    pub stride: [u64; 3],
    /// From one transform of the batch to the next.
    pub distance: u64,
}

impl Side {
    /// Bytes of an element.
    pub(crate) fn bytes(&self) -> u64 {
        self.part.bytes() * if self.complex { 2 } else { 1 }
    }

    /// Bytes from the first element of a transform to the end of its last.
    fn span(&self) -> u64 {
        let last: u64 = self.size.iter().zip(self.stride).map(|(size, stride)| (size - 1) * stride).sum();
        (last + 1) * self.bytes()
    }

    /// Bytes from the first element of the batch to the end of its last.
    pub(crate) fn all(&self, batch: u64) -> u64 {
        (batch - 1) * self.distance * self.bytes() + self.span()
    }

    fn count(&self) -> usize {
        self.size.iter().product::<u64>() as usize
    }

    /// The offsets of all elements in bytes, last dimension fastest.
    fn offsets(&self) -> impl Iterator<Item = u64> + use<> {
        let Side { size, stride, .. } = *self;
        let bytes = self.bytes();
        (0..size[0]).flat_map(move |x| {
            (0..size[1])
                .flat_map(move |y| (0..size[2]).map(move |z| (x * stride[0] + y * stride[1] + z * stride[2]) * bytes))
        })
    }

    fn load(&self, memory: &Memory<'_>, index: u64) -> Option<Vec<Complex<f64>>> {
        let base = self.base + index * self.distance * self.bytes();
        let at = memory.view(base, self.span(), false)?;
        let part = self.part.bytes() as usize;
        let mut out = Vec::with_capacity(self.count());
        for offset in self.offsets() {
            // SAFETY: the offsets lie inside the span, which the view holds.
            out.push(unsafe {
                let at = at.add(offset as usize);
                let im = if self.complex { self.part.load(at.add(part)) } else { 0.0 };
                Complex::new(self.part.load(at), im)
            });
        }
        Some(out)
    }

    fn store(&self, memory: &Memory<'_>, index: u64, values: &[Complex<f64>]) -> Option<()> {
        let base = self.base + index * self.distance * self.bytes();
        let at = memory.view(base, self.span(), true)?;
        let part = self.part.bytes() as usize;
        for (offset, value) in self.offsets().zip(values) {
            // SAFETY: as in `load`.
            unsafe {
                let at = at.add(offset as usize);
                self.part.store(at, value.re);
                if self.complex {
                    self.part.store(at.add(part), value.im);
                }
            }
        }
        Some(())
    }

    /// The bytes as blocks of a model; `None` for a shape of more than three dimensions in memory
    /// whose shortest is too long to take apart.
    fn blocks(&self, batch: u64, make: impl Fn(u64, u8, [Dim; 3]) -> Block) -> Option<Vec<Block>> {
        const MOST: u64 = 64;
        let bytes = self.bytes();
        let mut dims = vec![Dim { count: batch, stride: (self.distance * bytes) as i64 }];
        dims.extend((0..3).map(|at| Dim { count: self.size[at], stride: (self.stride[at] * bytes) as i64 }));
        dims.retain(|dim| dim.count > 1);
        dims.sort_by_key(|dim| dim.stride);
        let mut joined: Vec<Dim> = Vec::new();
        for dim in dims {
            match joined.last_mut() {
                Some(last) if last.stride * last.count as i64 == dim.stride => last.count *= dim.count,
                _ => joined.push(dim),
            }
        }
        let mut bases = vec![self.base];
        if joined.len() > 3 {
            let (at, shortest) = joined.iter().copied().enumerate().min_by_key(|(_, dim)| dim.count)?;
            if shortest.count > MOST {
                return None;
            }
            joined.remove(at);
            bases = (0..shortest.count).map(|n| self.base + n * shortest.stride as u64).collect();
        }
        joined.resize(3, ONE);
        let dims = [joined[0], joined[1], joined[2]];
        Some(bases.into_iter().map(|base| make(base, bytes as u8, dims)).collect())
    }
}

/// One call: a batch of transforms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transform {
    /// Elements of the transform, slowest dimension first: a side of half a spectrum has fewer.
    pub size: [u64; 3],
    pub input: Side,
    pub output: Side,
    pub batch: u64,
    pub inverse: bool,
    /// The input is overwritten, too.
    pub destroys: bool,
}

impl Transform {
    /// What it touches.
    pub(crate) fn blocks(&self) -> Option<Vec<Block>> {
        let (input, output) = (self.input, self.output);
        let apart = |a: &Side, b: &Side| a.base + a.all(self.batch) <= b.base;
        // What a model stores before the transform runs must be what it has loaded.
        let overlap = !apart(&input, &output) && !apart(&output, &input);
        let mut blocks = output.blocks(self.batch, |base, bytes, dims| Block::write(base, bytes, dims, overlap))?;
        blocks.extend(match self.destroys && !overlap {
            true => input.blocks(self.batch, |base, bytes, dims| Block::write(base, bytes, dims, true))?,
            false => input.blocks(self.batch, Block::read)?,
        });
        Some(blocks)
    }
}

impl Call for Transform {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        for index in 0..self.batch {
            let mut values = self.input.load(memory, index)?;
            let spectrum = !self.output.complex;
            if spectrum {
                // Half a spectrum: the other dimensions first, then rows of which the second half
                // is the conjugate of the first.
                along(&mut values, self.input.size, 0, true);
                along(&mut values, self.input.size, 1, true);
                values = whole_rows(&values, self.input.size[2] as usize, self.size[2] as usize);
                along(&mut values, self.size, 2, true);
            } else {
                for axis in 0..3 {
                    along(&mut values, self.size, axis, self.inverse);
                }
                if !self.input.complex {
                    let (whole, half) = (self.size[2] as usize, self.output.size[2] as usize);
                    values = values.chunks_exact(whole).flat_map(|row| &row[..half]).copied().collect();
                }
            }
            self.output.store(memory, index, &values)?;
        }
        Some(())
    }
}

/// Rows of `whole` elements from the first half of their spectrum.
fn whole_rows(halves: &[Complex<f64>], half: usize, whole: usize) -> Vec<Complex<f64>> {
    let mut out = Vec::with_capacity(halves.len() / half * whole);
    for row in halves.chunks_exact(half) {
        out.extend_from_slice(row);
        out.extend((half..whole).map(|at| row[whole - at].conj()));
    }
    out
}

/// Transforms every line of an array along one of its dimensions.
fn along(values: &mut [Complex<f64>], size: [u64; 3], axis: usize, inverse: bool) {
    thread_local! {
        static PLANNER: RefCell<FftPlannerScalar<f64>> = RefCell::new(FftPlannerScalar::new());
    }
    let len = size[axis] as usize;
    if len < 2 {
        return;
    }
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    let fft = PLANNER.with_borrow_mut(|planner| planner.plan_fft(len, direction));
    let step: usize = size[axis + 1..].iter().product::<u64>() as usize;
    let mut scratch = vec![Complex::default(); fft.get_inplace_scratch_len()];
    if step == 1 {
        fft.process_with_scratch(values, &mut scratch);
        return;
    }
    let mut line = vec![Complex::default(); len];
    for block in values.chunks_exact_mut(len * step) {
        for first in 0..step {
            for (at, value) in line.iter_mut().enumerate() {
                *value = block[first + at * step];
            }
            fft.process_with_scratch(&mut line, &mut scratch);
            for (at, value) in line.iter().enumerate() {
                block[first + at * step] = *value;
            }
        }
    }
}
