//! Handles: creation, settings, statuses, and what is common to all calls.

use std::ffi::{CStr, c_char, c_int, c_void};

use cuda_sys::{CUcontext, CUdeviceptr, CUresult, CUstream};

use crate::model::block::Block;
use crate::model::launch::{self, Call};
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::number::Type;
use crate::numerics::vector;
use sim_driver_link::refused;

/// The version that the stand-in says it is: of CUDA 13.0, or of 12.8 where it was loaded under the
/// name that programs of CUDA 12 ask for (`scripts/build` links it for both).
pub(crate) fn version() -> c_int {
    // SAFETY: all fields are numbers and pointers; zero is one of their values.
    let mut this: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address of a function of this file, and room for the answer.
    let known = unsafe { libc::dladdr(version as *const c_void, &raw mut this) } != 0 && !this.dli_fname.is_null();
    // SAFETY: the loader's own text, which ends with a zero.
    let of_12 = known && unsafe { CStr::from_ptr(this.dli_fname) }.to_bytes().ends_with(b".so.12");
    if of_12 { 120_800 } else { 130_000 }
}

/// A status of cuBLAS other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub c_int);

impl Status {
    pub(crate) const NOT_INITIALIZED: Status = Status(1);
    pub(crate) const ALLOC_FAILED: Status = Status(3);
    pub(crate) const INVALID_VALUE: Status = Status(7);
    pub(crate) const EXECUTION_FAILED: Status = Status(13);
    pub(crate) const NOT_SUPPORTED: Status = Status(15);
}

impl From<CUresult> for Status {
    fn from(error: CUresult) -> Status {
        match error {
            CUresult::ERROR_NOT_SUPPORTED => Status::NOT_SUPPORTED,
            CUresult::ERROR_NOT_INITIALIZED => Status::NOT_INITIALIZED,
            CUresult::ERROR_OUT_OF_MEMORY => Status::ALLOC_FAILED,
            _ => Status::EXECUTION_FAILED,
        }
    }
}

/// The outcome of a call.
pub(crate) type Res = Result<(), Status>;

/// What a `cublasHandle_t` points to. cuBLASLt takes it for one of its own, and looks at nothing in
/// it.
pub(crate) struct Handle {
    pub stream: CUstream,
    /// Scalars and results lie on the device.
    pub device_pointers: bool,
    math_mode: c_int,
    atomics_mode: c_int,
    multiprocessors: c_int,
    /// What the program gave: address and bytes.
    pub workspace: (u64, u64),
    /// Where results lie before the host gets them; allocated when needed.
    result: u64,
}

/// One call of a function with a handle.
pub(crate) struct Entered<'h> {
    pub handle: &'h mut Handle,
    pub name: &'static str,
}

/// Answers a call.
pub(crate) fn enter(
    handle: Option<&mut Handle>,
    name: &'static str,
    body: impl FnOnce(&mut Entered<'_>) -> Res,
) -> c_int {
    let Some(handle) = handle else { return Status::NOT_INITIALIZED.0 };
    match body(&mut Entered { handle, name }) {
        Ok(()) => 0,
        Err(status) => status.0,
    }
}

/// Refuses a call, by name and reason.
pub(crate) fn not_simulated(name: &str, what: &str) -> Status {
    refused(&format!("{name}: {what} is not simulated"));
    Status::NOT_SUPPORTED
}

/// Enqueues a call on a stream.
pub(crate) fn enqueue<C: Call>(name: &'static str, stream: CUstream, blocks: &[Block], call: &C) -> Res {
    match launch::launch(stream, name, blocks, call) {
        Ok(()) => Ok(()),
        Err(CUresult::ERROR_NOT_SUPPORTED) => Err(not_simulated(name, "a call of this size")),
        Err(error) => Err(error.into()),
    }
}

impl Entered<'_> {
    /// Enqueues the call on the handle's stream.
    pub(crate) fn enqueue<C: Call>(&self, blocks: &[Block], call: &C) -> Res {
        enqueue(self.name, self.handle.stream, blocks, call)
    }

    /// A `cudaDataType`.
    pub(crate) fn kind(&self, number: i32) -> Result<Type, Status> {
        Type::of_cuda(number).ok_or_else(|| not_simulated(self.name, &format!("cudaDataType {number}")))
    }

    /// A factor, by the pointer mode.
    pub(crate) fn scalar(&self, at: u64, kind: Type) -> Result<Scalar, Status> {
        match (at, self.handle.device_pointers) {
            (0, _) => Err(Status::INVALID_VALUE),
            (_, true) => Ok(Scalar::device(at, kind)),
            // SAFETY: in this mode the program's pointer is to a number on the host.
            (_, false) => Ok(unsafe { Scalar::host(at as *const u8, kind) }),
        }
    }

    /// Enqueues a call with a result: where the device writes it is `body`'s argument. To the host
    /// it is copied, and the call waits.
    pub(crate) fn with_result(&mut self, to: u64, kind: Type, body: impl FnOnce(&mut Self, Matrix) -> Res) -> Res {
        if to == 0 {
            return Err(Status::INVALID_VALUE);
        }
        if self.handle.device_pointers {
            return body(self, vector::result(to, kind));
        }
        if self.handle.result == 0 {
            let mut at: CUdeviceptr = 0;
            cu!(cuMemAlloc_v2(&mut at, 64))?;
            self.handle.result = at;
        }
        let at = self.handle.result;
        body(self, vector::result(at, kind))?;
        let stream = self.handle.stream;
        cu!(cuMemcpyDtoHAsync_v2(to as *mut c_void, at, usize::from(kind.bytes()), stream))?;
        cu!(cuStreamSynchronize(stream))?;
        Ok(())
    }

    /// What a matrix product may do to the program's workspace.
    pub(crate) fn scratch(&self) -> Block {
        let (at, bytes) = self.handle.workspace;
        Block::scratch(at, bytes)
    }
}

/// `CUBLAS_OP_CONJG` conjugates without transposing; only cuBLASLt's users know it.
pub(crate) fn operation(name: &str, operation: c_int) -> Result<c_int, Status> {
    match operation {
        0..=2 => Ok(operation),
        3 => Err(not_simulated(name, "CUBLAS_OP_CONJG")),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Makes the device's primary context current where there is none, as the library does.
pub(crate) fn ensure_context() -> Result<(), Status> {
    let mut context = CUcontext::from_bits(0);
    if cu!(cuCtxGetCurrent(&mut context)).is_ok() && context.bits() != 0 {
        return Ok(());
    }
    cu!(cuInit(0))?;
    cu!(cuDevicePrimaryCtxRetain(&mut context, 0))?;
    Ok(cu!(cuCtxSetCurrent(context))?)
}

/// A new handle, or the status of why not.
pub(crate) fn create(to: *mut *mut Handle) -> c_int {
    if to.is_null() {
        return Status::INVALID_VALUE.0;
    }
    if let Err(status) = ensure_context() {
        return status.0;
    }
    let handle = Handle {
        stream: CUstream::from_bits(0),
        device_pointers: false,
        math_mode: 0,
        atomics_mode: 0,
        multiprocessors: 0,
        workspace: (0, 0),
        result: 0,
    };
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(handle))) };
    0
}

/// # Safety
/// `handle` is null or came from [`create`], and is not used again.
pub(crate) unsafe fn destroy(handle: *mut Handle) -> c_int {
    if handle.is_null() {
        return Status::NOT_INITIALIZED.0;
    }
    // SAFETY: the caller's promise.
    let handle = unsafe { Box::from_raw(handle) };
    if handle.result != 0 {
        let _ = cu!(cuMemFree_v2(handle.result));
    }
    0
}

/// Hands a setting out.
fn put(to: u64, value: c_int) -> Res {
    if to == 0 {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { (to as *mut c_int).write(value) };
    Ok(())
}

fn set_stream(call: &mut Entered<'_>, stream: u64) -> Res {
    call.handle.stream = CUstream::from_bits(stream as usize);
    // As documented: back to the library's own workspace.
    call.handle.workspace = (0, 0);
    Ok(())
}

fn get_stream(call: &mut Entered<'_>, to: u64) -> Res {
    if to == 0 {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { (to as *mut usize).write(call.handle.stream.bits()) };
    Ok(())
}

fn set_workspace(call: &mut Entered<'_>, at: u64, bytes: i64) -> Res {
    if !at.is_multiple_of(256) {
        return Err(Status::INVALID_VALUE);
    }
    call.handle.workspace = (at, if at == 0 { 0 } else { bytes as u64 });
    Ok(())
}

fn set_pointer_mode(call: &mut Entered<'_>, mode: i32) -> Res {
    call.handle.device_pointers = match mode {
        0 => false,
        1 => true,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(())
}

fn get_pointer_mode(call: &mut Entered<'_>, to: u64) -> Res {
    put(to, c_int::from(call.handle.device_pointers))
}

fn set_math_mode(call: &mut Entered<'_>, mode: i32) -> Res {
    call.handle.math_mode = mode;
    Ok(())
}

fn get_math_mode(call: &mut Entered<'_>, to: u64) -> Res {
    put(to, call.handle.math_mode)
}

fn set_atomics_mode(call: &mut Entered<'_>, mode: i32) -> Res {
    call.handle.atomics_mode = mode;
    Ok(())
}

fn get_atomics_mode(call: &mut Entered<'_>, to: u64) -> Res {
    put(to, call.handle.atomics_mode)
}

fn set_multiprocessors(call: &mut Entered<'_>, count: i32) -> Res {
    call.handle.multiprocessors = count;
    Ok(())
}

fn get_multiprocessors(call: &mut Entered<'_>, to: u64) -> Res {
    put(to, call.handle.multiprocessors)
}

api! { set_stream; (stream: P) cublasSetStream_v2 }
api! { get_stream; (stream: P) cublasGetStream_v2 }
api! { set_workspace; (at: P, bytes: L) cublasSetWorkspace_v2 }
api! { set_pointer_mode; (mode: E) cublasSetPointerMode_v2 }
api! { get_pointer_mode; (to: P) cublasGetPointerMode_v2 }
api! { set_math_mode; (mode: E) cublasSetMathMode }
api! { get_math_mode; (to: P) cublasGetMathMode }
api! { set_atomics_mode; (mode: E) cublasSetAtomicsMode }
api! { get_atomics_mode; (to: P) cublasGetAtomicsMode }
api! { set_multiprocessors; (count: E) cublasSetSmCountTarget }
api! { get_multiprocessors; (to: P) cublasGetSmCountTarget }

// SAFETY: the names and signatures of cuBLAS.
#[unsafe(no_mangle)]
extern "C" fn cublasCreate_v2(to: *mut *mut Handle) -> c_int {
    create(to)
}

/// # Safety
/// A handle of [`cublasCreate_v2`] that is not used again.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasDestroy_v2(handle: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { destroy(handle) }
}

/// Answers without a handle, too: JAX asks so.
///
/// # Safety
/// `to` is writable, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGetVersion_v2(_handle: *const Handle, to: *mut c_int) -> c_int {
    put(to as u64, version()).map_or_else(|status| status.0, |()| 0)
}

/// # Safety
/// `to` is writable, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasGetProperty(property: c_int, to: *mut c_int) -> c_int {
    let value = match property {
        0 => version() / 10_000,
        1 => version() / 100 % 100,
        2 => version() % 100,
        _ => return Status::INVALID_VALUE.0,
    };
    put(to as u64, value).map_or_else(|status| status.0, |()| 0)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasGetCudartVersion() -> usize {
    version() as usize / 10
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusName(status: c_int) -> *const c_char {
    status_name(status).as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusString(status: c_int) -> *const c_char {
    status_name(status).as_ptr()
}

pub(crate) fn status_name(status: c_int) -> &'static std::ffi::CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"unknown status",
    }
}

// There is no log: these take what they get.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasLoggerConfigure(_on: c_int, _out: c_int, _err: c_int, _file: *const c_char) -> c_int {
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cublasSetLoggerCallback(_callback: *const c_void) -> c_int {
    0
}
