//! What compiled programs register before `main`: fat binaries, and which host symbols stand for
//! which kernels and variables. The driver gets the code when it is first used.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cuda_sys::*;

use crate::thread_state;
use crate::thread_state::{Res, put};

/// A registered fat binary.
struct Binary {
    image: usize,
    library: OnceLock<Result<usize, cudaError>>,
    managed: Mutex<Vec<(usize, CString)>>,
}

/// A host symbol of a kernel.
struct Kernel {
    binary: Arc<Binary>,
    name: CString,
    handle: OnceLock<Result<usize, cudaError>>,
}

/// A host symbol of a variable.
struct Variable {
    binary: Arc<Binary>,
    name: CString,
    size: usize,
}

#[derive(Default)]
struct Registry {
    binaries: HashMap<usize, Arc<Binary>>,
    kernels: HashMap<usize, Arc<Kernel>>,
    variables: HashMap<usize, Arc<Variable>>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Binary {
    fn library(&self) -> Result<CUlibrary, cudaError> {
        let loaded = self.library.get_or_init(|| {
            let mut library = CUlibrary::NULL;
            let (jit, jit_values) = (std::ptr::null_mut(), std::ptr::null_mut());
            let (options, values) = (std::ptr::null_mut(), std::ptr::null_mut());
            let image = self.image as *const c_void;
            cu!(cuLibraryLoadData(&mut library, image, jit, jit_values, 0, options, values, 0))?;
            Ok(library.bits())
        });
        loaded.map(CUlibrary::from_bits)
    }

    /// Gives managed variables their addresses: host code reads them through a pointer.
    fn place_managed(&self) -> Res {
        let wanted = std::mem::take(&mut *self.managed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        if wanted.is_empty() {
            return Ok(());
        }
        thread_state::context()?;
        let library = self.library()?;
        for (pointer, name) in wanted {
            let (mut at, mut size) = (0, 0);
            cu!(cuLibraryGetManaged(&mut at, &mut size, library, name.as_ptr()))?;
            put(pointer as *mut u64, at)?;
        }
        Ok(())
    }
}

/// The driver's kernel for a host function; a handle of the driver's own is answered as it is.
pub(crate) fn kernel(symbol: *const c_void) -> Result<CUfunction, cudaError> {
    let found = registry().kernels.get(&(symbol as usize)).cloned();
    let Some(kernel) = found else { return Err(cudaErrorInvalidDeviceFunction) };
    let handle = kernel.handle.get_or_init(|| {
        let mut handle = CUkernel::NULL;
        cu!(cuLibraryGetKernel(&mut handle, kernel.binary.library()?, kernel.name.as_ptr()))?;
        Ok(handle.bits())
    });
    kernel.binary.place_managed()?;
    handle.map(CUfunction::from_bits)
}

/// The registered kernel, or the handle itself where programs pass `cudaKernel_t` or
/// `cudaFunction_t`.
pub(crate) fn kernel_or_handle(symbol: *const c_void) -> Result<CUfunction, cudaError> {
    match kernel(symbol) {
        Err(error) if error == cudaErrorInvalidDeviceFunction && !symbol.is_null() => {
            Ok(CUfunction::from_bits(symbol as usize))
        }
        other => other,
    }
}

/// Address and size of a variable by its host symbol.
pub(crate) fn variable(symbol: *const c_void) -> Result<(u64, usize), cudaError> {
    let found = registry().variables.get(&(symbol as usize)).cloned();
    let variable = found.ok_or(cudaErrorInvalidSymbol)?;
    let (mut at, mut size) = (0, 0);
    match sim_driver_link::private() {
        // SAFETY: valid pointers, a library of this driver and a C string.
        Some(table) => crate::thread_state::check(unsafe {
            (table.library_get_global)(&mut at, &mut size, variable.binary.library()?, variable.name.as_ptr())
        })?,
        None => cu!(cuLibraryGetGlobal(&mut at, &mut size, variable.binary.library()?, variable.name.as_ptr()))?,
    }
    Ok((at, if size == 0 { variable.size } else { size }))
}

fn binary(handle: *mut *mut c_void) -> Option<Arc<Binary>> {
    registry().binaries.get(&(handle as usize)).cloned()
}

fn name(from: *const c_char) -> CString {
    if from.is_null() {
        return CString::default();
    }
    // SAFETY: the compiler's registration code passes string literals.
    unsafe { CStr::from_ptr(from) }.to_owned()
}

// SAFETY: the names and signatures that the compiler's generated code calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(image: *mut c_void) -> *mut *mut c_void {
    let binary = Arc::new(Binary { image: image as usize, library: OnceLock::new(), managed: Mutex::default() });
    let handle = Arc::as_ptr(&binary) as usize;
    registry().binaries.insert(handle, binary);
    handle as *mut *mut c_void
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) {
    let Some(gone) = registry().binaries.remove(&(handle as usize)) else { return };
    let mut registry = registry();
    registry.kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.binary, &gone));
    registry.variables.retain(|_, variable| !Arc::ptr_eq(&variable.binary, &gone));
    drop(registry);
    if let Some(Ok(library)) = gone.library.get() {
        // The program, or a library that it closes, is going away: its code must not stay behind.
        let _ = cu!(cuLibraryUnload(CUlibrary::from_bits(*library)));
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host: *const c_char,
    _device: *mut c_char,
    device_name: *const c_char,
    _limit: c_int,
    _tid: *mut uint3,
    _bid: *mut uint3,
    _block: *mut dim3,
    _grid: *mut dim3,
    _warp: *mut c_int,
) {
    if let Some(binary) = binary(handle) {
        let kernel = Kernel { binary, name: name(device_name), handle: OnceLock::new() };
        registry().kernels.insert(host as usize, Arc::new(kernel));
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host: *mut c_char,
    _device: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if let Some(binary) = binary(handle) {
        registry().variables.insert(host as usize, Arc::new(Variable { binary, name: name(device_name), size }));
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    pointer: *mut *mut c_void,
    _device: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if let Some(binary) = binary(handle) {
        let wanted = (pointer as usize, name(device_name));
        binary.managed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(wanted);
        registry().variables.insert(pointer as usize, Arc::new(Variable { binary, name: name(device_name), size }));
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaInitModule(handle: *mut *mut c_void) -> c_char {
    let placed = binary(handle).map_or(Ok(()), |binary| binary.place_managed());
    c_char::from(placed.is_ok())
}

// SAFETY: as above. Texture and surface references went with CUDA 12; old binaries still register
// them.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterTexture() {}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterSurface() {}

// SAFETY: as above. Host variables of linked device code need nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterHostVar() {}

rt! {
    ctx fn [__cudaGetKernel plain](_pt, out: *mut CUkernel, symbol: *const c_void) {
        put(out, CUkernel::from_bits(kernel(symbol)?.bits()))
    }
    ctx fn [cudaGetKernel plain](_pt, out: *mut CUkernel, symbol: *const c_void) {
        put(out, CUkernel::from_bits(kernel(symbol)?.bits()))
    }
    ctx fn [cudaGetFuncBySymbol plain](_pt, out: *mut CUfunction, symbol: *const c_void) {
        let handle = kernel(symbol)?;
        let mut function = CUfunction::NULL;
        cu!(cuKernelGetFunction(&mut function, CUkernel::from_bits(handle.bits())))?;
        put(out, function)
    }
}
