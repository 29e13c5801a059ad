//! The simulated driver, called as a program calls it.
#![allow(clippy::macro_metavars_in_unsafe, reason = "in `cu!` and `ok!` the call is the argument")]

mod driver_support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_sys::*;
use driver_support::*;

/// Starts work that ends when the returned value is dropped or released. What a call waits for
/// shows by whether it returns.
struct Busy(&'static AtomicU32);

fn busy(gpu: &Gpu, stream: CUstream) -> Busy {
    let (at, words) = pinned(1);
    // SAFETY: four aligned bytes that live for ever.
    let flag = unsafe { &*(words.as_ptr() as *const AtomicU32) };
    flag.store(0, Ordering::SeqCst);
    gpu.spin(at, stream);
    Busy(flag)
}

impl Busy {
    fn end(&self) {
        self.0.store(1, Ordering::SeqCst);
    }
}

/// Whether the call returns while the stream is busy.
fn returns_at_once(gpu: &Gpu, busy_stream: CUstream, call: impl FnOnce() + Send) -> bool {
    let work = busy(gpu, busy_stream);
    let done = AtomicU32::new(0);
    let ctx = gpu.ctx;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ok!(cuCtxSetCurrent(ctx));
            call();
            done.store(1, Ordering::SeqCst);
        });
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(5));
            if done.load(Ordering::SeqCst) == 1 {
                break;
            }
        }
        let at_once = done.load(Ordering::SeqCst) == 1;
        work.end();
        at_once
    })
}

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
fn calls_wait_for_what_was_measured() {
    let gpu = gpu();
    let b = stream(0);
    let n = stream(CU_STREAM_NON_BLOCKING);
    let own = stream(CU_STREAM_NON_BLOCKING);
    let d = alloc(4096);
    let (h, _) = pinned(64);
    let mut host = vec![0u32; 64];
    let page = host.as_mut_ptr() as u64;

    // (what, waits for b, waits for n)
    type Call = Box<dyn Fn() + Send + Sync>;
    let calls: Vec<(&str, bool, bool, Call)> = vec![
        ("cuMemFree", true, true, Box::new(|| ok!(cuMemFree_v2(alloc(64))))),
        ("cuMemFreeHost", true, true, Box::new(|| ok!(cuMemFreeHost(pinned(1).0 as *mut _)))),
        ("cuCtxSetLimit(stack)", true, true, Box::new(|| ok!(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)))),
        ("cuCtxSynchronize", true, true, Box::new(|| ok!(cuCtxSynchronize()))),
        ("cuMemcpyHtoD pinned", true, false, Box::new(move || ok!(cuMemcpyHtoD_v2(d, h as *const _, 256)))),
        ("cuMemcpyHtoD pageable", true, false, Box::new(move || ok!(cuMemcpyHtoD_v2(d, page as *const _, 256)))),
        ("cuMemcpyDtoH pinned", true, false, Box::new(move || ok!(cuMemcpyDtoH_v2(h as *mut _, d, 256)))),
        ("cuMemcpyDtoH pageable", true, false, Box::new(move || ok!(cuMemcpyDtoH_v2(page as *mut _, d, 256)))),
        ("cuMemsetD8 on pinned", true, false, Box::new(move || ok!(cuMemsetD8_v2(h, 1, 256)))),
        ("cuStreamSynchronize(0)", true, false, Box::new(|| ok!(cuStreamSynchronize(CUstream::NULL)))),
        ("cuMemAlloc", false, false, Box::new(|| assert_ne!(alloc(64), 0))),
        ("cuMemHostAlloc", false, false, Box::new(|| assert_ne!(pinned(1).0, 0))),
        ("cuMemsetD8 on device", false, false, Box::new(move || ok!(cuMemsetD8_v2(d, 1, 256)))),
        ("cuMemcpyDtoD", false, false, Box::new(move || ok!(cuMemcpyDtoD_v2(d, d + 1024, 256)))),
        (
            "cuMemcpyHtoDAsync pageable",
            false,
            false,
            Box::new(move || {
                ok!(cuMemcpyHtoDAsync_v2(d, page as *const _, 256, own));
            }),
        ),
        (
            "cuMemAllocAsync and cuMemFree",
            false,
            false,
            Box::new(move || {
                let mut at = 0;
                ok!(cuMemAllocAsync(&mut at, 256, own));
                ok!(cuMemFree_v2(at));
            }),
        ),
        ("cuStreamDestroy", false, false, Box::new(|| ok!(cuStreamDestroy_v2(stream(0))))),
    ];
    for (what, for_b, for_n, call) in &calls {
        assert_eq!(returns_at_once(&gpu, b, call), !for_b, "{what} behind a blocking stream");
        ok!(cuCtxSynchronize());
        assert_eq!(returns_at_once(&gpu, n, call), !for_n, "{what} behind a non-blocking stream");
        ok!(cuCtxSynchronize());
    }
    // Its own stream only.
    let behind_own: Vec<(&str, bool, Call)> = vec![
        ("cuMemcpyDtoHAsync pageable", true, Box::new(move || ok!(cuMemcpyDtoHAsync_v2(page as *mut _, d, 256, own)))),
        ("cuMemcpyAsync host to host", true, Box::new(move || ok!(cuMemcpyAsync(h, page, 256, own)))),
        ("cuMemcpyDtoHAsync pinned", false, Box::new(move || ok!(cuMemcpyDtoHAsync_v2(h as *mut _, d, 256, own)))),
        (
            "cuMemcpyHtoDAsync pageable",
            false,
            Box::new(move || {
                ok!(cuMemcpyHtoDAsync_v2(d, page as *const _, 256, own));
            }),
        ),
        ("cuMemsetD8Async", false, Box::new(move || ok!(cuMemsetD8Async(h, 1, 256, own)))),
    ];
    for (what, waits, call) in &behind_own {
        assert_eq!(returns_at_once(&gpu, own, call), !waits, "{what} behind its own stream");
        ok!(cuCtxSynchronize());
        assert!(returns_at_once(&gpu, n, call), "{what} behind another stream");
        ok!(cuCtxSynchronize());
    }
}

#[test]
fn a_staged_copy_reads_its_source_during_the_call() {
    let gpu = gpu();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let d = alloc(256);
    let work = busy(&gpu, s);
    let mut source = vec![1u32; 64];
    ok!(cuMemcpyHtoDAsync_v2(d, source.as_ptr().cast(), 256, s));
    source.fill(2);
    let (h, pinned_source) = pinned(64);
    pinned_source.fill(1);
    let e = alloc(256);
    ok!(cuMemcpyHtoDAsync_v2(e, h as *const _, 256, s));
    pinned_source.fill(2);
    work.end();
    ok!(cuStreamSynchronize(s));
    assert_eq!(read(d, 64), [1; 64]);
    assert_eq!(read(e, 64), [2; 64], "a pinned source is read when the copy runs");
}

#[test]
fn events_are_snapshots() {
    let gpu = gpu();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let mut event = CUevent::NULL;
    ok!(cuEventCreate(&mut event, 0));
    assert_eq!(cu!(cuEventQuery(event)), CUresult::SUCCESS, "never recorded counts as done");
    ok!(cuEventRecord(event, a));
    let first = busy(&gpu, a);
    ok!(cuStreamWaitEvent(b, event, 0));
    ok!(cuStreamSynchronize(b));
    ok!(cuEventRecord(event, a));
    assert_eq!(cu!(cuEventQuery(event)), CUresult::ERROR_NOT_READY);
    assert_eq!(cu!(cuStreamQuery(a)), CUresult::ERROR_NOT_READY);
    first.end();
    ok!(cuEventSynchronize(event));
    let mut end = CUevent::NULL;
    ok!(cuEventCreate(&mut end, 0));
    gpu.put(alloc(256), 1, a);
    ok!(cuEventRecord(end, a));
    ok!(cuEventSynchronize(end));
    let mut ms = -1.0;
    ok!(cuEventElapsedTime_v2(&mut ms, event, end));
    assert!(ms >= 0.0);
    ok!(cuEventDestroy_v2(event));
    assert_eq!(cu!(cuEventQuery(event)), CUresult::ERROR_INVALID_HANDLE);
}

#[test]
fn the_host_cannot_touch_device_memory() {
    let gpu = gpu();
    let d = alloc(256);
    // SAFETY: the child only reads one byte and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: this must fault; if it does not, the exit status says so.
        unsafe {
            std::ptr::read_volatile(d as *const u8);
            libc::_exit(0);
        }
    }
    let mut status = 0;
    // SAFETY: a child of ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
    gpu.put(d, 3, CUstream::NULL);
    assert_eq!(read(d, 64), [3; 64], "while kernels and copies can");
}

#[test]
fn copies_and_kernels_reach_memory_that_the_cpu_may_not_touch() {
    let gpu = gpu();
    let d = alloc(1 << 16);
    // Small allocations share pages, as real ones do: take enough to have whole pages of its own.
    let (h, words) = pinned(1 << 15);
    let skip = (h.next_multiple_of(4096) - h) as usize;
    let (h, words) = (h + skip as u64, &mut words[skip / 4..]);
    words[0] = 5;
    let protect = |at: u64, prot| {
        // SAFETY: whole pages of the test's own memory.
        assert_eq!(unsafe { libc::mprotect(at as *mut _, 1 << 16, prot) }, 0);
    };
    protect(h, libc::PROT_NONE);
    ok!(cuMemcpyHtoDAsync_v2(d, h as *const _, 1 << 16, CUstream::NULL));
    gpu.twice(h, h + 4096, CUstream::NULL);
    ok!(cuCtxSynchronize());
    protect(h, libc::PROT_READ | libc::PROT_WRITE);
    assert_eq!((read(d, 1)[0], words[1024]), (5, 10));

    // SAFETY: a fresh private mapping.
    let own =
        unsafe { libc::mmap(std::ptr::null_mut(), 1 << 16, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) } as u64;
    ok!(cuMemHostRegister_v2(own as *mut _, 1 << 16, 0));
    protect(own, libc::PROT_NONE);
    ok!(cuMemcpyDtoHAsync_v2(own as *mut _, d, 1 << 16, CUstream::NULL));
    ok!(cuCtxSynchronize());
    protect(own, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: mapped just above.
    assert_eq!(unsafe { *(own as *const u32) }, 5);
    ok!(cuMemHostUnregister(own as *mut _));
    assert_eq!(cu!(cuMemHostUnregister(own as *mut _)), CUresult::ERROR_HOST_MEMORY_NOT_REGISTERED);
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
fn pool_memory_comes_back_in_stream_order() {
    let gpu = gpu();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let mut pool = CUmemoryPool::NULL;
    let props = CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
        location: CUmemLocation { type_: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
        ..CUmemPoolProps::zeroed()
    };
    ok!(cuMemPoolCreate(&mut pool, &props));
    let take = |stream| {
        let mut at = 0;
        ok!(cuMemAllocFromPoolAsync(&mut at, 256, pool, stream));
        at
    };
    let work = busy(&gpu, a);
    let first = take(a);
    ok!(cuMemFreeAsync(first, a));
    let second = take(a);
    assert_eq!(first, second, "the same stream may have it back at once");
    ok!(cuMemFreeAsync(second, a));

    let mut off: i32 = 0;
    let set = |attr, value: &mut i32| ok!(cuMemPoolSetAttribute(pool, attr, (value as *mut i32).cast()));
    set(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &mut off);
    let other = take(b);
    assert_ne!(other, first, "another stream may not, before the free has happened");
    ok!(cuStreamSynchronize(b));
    let mut event = CUevent::NULL;
    ok!(cuEventCreate(&mut event, 0));
    ok!(cuEventRecord(event, a));
    ok!(cuStreamWaitEvent(b, event, 0));
    let ordered = take(b);
    assert_eq!(ordered, first, "an event orders the free before the allocation");
    ok!(cuMemFreeAsync(ordered, b));
    ok!(cuMemFreeAsync(other, b));
    work.end();
    ok!(cuCtxSynchronize());
    ok!(cuMemPoolDestroy(pool));
}

#[test]
fn freed_addresses_are_reused_and_mapped_memory_has_two_addresses() {
    let gpu = gpu();
    let mut handle = 0;
    let prop = CUmemAllocationProp {
        type_: CU_MEM_ALLOCATION_TYPE_PINNED,
        location: CUmemLocation { type_: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
        ..CUmemAllocationProp::zeroed()
    };
    let size = 2 << 20;
    ok!(cuMemCreate(&mut handle, size, &prop, 0));
    let mut va = 0;
    ok!(cuMemAddressReserve(&mut va, 2 * size, 0, 0, 0));
    let access = CUmemAccessDesc { location: prop.location, flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    for n in 0..2 {
        ok!(cuMemMap(va + (n * size) as u64, size, 0, handle, 0));
    }
    assert_ne!(cu!(cuMemMap(va, size, 0, handle, 0)), CUresult::SUCCESS, "already mapped");
    ok!(cuMemSetAccess(va, 2 * size, &access, 1));
    gpu.put(va, 9, CUstream::NULL);
    assert_eq!(read(va + size as u64, 64), [9; 64]);
    ok!(cuMemUnmap(va, 2 * size));
    ok!(cuMemRelease(handle));
    ok!(cuMemAddressFree(va, 2 * size));
    assert_ne!(cu!(cuMemAddressFree(va, 2 * size)), CUresult::SUCCESS);
}

#[test]
fn graphs_run_what_was_captured() {
    let gpu = gpu();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let (x, y) = (alloc(256), alloc(256));
    let mut event = CUevent::NULL;
    ok!(cuEventCreate(&mut event, CU_EVENT_DISABLE_TIMING));
    ok!(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    gpu.put(x, 4, a);
    ok!(cuEventRecord(event, a));
    ok!(cuStreamWaitEvent(b, event, 0));
    gpu.twice(x, y, b);
    ok!(cuEventRecord(event, b));
    ok!(cuStreamWaitEvent(a, event, 0));
    let mut graph = CUgraph::NULL;
    ok!(cuStreamEndCapture(a, &mut graph));
    let mut count = 0;
    ok!(cuGraphGetNodes(graph, std::ptr::null_mut(), &mut count));
    assert_eq!(count, 2);
    assert_eq!(read(y, 1), [0], "captured work does not run");
    let mut exec = CUgraphExec::NULL;
    ok!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    ok!(cuGraphDestroy(graph));
    for _ in 0..3 {
        ok!(cuMemsetD8Async(x, 0, 256, a));
        ok!(cuGraphLaunch(exec, a));
    }
    ok!(cuStreamSynchronize(a));
    assert_eq!(read(y, 64), [8; 64]);
    ok!(cuGraphExecDestroy(exec));
}

#[test]
fn a_capture_that_is_not_joined_fails_and_forbidden_calls_break_it() {
    let gpu = gpu();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let x = alloc(256);
    let mut event = CUevent::NULL;
    ok!(cuEventCreate(&mut event, 0));
    ok!(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok!(cuEventRecord(event, a));
    ok!(cuStreamWaitEvent(b, event, 0));
    gpu.put(x, 1, b);
    let mut graph = CUgraph::NULL;
    assert_eq!(cu!(cuStreamEndCapture(a, &mut graph)), CUresult::ERROR_STREAM_CAPTURE_UNJOINED);
    assert!(graph.is_null());

    ok!(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_eq!(cu!(cuStreamSynchronize(a)), CUresult::ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(cu!(cuStreamEndCapture(a, &mut graph)), CUresult::ERROR_STREAM_CAPTURE_INVALIDATED);
    gpu.put(x, 2, a);
    ok!(cuStreamSynchronize(a));
    assert_eq!(read(x, 64), [2; 64], "the stream works again");
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
    assert_eq!(cu!(cuGreenCtxDestroy(CUgreenCtx::NULL)), CUresult::ERROR_NOT_SUPPORTED);
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
fn stream_memory_operations_order_streams() {
    let gpu = gpu();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let (x, y, flag) = (alloc(256), alloc(256), alloc(8));
    ok!(cuMemsetD32_v2(flag, 0, 2));
    ok!(cuCtxSynchronize());
    ok!(cuStreamWaitValue32_v2(b, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
    gpu.twice(x, y, b);
    gpu.put(x, 5, a);
    assert_eq!(cu!(cuStreamQuery(b)), CUresult::ERROR_NOT_READY);
    ok!(cuStreamWriteValue32_v2(a, flag, 4, 0));
    ok!(cuStreamSynchronize(b));
    assert_eq!(read(y, 64), [10; 64]);
    assert_eq!(cu!(cuStreamWriteValue32_v2(a, flag + 1, 4, 0)), CUresult::ERROR_INVALID_VALUE);
}

#[test]
fn host_functions_run_in_stream_order_and_may_not_call_back() {
    extern "C" fn note(data: *mut c_void) {
        let mut at = 0;
        let refused = cu!(cuMemAlloc_v2(&mut at, 8)) == CUresult::ERROR_NOT_PERMITTED;
        // SAFETY: the test's own counter.
        let counter = unsafe { &*(data as *const AtomicU32) };
        counter.fetch_add(if refused { 1 } else { 100 }, Ordering::SeqCst);
    }
    let gpu = gpu();
    let s = stream(0);
    let counter = AtomicU32::new(0);
    let data = (&raw const counter).cast_mut().cast();
    let work = busy(&gpu, s);
    ok!(cuLaunchHostFunc(s, Some(note), data));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(counter.load(Ordering::SeqCst), 0);
    work.end();
    ok!(cuStreamSynchronize(s));
    assert_eq!(counter.load(Ordering::SeqCst), 1);
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

#[test]
fn batches_copy_everything_and_read_some_sources_at_once() {
    let gpu = gpu();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (x, y) = (alloc(256), alloc(256));
    let (h, words) = pinned(128);
    words.fill(1);
    let work = busy(&gpu, s);
    let mut dsts = [x, y];
    let mut srcs = [h, h + 256];
    let mut sizes = [256, 256];
    let attr = |order| CUmemcpyAttributes { srcAccessOrder: order, ..CUmemcpyAttributes::zeroed() };
    let mut attrs = [attr(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM), attr(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)];
    let mut firsts = [0, 1];
    let call = |dsts: &mut [u64; 2], srcs: &mut [u64; 2], attrs: &mut [CUmemcpyAttributes; 2], stream| {
        let (dsts, srcs) = (dsts.as_mut_ptr(), srcs.as_mut_ptr());
        let (sizes, firsts) = (sizes.as_mut_ptr(), firsts.as_mut_ptr());
        cu!(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, attrs.as_mut_ptr(), firsts, 2, stream))
    };
    let mut call = call;
    assert_eq!(call(&mut dsts, &mut srcs, &mut attrs, s), CUresult::SUCCESS);
    assert_eq!(call(&mut dsts, &mut srcs, &mut attrs, CUstream::NULL), CUresult::ERROR_INVALID_VALUE);
    words.fill(2);
    work.end();
    ok!(cuStreamSynchronize(s));
    assert_eq!((read(x, 64), read(y, 64)), (vec![2; 64], vec![1; 64]));
}
