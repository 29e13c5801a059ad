//! Kernel launches.

use std::sync::Arc;

use cuda_sys::*;

use crate::api::*;
use crate::config;
use crate::handles::handle_of;
use crate::objects::context::Context;
use crate::objects::event::{EVENTS, Event, EventRecord};
use crate::objects::graph::programmatic;
use crate::objects::kernel_exec;
use crate::objects::module::{Function, function_of};
use crate::objects::stream::{DefaultStream, Stream, resolve};
use crate::objects::task::{KernelLaunch, Task, enqueue};
use crate::sched::{self, Work};

const PARAM_END: usize = 0;
const PARAM_BUFFER: usize = 1;
const PARAM_BUFFER_SIZE: usize = 2;

/// The parameter block: gathered from pointers to each parameter, or copied from the buffer in
/// `extra`.
pub(crate) fn gather(f: &Function, params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<Vec<u8>, CUresult> {
    let mut block = vec![0u8; f.param_bytes];
    if !extra.is_null() {
        if !params.is_null() {
            return Err(INVALID);
        }
        let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0usize);
        for n in (0..16).step_by(2) {
            match get(extra.wrapping_add(n))? as usize {
                PARAM_END => break,
                PARAM_BUFFER => buffer = get(extra.wrapping_add(n + 1))?.cast(),
                PARAM_BUFFER_SIZE => size = get(get(extra.wrapping_add(n + 1))?.cast::<usize>())?,
                _ => return Err(INVALID),
            }
        }
        let given = list(buffer, size.min(block.len()))?;
        block[..given.len()].copy_from_slice(&given);
        return Ok(block);
    }
    if f.params.is_empty() {
        return Ok(block);
    }
    if params.is_null() {
        return Err(INVALID);
    }
    for (param, from) in f.params.iter().zip(list(params, f.params.len())?) {
        let bytes = list(from.cast::<u8>(), param.size)?;
        block[param.offset..param.offset + param.size].copy_from_slice(&bytes);
    }
    Ok(block)
}

/// Shape and options of a launch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// It may overlap the kernel before it in its stream.
    pub(crate) overlaps: bool,
}

/// A launch, checked against what the kernel and the device can do.
pub(crate) fn kernel(f: Arc<Function>, shape: Shape, params: Vec<u8>) -> Result<Task, CUresult> {
    let Shape { grid, block, cluster, shared, cooperative, overlaps } = shape;
    let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
    if grid.contains(&0) || block.contains(&0) || grid[1] > 65535 || grid[2] > 65535 || block[2] > 64 {
        return Err(INVALID);
    }
    if threads > 1024 {
        return Err(INVALID);
    }
    if threads > u64::from(f.facts.max_threads) {
        // Measured: drivers of CUDA 13 give this for more threads than `__launch_bounds__` allows.
        return Err(INVALID);
    }
    if shared > f.max_dynamic() {
        return Err(INVALID);
    }
    let cluster = super::occupancy::cluster(&f, cluster)?;
    if (0..3).any(|axis| grid[axis] % cluster[axis].max(1) != 0) {
        return Err(CUresult::ERROR_INVALID_CLUSTER_SIZE);
    }
    if cooperative {
        let blocks = grid.iter().map(|&n| u64::from(n)).product::<u64>();
        let room = super::occupancy::active_blocks(&f, threads as u32, shared, config::get_or_default().arch);
        if blocks > room as u64 * crate::api::startup::devices::MULTIPROCESSORS as u64 {
            return Err(CUresult::ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    // Compiled now, so that what cannot run is an error of this call and not of some later one.
    kernel_exec::prepare(&f)?;
    let launch = kernel_exec::LaunchConfig { grid, block, cluster, shared, params, cooperative };
    Ok(Task::Kernel(Box::new(KernelLaunch { function: f, launch, overlaps })))
}

fn launch(f: CUfunction, shape: Shape, stream: &Arc<Stream>, params: *mut *mut c_void, extra: *mut *mut c_void) -> Res {
    let function = function_of(f.bits(), &stream.ctx)?;
    let block = gather(&function, params, extra)?;
    enqueue(stream, kernel(function, shape, block)?).map(|_| ())
}

/// Records an event behind the kernel launched last. `port`: of that kernel, in a graph.
fn record_behind(stream: &Arc<Stream>, event: CUevent, port: u8) -> Res {
    let event = EVENTS.get(event.bits())?;
    if let Some(mut part) = capture::of(stream) {
        part.data = part.deps.iter().map(|node| (handle_of(node), programmatic(port))).collect();
        return capture::record(&event, &part);
    }
    let stamp = Event::new_stamp();
    let op = sched::get().submit(stream.id, Work::Point(Some(stamp.clone())), &[]);
    event.set(EventRecord { op, stamp, captured: None, is_set: true });
    Ok(())
}

fn launch_ex(
    config: *const CUlaunchConfig,
    f: CUfunction,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    zero: DefaultStream,
) -> Res {
    let c = get(config)?;
    let mut shape = Shape {
        grid: [c.gridDimX, c.gridDimY, c.gridDimZ],
        block: [c.blockDimX, c.blockDimY, c.blockDimZ],
        shared: c.sharedMemBytes,
        ..Shape::default()
    };
    let mut events = Vec::new();
    for attribute in list(c.attrs, c.numAttrs as usize)? {
        // SAFETY: the id says which member of the union is in use; all are plain data.
        unsafe {
            match attribute.id {
                CU_LAUNCH_ATTRIBUTE_COOPERATIVE => shape.cooperative = attribute.value.cooperative != 0,
                CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                    let dim = attribute.value.clusterDim;
                    shape.cluster = [dim.x, dim.y, dim.z];
                }
                // Fire at the kernel's end: later than a device might, which the rules allow.
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
                    events.push((attribute.value.programmaticEvent.event, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC));
                }
                CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                    events.push((attribute.value.launchCompletionEvent.event, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER));
                }
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION => {
                    shape.overlaps = attribute.value.programmaticStreamSerializationAllowed != 0;
                }
                CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
                    if attribute.value.deviceUpdatableKernelNode.deviceUpdatable != 0 =>
                {
                    return Err(CUresult::ERROR_NOT_SUPPORTED);
                }
                // Hints.
                _ => {}
            }
        }
    }
    let stream = resolve(c.hStream.bits(), zero)?;
    // In a graph it is an edge that says that kernels may overlap.
    if shape.overlaps {
        capture::overlap_next(&stream);
    }
    launch(f, shape, &stream, params, extra)?;
    for (event, port) in events {
        record_behind(&stream, event, port)?;
    }
    Ok(())
}

/// The function and launch that parameters of a kernel node describe.
pub(crate) fn node_task(p: &CUDA_KERNEL_NODE_PARAMS, ctx: &Arc<Context>) -> Result<Task, CUresult> {
    let handle = if p.func.is_null() { p.kern.bits() } else { p.func.bits() };
    let function = function_of(handle, ctx)?;
    let block = gather(&function, p.kernelParams, p.extra)?;
    let shape = Shape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        shared: p.sharedMemBytes,
        ..Shape::default()
    };
    kernel(function, shape, block)
}

abi! {
    call fn [cuLaunchKernel legacy, cuLaunchKernel_ptsz per_thread](
        zero, f: CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, ..Shape::default() };
        launch(f, shape, &resolve(stream.bits(), zero)?, params, extra)
    }
    call fn [cuLaunchCooperativeKernel legacy, cuLaunchCooperativeKernel_ptsz per_thread](
        zero, f: CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: CUstream, params: *mut *mut c_void
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, cooperative: true, ..Shape::default() };
        launch(f, shape, &resolve(stream.bits(), zero)?, params, std::ptr::null_mut())
    }
    call fn [cuLaunchKernelEx legacy, cuLaunchKernelEx_ptsz per_thread](
        zero, config: *const CUlaunchConfig, f: CUfunction, params: *mut *mut c_void, extra: *mut *mut c_void
    ) {
        launch_ex(config, f, params, extra, zero)
    }
}
