//! cuRAND's host functions: generators, and the numbers that they write on a stream.
//!
//! Pseudo-random generators of every kind are one here: Philox, whose numbers follow from seed and
//! place alone (`numerics::random`). They have the distributions that were asked for, and are the
//! same in each run, but not NVIDIA's numbers. Quasi-random generators, generators on the host and
//! Poisson's distribution are refused.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use cuda_sys::{CUresult, CUstream};
use sim_driver_link::refused;

use crate::cublas::handle::ensure_context;
use crate::model::block::{Block, Dim, ONE};
use crate::model::launch::launch;
use crate::numerics::random::{Distribution, Numbers};

const NOT_INITIALIZED: c_int = 101;
const ALLOCATION_FAILED: c_int = 102;
const TYPE_ERROR: c_int = 103;
const OUT_OF_RANGE: c_int = 104;
const LENGTH_NOT_MULTIPLE: c_int = 105;
const LAUNCH_FAILURE: c_int = 201;
const INITIALIZATION_FAILED: c_int = 203;

/// `CURAND_RNG_PSEUDO_DEFAULT` to `CURAND_RNG_PSEUDO_PHILOX4_32_10`.
const PSEUDO: std::ops::RangeInclusive<c_int> = 100..=161;

/// What a `curandGenerator_t` points to.
pub(crate) struct Generator {
    stream: CUstream,
    seed: u64,
    /// How many numbers were taken.
    place: u64,
}

fn create(to: *mut *mut Generator, kind: c_int) -> c_int {
    if to.is_null() {
        return INITIALIZATION_FAILED;
    }
    if !PSEUDO.contains(&kind) {
        refused(&format!("curandCreateGenerator: generators of kind {kind} are not simulated"));
        return TYPE_ERROR;
    }
    if ensure_context().is_err() {
        return INITIALIZATION_FAILED;
    }
    let generator = Generator { stream: CUstream::NULL, seed: 0, place: 0 };
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(generator))) };
    0
}

/// Enqueues numbers of a distribution, `bytes` each.
fn generate(
    name: &'static str,
    generator: Option<&mut Generator>,
    to: u64,
    count: usize,
    bytes: u8,
    what: Distribution,
) -> c_int {
    let Some(generator) = generator else { return NOT_INITIALIZED };
    let is_normal = matches!(what, Distribution::Normal { .. } | Distribution::LogNormal { .. });
    // The manual: pseudo-random generators make normal numbers in pairs.
    if is_normal && !count.is_multiple_of(2) {
        return LENGTH_NOT_MULTIPLE;
    }
    if count == 0 {
        return 0;
    }
    let numbers = Numbers { to, count: count as u64, seed: generator.seed, place: generator.place, bytes, what };
    generator.place += count as u64;
    let dims = [Dim { count: count as u64, stride: i64::from(bytes) }, ONE, ONE];
    match launch(generator.stream, name, &[Block::write(to, bytes, dims, false)], &numbers) {
        Ok(()) => 0,
        Err(CUresult::ERROR_OUT_OF_MEMORY) => ALLOCATION_FAILED,
        Err(_) => LAUNCH_FAILURE,
    }
}

/// Defines functions of generators.
macro_rules! generators {
    ($(fn $name:ident($generator:ident $(, $arg:ident: $ty:ty)* $(,)?) $body:block)*) => { $(
        /// # Safety
        /// A generator of `curandCreateGenerator`, or null.
        // SAFETY: cuRAND's name and signature.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(generator: *mut Generator $(, $arg: $ty)*) -> c_int {
            // SAFETY: the caller's promise.
            let $generator = unsafe { generator.as_mut() };
            $body
        }
    )* };
}

generators! {
    fn curandSetStream(generator, stream: *mut c_void) {
        generator.map_or(NOT_INITIALIZED, |generator| {
            generator.stream = CUstream::from_bits(stream as usize);
            0
        })
    }
    fn curandSetPseudoRandomGeneratorSeed(generator, seed: c_ulonglong) {
        generator.map_or(NOT_INITIALIZED, |generator| {
            (generator.seed, generator.place) = (seed, 0);
            0
        })
    }
    fn curandSetGeneratorOffset(generator, offset: c_ulonglong) {
        generator.map_or(NOT_INITIALIZED, |generator| {
            generator.place = offset;
            0
        })
    }
    // One order of numbers serves all.
    fn curandSetGeneratorOrdering(generator, order: c_int) {
        match generator {
            None => NOT_INITIALIZED,
            Some(_) if (100..=105).contains(&order) => 0,
            Some(_) => OUT_OF_RANGE,
        }
    }
    // Seeds are numbers here, and no memory.
    fn curandGenerateSeeds(generator) { generator.map_or(NOT_INITIALIZED, |_| 0) }
    fn curandGenerate(generator, to: *mut c_uint, count: usize) {
        generate("curandGenerate", generator, to as u64, count, 4, Distribution::Bits)
    }
    fn curandGenerateLongLong(generator, to: *mut c_ulonglong, count: usize) {
        generate("curandGenerateLongLong", generator, to as u64, count, 8, Distribution::Bits)
    }
    fn curandGenerateUniform(generator, to: *mut f32, count: usize) {
        generate("curandGenerateUniform", generator, to as u64, count, 4, Distribution::Uniform)
    }
    fn curandGenerateUniformDouble(generator, to: *mut f64, count: usize) {
        generate("curandGenerateUniformDouble", generator, to as u64, count, 8, Distribution::Uniform)
    }
    fn curandGenerateNormal(generator, to: *mut f32, count: usize, mean: f32, deviation: f32) {
        let what = Distribution::Normal { mean: mean.into(), deviation: deviation.into() };
        generate("curandGenerateNormal", generator, to as u64, count, 4, what)
    }
    fn curandGenerateNormalDouble(generator, to: *mut f64, count: usize, mean: f64, deviation: f64) {
        generate("curandGenerateNormalDouble", generator, to as u64, count, 8, Distribution::Normal { mean, deviation })
    }
    fn curandGenerateLogNormal(generator, to: *mut f32, count: usize, mean: f32, deviation: f32) {
        let what = Distribution::LogNormal { mean: mean.into(), deviation: deviation.into() };
        generate("curandGenerateLogNormal", generator, to as u64, count, 4, what)
    }
    fn curandGenerateLogNormalDouble(generator, to: *mut f64, count: usize, mean: f64, deviation: f64) {
        let what = Distribution::LogNormal { mean, deviation };
        generate("curandGenerateLogNormalDouble", generator, to as u64, count, 8, what)
    }
}

// SAFETY: cuRAND's name and signature.
#[unsafe(no_mangle)]
extern "C" fn curandCreateGenerator(to: *mut *mut Generator, kind: c_int) -> c_int {
    create(to, kind)
}

/// # Safety
/// A generator of [`curandCreateGenerator`] that is not used again, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn curandDestroyGenerator(generator: *mut Generator) -> c_int {
    if generator.is_null() {
        return NOT_INITIALIZED;
    }
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(generator) });
    0
}
