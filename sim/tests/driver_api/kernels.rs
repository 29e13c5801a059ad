//! Kernels, libraries, the linker, entry points, and refused arguments.

use cuda_sys::*;

use crate::support::*;

#[test]
fn kernels_compute() {
    let gpu = gpu();
    let (x, y) = (alloc(256), alloc(256));
    let s = stream(CU_STREAM_NON_BLOCKING);
    gpu.put(x, 21, s);
    gpu.twice(x, y, s);
    ok!(cuStreamSynchronize(s));
    assert_eq!(read(y, 64), [42; 64]);
    ok!(cuStreamDestroy_v2(s));
    ok!(cuMemFree_v2(x));
    ok!(cuMemFree_v2(y));
}

#[test]
fn a_forked_child_gets_errors() {
    let _gpu = gpu();
    // SAFETY: the child calls the driver and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut at = 0;
        let errors = [cu!(cuMemAlloc_v2(&mut at, 64)), cu!(cuInit(0)), cu!(cuCtxSynchronize())];
        let all = errors.iter().all(|&error| error == CUresult::ERROR_NOT_INITIALIZED);
        // SAFETY: ends the child without running the test harness.
        unsafe { libc::_exit(i32::from(!all)) };
    }
    let mut status = 0;
    // SAFETY: a child of ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
}

#[test]
fn bad_arguments_are_errors() {
    let gpu = gpu();
    let d = alloc(256);
    let mut at = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&mut at, 0)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuMemAlloc_v2(&mut at, usize::MAX)), CUresult::ERROR_OUT_OF_MEMORY);
    assert_eq!(cu!(cuMemAlloc_v2(std::ptr::null_mut(), 8)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuMemFree_v2(d + 4)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD8_v2(d, 0, 257)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD32_v2(d + 1, 0, 1)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyDtoD_v2(d, d + 200, 64)), CUresult::ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuStreamSynchronize(CUstream::from_bits(0xdead0))), CUresult::ERROR_INVALID_HANDLE);
    assert_eq!(cu!(cuEventSynchronize(CUevent::NULL)), CUresult::ERROR_INVALID_HANDLE);
    assert_eq!(cu!(cuGraphLaunch(CUgraphExec::NULL, CUstream::NULL)), CUresult::ERROR_INVALID_VALUE);
    let mut f = CUfunction::NULL;
    assert_eq!(cu!(cuModuleGetFunction(&mut f, gpu.module, c"nope".as_ptr())), CUresult::ERROR_NOT_FOUND);
    let mut module = CUmodule::NULL;
    assert_eq!(cu!(cuModuleLoadData(&mut module, c"garbage".as_ptr().cast())), CUresult::ERROR_INVALID_IMAGE);
    let none = std::ptr::null_mut();
    let put = gpu.function(c"put");
    assert_eq!(
        cu!(cuLaunchKernel(put, 0, 1, 1, 1, 1, 1, 0, CUstream::NULL, none, none)),
        CUresult::ERROR_INVALID_VALUE
    );
    assert_eq!(
        cu!(cuLaunchKernel(put, 1, 1, 1, 2048, 1, 1, 0, CUstream::NULL, none, none)),
        CUresult::ERROR_INVALID_VALUE
    );
    assert_eq!(cu!(cuGreenCtxDestroy(CUgreenCtx::NULL)), CUresult::ERROR_INVALID_HANDLE);
}

#[test]
fn every_symbol_is_there_and_has_the_meaning_that_was_asked_for() {
    ok!(cuInit(0));
    let address = |name: &str, version, flags| {
        let name = std::ffi::CString::new(name).unwrap();
        let (mut pfn, mut status) = (std::ptr::null_mut(), CU_GET_PROC_ADDRESS_SUCCESS);
        ok!(cuGetProcAddress_v2(name.as_ptr(), &mut pfn, version, flags, &mut status));
        (pfn as usize, status)
    };
    assert_eq!(address("cuMemAlloc", 13000, 0).0, cuda::cuMemAlloc_v2 as *const () as usize);
    assert_eq!(address("cuMemcpyAsync", 13000, 0).0, cuda::cuMemcpyAsync as *const () as usize);
    assert_eq!(address("cuMemcpyAsync", 13000, 1).0, cuda::cuMemcpyAsync as *const () as usize);
    assert_eq!(address("cuMemcpyAsync", 13000, 2).0, cuda::cuMemcpyAsync_ptsz as *const () as usize);
    assert_eq!(address("cuMemcpyHtoD", 13000, 2).0, cuda::cuMemcpyHtoD_v2_ptds as *const () as usize);
    assert_eq!(address("cuStreamSynchronize", 4000, 2).0, cuda::cuStreamSynchronize_ptsz as *const () as usize);
    assert_eq!(address("cuCtxSynchronize", 12000, 0).0, cuda::cuCtxSynchronize as *const () as usize);
    assert_eq!(address("cuCtxSynchronize", 13000, 0).0, cuda::cuCtxSynchronize_v2 as *const () as usize);
    assert_eq!(address("cuGetProcAddress", 12000, 0).0, cuda::cuGetProcAddress_v2 as *const () as usize);
    assert_eq!(address("cuGetProcAddress", 11030, 0).0, cuda::cuGetProcAddress as *const () as usize);
    assert_eq!(address("cuNothing", 13000, 0), (0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    for function in DRIVER_FUNCTIONS {
        assert_ne!(address(function.name, 13050, 0).0, 0, "{}", function.name);
    }
}

#[test]
fn libraries_give_kernels_that_launch_like_functions() {
    let gpu = gpu();
    let mut library = CUlibrary::NULL;
    let none = std::ptr::null_mut();
    let nothing = std::ptr::null_mut();
    let (options, values) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(cuLibraryLoadData(&mut library, PTX.as_ptr().cast(), none, nothing, 0, options, values, 0));
    let mut kernel = CUkernel::NULL;
    ok!(cuLibraryGetKernel(&mut kernel, library, c"put".as_ptr()));
    let (mut offset, mut size) = (0, 0);
    ok!(cuKernelGetParamInfo(kernel, 1, &mut offset, &mut size));
    assert_eq!((offset, size), (8, 4));
    assert_eq!(cu!(cuKernelGetParamInfo(kernel, 2, &mut offset, &mut size)), CUresult::ERROR_INVALID_VALUE);
    let f = CUfunction::from_bits(kernel.bits());
    assert_eq!(cu!(cuFuncGetParamInfo(f, 0, &mut offset, &mut size)), CUresult::ERROR_INVALID_HANDLE);
    let (mut x, mut value) = (alloc(256), 6u32);
    let mut params = [(&raw mut x).cast(), (&raw mut value).cast()];
    ok!(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, CUstream::NULL, params.as_mut_ptr(), std::ptr::null_mut()));
    assert_eq!(read(x, 64), [6; 64]);
    let (mut at, mut bytes) = (0, 0);
    ok!(cuLibraryGetGlobal(&mut at, &mut bytes, library, c"counter".as_ptr()));
    assert_eq!((read(at, 1)[0], bytes), (7, 4));
    ok!(cuLibraryUnload(library));
    assert_eq!(cu!(cuLibraryGetKernel(&mut kernel, library, c"put".as_ptr())), CUresult::ERROR_INVALID_HANDLE);
    let _ = gpu;
}

/// An archive of one member with a long name, as `ar` writes it.
fn archive(member: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    let mut add = |name: &str, content: &[u8]| {
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, content.len()).into_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    };
    add("//", format!("{member}/\n").as_bytes());
    add("/0", content);
    bytes
}

#[test]
fn the_linker_has_the_functions_of_the_device_runtime_and_of_no_other_library() {
    let _gpu = gpu();
    let text = c"
        .version 8.0
        .target sm_80
        .address_size 64
        .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 scope);
        .visible .entry handle(.param .u64 to) {
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [to];
            { .param .b32 a; .param .b64 r; st.param.b32 [a], 1;
              call.uni (r), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd2, [r]; }
            st.global.u64 [%rd1], %rd2;
            ret;
        }";
    let mut state = CUlinkState::NULL;
    let (options, values) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(cuLinkCreate_v2(0, options, values, &mut state));
    let add = |kind, bytes: &[u8]| {
        let data = bytes.as_ptr().cast_mut().cast();
        cu!(cuLinkAddData_v2(state, kind, data, bytes.len(), c"x".as_ptr(), 0, options, values))
    };
    assert_eq!(add(CU_JIT_INPUT_PTX, text.to_bytes_with_nul()), CUresult::SUCCESS);
    assert_eq!(add(CU_JIT_INPUT_LIBRARY, &archive("cuda_device_runtime.o", b"odd")), CUresult::SUCCESS);
    for other in [archive("another_long_name.o", b"odd"), b"!<arch>\n".to_vec(), b"no archive".to_vec()] {
        assert_eq!(add(CU_JIT_INPUT_LIBRARY, &other), CUresult::ERROR_NOT_SUPPORTED);
    }
    let (mut image, mut size) = (std::ptr::null_mut(), 0);
    ok!(cuLinkComplete(state, &mut image, &mut size));
    let (mut module, mut f) = (CUmodule::NULL, CUfunction::NULL);
    ok!(cuModuleLoadData(&mut module, image));
    ok!(cuModuleGetFunction(&mut f, module, c"handle".as_ptr()));
    let mut to = alloc(8);
    let mut params = [(&raw mut to).cast()];
    // A launch that is not cooperative has no such group.
    ok!(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, params.as_mut_ptr(), std::ptr::null_mut()));
    assert_eq!(read(to, 2), [0, 0]);
    ok!(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, CUstream::NULL, params.as_mut_ptr()));
    assert_eq!(read(to, 2), [1, 0]);
    ok!(cuLinkDestroy(state));
}

#[test]
fn the_linker_takes_texts_that_define_different_names() {
    let _gpu = gpu();
    let mut state = CUlinkState::NULL;
    let (options, values) = (std::ptr::null_mut(), std::ptr::null_mut());
    ok!(cuLinkCreate_v2(0, options, values, &mut state));
    let add = || {
        let text = PTX.to_bytes_with_nul();
        let data = text.as_ptr().cast_mut().cast();
        ok!(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, data, text.len(), c"x".as_ptr(), 0, options, values));
    };
    add();
    let (mut image, mut size) = (std::ptr::null_mut(), 0);
    ok!(cuLinkComplete(state, &mut image, &mut size));
    let mut module = CUmodule::NULL;
    ok!(cuModuleLoadData(&mut module, image));
    let mut f = CUfunction::NULL;
    ok!(cuModuleGetFunction(&mut f, module, c"twice".as_ptr()));
    add();
    // The same text again: every name twice.
    assert_eq!(cu!(cuLinkComplete(state, &mut image, &mut size)), CUresult::ERROR_INVALID_PTX);
    ok!(cuLinkDestroy(state));
    assert_eq!(cu!(cuLinkDestroy(state)), CUresult::ERROR_INVALID_HANDLE);
    ok!(cuModuleUnload(module));
}
