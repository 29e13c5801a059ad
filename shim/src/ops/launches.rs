//! Kernel launches: the raw parameter bytes and the kernel's identity, nothing more.
//!
//! Owns the op of a launch, and firing the events that launch attributes name. Which bytes a launch
//! touches is worked out by the analyzer.

use cuda_sys::*;
use trace::{EventMode, LaunchShape, Op, launch_flags};

use crate::exact;
use crate::handles::kernel::{Kernel, MAX_PARAMS};
use crate::host::in_place;
use crate::host::pinned_bounds::{self, Tables};
use crate::ids::events::event_id;
use crate::ids::kernels::kernel_of;
use crate::ids::streams::working_stream;
use crate::log::core::Core;
use crate::observe::Cx;
use crate::observe::host_watch::uses_words;
use crate::ops::copies::copy::{MAX_CONTENTS, log_words};
use crate::real::driver::real;
use crate::runtime::cycles::{self, Part};
use crate::runtime::thread_state::{inside_library, inside_transport};

/// Builds the launch op of a kernel for a node of a graph and hands it to `then`.
///
/// # Safety
/// `kernel_params` and `extra` are those of a launch (or of a node) that the driver has
/// accepted.
pub(crate) unsafe fn with_launch(
    cx: &mut Cx<'_>,
    function: CUfunction,
    stream: trace::StreamId,
    mut shape: LaunchShape,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    then: impl FnOnce(&mut Cx<'_>, &Op<'_>),
) {
    let Some(kernel) = kernel_of(cx, function) else { return };
    // SAFETY: forwarded from the caller.
    let bytes = unsafe { buffer_of(kernel, &mut shape, extra) };
    let mut gathered = vec![0; if kernel_params.is_null() { 0 } else { kernel.size() }];
    let params = bytes.unwrap_or_else(|| {
        // SAFETY: forwarded from the caller; there is room for all of them, or there are none.
        unsafe { kernel.gather(kernel_params, &mut gathered) };
        &gathered
    });
    then(cx, &Op::Launch { stream, kernel: kernel.id, shape, params });
}

#[unsafe(link_section = "streamsan_hot")]
unsafe fn launched(
    cx: &mut Cx<'_>,
    function: CUfunction,
    stream: CUstream,
    mut shape: LaunchShape,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) {
    let mut exact = exact::launched();
    if !inside_transport()
        && let Some(id) = cycles::of(Part::Stream, || working_stream(cx, stream))
        && let Some(kernel) = cycles::of(Part::Kernel, || kernel_of(cx, function))
    {
        if exact.is_some() {
            shape.flags |= launch_flags::EXACT;
        }
        // SAFETY: forwarded from the caller.
        let bytes = unsafe { buffer_of(kernel, &mut shape, extra) };
        let len = match bytes {
            Some(bytes) => bytes.len(),
            None if kernel_params.is_null() => 0,
            None => kernel.size(),
        };
        if let Some(tables) = pinned_bounds::tables()
            // SAFETY: forwarded from the caller.
            && unsafe { may_take_table(tables, kernel, bytes, kernel_params) }
        {
            // SAFETY: as above.
            unsafe { reveal_tables(cx, kernel, bytes, kernel_params) };
        }
        let epoch = cx.log_launch((id, kernel.id), &shape, len, |to| match bytes {
            Some(bytes) => to.copy_from_slice(bytes),
            // SAFETY: the driver has read these parameters; there is room for all of them, or
            // there are none.
            None => unsafe { kernel.gather(kernel_params, to) },
        });
        if in_place::exists() {
            // SAFETY: forwarded from the caller.
            unsafe { uses_in_launch(cx, epoch, kernel, bytes, kernel_params) };
        }
        if let Some(table) = exact.take() {
            exact::submitted(table, epoch, stream, cx.stream0() == Stream0::PerThread);
        }
        if let Some(core) = cx.core() {
            exact::apply_requests(kernel.id, shape.grid, shape.block, core);
            if core.options.launch_blocking {
                wait_for_launch(cx, stream, id);
            }
        }
    }
    if let Some(table) = exact {
        exact::abandoned(table);
    }
}

/// Returns the parameter buffer if the launch passed one, and sets the matching flags in `shape`.
///
/// # Safety
/// `extra` is that of a launch (or of a node) that the driver has accepted.
#[inline(always)]
unsafe fn buffer_of<'a>(kernel: &Kernel, shape: &mut LaunchShape, extra: *mut *mut c_void) -> Option<&'a [u8]> {
    if inside_library() {
        shape.flags |= launch_flags::INSIDE_LIBRARY;
    }
    // SAFETY: forwarded from the caller.
    let bytes = if extra.is_null() { None } else { unsafe { extra_buffer(extra) } };
    if bytes.is_some() {
        shape.flags |= launch_flags::EXTRA_BUFFER;
    } else if kernel.unknown {
        shape.flags |= launch_flags::PARAMS_UNKNOWN;
    }
    bytes
}

/// Notes what a launch may use of the host's memory.
///
/// # Safety
/// As for [`launched`].
#[cold]
unsafe fn uses_in_launch(
    cx: &mut Cx<'_>,
    epoch: trace::Epoch,
    kernel: &Kernel,
    bytes: Option<&[u8]>,
    params: *mut *mut c_void,
) {
    let mut gathered = Vec::new();
    // SAFETY: forwarded from the caller.
    let bytes = unsafe { parameters(kernel, bytes, params, &mut gathered) };
    uses_words(cx, epoch, words_of(bytes));
}

/// Whether a launch may be given the address of small pinned memory. Most are not, and programs of
/// PyTorch have such memory: so the parameters are looked at where they are.
///
/// # Safety
/// As for [`launched`].
#[inline(always)]
unsafe fn may_take_table(tables: Tables, kernel: &Kernel, bytes: Option<&[u8]>, params: *mut *mut c_void) -> bool {
    let may_be = |word| tables.may_be_at(word);
    match bytes {
        Some(bytes) => words_of(bytes).any(may_be),
        None if params.is_null() => false,
        // SAFETY: forwarded from the caller.
        None => unsafe { kernel.any_word(params, may_be) },
    }
}

/// Says which words small pinned memory holds that a launch is given the address of: the kernel
/// may find its other memory by them. The host may change them at any time, so each launch says
/// it anew.
///
/// # Safety
/// As for [`launched`].
#[cold]
unsafe fn reveal_tables(cx: &mut Cx<'_>, kernel: &Kernel, bytes: Option<&[u8]>, params: *mut *mut c_void) {
    /// Tables of one launch.
    const MOST: usize = 4;
    let mut gathered = Vec::new();
    // SAFETY: forwarded from the caller.
    let bytes = unsafe { parameters(kernel, bytes, params, &mut gathered) };
    let pinned = |word: &u64| word.is_multiple_of(8) && pinned_bounds::may_hold_table(*word);
    for word in words_of(bytes).filter(pinned).take(MOST) {
        let end = cx.core().and_then(Core::lock).and_then(|shared| shared.watches.end_of_table(word));
        if let Some(end) = end.filter(|end| (8..=MAX_CONTENTS).contains(&(end - word))) {
            log_words(cx, word, word, (end - word) & !7);
        }
    }
}

/// Waits for a launch, as the user asked for. An error is not reported to the program here: its
/// next call answers it.
#[cold]
fn wait_for_launch(cx: &mut Cx<'_>, stream: CUstream, id: trace::StreamId) {
    let result = if cx.stream0() == Stream0::PerThread {
        real!(cuStreamSynchronize_ptsz(stream => CUstream))
    } else {
        real!(cuStreamSynchronize(stream => CUstream))
    };
    cx.log_failure(result, id);
}

/// The parameters of a launch in one piece.
///
/// # Safety
/// As for [`launched`].
unsafe fn parameters<'a>(
    kernel: &Kernel,
    bytes: Option<&'a [u8]>,
    params: *mut *mut c_void,
    gathered: &'a mut Vec<u8>,
) -> &'a [u8] {
    if let Some(bytes) = bytes {
        return bytes;
    }
    gathered.resize(if params.is_null() { 0 } else { kernel.size() }, 0);
    // SAFETY: forwarded from the caller; there is room for all of them, or there are none.
    unsafe { kernel.gather(params, gathered) };
    gathered
}

/// The words of parameters that may be addresses.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

/// The buffer that an `extra` list names, if it does.
///
/// # Safety
/// `extra` is a list that a launch has accepted: pairs of marker and value up to
/// `CU_LAUNCH_PARAM_END`.
unsafe fn extra_buffer<'a>(extra: *mut *mut c_void) -> Option<&'a [u8]> {
    let (mut pointer, mut size) = (std::ptr::null::<u8>(), 0_usize);
    let mut at = extra;
    for _ in 0..8 {
        // SAFETY: not past the end marker yet.
        let marker = unsafe { *at };
        match marker {
            // SAFETY: a marker is followed by its value; the size is given by address.
            CU_LAUNCH_PARAM_BUFFER_POINTER => pointer = unsafe { *at.add(1) }.cast(),
            // SAFETY: as above.
            CU_LAUNCH_PARAM_BUFFER_SIZE => size = unsafe { *(*at.add(1)).cast::<usize>() },
            _ => break,
        }
        // SAFETY: as above.
        at = unsafe { at.add(2) };
    }
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the driver has read size bytes from there.
    Some(unsafe { std::slice::from_raw_parts(pointer, size.min(MAX_PARAMS)) })
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
#[inline(always)]
pub(crate) unsafe fn cuLaunchKernel(
    cx: &mut Cx<'_>,
    function: CUfunction,
    grid_dim_x: c_uint,
    grid_dim_y: c_uint,
    grid_dim_z: c_uint,
    block_dim_x: c_uint,
    block_dim_y: c_uint,
    block_dim_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) {
    let shape = LaunchShape {
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        shared: shared_mem_bytes,
        ..LaunchShape::default()
    };
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { launched(cx, function, stream, shape, kernel_params, extra) };
}

pub(crate) unsafe fn cuLaunchKernelEx(
    cx: &mut Cx<'_>,
    config: *const CUlaunchConfig,
    function: CUfunction,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) {
    // SAFETY: the launch has succeeded with this configuration.
    let config = unsafe { &*config };
    let mut shape = LaunchShape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared: config.sharedMemBytes,
        ..LaunchShape::default()
    };
    let mut fired = None;
    let attributes = if config.attrs.is_null() {
        &[][..]
    } else {
        // SAFETY: attrs points to numAttrs attributes.
        unsafe { std::slice::from_raw_parts(config.attrs, config.numAttrs as usize) }
    };
    for attribute in attributes {
        // SAFETY: the id says which member of the value is valid.
        unsafe {
            match attribute.id {
                CU_LAUNCH_ATTRIBUTE_COOPERATIVE if attribute.value.cooperative != 0 => {
                    shape.flags |= launch_flags::COOPERATIVE
                }
                CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                    let dim = attribute.value.clusterDim;
                    shape.cluster = [dim.x, dim.y, dim.z];
                }
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                    if attribute.value.programmaticStreamSerializationAllowed != 0 =>
                {
                    shape.flags |= launch_flags::PROGRAMMATIC_SERIALIZATION;
                }
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
                    fired = Some((attribute.value.programmaticEvent.event, EventMode::Programmatic));
                }
                CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                    fired = Some((attribute.value.launchCompletionEvent.event, EventMode::LaunchCompletion));
                }
                _ => {}
            }
        }
    }
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { launched(cx, function, config.hStream, shape, kernel_params, extra) };
    if let Some((event, mode)) = fired
        && let Some(stream) = working_stream(cx, config.hStream)
    {
        let event = event_id(cx, event);
        cx.log(&Op::EventRecord { event, stream, mode });
    }
}

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
pub(crate) unsafe fn cuLaunchCooperativeKernel(
    cx: &mut Cx<'_>,
    function: CUfunction,
    grid_dim_x: c_uint,
    grid_dim_y: c_uint,
    grid_dim_z: c_uint,
    block_dim_x: c_uint,
    block_dim_y: c_uint,
    block_dim_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
) {
    let shape = LaunchShape {
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        shared: shared_mem_bytes,
        flags: launch_flags::COOPERATIVE,
        ..LaunchShape::default()
    };
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { launched(cx, function, stream, shape, kernel_params, std::ptr::null_mut()) };
}

pub(crate) unsafe fn cuLaunchCooperativeKernelMultiDevice(
    cx: &mut Cx<'_>,
    launch_params_list: *mut CUDA_LAUNCH_PARAMS,
    num_devices: c_uint,
    _flags: c_uint,
) {
    for index in 0..num_devices as usize {
        // SAFETY: the launch has succeeded with num_devices descriptions.
        let p = unsafe { &*launch_params_list.add(index) };
        let shape = LaunchShape {
            grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
            block: [p.blockDimX, p.blockDimY, p.blockDimZ],
            shared: p.sharedMemBytes,
            flags: launch_flags::COOPERATIVE,
            ..LaunchShape::default()
        };
        // SAFETY: as above.
        unsafe { launched(cx, p.function, p.hStream, shape, p.kernelParams, std::ptr::null_mut()) };
    }
}
