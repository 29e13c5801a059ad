//! Handles and parameters: creation, settings, statuses, and what is common to all calls.

use std::ffi::{c_double, c_int};

use cuda_sys::{CUresult, CUstream};
use sim_driver_link::refused;

use crate::cublas::handle::ensure_context;
use crate::model::block::{Block, Part};
use crate::model::launch::{self, Call};
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;

/// A status of cuSOLVER other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SolverStatus(pub c_int);

impl SolverStatus {
    pub(crate) const NOT_INITIALIZED: SolverStatus = SolverStatus(1);
    pub(crate) const ALLOC_FAILED: SolverStatus = SolverStatus(2);
    pub(crate) const INVALID_VALUE: SolverStatus = SolverStatus(3);
    pub(crate) const EXECUTION_FAILED: SolverStatus = SolverStatus(6);
    pub(crate) const NOT_SUPPORTED: SolverStatus = SolverStatus(9);
}

impl From<CUresult> for SolverStatus {
    fn from(error: CUresult) -> SolverStatus {
        match error {
            CUresult::ERROR_NOT_SUPPORTED => SolverStatus::NOT_SUPPORTED,
            CUresult::ERROR_NOT_INITIALIZED => SolverStatus::NOT_INITIALIZED,
            CUresult::ERROR_OUT_OF_MEMORY => SolverStatus::ALLOC_FAILED,
            _ => SolverStatus::EXECUTION_FAILED,
        }
    }
}

/// The outcome of a call.
pub(crate) type SolverResult = Result<(), SolverStatus>;

/// What a `cusolverDnHandle_t` points to.
pub(crate) struct SolverHandle {
    pub stream: CUstream,
    deterministic: i64,
}

/// One call of a function with a handle.
pub(crate) struct SolverCall<'h> {
    pub handle: &'h mut SolverHandle,
    pub name: &'static str,
}

/// Answers a call.
pub(crate) fn enter(
    handle: Option<&mut SolverHandle>,
    name: &'static str,
    body: impl FnOnce(&mut SolverCall<'_>) -> SolverResult,
) -> c_int {
    let Some(handle) = handle else { return SolverStatus::NOT_INITIALIZED.0 };
    match body(&mut SolverCall { handle, name }) {
        Ok(()) => 0,
        Err(status) => status.0,
    }
}

impl SolverCall<'_> {
    /// Refuses the call, with a reason.
    pub(crate) fn not_simulated(&self, what: &str) -> SolverStatus {
        refused(&format!("{}: {what} is not simulated", self.name));
        SolverStatus::NOT_SUPPORTED
    }

    /// Enqueues the call on the handle's stream. `work`: address and bytes of its workspace.
    pub(crate) fn enqueue<C: Call>(&self, mut blocks: Vec<Block>, work: (u64, u64), call: &C) -> SolverResult {
        blocks.push(Block::scratch(work.0, work.1));
        blocks.retain(|block| !block.is_empty());
        match launch::launch(self.handle.stream, self.name, &blocks, call) {
            Ok(()) => Ok(()),
            Err(CUresult::ERROR_NOT_SUPPORTED) => Err(self.not_simulated("a call of this size")),
            Err(error) => Err(error.into()),
        }
    }

    /// A `cudaDataType` of numbers that this library computes with.
    pub(crate) fn kind(&self, number: i64) -> Result<Type, SolverStatus> {
        match Type::of_cuda(number as i32) {
            Some(kind @ (Type::F32 | Type::F64 | Type::C32 | Type::C64)) => Ok(kind),
            _ => Err(self.not_simulated(&format!("cudaDataType {number}"))),
        }
    }
}

/// A `cublasFillMode_t`.
pub(crate) fn part(uplo: i64) -> Result<Part, SolverStatus> {
    match uplo {
        0 => Ok(Part::Lower),
        1 => Ok(Part::Upper),
        _ => Err(SolverStatus::INVALID_VALUE),
    }
}

/// A `cusolverEigMode_t`: whether vectors are wanted.
pub(crate) fn vectors(jobz: i64) -> Result<bool, SolverStatus> {
    match jobz {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(SolverStatus::INVALID_VALUE),
    }
}

/// A matrix by columns, whose arguments are right.
pub(crate) fn matrix(at: u64, kind: Type, rows: i64, columns: i64, ld: i64) -> Result<Matrix, SolverStatus> {
    if rows < 0 || columns < 0 || ld < rows.max(1) || at == 0 && rows > 0 && columns > 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    Ok(Matrix::new(at, kind, rows, columns, ld))
}

/// The sizes in a query for a workspace. Like NVIDIA's library it looks at nothing else: CuPy asks
/// with a leading dimension that is too small.
pub(crate) fn sizes(sizes: &[i64]) -> SolverResult {
    if sizes.iter().any(|&size| size < 0) { Err(SolverStatus::INVALID_VALUE) } else { Ok(()) }
}

/// The numbers that say how it went, one for each matrix.
pub(crate) fn info(at: u64) -> Matrix {
    Matrix::new(at, Type::I32, 1, 1, 1).batched(1)
}

/// The workspace of a call, which must have at least as many elements as the query said.
pub(crate) fn work(at: u64, kind: Type, given: i64, needed: i64) -> Result<(u64, u64), SolverStatus> {
    if given < needed || at == 0 && needed > 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    Ok((at, given as u64 * u64::from(kind.bytes())))
}

/// Hands a number of elements out.
pub(crate) fn put(to: u64, value: i64) -> SolverResult {
    let value = c_int::try_from(value).map_err(|_| SolverStatus::INVALID_VALUE)?;
    if to == 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { (to as *mut c_int).write(value) };
    Ok(())
}

fn set_stream(call: &mut SolverCall<'_>, stream: u64) -> SolverResult {
    call.handle.stream = CUstream::from_bits(stream as usize);
    Ok(())
}

fn get_stream(call: &mut SolverCall<'_>, to: u64) -> SolverResult {
    if to == 0 {
        return Err(SolverStatus::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { (to as *mut usize).write(call.handle.stream.bits()) };
    Ok(())
}

fn set_deterministic(call: &mut SolverCall<'_>, mode: i64) -> SolverResult {
    call.handle.deterministic = mode;
    Ok(())
}

fn get_deterministic(call: &mut SolverCall<'_>, to: u64) -> SolverResult {
    put(to, call.handle.deterministic)
}

handled! { in cusolver; set_stream; (stream: P) cusolverDnSetStream }
handled! { in cusolver; get_stream; (to: P) cusolverDnGetStream }
handled! { in cusolver; set_deterministic; (mode: I) cusolverDnSetDeterministicMode }
handled! { in cusolver; get_deterministic; (to: P) cusolverDnGetDeterministicMode }

/// Creates what a pointer leads to.
fn create<T>(to: *mut *mut T, new: T) -> c_int {
    if to.is_null() {
        return SolverStatus::INVALID_VALUE.0;
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(new))) };
    0
}

/// # Safety
/// `what` is null or came from [`create`], and is not used again.
unsafe fn destroy<T>(what: *mut T) -> c_int {
    if what.is_null() {
        return SolverStatus::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(what) });
    0
}

/// The settings of Jacobi's methods. The tolerance and the sweeps are those of an algorithm that
/// the stand-in does not use; its values are sorted always, which is one of the orders without
/// sorting.
struct Jacobi(#[expect(dead_code, reason = "so that each has an address")] u8);

/// The choice of algorithms: there is one.
struct Params(#[expect(dead_code, reason = "so that each has an address")] u8);

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        /// # Safety
        /// As cuSOLVER's: handles and parameters are null or those of its functions, and are not
        /// used after they were destroyed.
        // SAFETY: cuSOLVER's name and signature.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> c_int $body
    )* };
}

functions! {
    fn cusolverDnCreate(to: *mut *mut SolverHandle) {
        match ensure_context() {
            Ok(()) => create(to, SolverHandle { stream: CUstream::NULL, deterministic: 1 }),
            Err(_) => SolverStatus::NOT_INITIALIZED.0,
        }
    }
    fn cusolverDnDestroy(handle: *mut SolverHandle) {
        // SAFETY: the caller's promise.
        unsafe { destroy(handle) }
    }
    fn cusolverDnCreateParams(to: *mut *mut Params) { create(to, Params(0)) }
    fn cusolverDnDestroyParams(params: *mut Params) {
        // SAFETY: the caller's promise.
        unsafe { destroy(params) }
    }
    fn cusolverDnSetAdvOptions(_params: *mut Params, _function: c_int, _algorithm: c_int) { 0 }
    fn cusolverDnCreateSyevjInfo(to: *mut *mut Jacobi) { create(to, Jacobi(0)) }
    fn cusolverDnDestroySyevjInfo(info: *mut Jacobi) {
        // SAFETY: the caller's promise.
        unsafe { destroy(info) }
    }
    fn cusolverDnXsyevjSetTolerance(_info: *mut Jacobi, _tolerance: c_double) { 0 }
    fn cusolverDnXsyevjSetMaxSweeps(_info: *mut Jacobi, _sweeps: c_int) { 0 }
    fn cusolverDnXsyevjSetSortEig(_info: *mut Jacobi, _sorted: c_int) { 0 }
    fn cusolverDnCreateGesvdjInfo(to: *mut *mut Jacobi) { create(to, Jacobi(0)) }
    fn cusolverDnDestroyGesvdjInfo(info: *mut Jacobi) {
        // SAFETY: the caller's promise.
        unsafe { destroy(info) }
    }
    fn cusolverDnXgesvdjSetTolerance(_info: *mut Jacobi, _tolerance: c_double) { 0 }
    fn cusolverDnXgesvdjSetMaxSweeps(_info: *mut Jacobi, _sweeps: c_int) { 0 }
    fn cusolverDnXgesvdjSetSortEig(_info: *mut Jacobi, _sorted: c_int) { 0 }
}
