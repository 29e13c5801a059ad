//! What the runtime keeps for each host thread, start-up, and the translation of statuses.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use cuda_sys::*;

pub(crate) type Res = Result<(), cudaError>;

pub(crate) const INVALID: cudaError = cudaErrorInvalidValue;

thread_local! {
    static LAST: Cell<cudaError> = const { Cell::new(cudaSuccess) };
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// How many resets this thread knows of.
    static SEEN: Cell<usize> = const { Cell::new(0) };
}

/// A driver status as one of the runtime: the numbers are the same.
pub(crate) fn check(result: CUresult) -> Res {
    if result == CUresult::SUCCESS { Ok(()) } else { Err(cudaError(result.0)) }
}

/// The calling thread's current device.
pub(crate) fn device() -> c_int {
    DEVICE.get()
}

pub(crate) fn set_device(device: c_int) {
    DEVICE.set(device);
}

/// The last error, and forgets it if asked to.
pub(crate) fn last_error(forget: bool) -> cudaError {
    let last = LAST.get();
    if forget {
        LAST.set(cudaSuccess);
    }
    last
}

/// Initialises the driver once.
pub(crate) fn init() -> Res {
    static DONE: OnceLock<Res> = OnceLock::new();
    *DONE.get_or_init(|| {
        if !sim_driver_link::exists() {
            return Err(cudaErrorInsufficientDriver);
        }
        cu!(cuInit(0))
    })
}

/// Sees to it that the calling thread has a current context: the primary one of its device.
pub(crate) fn context() -> Res {
    init()?;
    let resets = RESETS.load(Ordering::Acquire);
    if SEEN.get() != resets {
        use_primary(device())?;
        SEEN.set(resets);
        return Ok(());
    }
    let mut now = CUcontext::NULL;
    cu!(cuCtxGetCurrent(&mut now))?;
    if now.is_null() { use_primary(device()) } else { Ok(()) }
}

/// `cudaDeviceReset`: what comes next, on any thread, makes a new primary context.
pub(crate) fn reset() -> Res {
    let device = device();
    cu!(cuDevicePrimaryCtxReset_v2(device))?;
    if let Some(slot) = RETAINED.get(device as usize) {
        slot.store(0, Ordering::Release);
    }
    RESETS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// The primary contexts that were retained; zero is none.
static RETAINED: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
/// How often a device was reset.
static RESETS: AtomicUsize = AtomicUsize::new(0);

/// Makes a device's primary context current. It is retained once per process and never given back,
/// as NVIDIA's runtime does it.
pub(crate) fn use_primary(device: c_int) -> Res {
    static RETAINING: Mutex<()> = Mutex::new(());
    let slot = RETAINED.get(device as usize).ok_or(cudaErrorInvalidDevice)?;
    let retaining = RETAINING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if slot.load(Ordering::Acquire) == 0 {
        let mut ctx = CUcontext::NULL;
        cu!(cuDevicePrimaryCtxRetain(&mut ctx, device))?;
        slot.store(ctx.bits(), Ordering::Release);
    }
    drop(retaining);
    let made = cu!(cuCtxSetCurrent(CUcontext::from_bits(slot.load(Ordering::Acquire))));
    if made == Err(cudaErrorDeviceUninitialized) {
        // It was reset behind our back: take a new one.
        let mut ctx = CUcontext::NULL;
        cu!(cuDevicePrimaryCtxRetain(&mut ctx, device))?;
        return cu!(cuCtxSetCurrent(ctx));
    }
    made
}

fn finish(body: impl FnOnce() -> Res) -> cudaError {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        sim_driver_link::refused("a function of the runtime failed inside the simulator");
        Err(cudaErrorUnknown)
    });
    match result {
        Ok(()) => cudaSuccess,
        // "Not ready" is an answer: NVIDIA's runtime does not remember it either.
        Err(cudaErrorNotReady) => cudaErrorNotReady,
        Err(error) => {
            LAST.set(error);
            error
        }
    }
}

/// A function that needs nothing, and whose errors are not remembered.
pub(crate) fn quiet(body: impl FnOnce() -> Res) -> cudaError {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(cudaErrorUnknown)).err().unwrap_or(cudaSuccess)
}

/// A function that needs the driver but no context.
pub(crate) fn bare(body: impl FnOnce() -> Res) -> cudaError {
    finish(|| init().and_then(|()| body()))
}

/// A function that needs a context.
pub(crate) fn ctx(body: impl FnOnce() -> Res) -> cudaError {
    finish(|| context().and_then(|()| body()))
}

/// Hands a result out. A program answers for its pointers; null is an error.
pub(crate) fn put<T>(to: *mut T, value: T) -> Res {
    if to.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Hands out the first bytes of a result: in older versions the struct ended there.
pub(crate) fn put_start<T: Copy>(to: *mut c_void, value: &T, bytes: usize) -> Res {
    if to.is_null() {
        return Err(INVALID);
    }
    let bytes = bytes.min(size_of::<T>());
    // SAFETY: the C interface: a non-null output pointer is writable, for as many bytes as the
    // version's struct has.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), bytes) };
    Ok(())
}

/// Reads an argument of which the caller has the first bytes only: the others are zero.
pub(crate) fn get_start<T: Copy>(from: *const T, bytes: usize) -> Result<T, cudaError> {
    if from.is_null() {
        return Err(INVALID);
    }
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let bytes = bytes.min(size_of::<T>());
    // SAFETY: the C interface: a non-null input pointer is readable, for as many bytes as the
    // version's struct has. Structs of C are valid with zeros.
    unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.cast(), bytes);
        Ok(value.assume_init())
    }
}

/// Reads an argument.
pub(crate) fn get<T: Copy>(from: *const T) -> Result<T, cudaError> {
    if from.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null input pointer is readable.
    Ok(unsafe { from.read_unaligned() })
}
