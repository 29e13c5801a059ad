//! Launches of kernels and host functions, and attributes of kernels.

use std::cell::RefCell;

use cuda_sys::*;

use crate::kernels::registration::{kernel_or_handle, variable};
use crate::thread_state::{INVALID, Res, get, last_error, put, put_start};

#[derive(Clone, Copy)]
struct Configuration {
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: CUstream,
}

thread_local! {
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

fn launch(
    pt: bool,
    f: CUfunction,
    grid: dim3,
    block: dim3,
    args: *mut *mut c_void,
    shared: usize,
    stream: CUstream,
) -> Res {
    let shared = c_uint::try_from(shared).map_err(|_| INVALID)?;
    let none = std::ptr::null_mut();
    configuration(
        grid,
        block,
        cu!(cuLaunchKernel, pt; (
            f, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, args, none
        )),
    )
}

/// Up to version 12 the runtime has a name of its own for grids and blocks that no device can run.
/// (Too much shared memory keeps the driver's.)
fn configuration(grid: dim3, block: dim3, result: Res) -> Res {
    if crate::version::major() >= 13 {
        return result;
    }
    let threads = [block.x, block.y, block.z].iter().map(|&n| u64::from(n)).product::<u64>();
    let blocks = [grid.x, grid.y, grid.z];
    let impossible =
        !(1..=1024).contains(&threads) || block.z > 64 || blocks.contains(&0) || grid.y > 65535 || grid.z > 65535;
    result.map_err(
        |error| {
            if error == cudaErrorInvalidValue && impossible { cudaErrorInvalidConfiguration } else { error }
        },
    )
}

// SAFETY: the names and signatures that the compiler's generated code calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPushCallConfiguration(grid: dim3, block: dim3, shared: usize, stream: CUstream) -> c_uint {
    PUSHED.with(|pushed| pushed.borrow_mut().push(Configuration { grid, block, shared, stream }));
    0
}

rt! {
    quiet fn [__cudaPopCallConfiguration plain](
        _pt, grid: *mut dim3, block: *mut dim3, shared: *mut usize, stream: *mut CUstream
    ) {
        let top = PUSHED.with(|pushed| pushed.borrow_mut().pop()).ok_or(cudaErrorMissingConfiguration)?;
        put(grid, top.grid)?;
        put(block, top.block)?;
        put(shared, top.shared)?;
        put(stream, top.stream)
    }
    ctx fn [__cudaLaunchKernel legacy, __cudaLaunchKernel_ptsz per_thread](
        pt, kernel: CUkernel, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: CUstream
    ) {
        // The compiler's code ignores that `__cudaGetKernel` found no kernel, and why.
        let earlier = last_error(false);
        if kernel == CUkernel::NULL && earlier != cudaSuccess {
            return Err(earlier);
        }
        launch(pt, CUfunction::from_bits(kernel.bits()), grid, block, args, shared, stream)
    }
    ctx fn [cudaLaunchKernel legacy, cudaLaunchKernel_ptsz per_thread](
        pt, f: *const c_void, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: CUstream
    ) {
        launch(pt, kernel_or_handle(f)?, grid, block, args, shared, stream)
    }
    ctx fn [cudaLaunchCooperativeKernel legacy, cudaLaunchCooperativeKernel_ptsz per_thread](
        pt, f: *const c_void, grid: dim3, block: dim3, args: *mut *mut c_void, shared: usize, stream: CUstream
    ) {
        let f = kernel_or_handle(f)?;
        let shared = c_uint::try_from(shared).map_err(|_| INVALID)?;
        configuration(grid, block, cu!(cuLaunchCooperativeKernel, pt; (
            f, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, args
        )))
    }
    ctx fn [cudaLaunchKernelExC legacy, cudaLaunchKernelExC_ptsz per_thread](
        pt, config: *const cudaLaunchConfig_st, f: *const c_void, args: *mut *mut c_void
    ) {
        let c = get(config)?;
        let config = crate::kernels::libraries::launch_config(config)?;
        let launched = cu!(cuLaunchKernelEx, pt; (&config, kernel_or_handle(f)?, args, std::ptr::null_mut()));
        configuration(c.gridDim, c.blockDim, launched)
    }
    ctx fn [cudaLaunchHostFunc legacy, cudaLaunchHostFunc_ptsz per_thread](
        pt, stream: CUstream, function: CUhostFn, data: *mut c_void
    ) {
        cu!(cuLaunchHostFunc, pt; (stream, function, data))
    }
    ctx fn [cudaFuncGetAttributes plain](_pt, out: *mut cudaFuncAttributes, f: *const c_void) {
        let f = kernel_or_handle(f)?;
        let ask = |attribute| -> Result<c_int, cudaError> {
            let mut value = 0;
            cu!(cuFuncGetAttribute(&mut value, attribute, f))?;
            Ok(value)
        };
        let all = cudaFuncAttributes {
            sharedSizeBytes: ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? as usize,
            constSizeBytes: ask(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)? as usize,
            localSizeBytes: ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)? as usize,
            maxThreadsPerBlock: ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            numRegs: ask(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            ptxVersion: ask(CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binaryVersion: ask(CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
            cacheModeCA: ask(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)?,
            maxDynamicSharedSizeBytes: ask(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
            preferredShmemCarveout: ask(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)?,
            clusterDimMustBeSet: ask(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)?,
            requiredClusterWidth: ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
            requiredClusterHeight: ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
            requiredClusterDepth: ask(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
            ..cudaFuncAttributes::zeroed()
        };
        if crate::version::major() == 11 {
            let end = std::mem::offset_of!(cudaFuncAttributes, clusterDimMustBeSet);
            return put_start(out.cast(), &all, end);
        }
        put(out, all)
    }
    ctx fn [cudaFuncSetAttribute plain](_pt, f: *const c_void, attribute: CUfunction_attribute, value: c_int) {
        cu!(cuFuncSetAttribute(kernel_or_handle(f)?, attribute, value))
    }
    ctx fn [cudaFuncSetCacheConfig plain](_pt, f: *const c_void, config: CUfunc_cache) {
        cu!(cuFuncSetCacheConfig(kernel_or_handle(f)?, config))
    }
    ctx fn [cudaFuncGetName plain](_pt, name: *mut *const c_char, f: *const c_void) {
        let kernel = CUkernel::from_bits(kernel_or_handle(f)?.bits());
        cu!(cuKernelGetName(name, kernel))
    }
    ctx fn [cudaFuncGetParamInfo plain](_pt, f: *const c_void, index: usize, offset: *mut usize, size: *mut usize) {
        let kernel = CUkernel::from_bits(kernel_or_handle(f)?.bits());
        cu!(cuKernelGetParamInfo(kernel, index, offset, size))
    }
    ctx fn [cudaOccupancyMaxActiveBlocksPerMultiprocessor plain](
        _pt, n: *mut c_int, f: *const c_void, threads: c_int, shared: usize
    ) {
        cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(n, kernel_or_handle(f)?, threads, shared))
    }
    ctx fn [cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags plain](
        _pt, n: *mut c_int, f: *const c_void, threads: c_int, shared: usize, flags: c_uint
    ) {
        cu!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, kernel_or_handle(f)?, threads, shared, flags))
    }
    ctx fn [cudaOccupancyAvailableDynamicSMemPerBlock plain](
        _pt, bytes: *mut usize, f: *const c_void, n: c_int, threads: c_int
    ) {
        cu!(cuOccupancyAvailableDynamicSMemPerBlock(bytes, kernel_or_handle(f)?, n, threads))
    }
    ctx fn [cudaGetSymbolAddress plain](_pt, out: *mut *mut c_void, symbol: *const c_void) {
        put(out, variable(symbol)?.0 as *mut c_void)
    }
    ctx fn [cudaGetSymbolSize plain](_pt, out: *mut usize, symbol: *const c_void) {
        put(out, variable(symbol)?.1)
    }
}
