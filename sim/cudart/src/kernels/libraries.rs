//! Code that the program loads itself, and kernels by their handles.

use cuda_sys::*;

use crate::kernels::registration::kernel_or_handle;
use crate::thread_state::{INVALID, get, put};

type Options = *mut *mut c_void;

rt! {
    ctx fn [cudaLibraryLoadData plain](
        _pt, library: *mut CUlibrary, code: *const c_void, jit: *mut CUjit_option, jit_values: Options, num_jit: c_uint,
        options: *mut CUlibraryOption, values: Options, num: c_uint
    ) {
        cu!(cuLibraryLoadData(library, code, jit, jit_values, num_jit, options, values, num))
    }
    ctx fn [cudaLibraryLoadFromFile plain](
        _pt, library: *mut CUlibrary, file: *const c_char, jit: *mut CUjit_option, jit_values: Options, num_jit: c_uint,
        options: *mut CUlibraryOption, values: Options, num: c_uint
    ) {
        cu!(cuLibraryLoadFromFile(library, file, jit, jit_values, num_jit, options, values, num))
    }
    ctx fn [cudaLibraryUnload plain](_pt, library: CUlibrary) { cu!(cuLibraryUnload(library)) }
    ctx fn [cudaLibraryGetKernel plain](_pt, kernel: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        cu!(cuLibraryGetKernel(kernel, library, name))
    }
    ctx fn [cudaLibraryGetKernelCount plain](_pt, count: *mut c_uint, library: CUlibrary) {
        cu!(cuLibraryGetKernelCount(count, library))
    }
    ctx fn [cudaLibraryEnumerateKernels plain](_pt, kernels: *mut CUkernel, count: c_uint, library: CUlibrary) {
        cu!(cuLibraryEnumerateKernels(kernels, count, library))
    }
    ctx fn [cudaLibraryGetGlobal plain](
        _pt, at: *mut *mut c_void, size: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        cu!(cuLibraryGetGlobal(at.cast(), size, library, name))
    }
    ctx fn [cudaLibraryGetManaged plain](
        _pt, at: *mut *mut c_void, size: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        cu!(cuLibraryGetManaged(at.cast(), size, library, name))
    }
    ctx fn [cudaKernelSetAttributeForDevice plain](
        _pt, kernel: CUkernel, attribute: CUfunction_attribute, value: c_int, device: c_int
    ) {
        cu!(cuKernelSetAttribute(attribute, value, kernel, device))
    }
    ctx fn [cudaOccupancyMaxActiveClusters plain](
        _pt, count: *mut c_int, f: *const c_void, config: *const cudaLaunchConfig_st
    ) {
        let config = launch_config(config)?;
        cu!(cuOccupancyMaxActiveClusters(count, kernel_or_handle(f)?, &config))
    }
    ctx fn [cudaOccupancyMaxPotentialClusterSize plain](
        _pt, size: *mut c_int, f: *const c_void, config: *const cudaLaunchConfig_st
    ) {
        let config = launch_config(config)?;
        cu!(cuOccupancyMaxPotentialClusterSize(size, kernel_or_handle(f)?, &config))
    }
    ctx fn [cudaFuncGetParamCount plain](_pt, f: *const c_void, count: *mut usize) {
        let kernel = CUkernel::from_bits(kernel_or_handle(f)?.bits());
        let mut found = 0;
        let (mut offset, mut size) = (0, 0);
        while cu!(cuKernelGetParamInfo(kernel, found, &mut offset, &mut size)).is_ok() {
            found += 1;
        }
        put(count, found)
    }
}

/// The driver's form of a launch's configuration.
pub(crate) fn launch_config(config: *const cudaLaunchConfig_st) -> Result<CUlaunchConfig, cudaError> {
    let c = get(config)?;
    Ok(CUlaunchConfig {
        gridDimX: c.gridDim.x,
        gridDimY: c.gridDim.y,
        gridDimZ: c.gridDim.z,
        blockDimX: c.blockDim.x,
        blockDimY: c.blockDim.y,
        blockDimZ: c.blockDim.z,
        sharedMemBytes: c_uint::try_from(c.dynamicSmemBytes).map_err(|_| INVALID)?,
        hStream: c.stream,
        // The attributes have one layout on both levels.
        attrs: c.attrs.cast(),
        numAttrs: c.numAttrs,
    })
}
