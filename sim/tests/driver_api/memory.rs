//! Memory: copies, pools, virtual memory, and what the host can touch.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::*;

use crate::support::*;

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

/// Measured on an H200: the call waits for its stream, and then reads.
#[test]
fn a_batch_reads_a_pageable_source_behind_the_work_of_its_stream() {
    struct Source {
        may_fill: AtomicBool,
        words: UnsafeCell<[u32; 64]>,
    }
    extern "C" fn fill(source: *mut c_void) {
        // SAFETY: the test's own, which waits for this.
        let source = unsafe { &*source.cast::<Source>() };
        while !source.may_fill.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // SAFETY: nobody else writes, and the copy that may read meanwhile is over or behind this.
        unsafe { (*source.words.get()).fill(5) };
    }
    let _gpu = gpu();
    let s = stream(CU_STREAM_NON_BLOCKING);
    for order in [CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL] {
        let to = alloc(256);
        let in_order = order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        let source = Box::new(Source { may_fill: AtomicBool::new(in_order), words: UnsafeCell::new([1; 64]) });
        ok!(cuLaunchHostFunc(s, Some(fill), (&raw const *source).cast_mut().cast()));
        let (mut dsts, mut srcs, mut sizes, mut firsts) = ([to], [source.words.get() as u64], [256], [0]);
        let mut attrs = [CUmemcpyAttributes { srcAccessOrder: order, ..CUmemcpyAttributes::zeroed() }];
        let (dsts, srcs) = (dsts.as_mut_ptr(), srcs.as_mut_ptr());
        let (sizes, firsts) = (sizes.as_mut_ptr(), firsts.as_mut_ptr());
        ok!(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 1, attrs.as_mut_ptr(), firsts, 1, s));
        source.may_fill.store(true, Ordering::Release);
        ok!(cuStreamSynchronize(s));
        assert_eq!(read(to, 64), [if in_order { 5 } else { 1 }; 64], "{order:?}");
    }
}

/// Measured on an H200, driver 580: which bytes each attribute of an address writes. A boolean one
/// is an `int`.
#[test]
fn attributes_of_addresses_are_as_wide_as_a_driver_writes_them() {
    let _gpu = gpu();
    let device = alloc(256);
    let mut pinned = std::ptr::null_mut();
    ok!(cuMemHostAlloc(&raw mut pinned, 256, 0));
    let wide = [
        (CU_POINTER_ATTRIBUTE_CONTEXT, 8),
        (CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4),
        (CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8),
        (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4),
        (CU_POINTER_ATTRIBUTE_BUFFER_ID, 8),
        (CU_POINTER_ATTRIBUTE_IS_MANAGED, 4),
        (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4),
        (CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4),
        (CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8),
        (CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8),
        (CU_POINTER_ATTRIBUTE_MAPPED, 4),
        (CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8),
        (CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4),
        (CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4),
        (CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8),
        (CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4),
    ];
    let written = |ask: &dyn Fn(*mut c_void)| {
        let answers = [0xaa_u8, 0x55].map(|fill| {
            let mut bytes = [fill; 16];
            ask(bytes.as_mut_ptr().cast());
            bytes
        });
        (0..16).rev().find(|&at| answers[0][at] == answers[1][at]).map_or(0, |last| last + 1)
    };
    for (attribute, width) in wide {
        for address in [device, pinned as u64] {
            let one = written(&|to| ok!(cuPointerGetAttribute(to, attribute, address)));
            let many = written(&|mut to| {
                let mut attributes = [attribute];
                ok!(cuPointerGetAttributes(1, attributes.as_mut_ptr(), &raw mut to, address));
            });
            assert_eq!((one, many), (width, width), "{attribute:?} of {address:#x}");
        }
    }
}

/// A graph that allocates `words` words and fills them, and the address.
fn allocating(words: usize) -> (CUgraph, CUgraphNode, u64) {
    let (mut graph, mut node, mut set) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    ok!(cuGraphCreate(&mut graph, 0));
    let mut alloc = CUDA_MEM_ALLOC_NODE_PARAMS::zeroed();
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location = CUmemLocation { type_: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    alloc.bytesize = words * 4;
    ok!(cuGraphAddMemAllocNode(&mut node, graph, std::ptr::null(), 0, &mut alloc));
    let fill = CUDA_MEMSET_NODE_PARAMS { dst: alloc.dptr, pitch: 0, value: 7, elementSize: 4, width: words, height: 1 };
    ok!(cuGraphAddMemsetNode(&mut set, graph, &node, 1, &fill, CUcontext::NULL));
    (graph, node, alloc.dptr)
}

#[test]
fn memory_of_a_graph_is_launched_again_when_it_was_freed() {
    let _gpu = gpu();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (graph, _, at) = allocating(64);
    let mut exec = CUgraphExec::NULL;
    ok!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    for round in 0..6 {
        ok!(cuGraphLaunch(exec, s));
        assert_eq!(cu!(cuGraphLaunch(exec, s)), CUresult::ERROR_INVALID_VALUE, "not freed yet");
        ok!(cuStreamSynchronize(s));
        assert_eq!(read(at, 64), [7; 64]);
        if round % 2 == 0 {
            ok!(cuMemFreeAsync(at, s));
        } else {
            ok!(cuMemFree_v2(at));
        }
        assert_eq!(cu!(cuMemFree_v2(at)), CUresult::ERROR_INVALID_VALUE, "freed already");
    }
    ok!(cuGraphExecDestroy(exec));
    // Another graph may free it.
    let (mut other, mut freed, mut frees) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphExec::NULL);
    ok!(cuGraphCreate(&mut other, 0));
    ok!(cuGraphAddMemFreeNode(&mut freed, other, std::ptr::null(), 0, at));
    ok!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    ok!(cuGraphInstantiateWithFlags(&mut frees, other, 0));
    for _ in 0..3 {
        assert_eq!(cu!(cuGraphLaunch(frees, s)), CUresult::ERROR_INVALID_VALUE, "nothing to free");
        ok!(cuGraphLaunch(exec, s));
        ok!(cuGraphLaunch(frees, s));
    }
    ok!(cuStreamSynchronize(s));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphExecDestroy(frees));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphDestroy(other));

    // Graphs that end leave nothing behind: sixteen times as much as the device has.
    for _ in 0..32 {
        let (graph, node, at) = allocating(1 << 30);
        let mut freed = CUgraphNode::NULL;
        ok!(cuGraphAddMemFreeNode(&mut freed, graph, &node, 1, at));
        ok!(cuGraphDestroy(graph));
    }
    for _ in 0..4 {
        let (graph, _, at) = allocating(1 << 10);
        let mut exec = CUgraphExec::NULL;
        ok!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        ok!(cuGraphLaunch(exec, s));
        ok!(cuStreamSynchronize(s));
        ok!(cuGraphExecDestroy(exec));
        ok!(cuGraphDestroy(graph));
        // It lives on until it is freed.
        assert_eq!(read(at, 1 << 10), [7; 1 << 10]);
        ok!(cuMemFree_v2(at));
    }
    let (_, _, at) = allocating(1 << 10);
    let mut used = 9u64;
    ok!(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, (&raw mut used).cast()));
    assert_eq!(used, 0, "what is gone is there for others, at 0x{at:x}");
}

/// As measured on an H200, driver 580.159 (`tests/gpu/programs/batch_sources.h200.txt`).
#[test]
fn large_allocations_lie_at_the_start_of_a_step_and_small_ones_share() {
    const STEP: u64 = 2 << 20;
    let _gpu = gpu();
    let sizes = [1, 512, 4096, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20, 3 << 20, 22 << 20];
    for small in [1, 3072, 1 << 20] {
        for size in sizes {
            let before = alloc(small);
            let at = alloc(size);
            let behind = alloc(small);
            let align = if size > 1 << 20 { STEP } else { 512 };
            assert_eq!(at % align, 0, "{size} bytes behind {small}");
            if size > 1 << 20 {
                // It takes whole steps: nothing else lies in its last one.
                let end = (at + size as u64).next_multiple_of(STEP);
                for other in [before, behind] {
                    assert!(other + small as u64 <= at || other >= end, "{size} bytes beside {small}");
                }
            }
            for at in [before, at, behind] {
                ok!(cuMemFree_v2(at));
            }
        }
    }
    // What was freed is free for allocations of every size.
    let (free, total) = info();
    let mut kept = Vec::new();
    for round in 0..64 {
        let size = sizes[round % sizes.len()];
        kept.push(alloc(size));
        if round % 3 == 2 {
            ok!(cuMemFree_v2(kept.swap_remove(round / 3)));
        }
    }
    for at in kept {
        ok!(cuMemFree_v2(at));
    }
    assert_eq!(info(), (free, total));
}

/// Free and total bytes of the device.
fn info() -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(&mut free, &mut total));
    (free, total)
}

#[test]
fn copies_with_numbers_that_lead_out_of_any_memory_are_refused() {
    let gpu = gpu();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (from, to) = (alloc(512), alloc(512));
    let mut array = CUarray::NULL;
    let shape = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 64,
        Height: 4,
        Depth: 2,
        Format: CU_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: 1,
        Flags: 0,
    };
    ok!(cuArray3DCreate_v2(&mut array, &shape));
    type Field = fn(&mut CUDA_MEMCPY3D) -> &mut usize;
    // Of arrays, pitch and height are not looked at.
    let fields: [(Field, bool); 13] = [
        (|copy| &mut copy.srcXInBytes, true),
        (|copy| &mut copy.srcY, true),
        (|copy| &mut copy.srcZ, true),
        (|copy| &mut copy.srcPitch, false),
        (|copy| &mut copy.srcHeight, false),
        (|copy| &mut copy.dstXInBytes, true),
        (|copy| &mut copy.dstY, true),
        (|copy| &mut copy.dstZ, true),
        (|copy| &mut copy.dstPitch, false),
        (|copy| &mut copy.dstHeight, false),
        (|copy| &mut copy.WidthInBytes, true),
        (|copy| &mut copy.Height, true),
        (|copy| &mut copy.Depth, true),
    ];
    for kinds in [0, 1, 2, 3] {
        let kind = |is_array: bool| if is_array { CU_MEMORYTYPE_ARRAY } else { CU_MEMORYTYPE_DEVICE };
        let plain = CUDA_MEMCPY3D {
            srcMemoryType: kind(kinds & 1 != 0),
            srcDevice: from,
            srcArray: array,
            srcPitch: 64,
            srcHeight: 4,
            dstMemoryType: kind(kinds & 2 != 0),
            dstDevice: to,
            dstArray: array,
            dstPitch: 64,
            dstHeight: 4,
            WidthInBytes: 64,
            Height: 4,
            Depth: 2,
            ..CUDA_MEMCPY3D::zeroed()
        };
        ok!(cuMemcpy3DAsync_v2(&plain, s));
        for (at, (field, always)) in fields.iter().enumerate() {
            for number in [usize::MAX, usize::MAX / 3, 1 << 63, 1 << 57, usize::MAX - 63] {
                let mut copy = plain;
                *field(&mut copy) = number;
                let answer = cu!(cuMemcpy3DAsync_v2(&copy, s));
                let is_used = *always || kinds & (if at < 5 { 1 } else { 2 }) == 0;
                assert_eq!(answer == CUresult::ERROR_INVALID_VALUE, is_used, "{kinds} {at} {number:x}: {answer:?}");
            }
        }
    }
    ok!(cuStreamSynchronize(s));
    drop(gpu);
}
