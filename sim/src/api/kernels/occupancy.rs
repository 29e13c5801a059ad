//! How many blocks fit on a multiprocessor. The numbers of the simulated device are those of the
//! architecture that it reports; registers are not counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::api::startup::devices::{blocks_per_multiprocessor, shared_memory, threads_per_multiprocessor};
use crate::api::*;
use crate::config;
use crate::objects::module::{Function, function_of};

/// Blocks of a kernel that live on a multiprocessor at once.
pub(crate) fn active_blocks(f: &Function, threads: u32, dynamic: u32, arch: u32) -> i32 {
    let warps = threads.div_ceil(32).max(1) as i32;
    let by_threads = threads_per_multiprocessor(arch) / 32 / warps;
    let reserved = if arch >= 80 { 1024 } else { 0 };
    let shared = (f.facts.shared + dynamic) as i32 + reserved;
    let by_shared = if shared == 0 { i32::MAX } else { shared_memory(arch).0 / shared };
    by_threads.min(by_shared).min(blocks_per_multiprocessor(arch))
}

/// Blocks that a cluster of a kernel may have: more than eight have to be allowed by an attribute.
fn most_blocks(f: &Function) -> u32 {
    match (config::get_or_default().arch, f.facts.non_portable.load(Ordering::Relaxed) != 0) {
        (..90, _) => 1,
        (_, false) => 8,
        (_, true) => 16,
    }
}

/// Blocks of a cluster in each dimension, as a launch asks for or the code requires. Zeros for
/// none.
///
/// # Errors
/// `CUDA_ERROR_INVALID_CLUSTER_SIZE` for more blocks than the kernel may have, and for others than
/// its code was compiled for.
pub(crate) fn cluster(f: &Function, asked: [u32; 3]) -> Result<[u32; 3], CUresult> {
    let required = f.facts.cluster;
    let size = if asked[0] == 0 { required } else { asked };
    let blocks = size.iter().try_fold(1u32, |blocks, &n| blocks.checked_mul(n.max(1)));
    let differs = required[0] != 0 && (0..3).any(|axis| size[axis].max(1) != required[axis].max(1));
    match blocks {
        Some(blocks) if blocks <= most_blocks(f) && !differs => Ok(size),
        _ => Err(CUresult::ERROR_INVALID_CLUSTER_SIZE),
    }
}

fn function(f: CUfunction) -> Result<Arc<Function>, CUresult> {
    function_of(f.bits(), &thread::context()?)
}

fn blocks(f: CUfunction, threads: c_int, dynamic: usize) -> Result<c_int, CUresult> {
    if threads < 1 {
        return Err(INVALID);
    }
    let function = function(f)?;
    // What cannot be launched does not live anywhere.
    if threads as u32 > function.facts.max_threads || dynamic > function.max_dynamic() as usize {
        return Ok(0);
    }
    Ok(active_blocks(&function, threads as u32, dynamic as u32, config::get_or_default().arch))
}

fn best_block(
    grid: *mut c_int,
    block: *mut c_int,
    f: CUfunction,
    size: CUoccupancyB2DSize,
    dynamic: usize,
    limit: c_int,
) -> Res {
    let function = function(f)?;
    let arch = config::get_or_default().arch;
    let most = if limit > 0 { limit.min(1024) } else { 1024 }.min(function.facts.max_threads as c_int);
    let mut best = (0, 0, 0);
    for threads in (32..=most.max(32)).step_by(32) {
        let threads = threads.min(most);
        let shared = match size {
            // SAFETY: the program's own function, called as the interface says.
            Some(size) => unsafe { size(threads) },
            None => dynamic,
        };
        let fit = active_blocks(&function, threads as u32, shared as u32, arch);
        best = best.max((fit * threads, threads, fit));
    }
    put(block, best.1)?;
    put(grid, best.2 * crate::api::startup::devices::MULTIPROCESSORS)
}

abi! {
    call fn [cuOccupancyMaxActiveBlocksPerMultiprocessor plain](
        _z, n: *mut c_int, f: CUfunction, threads: c_int, dynamic: usize
    ) {
        put(n, blocks(f, threads, dynamic)?)
    }
    call fn [cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags plain](
        _z, n: *mut c_int, f: CUfunction, threads: c_int, dynamic: usize, flags: c_uint
    ) {
        put(n, blocks(f, threads, dynamic)?)
    }
    call fn [cuOccupancyMaxPotentialBlockSize plain](
        _z, grid: *mut c_int, block: *mut c_int, f: CUfunction, size: CUoccupancyB2DSize, dynamic: usize, limit: c_int
    ) {
        best_block(grid, block, f, size, dynamic, limit)
    }
    call fn [cuOccupancyMaxPotentialBlockSizeWithFlags plain](
        _z, grid: *mut c_int, block: *mut c_int, f: CUfunction, size: CUoccupancyB2DSize, dynamic: usize, limit: c_int,
        flags: c_uint
    ) {
        best_block(grid, block, f, size, dynamic, limit)
    }
    call fn [cuOccupancyAvailableDynamicSMemPerBlock plain](
        _z, bytes: *mut usize, f: CUfunction, n: c_int, threads: c_int
    ) {
        let function = function(f)?;
        let (all, limit) = shared_memory(config::get_or_default().arch);
        if n < 1 || !(1..=1024).contains(&threads) {
            return Err(INVALID);
        }
        let each = (all / n - 1024).min(limit) - function.facts.shared as c_int;
        put(bytes, each.clamp(0, function.max_dynamic() as c_int) as usize)
    }
    call fn [cuOccupancyMaxPotentialClusterSize plain](
        _z, size: *mut c_int, f: CUfunction, config: *const CUlaunchConfig
    ) {
        get(config)?;
        put(size, most_blocks(&*function(f)?) as c_int)
    }
    call fn [cuOccupancyMaxActiveClusters plain](_z, n: *mut c_int, f: CUfunction, config: *const CUlaunchConfig) {
        let c = get(config)?;
        let mut asked = [0; 3];
        for attribute in list(c.attrs, c.numAttrs as usize)? {
            if attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION {
                // SAFETY: the id says which member of the union is in use.
                let dim = unsafe { attribute.value.clusterDim };
                asked = [dim.x, dim.y, dim.z];
            }
        }
        let size = cluster(&*function(f)?, asked)?.iter().map(|&n| n.max(1)).product::<u32>();
        let fit = blocks(f, (c.blockDimX * c.blockDimY * c.blockDimZ) as c_int, c.sharedMemBytes as usize)?;
        put(n, fit * crate::api::startup::devices::MULTIPROCESSORS / size as c_int)
    }
}
