//! Streams: waits, events, captures and graphs, stream memory operations, host functions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_sys::*;

use crate::support::*;

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
