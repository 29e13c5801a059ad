//! Types of elements, and arithmetic.
//!
//! Elements of ten types lie in memory. Four types compute: `f32` (also for half precision, as
//! cuBLAS does), `f64` (also for integers of 8 bits, whose sums it holds exactly), and complex
//! numbers of both.

use half::{bf16, f16};
use num_complex::Complex;
use num_traits::{Float, NumAssign};

/// A type of elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    F16,
    Bf16,
    F32,
    F64,
    C32,
    C64,
    I8,
    I32,
    /// Of pivots and other indices only.
    I64,
}

/// A type that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compute {
    F32,
    F64,
    C32,
    C64,
}

impl Type {
    /// The type of a `cudaDataType`.
    pub(crate) fn of_cuda(number: i32) -> Option<Type> {
        Some(match number {
            0 => Type::F32,
            1 => Type::F64,
            2 => Type::F16,
            3 => Type::I8,
            4 => Type::C32,
            5 => Type::C64,
            10 => Type::I32,
            14 => Type::Bf16,
            _ => return None,
        })
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> u8 {
        match self {
            Type::I8 => 1,
            Type::F16 | Type::Bf16 => 2,
            Type::F32 | Type::I32 => 4,
            Type::F64 | Type::C32 | Type::I64 => 8,
            Type::C64 => 16,
        }
    }

    /// The type that computes with such elements.
    pub(crate) fn compute(self) -> Compute {
        match self {
            Type::F16 | Type::Bf16 | Type::F32 => Compute::F32,
            Type::F64 | Type::I8 | Type::I32 | Type::I64 => Compute::F64,
            Type::C32 => Compute::C32,
            Type::C64 => Compute::C64,
        }
    }

    /// The type of absolute values.
    pub(crate) fn real(self) -> Type {
        match self {
            Type::C32 => Type::F32,
            Type::C64 => Type::F64,
            real => real,
        }
    }
}

impl Compute {
    /// What it is in memory.
    pub(crate) fn kind(self) -> Type {
        match self {
            Compute::F32 => Type::F32,
            Compute::F64 => Type::F64,
            Compute::C32 => Type::C32,
            Compute::C64 => Type::C64,
        }
    }
}

/// Runs a body with `$T` standing for the type that computes.
macro_rules! with_number {
    ($compute:expr, $T:ident => $body:expr) => {
        match $compute {
            $crate::numerics::number::Compute::F32 => {
                type $T = f32;
                $body
            }
            $crate::numerics::number::Compute::F64 => {
                type $T = f64;
                $body
            }
            $crate::numerics::number::Compute::C32 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            $crate::numerics::number::Compute::C64 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
        }
    };
}

/// A number to compute with.
pub(crate) trait Number:
    NumAssign + Copy + std::ops::Neg<Output = Self> + Send + Sync + std::fmt::Debug + 'static
{
    /// The type of absolute values.
    type Real: Float + NumAssign + std::fmt::Debug;
    /// What it is in memory when nothing has to be converted.
    const TYPE: Type;

    /// From a complex number; the imaginary part is dropped where there is none.
    fn of(re: f64, im: f64) -> Self;
    /// From a real number.
    fn of_real(re: Self::Real) -> Self;
    /// Both parts.
    fn parts(self) -> (f64, f64);
    /// The real part.
    fn re(self) -> Self::Real;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self::Real;
    /// `c = a * b`, with strides of rows and columns in elements.
    ///
    /// # Safety
    /// All elements of `a` and `b` are readable, those of `c` writable and elsewhere.
    unsafe fn product(
        m: usize,
        k: usize,
        n: usize,
        a: *const Self,
        sa: [isize; 2],
        b: *const Self,
        sb: [isize; 2],
        c: *mut Self,
    );
}

macro_rules! real {
    ($T:ident, $TYPE:ident, $gemm:ident) => {
        impl Number for $T {
            type Real = $T;
            const TYPE: Type = Type::$TYPE;

            fn of(re: f64, _im: f64) -> Self {
                re as $T
            }
            fn of_real(re: $T) -> Self {
                re
            }
            fn parts(self) -> (f64, f64) {
                (f64::from(self), 0.0)
            }
            fn re(self) -> $T {
                self
            }
            fn conj(self) -> Self {
                self
            }
            fn abs(self) -> $T {
                $T::abs(self)
            }
            unsafe fn product(
                m: usize,
                k: usize,
                n: usize,
                a: *const Self,
                sa: [isize; 2],
                b: *const Self,
                sb: [isize; 2],
                c: *mut Self,
            ) {
                // SAFETY: the caller's promise; `c` is packed by columns.
                unsafe { matrixmultiply::$gemm(m, k, n, 1.0, a, sa[0], sa[1], b, sb[0], sb[1], 0.0, c, 1, m as isize) };
            }
        }
    };
}

macro_rules! complex {
    ($R:ident, $TYPE:ident, $gemm:ident) => {
        impl Number for Complex<$R> {
            type Real = $R;
            const TYPE: Type = Type::$TYPE;

            fn of(re: f64, im: f64) -> Self {
                Complex::new(re as $R, im as $R)
            }
            fn of_real(re: $R) -> Self {
                Complex::new(re, 0.0)
            }
            fn parts(self) -> (f64, f64) {
                (f64::from(self.re), f64::from(self.im))
            }
            fn re(self) -> $R {
                self.re
            }
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn abs(self) -> $R {
                self.norm()
            }
            unsafe fn product(
                m: usize,
                k: usize,
                n: usize,
                a: *const Self,
                sa: [isize; 2],
                b: *const Self,
                sb: [isize; 2],
                c: *mut Self,
            ) {
                use matrixmultiply::CGemmOption::Standard;
                let (one, zero) = ([1.0, 0.0], [0.0, 0.0]);
                // SAFETY: as above; a complex number is laid out as two real ones.
                unsafe {
                    matrixmultiply::$gemm(
                        Standard,
                        Standard,
                        m,
                        k,
                        n,
                        one,
                        a.cast(),
                        sa[0],
                        sa[1],
                        b.cast(),
                        sb[0],
                        sb[1],
                        zero,
                        c.cast(),
                        1,
                        m as isize,
                    );
                }
            }
        }
    };
}

real!(f32, F32, sgemm);
real!(f64, F64, dgemm);
complex!(f32, C32, cgemm);
complex!(f64, C64, zgemm);

/// Reads an element.
///
/// # Safety
/// An element of the type lies there.
pub(crate) unsafe fn load<T: Number>(at: *const u8, kind: Type) -> T {
    // SAFETY: the caller's promise, for each type.
    unsafe {
        match kind {
            Type::F16 => T::of(at.cast::<f16>().read_unaligned().to_f64(), 0.0),
            Type::Bf16 => T::of(at.cast::<bf16>().read_unaligned().to_f64(), 0.0),
            Type::F32 => T::of(f64::from(at.cast::<f32>().read_unaligned()), 0.0),
            Type::F64 => T::of(at.cast::<f64>().read_unaligned(), 0.0),
            Type::I8 => T::of(f64::from(at.cast::<i8>().read_unaligned()), 0.0),
            Type::I32 => T::of(f64::from(at.cast::<i32>().read_unaligned()), 0.0),
            Type::I64 => T::of(at.cast::<i64>().read_unaligned() as f64, 0.0),
            Type::C32 => {
                let [re, im] = at.cast::<[f32; 2]>().read_unaligned();
                T::of(f64::from(re), f64::from(im))
            }
            Type::C64 => {
                let [re, im] = at.cast::<[f64; 2]>().read_unaligned();
                T::of(re, im)
            }
        }
    }
}

/// Writes an element: rounded to the nearest, integers saturated.
///
/// # Safety
/// There is room for an element of the type.
pub(crate) unsafe fn store<T: Number>(at: *mut u8, kind: Type, value: T) {
    let (re, im) = value.parts();
    // SAFETY: the caller's promise, for each type.
    unsafe {
        match kind {
            // By way of `f32`, in which the value was computed.
            Type::F16 => at.cast::<f16>().write_unaligned(f16::from_f32(re as f32)),
            Type::Bf16 => at.cast::<bf16>().write_unaligned(bf16::from_f32(re as f32)),
            Type::F32 => at.cast::<f32>().write_unaligned(re as f32),
            Type::F64 => at.cast::<f64>().write_unaligned(re),
            Type::I8 => at.cast::<i8>().write_unaligned(re.round_ties_even() as i8),
            Type::I32 => at.cast::<i32>().write_unaligned(re.round_ties_even() as i32),
            Type::I64 => at.cast::<i64>().write_unaligned(re.round_ties_even() as i64),
            Type::C32 => at.cast::<[f32; 2]>().write_unaligned([re as f32, im as f32]),
            Type::C64 => at.cast::<[f64; 2]>().write_unaligned([re, im]),
        }
    }
}
