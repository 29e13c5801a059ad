//! Rows of [`driver_api!`](crate::driver_api!): modules, libraries, kernels and the linker.
//! How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_code {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_contexts! { {$($to)*} { $($rows)*

    after  fn cuModuleLoad(module: *mut CUmodule, file_name: *const c_char) [plain cuModuleLoad];
    after  fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) [plain cuModuleLoadData];
    after  fn cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, num_options: c_uint, options: *mut CUjit_option,
        option_values: *mut *mut c_void
    ) [plain cuModuleLoadDataEx];
    after  fn cuModuleLoadFatBinary(module: *mut CUmodule, fat_cubin: *const c_void) [plain cuModuleLoadFatBinary];
    both   fn cuModuleUnload(module: CUmodule) [plain cuModuleUnload];
    after  fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char)
        [plain cuModuleGetFunction];
    after  fn cuModuleEnumerateFunctions(functions: *mut CUfunction, num_functions: c_uint, module: CUmodule)
        [plain cuModuleEnumerateFunctions];
    after  fn cuModuleGetGlobal(ptr: *mut CUdeviceptr_v1, bytes: *mut c_uint, module: CUmodule, name: *const c_char)
        [plain cuModuleGetGlobal];
    after  fn cuModuleGetGlobal_v2(ptr: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char)
        [plain cuModuleGetGlobal_v2];
    after  fn cuLinkCreate_v2(
        num_options: c_uint, options: *mut CUjit_option, option_values: *mut *mut c_void, state_out: *mut CUlinkState
    ) [plain cuLinkCreate, plain cuLinkCreate_v2] no_effect;
    after  fn cuLinkAddData_v2(
        state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char,
        num_options: c_uint, options: *mut CUjit_option, option_values: *mut *mut c_void
    ) [plain cuLinkAddData, plain cuLinkAddData_v2] no_effect;
    after  fn cuLinkAddFile_v2(
        state: CUlinkState, kind: CUjitInputType, path: *const c_char, num_options: c_uint, options: *mut CUjit_option,
        option_values: *mut *mut c_void
    ) [plain cuLinkAddFile, plain cuLinkAddFile_v2] no_effect;
    after  fn cuLinkComplete(state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize)
        [plain cuLinkComplete] no_effect;
    before fn cuLinkDestroy(state: CUlinkState) [plain cuLinkDestroy] no_effect;
    after  fn cuModuleGetTexRef(tex_ref: *mut CUtexref, module: CUmodule, name: *const c_char)
        [plain cuModuleGetTexRef] no_effect;
    after  fn cuModuleGetSurfRef(surf_ref: *mut CUsurfref, module: CUmodule, name: *const c_char)
        [plain cuModuleGetSurfRef] no_effect;
    after  fn cuLibraryLoadData(
        library: *mut CUlibrary, code: *const c_void, jit_options: *mut CUjit_option,
        jit_options_values: *mut *mut c_void, num_jit_options: c_uint, library_options: *mut CUlibraryOption,
        library_option_values: *mut *mut c_void, num_library_options: c_uint
    ) [plain cuLibraryLoadData];
    after  fn cuLibraryLoadFromFile(
        library: *mut CUlibrary, file_name: *const c_char, jit_options: *mut CUjit_option,
        jit_options_values: *mut *mut c_void, num_jit_options: c_uint, library_options: *mut CUlibraryOption,
        library_option_values: *mut *mut c_void, num_library_options: c_uint
    ) [plain cuLibraryLoadFromFile];
    both   fn cuLibraryUnload(library: CUlibrary) [plain cuLibraryUnload];
    after  fn cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char)
        [plain cuLibraryGetKernel];
    after  fn cuLibraryEnumerateKernels(kernels: *mut CUkernel, num_kernels: c_uint, library: CUlibrary)
        [plain cuLibraryEnumerateKernels];
    after  fn cuLibraryGetModule(module: *mut CUmodule, library: CUlibrary) [plain cuLibraryGetModule];
    after  fn cuKernelGetFunction(func: *mut CUfunction, kernel: CUkernel) [plain cuKernelGetFunction];
    after  fn cuLibraryGetGlobal(ptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char)
        [plain cuLibraryGetGlobal];
    after  fn cuLibraryGetManaged(ptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char)
        [plain cuLibraryGetManaged];
    after  fn cuLibraryGetUnifiedFunction(fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char)
        [plain cuLibraryGetUnifiedFunction] not_modelled;
    after  fn cuFuncGetModule(module: *mut CUmodule, function: CUfunction) [plain cuFuncGetModule] no_effect;

    } } };
}
