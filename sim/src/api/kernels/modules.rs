//! Modules, libraries, kernels, functions and their attributes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuda_sys::*;

use crate::api::*;
use crate::config::{self, CodeChoice, Config};
use crate::handles::handle_of;
use crate::loader::{fatbin, machine_code, stand_in};
use crate::objects::module::{
    Code, FUNCTIONS, Function, LIBRARIES, LIBRARY_KERNELS, Library, LibraryKernel, MODULES, Module, function_of,
};
use crate::sched;

fn report(error: &fatbin::ImageError) -> CUresult {
    error.report("code image");
    error.status()
}

fn code_from_memory(data: *const c_void) -> Result<Arc<Code>, CUresult> {
    if data.is_null() {
        return Err(INVALID);
    }
    let config = config::get_or_default();
    // SAFETY: the C interface: the pointer is to a code image.
    let machine = || unsafe { machine_code::image_at(fatbin::unwrapped(data.cast())?) };
    // SAFETY: as above.
    choose(&config, || unsafe { fatbin::find_ptx(data.cast(), config.arch) }, machine)
}

fn code_from_file(name: *const c_char) -> Result<Arc<Code>, CUresult> {
    let path = std::path::PathBuf::from(text(name)?);
    let config = config::get_or_default();
    let bytes = std::fs::read(&path).map_err(|_| CUresult::ERROR_FILE_NOT_FOUND)?;
    let ptx = || match fatbin::find_ptx_in(&bytes, config.arch) {
        // Machine code alone: the PTX that it was made from may lie beside it.
        Err(fatbin::ImageError::NoPtx) => {
            let beside = std::fs::read(path.with_extension("ptx")).map_err(|_| fatbin::ImageError::NoPtx)?;
            fatbin::find_ptx_in(&beside, config.arch)
        }
        other => other,
    };
    choose(&config, ptx, || Ok(&bytes))
}

/// PTX or machine code of an image, as the configuration says.
fn choose<'a>(
    config: &Config,
    ptx: impl FnOnce() -> Result<String, fatbin::ImageError>,
    image: impl Fn() -> Result<&'a [u8], fatbin::ImageError>,
) -> Result<Arc<Code>, CUresult> {
    let machine = || {
        let wanted = config.code != CodeChoice::Ptx && !config.skip_sass && machine_code::is_executed(config.arch);
        if wanted { machine_code::cubin_in(image()?, config.arch) } else { Ok(None) }
    };
    if config.code == CodeChoice::Sass
        && let Ok(Some(cubin)) = machine()
    {
        return Code::machine(cubin);
    }
    let text = match ptx() {
        Err(fatbin::ImageError::NoPtx) => match machine() {
            Ok(Some(cubin)) => return Code::machine(cubin),
            Ok(None) if config.skip_sass => {
                image().and_then(|image| stand_in::text(image, config.arch).ok_or(fatbin::ImageError::NoPtx))
            }
            Ok(None) => Err(fatbin::ImageError::NoPtx),
            Err(damaged) => Err(damaged),
        },
        // Some of it is there as linked machine code only; or as PTX for newer devices only.
        Ok(text) if text.starts_with(fatbin::INCOMPLETE) || !fatbin::is_for(&text, config.arch) => match machine() {
            Ok(Some(cubin)) => return Code::machine(cubin),
            _ => Ok(text),
        },
        text => text,
    };
    Code::new(text.map_err(|error| report(&error))?)
}

fn load_module(out: *mut CUmodule, code: Arc<Code>) -> Res {
    let module = Module::load(&thread::context()?, code)?;
    put(out, CUmodule::from_bits(MODULES.insert(module)))
}

fn global(module: &Module, name: *const c_char, dptr: *mut CUdeviceptr, bytes: *mut usize) -> Res {
    let name = text(name)?;
    let global = module.globals.get(&name).ok_or_else(|| module.code.not_found(&name))?;
    put_if(dptr, global.at);
    put_if(bytes, global.size as usize);
    Ok(())
}

fn function(handle: CUfunction) -> Result<Arc<Function>, CUresult> {
    FUNCTIONS.get(handle.bits())
}

fn kernel_here(handle: CUkernel) -> Result<Arc<Function>, CUresult> {
    LIBRARY_KERNELS.get(handle.bits())?.function(&thread::context()?)
}

fn kernels_of(library: CUlibrary) -> Result<Vec<Arc<LibraryKernel>>, CUresult> {
    let library = LIBRARIES.get(library.bits())?;
    library.code.kernels().into_iter().map(|name| library.kernel(name)).collect()
}

pub(crate) fn attribute(f: &Function, attr: CUfunction_attribute) -> Result<c_int, CUresult> {
    let facts = &f.facts;
    Ok(match attr {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => facts.max_threads as c_int,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => facts.shared as c_int,
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => facts.constant as c_int,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => 0,
        // A guess that every kernel of an ordinary size keeps.
        CU_FUNC_ATTRIBUTE_NUM_REGS => 32,
        CU_FUNC_ATTRIBUTE_PTX_VERSION => facts.ptx as c_int,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION => config::get_or_default().arch as c_int,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => f.max_dynamic() as c_int,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => facts.carveout.load(Ordering::Relaxed) as c_int,
        CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => c_int::from(facts.cluster[0] != 0),
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => facts.cluster[0] as c_int,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => facts.cluster[1] as c_int,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => facts.cluster[2] as c_int,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => facts.non_portable.load(Ordering::Relaxed) as c_int,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => 0,
        _ => return Err(INVALID),
    })
}

fn set_attribute(f: &Function, attr: CUfunction_attribute, value: c_int) -> Res {
    match attr {
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let limit = crate::api::startup::devices::shared_memory(config::get_or_default().arch).1;
            if value < 0 || value + f.facts.shared as c_int > limit {
                return Err(INVALID);
            }
            f.facts.max_dynamic.store(value as u32, Ordering::Relaxed);
        }
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
            if !(-1..=100).contains(&value) {
                return Err(INVALID);
            }
            f.facts.carveout.store(value as u32, Ordering::Relaxed);
        }
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
            f.facts.non_portable.store(value as u32, Ordering::Relaxed);
        }
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {}
        _ => return Err(INVALID),
    }
    Ok(())
}

fn param_info(f: &Function, index: usize, offset: *mut usize, size: *mut usize) -> Res {
    let param = f.params.get(index).ok_or(INVALID)?;
    put(offset, param.offset)?;
    put_if(size, param.size);
    Ok(())
}

/// A name that stays valid as long as the process: handles of functions may outlive their module.
fn lasting_name(name: &str) -> *const c_char {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock};
    static NAMES: OnceLock<Mutex<HashMap<String, &'static std::ffi::CStr>>> = OnceLock::new();
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let found = names
        .entry(name.to_owned())
        .or_insert_with(|| Box::leak(std::ffi::CString::new(name).unwrap_or_default().into_boxed_c_str()));
    found.as_ptr()
}

abi! {
    call fn [cuModuleLoadData plain](_z, module: *mut CUmodule, image: *const c_void) {
        load_module(module, code_from_memory(image)?)
    }
    call fn [cuModuleLoadDataEx plain](
        _z, module: *mut CUmodule, image: *const c_void, n: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    ) {
        load_module(module, code_from_memory(image)?)
    }
    call fn [cuModuleLoadFatBinary plain](_z, module: *mut CUmodule, image: *const c_void) {
        load_module(module, code_from_memory(image)?)
    }
    call fn [cuModuleLoad plain](_z, module: *mut CUmodule, name: *const c_char) {
        load_module(module, code_from_file(name)?)
    }
    call fn [cuModuleUnload plain](_z, module: CUmodule) {
        let module = MODULES.remove(module.bits())?;
        // Kernels of the module may be running; its variables must stay until they have ended.
        sched::get().wait(&module.ctx.tails());
        module.unload();
        Ok(())
    }
    call fn [cuModuleGetFunction plain](_z, out: *mut CUfunction, module: CUmodule, name: *const c_char) {
        let function = MODULES.get(module.bits())?.function(&text(name)?, None)?;
        put(out, CUfunction::from_bits(handle_of(&function)))
    }
    call fn [cuModuleGetFunctionCount plain](_z, count: *mut c_uint, module: CUmodule) {
        put(count, MODULES.get(module.bits())?.code.kernels().len() as c_uint)
    }
    call fn [cuModuleEnumerateFunctions plain](_z, functions: *mut CUfunction, count: c_uint, module: CUmodule) {
        let module = MODULES.get(module.bits())?;
        for (n, name) in module.code.kernels().into_iter().take(count as usize).enumerate() {
            let function = module.function(name, None)?;
            put(functions.wrapping_add(n), CUfunction::from_bits(handle_of(&function)))?;
        }
        Ok(())
    }
    call fn [cuModuleGetGlobal_v2 plain](
        _z, dptr: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char
    ) {
        global(&*MODULES.get(module.bits())?, name, dptr, bytes)
    }
    call fn [cuLibraryLoadData plain](
        _z, library: *mut CUlibrary, code: *const c_void, jit: *mut CUjit_option, jit_values: *mut *mut c_void,
        num_jit: c_uint, options: *mut CUlibraryOption, values: *mut *mut c_void, num_options: c_uint
    ) {
        put(library, CUlibrary::from_bits(handle_of(&Library::load(code_from_memory(code)?))))
    }
    call fn [cuLibraryLoadFromFile plain](
        _z, library: *mut CUlibrary, name: *const c_char, jit: *mut CUjit_option, jit_values: *mut *mut c_void,
        num_jit: c_uint, options: *mut CUlibraryOption, values: *mut *mut c_void, num_options: c_uint
    ) {
        put(library, CUlibrary::from_bits(handle_of(&Library::load(code_from_file(name)?))))
    }
    call fn [cuLibraryUnload plain](_z, library: CUlibrary) {
        let library = LIBRARIES.remove(library.bits())?;
        sched::get().wait(&sched::get().all_tails());
        library.unload();
        Ok(())
    }
    call fn [cuLibraryGetKernel plain](_z, out: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        let kernel = LIBRARIES.get(library.bits())?.kernel(&text(name)?)?;
        put(out, CUkernel::from_bits(handle_of(&kernel)))
    }
    call fn [cuLibraryGetKernelCount plain](_z, count: *mut c_uint, library: CUlibrary) {
        put(count, LIBRARIES.get(library.bits())?.code.kernels().len() as c_uint)
    }
    call fn [cuLibraryEnumerateKernels plain](_z, kernels: *mut CUkernel, count: c_uint, library: CUlibrary) {
        for (n, kernel) in kernels_of(library)?.into_iter().take(count as usize).enumerate() {
            put(kernels.wrapping_add(n), CUkernel::from_bits(handle_of(&kernel)))?;
        }
        Ok(())
    }
    call fn [cuLibraryGetModule plain](_z, module: *mut CUmodule, library: CUlibrary) {
        let found = LIBRARIES.get(library.bits())?.module(&thread::context()?)?;
        put(module, CUmodule::from_bits(handle_of(&found)))
    }
    call fn [cuLibraryGetGlobal plain](
        _z, dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        global(&*LIBRARIES.get(library.bits())?.module(&thread::context()?)?, name, dptr, bytes)
    }
    call fn [cuLibraryGetManaged plain](
        _z, dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        let module = LIBRARIES.get(library.bits())?.module(&thread::context()?)?;
        if !module.globals.get(&text(name)?).is_some_and(|global| global.managed) {
            return Err(CUresult::ERROR_NOT_FOUND);
        }
        global(&module, name, dptr, bytes)
    }
    call fn [cuKernelGetFunction plain](_z, out: *mut CUfunction, kernel: CUkernel) {
        put(out, CUfunction::from_bits(handle_of(&kernel_here(kernel)?)))
    }
    call fn [cuKernelGetLibrary plain](_z, out: *mut CUlibrary, kernel: CUkernel) {
        let library = LIBRARY_KERNELS.get(kernel.bits())?.library.upgrade().ok_or(CUresult::ERROR_INVALID_HANDLE)?;
        put(out, CUlibrary::from_bits(handle_of(&library)))
    }
    call fn [cuKernelGetName plain](_z, name: *mut *const c_char, kernel: CUkernel) {
        put(name, lasting_name(&LIBRARY_KERNELS.get(kernel.bits())?.name))
    }
    call fn [cuKernelGetParamInfo plain](
        _z, kernel: CUkernel, index: usize, offset: *mut usize, size: *mut usize
    ) {
        param_info(&*kernel_here(kernel)?, index, offset, size)
    }
    call fn [cuKernelGetParamCount plain](_z, kernel: CUkernel, count: *mut usize) {
        put(count, kernel_here(kernel)?.params.len())
    }
    call fn [cuKernelGetAttribute plain](
        _z, value: *mut c_int, attr: CUfunction_attribute, kernel: CUkernel, dev: CUdevice
    ) {
        put(value, attribute(&*kernel_here(kernel)?, attr)?)
    }
    call fn [cuKernelSetAttribute plain](
        _z, attr: CUfunction_attribute, value: c_int, kernel: CUkernel, dev: CUdevice
    ) {
        set_attribute(&*kernel_here(kernel)?, attr, value)
    }
    call fn [cuKernelSetCacheConfig plain](_z, kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) {
        LIBRARY_KERNELS.get(kernel.bits()).map(|_| ())
    }
    call fn [cuFuncGetModule plain](_z, module: *mut CUmodule, f: CUfunction) {
        put(module, CUmodule::from_bits(handle_of(&function(f)?.module()?)))
    }
    call fn [cuFuncGetName plain](_z, name: *mut *const c_char, f: CUfunction) {
        put(name, lasting_name(&function(f)?.name))
    }
    call fn [cuFuncGetParamInfo plain](_z, f: CUfunction, index: usize, offset: *mut usize, size: *mut usize) {
        param_info(&*function(f)?, index, offset, size)
    }
    call fn [cuFuncGetParamCount plain](_z, f: CUfunction, count: *mut usize) {
        put(count, function(f)?.params.len())
    }
    call fn [cuFuncGetAttribute plain](_z, value: *mut c_int, attr: CUfunction_attribute, f: CUfunction) {
        put(value, attribute(&*function_of(f.bits(), &thread::context()?)?, attr)?)
    }
    call fn [cuFuncSetAttribute plain](_z, f: CUfunction, attr: CUfunction_attribute, value: c_int) {
        set_attribute(&*function_of(f.bits(), &thread::context()?)?, attr, value)
    }
    call fn [cuFuncSetCacheConfig plain](_z, f: CUfunction, config: CUfunc_cache) {
        function_of(f.bits(), &thread::context()?).map(|_| ())
    }
    call fn [cuFuncSetSharedMemConfig plain](_z, f: CUfunction, config: CUsharedconfig) {
        function_of(f.bits(), &thread::context()?).map(|_| ())
    }
    call fn [cuFuncIsLoaded plain](_z, state: *mut CUfunctionLoadingState, f: CUfunction) {
        function(f)?;
        put(state, CU_FUNCTION_LOADING_STATE_LOADED)
    }
    call fn [cuFuncLoad plain](_z, f: CUfunction) {
        function(f).map(|_| ())
    }
}
