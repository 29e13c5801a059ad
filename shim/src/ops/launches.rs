//! Kernel launches: the raw parameter bytes and the kernel's identity, nothing more.

use std::mem::MaybeUninit;

use cuda_sys::*;
use trace::{EventMode, Op, launch_flags};

use crate::kernel::MAX_PARAMS;
use crate::observe::Cx;

/// The shape of one launch.
#[derive(Clone, Copy, Default)]
pub(super) struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads a block.
    pub block: [u32; 3],
    /// Blocks a cluster.
    pub cluster: [u32; 3],
    /// Dynamic shared memory.
    pub shared: u32,
    /// [`launch_flags`].
    pub flags: u32,
}

/// Small parameter buffers stay on the stack; nearly all kernels have less than 256 bytes.
const SMALL: usize = 512;

impl Cx<'_> {
    /// Builds the launch op of a kernel and hands it to `then`.
    ///
    /// # Safety
    /// `kernel_params` and `extra` are those of a launch (or of a node) that the driver has accepted.
    pub(super) unsafe fn with_launch(
        &mut self,
        function: CUfunction,
        stream: trace::StreamId,
        shape: Shape,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
        then: impl FnOnce(&mut Self, &Op<'_>),
    ) {
        let Some(kernel) = self.kernel(function) else { return };
        let (mut small, mut large);
        let buffer: &mut [MaybeUninit<u8>] = if kernel.size() <= SMALL {
            small = [const { MaybeUninit::uninit() }; SMALL];
            &mut small
        } else {
            // Kernels of cuDNN take some kilobytes: not the most that there may be, which would push the program's own data out of the cache.
            large = vec![MaybeUninit::uninit(); kernel.size()];
            &mut large
        };
        let mut flags = shape.flags;
        if crate::observe::inside_library() {
            flags |= launch_flags::INSIDE_LIBRARY;
        }
        // SAFETY: forwarded from the caller.
        let from_extra = unsafe { extra_buffer(extra) };
        let params = if let Some(bytes) = from_extra {
            flags |= launch_flags::EXTRA_BUFFER;
            bytes
        } else {
            if kernel.unknown {
                flags |= launch_flags::PARAMS_UNKNOWN;
            }
            // SAFETY: forwarded from the caller.
            unsafe { kernel.gather(kernel_params, buffer) }
        };
        let op = Op::Launch {
            stream,
            kernel: kernel.id,
            grid: shape.grid,
            block: shape.block,
            cluster: shape.cluster,
            shared: shape.shared,
            flags,
            params,
        };
        then(self, &op);
    }

    #[unsafe(link_section = "streamsan_hot")]
    unsafe fn launched(
        &mut self,
        function: CUfunction,
        stream: CUstream,
        shape: Shape,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let mut exact = crate::exact::launched();
        if let Some(id) = self.working_stream(stream) {
            let shape = Shape { flags: shape.flags | if exact.is_some() { launch_flags::EXACT } else { 0 }, ..shape };
            // SAFETY: forwarded from the caller.
            unsafe {
                self.with_launch(function, id, shape, kernel_params, extra, |cx, op| {
                    let epoch = cx.log(op);
                    if let Some(table) = exact.take() {
                        crate::exact::submitted(table, epoch, stream, cx.stream0() == Stream0::PerThread);
                    }
                    if let (Op::Launch { kernel, grid, block, .. }, Some(core)) = (op, cx.core()) {
                        crate::exact::seen(*kernel, *grid, *block, core);
                    }
                });
            }
            if self.core().is_some_and(|core| core.options.launch_blocking) {
                self.wait_for_launch(stream, id);
            }
        }
        if let Some(table) = exact {
            crate::exact::abandoned(table);
        }
    }
}

impl Cx<'_> {
    /// Waits for a launch, as the user asked for. The program is not told of an error: its next call is.
    #[cold]
    fn wait_for_launch(&mut self, stream: CUstream, id: trace::StreamId) {
        let result = if self.stream0() == Stream0::PerThread {
            crate::real!(cuStreamSynchronize_ptsz(stream => CUstream))
        } else {
            crate::real!(cuStreamSynchronize(stream => CUstream))
        };
        self.tell_failure(result, id);
    }
}

/// The buffer that an `extra` list names, if it does.
///
/// # Safety
/// `extra` is null or a list that a launch has accepted: pairs of marker and value up to `CU_LAUNCH_PARAM_END`.
#[unsafe(link_section = "streamsan_hot")]
unsafe fn extra_buffer<'a>(extra: *mut *mut c_void) -> Option<&'a [u8]> {
    const POINTER: usize = 1;
    const SIZE: usize = 2;
    if extra.is_null() {
        return None;
    }
    let (mut pointer, mut size) = (std::ptr::null::<u8>(), 0_usize);
    let mut at = extra;
    for _ in 0..8 {
        // SAFETY: not past the end marker yet.
        let marker = unsafe { *at } as usize;
        match marker {
            // SAFETY: a marker is followed by its value; the size is given by address.
            POINTER => pointer = unsafe { *at.add(1) }.cast(),
            // SAFETY: as above.
            SIZE => size = unsafe { *(*at.add(1)).cast::<usize>() },
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
    let shape = Shape {
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        shared: shared_mem_bytes,
        ..Shape::default()
    };
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { cx.launched(function, stream, shape, kernel_params, extra) };
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
    let mut shape = Shape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared: config.sharedMemBytes,
        ..Shape::default()
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
            match attribute.id.0 {
                2 if attribute.value.cooperative != 0 => shape.flags |= launch_flags::COOPERATIVE,
                4 => {
                    let dim = attribute.value.clusterDim;
                    shape.cluster = [dim.x, dim.y, dim.z];
                }
                6 if attribute.value.programmaticStreamSerializationAllowed != 0 => {
                    shape.flags |= launch_flags::PROGRAMMATIC_SERIALIZATION;
                }
                7 => fired = Some((attribute.value.programmaticEvent.event, EventMode::Programmatic)),
                12 => fired = Some((attribute.value.launchCompletionEvent.event, EventMode::LaunchCompletion)),
                _ => {}
            }
        }
    }
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { cx.launched(function, config.hStream, shape, kernel_params, extra) };
    if let Some((event, mode)) = fired
        && let Some(stream) = cx.working_stream(config.hStream)
    {
        let event = cx.event(event);
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
    let shape = Shape {
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        shared: shared_mem_bytes,
        flags: launch_flags::COOPERATIVE,
        ..Shape::default()
    };
    // SAFETY: the launch has succeeded with these arguments.
    unsafe { cx.launched(function, stream, shape, kernel_params, std::ptr::null_mut()) };
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
        let shape = Shape {
            grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
            block: [p.blockDimX, p.blockDimY, p.blockDimZ],
            shared: p.sharedMemBytes,
            flags: launch_flags::COOPERATIVE,
            ..Shape::default()
        };
        // SAFETY: as above.
        unsafe { cx.launched(p.function, p.hStream, shape, p.kernelParams, std::ptr::null_mut()) };
    }
}
