//! The life of memory, each rule with a twin that must stay silent: from when on it exists, until
//! when it may be used, and that an address given out again is other memory.

use crate::support::*;
use trace::*;

const N: u64 = 4096;

fn whole() -> Shape {
    Shape::Exact(0, N)
}

#[test]
fn a_freed_and_reallocated_address_is_other_memory() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[writes(0, whole())]);
    p.free(X, FreeKind::Plain, StreamId(0));
    p.malloc(X, N);
    p.go(B, X, &[writes(0, whole())]);
    p.silent();
}

#[test]
fn a_plain_free_waits_for_the_device_but_a_free_in_stream_order_does_not() {
    let mut p = Program::new();
    p.malloc(X, N);
    p.go(A, X, &[reads(0, whole())]);
    p.free(X, FreeKind::Plain, StreamId(0));
    p.silent();

    let mut p = Program::new();
    p.malloc_async(X, N, A);
    p.order(A, B);
    p.go(B, X, &[reads(0, whole())]);
    p.free(X, FreeKind::Async, A);
    let f = p.finds("write-after-read certain");
    assert_eq!((f.access.call.as_str(), f.access.verb.name()), ("cudaFreeAsync", "frees"));

    let mut p = Program::new();
    p.malloc_async(X, N, A);
    p.order(A, B);
    p.go(B, X, &[reads(0, whole())]);
    p.order(B, A);
    p.free(X, FreeKind::Async, A);
    p.silent();
}

#[test]
fn memory_exists_only_once_its_stream_has_allocated_it() {
    for ordered in [false, true] {
        let mut p = Program::new();
        p.malloc_async(X, N, A);
        if ordered {
            p.order(A, B);
        }
        p.go(B, X, &[writes(0, whole())]);
        if ordered {
            p.silent();
        } else {
            let f = p.finds("write-after-write certain");
            assert_eq!(f.previous.verb.name(), "allocates");
        }
    }
}

#[test]
fn work_enqueued_after_an_unordered_free_races_with_it() {
    for ordered in [false, true] {
        let mut p = Program::new();
        p.malloc_async(X, N, A);
        p.order(A, B);
        p.free(X, FreeKind::Async, A);
        if ordered {
            p.order(A, B);
        }
        p.go(B, X, &[reads(0, whole())]);
        if ordered {
            p.silent();
        } else {
            let f = p.finds("read-after-write certain");
            assert_eq!(f.previous.verb.name(), "frees");
        }
    }
}

#[test]
fn pool_memory_reused_on_another_stream_is_silent() {
    let mut p = Program::new();
    p.malloc_async(X, N, A);
    p.go(A, X, &[writes(0, whole())]);
    p.free(X, FreeKind::Async, A);
    p.malloc_async(X, N, B);
    p.go(B, X, &[writes(0, whole())]);
    p.free(X, FreeKind::Async, B);
    p.silent();
}

#[test]
fn a_block_handed_out_again_while_in_use_is_a_race() {
    for recorded in [false, true] {
        let mut p = Program::new();
        p.malloc(X, 1 << 20);
        p.alloc(X + 512, N, MemoryKind::Block);
        p.order(LEGACY, A);
        p.go(A, X + 512, &[reads(0, whole())]);
        p.free(X + 512, FreeKind::Block, StreamId(0));
        if recorded {
            p.sync(A);
        }
        p.line(50).alloc(X + 512, N, MemoryKind::Block);
        p.go(LEGACY, X + 512, &[writes(0, whole())]);
        if recorded {
            p.silent();
        } else {
            let f = p.finds("write-after-read certain");
            assert_eq!(f.allocation.as_ref().unwrap().stack[0].line, Some(50));
            let old = f.previous_allocation.as_ref().unwrap();
            assert_eq!((old.size, old.freed.is_empty()), (N, false));
        }
    }
}

/// A graph that allocates, and does not free: launched again, it frees first
/// (`cudaGraphInstantiateFlagAutoFreeOnLaunch`), in stream order.
#[test]
fn a_graph_frees_what_its_last_launch_left() {
    for waits in [false, true] {
        for (reads_it, launches) in [(true, 2), (true, 1), (false, 2)] {
            let mut p = Program::new();
            let exec = GraphExecId(77);
            p.does("cudaGraphInstantiate", Op::GraphExec { exec, nodes: 1, flags: 1, handle: 0 });
            let (context, stream, pool) = (ContextId::NONE, StreamId::NONE, PoolId::NONE);
            let node = Op::Alloc { ptr: X, size: N, kind: MemoryKind::GraphNode, context, stream, pool, flags: 0 };
            let mut body = [0; 256];
            let mut to = Encoder::new(&mut body);
            node.encode(&mut to);
            let len = to.finish().expect("fits");
            let call = p.call("cudaMallocAsync");
            p.raw(Op::GraphNode {
                exec,
                index: 0,
                stack: StackId(5),
                call,
                enabled: true,
                dependencies: codec::List::new(&[]),
                tag: node.tag(),
                body: &body[..len],
            });
            for launch in 0..launches {
                p.does("cudaGraphLaunch", Op::GraphLaunch { stream: A, exec });
                if launch == 0 && reads_it {
                    p.order(A, B);
                    p.go(B, X, &[reads(0, whole())]);
                    if waits {
                        p.order(B, A);
                    }
                }
            }
            if reads_it && launches == 2 && !waits {
                p.finds("write-after-read certain");
            } else {
                p.silent();
            }
        }
    }
}
