//! Handles: creation, settings, statuses, and what is common to all calls.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};

use cuda_sys::{CUdeviceptr, CUresult, CUstream};
use sim_driver_link::refused;

use crate::cublas::handle::ensure_context;
use crate::model::block::{Block, Part};
use crate::model::launch::{self, Call};
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Type};

/// A status of cuSPARSE other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparseStatus(pub c_int);

impl SparseStatus {
    pub(crate) const NOT_INITIALIZED: SparseStatus = SparseStatus(1);
    pub(crate) const ALLOC_FAILED: SparseStatus = SparseStatus(2);
    pub(crate) const INVALID_VALUE: SparseStatus = SparseStatus(3);
    pub(crate) const EXECUTION_FAILED: SparseStatus = SparseStatus(6);
    pub(crate) const NOT_SUPPORTED: SparseStatus = SparseStatus(10);
}

impl From<CUresult> for SparseStatus {
    fn from(error: CUresult) -> SparseStatus {
        match error {
            CUresult::ERROR_NOT_SUPPORTED => SparseStatus::NOT_SUPPORTED,
            CUresult::ERROR_NOT_INITIALIZED => SparseStatus::NOT_INITIALIZED,
            CUresult::ERROR_OUT_OF_MEMORY => SparseStatus::ALLOC_FAILED,
            _ => SparseStatus::EXECUTION_FAILED,
        }
    }
}

/// The outcome of a call.
pub(crate) type SparseResult = Result<(), SparseStatus>;

/// Answers a call.
pub(crate) fn answer(done: SparseResult) -> c_int {
    done.map_or_else(|status| status.0, |()| 0)
}

/// What a `cusparseHandle_t` points to.
pub(crate) struct SparseHandle {
    pub stream: CUstream,
    /// Scalars and results lie on the device.
    pub device_pointers: bool,
    /// Where results lie before the host gets them; allocated when needed.
    result: u64,
    /// The entries of sums, by the address of where their rows begin: `csrgeam2` is not told again
    /// what `cusparseXcsrgeam2Nnz` has answered.
    pub sums: BTreeMap<u64, usize>,
}

/// One call of a function with a handle.
pub(crate) struct SparseCall<'h> {
    pub handle: &'h mut SparseHandle,
    pub name: &'static str,
}

/// Answers a call.
pub(crate) fn enter(
    handle: Option<&mut SparseHandle>,
    name: &'static str,
    body: impl FnOnce(&mut SparseCall<'_>) -> SparseResult,
) -> c_int {
    let Some(handle) = handle else { return SparseStatus::NOT_INITIALIZED.0 };
    answer(body(&mut SparseCall { handle, name }))
}

impl SparseCall<'_> {
    /// Refuses the call, with a reason.
    pub(crate) fn not_simulated(&self, what: &str) -> SparseStatus {
        refused(&format!("{}: {what} is not simulated", self.name));
        SparseStatus::NOT_SUPPORTED
    }

    /// Enqueues the call on the handle's stream.
    pub(crate) fn enqueue<C: Call>(&self, mut blocks: Vec<Block>, call: &C) -> SparseResult {
        blocks.retain(|block| !block.is_empty());
        match launch::launch(self.handle.stream, self.name, &blocks, call) {
            Ok(()) => Ok(()),
            Err(CUresult::ERROR_NOT_SUPPORTED) => Err(self.not_simulated("a call of this size")),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the stream.
    pub(crate) fn wait(&self) -> SparseResult {
        let stream = self.handle.stream;
        Ok(cu!(cuStreamSynchronize(stream))?)
    }

    /// A `cudaDataType`.
    pub(crate) fn kind(&self, number: i64) -> Result<Type, SparseStatus> {
        Type::of_cuda(number as i32).ok_or_else(|| self.not_simulated(&format!("cudaDataType {number}")))
    }

    /// What computes, and the type of its scalars.
    pub(crate) fn compute(&self, number: i64) -> Result<(Compute, Type), SparseStatus> {
        let kind = self.kind(number)?;
        Ok((kind.compute(), kind))
    }

    /// A factor, by the pointer mode.
    pub(crate) fn scalar(&self, at: u64, kind: Type) -> Result<Scalar, SparseStatus> {
        match (at, self.handle.device_pointers) {
            (0, _) => Err(SparseStatus::INVALID_VALUE),
            (_, true) => Ok(Scalar::device(at, kind)),
            // SAFETY: in this mode the program's pointer is to a number on the host.
            (_, false) => Ok(unsafe { Scalar::host(at as *const u8, kind) }),
        }
    }

    /// Enqueues a call with a result: where the device writes it is `body`'s argument. To the host
    /// it is copied, and the call waits.
    pub(crate) fn with_result(
        &mut self,
        to: u64,
        kind: Type,
        body: impl FnOnce(&mut Self, Matrix) -> SparseResult,
    ) -> SparseResult {
        if to == 0 {
            return Err(SparseStatus::INVALID_VALUE);
        }
        if self.handle.device_pointers {
            return body(self, Matrix::new(to, kind, 1, 1, 1));
        }
        if self.handle.result == 0 {
            let mut at: CUdeviceptr = 0;
            cu!(cuMemAlloc_v2(&mut at, 64))?;
            self.handle.result = at;
        }
        let at = self.handle.result;
        body(self, Matrix::new(at, kind, 1, 1, 1))?;
        let stream = self.handle.stream;
        cu!(cuMemcpyDtoHAsync_v2(to as *mut c_void, at, usize::from(kind.bytes()), stream))?;
        self.wait()
    }
}

/// A call that only touches: what it prepares for others, the stand-in does not need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nothing;

impl Call for Nothing {
    fn run(&self, _memory: &Memory<'_>) -> Option<()> {
        Some(())
    }
}

/// A `cusparseOperation_t`.
pub(crate) fn operation(operation: i64) -> Result<i32, SparseStatus> {
    match operation {
        0..=2 => Ok(operation as i32),
        _ => Err(SparseStatus::INVALID_VALUE),
    }
}

/// A `cusparseFillMode_t`.
pub(crate) fn part(fill: i64) -> Result<Part, SparseStatus> {
    match fill {
        0 => Ok(Part::Lower),
        1 => Ok(Part::Upper),
        _ => Err(SparseStatus::INVALID_VALUE),
    }
}

/// Hands a value out.
pub(crate) fn put<T>(to: u64, value: T) -> SparseResult {
    if to == 0 {
        return Err(SparseStatus::INVALID_VALUE);
    }
    // SAFETY: the C interface: a non-null output pointer is writable, and of this type.
    unsafe { (to as *mut T).write(value) };
    Ok(())
}

/// Hands a buffer's size out: room for something for each row and entry.
pub(crate) fn put_size(to: u64, rows: usize, entries: usize) -> SparseResult {
    put(to, buffer_bytes(rows, entries))
}

/// The bytes of a buffer.
pub(crate) fn buffer_bytes(rows: usize, entries: usize) -> usize {
    (8 * rows + 4 * entries).next_multiple_of(128) + 128
}

/// What a call may do to its buffer.
pub(crate) fn buffer(at: u64, rows: usize, entries: usize) -> Block {
    Block::scratch(at, buffer_bytes(rows, entries) as u64)
}

fn set_stream(call: &mut SparseCall<'_>, stream: u64) -> SparseResult {
    call.handle.stream = CUstream::from_bits(stream as usize);
    Ok(())
}

fn get_stream(call: &mut SparseCall<'_>, to: u64) -> SparseResult {
    put(to, call.handle.stream.bits())
}

fn set_pointer_mode(call: &mut SparseCall<'_>, mode: i64) -> SparseResult {
    call.handle.device_pointers = match mode {
        0 => false,
        1 => true,
        _ => return Err(SparseStatus::INVALID_VALUE),
    };
    Ok(())
}

fn get_pointer_mode(call: &mut SparseCall<'_>, to: u64) -> SparseResult {
    put(to, c_int::from(call.handle.device_pointers))
}

handled! { in cusparse; set_stream; (stream: P) cusparseSetStream }
handled! { in cusparse; get_stream; (to: P) cusparseGetStream }
handled! { in cusparse; set_pointer_mode; (mode: I) cusparseSetPointerMode }
handled! { in cusparse; get_pointer_mode; (to: P) cusparseGetPointerMode }

// SAFETY: cuSPARSE's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cusparseCreate(to: *mut *mut SparseHandle) -> c_int {
    if to.is_null() {
        return SparseStatus::INVALID_VALUE.0;
    }
    if ensure_context().is_err() {
        return SparseStatus::NOT_INITIALIZED.0;
    }
    let handle = SparseHandle { stream: CUstream::NULL, device_pointers: false, result: 0, sums: BTreeMap::new() };
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(Box::into_raw(Box::new(handle))) };
    0
}

/// # Safety
/// A handle of [`cusparseCreate`] that is not used again, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cusparseDestroy(handle: *mut SparseHandle) -> c_int {
    if handle.is_null() {
        return SparseStatus::NOT_INITIALIZED.0;
    }
    // SAFETY: the caller's promise.
    let handle = unsafe { Box::from_raw(handle) };
    if handle.result != 0 {
        let _ = cu!(cuMemFree_v2(handle.result));
    }
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cusparseGetErrorName(status: c_int) -> *const c_char {
    let name = match status {
        0 => c"CUSPARSE_STATUS_SUCCESS",
        1 => c"CUSPARSE_STATUS_NOT_INITIALIZED",
        2 => c"CUSPARSE_STATUS_ALLOC_FAILED",
        3 => c"CUSPARSE_STATUS_INVALID_VALUE",
        4 => c"CUSPARSE_STATUS_ARCH_MISMATCH",
        6 => c"CUSPARSE_STATUS_EXECUTION_FAILED",
        7 => c"CUSPARSE_STATUS_INTERNAL_ERROR",
        8 => c"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        9 => c"CUSPARSE_STATUS_ZERO_PIVOT",
        10 => c"CUSPARSE_STATUS_NOT_SUPPORTED",
        11 => c"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
        _ => c"unrecognized error code",
    };
    name.as_ptr()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn cusparseGetErrorString(status: c_int) -> *const c_char {
    cusparseGetErrorName(status)
}
