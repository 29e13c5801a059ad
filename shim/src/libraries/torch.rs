//! PyTorch's caching allocator: the blocks that it carves out of its segments, each with its own
//! stack and lifetime.
//!
//! Owns our definitions of three of PyTorch's functions. libc10_cuda.so reports every block that it
//! hands out or takes back through a function of libc10.so that it calls through its PLT. Our
//! definition of that function comes first in the search order, notes the block and forwards; the
//! allocator is untouched. Measured with torch 2.11 on an H200: 40,409 of 40,409 blocks of a
//! training run were seen. Where the function is absent or has another signature (and so another
//! name), nothing is seen, and reports speak of segments.
//!
//! The report does not name the stream. The allocator takes the current one, so libc10_cuda.so is
//! asked for it (it reads a thread-local variable and an array). Streams are handed out by
//! `getStreamFromPool`, long after the pool has made them all at once. That function is forwarded
//! too, so that a stream is known by the place that asked for it.

use std::ffi::{CStr, c_void};

use trace::{FreeKind, Op, StreamId};

use crate::handles::captures;
use crate::ids::contexts::current_context;
use crate::ids::streams::{legacy_stream, stream_id};
use crate::log::call_names::{TORCH_ALLOCATOR, TORCH_STREAM};
use crate::observe::{Cx, Phase, observe};
use crate::real::library::LibraryFunction;

/// `c10::Device`: a type (1 is CUDA) and an index, both signed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct C10Device {
    kind: i8,
    index: i8,
}

type Report = unsafe extern "C" fn(*mut c_void, i64, usize, usize, C10Device);

/// `c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device)`, since torch
/// 1.12.
const NAME: &CStr = c"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

static REPORT: LibraryFunction = LibraryFunction::new(c"libc10.so", NAME);

fn real() -> Option<Report> {
    let found = REPORT.find(report as *const () as usize)?;
    // SAFETY: the symbol's mangled name fixes its signature.
    Some(unsafe { std::mem::transmute::<usize, Report>(found) })
}

/// `c10::cuda::CUDAStream`: a device and a number, returned in two registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct C10Stream {
    device: u64,
    id: u64,
}

type CurrentStream = unsafe extern "C" fn(i8) -> C10Stream;
type Handle = unsafe extern "C" fn(*const C10Stream) -> *mut c_void;

static CURRENT: LibraryFunction = LibraryFunction::new(c"libc10_cuda.so", c"_ZN3c104cuda20getCurrentCUDAStreamEa");
static HANDLE: LibraryFunction = LibraryFunction::new(c"libc10_cuda.so", c"_ZNK3c104cuda10CUDAStream6streamEv");

/// The id of a stream of PyTorch's. While any stream is being captured: none, for what is captured
/// is no work.
fn id_of(cx: &mut Cx<'_>, stream: C10Stream) -> StreamId {
    const LEGACY: usize = 1;
    let Some(handle) = HANDLE.find(0).filter(|_| !captures::any()) else { return StreamId::NONE };
    // SAFETY: the symbol's mangled name fixes its signature; it reads the object and an array of
    // the pool's.
    let handle = unsafe { std::mem::transmute::<usize, Handle>(handle)(&raw const stream) } as usize;
    // PyTorch's default stream is the null stream of a library built for the legacy one.
    if handle > LEGACY {
        return stream_id(cx, cuda_sys::CUstream(handle as *mut _));
    }
    // A thread that has not used CUDA yet (autograd's, whose first blocks come out of the cache)
    // has no context to ask for it.
    match current_context() {
        cuda_sys::CUcontext::NULL => StreamId::NONE,
        context => legacy_stream(cx, context),
    }
}

/// The stream that the allocator hands a block out to.
fn current_stream(cx: &mut Cx<'_>, device: i8) -> StreamId {
    let Some(current) = CURRENT.find(0) else { return StreamId::NONE };
    // SAFETY: the symbol's mangled name fixes its signature; it reads a thread-local variable that
    // the allocator has just read.
    let stream = unsafe { std::mem::transmute::<usize, CurrentStream>(current)(device) };
    id_of(cx, stream)
}

static FROM_POOL: LibraryFunction = LibraryFunction::new(c"libc10_cuda.so", c"_ZN3c104cuda17getStreamFromPoolEia");
static FROM_POOL_HIGH: LibraryFunction = LibraryFunction::new(c"libc10_cuda.so", c"_ZN3c104cuda17getStreamFromPoolEba");

fn taken(stream: C10Stream) -> C10Stream {
    observe(TORCH_STREAM, 0, Phase::Before, |cx| {
        let id = id_of(cx, stream);
        if !id.is_none() {
            cx.log(&Op::StreamTaken { stream: id });
        }
    });
    stream
}

/// `c10::cuda::getStreamFromPool(int priority, signed char device)`.
///
/// # Safety
/// Called by users of PyTorch's streams only.
#[cfg_attr(not(test), unsafe(export_name = "_ZN3c104cuda17getStreamFromPoolEia"))]
unsafe extern "C" fn from_pool(priority: i32, device: i8) -> C10Stream {
    type Real = unsafe extern "C" fn(i32, i8) -> C10Stream;
    let Some(real) = FROM_POOL.find(from_pool as *const () as usize) else { return C10Stream { device: 0, id: 0 } };
    // SAFETY: the symbol's mangled name fixes its signature; arguments are passed on as they came.
    taken(unsafe { std::mem::transmute::<usize, Real>(real)(priority, device) })
}

/// `c10::cuda::getStreamFromPool(bool high_priority, signed char device)`.
///
/// # Safety
/// Called by users of PyTorch's streams only.
#[cfg_attr(not(test), unsafe(export_name = "_ZN3c104cuda17getStreamFromPoolEba"))]
unsafe extern "C" fn from_pool_high(high: bool, device: i8) -> C10Stream {
    type Real = unsafe extern "C" fn(bool, i8) -> C10Stream;
    let Some(real) = FROM_POOL_HIGH.find(from_pool_high as *const () as usize) else {
        return C10Stream { device: 0, id: 0 };
    };
    // SAFETY: as above.
    taken(unsafe { std::mem::transmute::<usize, Real>(real)(high, device) })
}

/// Positive sizes: a block is handed out; negative ones: it is taken back.
///
/// # Safety
/// Called by PyTorch only.
#[cfg_attr(not(test), unsafe(export_name = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"))]
unsafe extern "C" fn report(ptr: *mut c_void, size: i64, total: usize, reserved: usize, device: C10Device) {
    const CUDA: i8 = 1;
    if device.kind == CUDA && !ptr.is_null() && size != 0 {
        observe(TORCH_ALLOCATOR, 0, Phase::Before, |cx| {
            let ptr = ptr as u64;
            if size > 0 {
                let stream = current_stream(cx, device.index);
                cx.with_python_stack().log_block(ptr, size as u64, stream);
            } else {
                // A block goes back when its last reference dies, mostly somewhere that says
                // nothing; the next life has its own stack.
                cx.without_stack().log(&Op::Free { ptr, kind: FreeKind::Block, stream: StreamId::NONE });
            }
        });
    }
    if let Some(real) = real() {
        // SAFETY: arguments are passed on as they came.
        unsafe { real(ptr, size, total, reserved, device) };
    }
}
