//! Waits for values that memory holds already: each way of leaving them there, each condition and
//! width, and everything that may have changed them since.

use crate::support::{A, B, CONTEXT, H2D, PAGEABLE, Program, Shape, X, reads, writes};
use trace::{FreeKind, MemoryKind, Op, PoolId, Region, Space, StreamId, WaitCompare};

const N: u64 = 4096;
/// The memory with the flag, and where the flag is in it.
const ROOM: u64 = X + (1 << 30);
const FLAG: u64 = ROOM + 128;
const ELSEWHERE: u64 = X + (2 << 30);

/// How the value came to be there.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Fill { element: u8, rows: u32 },
    Copy,
    Write,
}

const WAYS: [Way; 8] = [
    Way::Fill { element: 1, rows: 1 },
    Way::Fill { element: 2, rows: 1 },
    Way::Fill { element: 4, rows: 1 },
    Way::Fill { element: 1, rows: 3 },
    Way::Fill { element: 2, rows: 3 },
    Way::Fill { element: 4, rows: 3 },
    Way::Copy,
    Way::Write,
];

/// What happens between that and the wait.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Since {
    Nothing,
    KernelReads,
    KernelElsewhere,
    KernelBeside,
    KernelBoundBeside,
    ScatterElsewhere,
    KernelWrites,
    KernelBound,
    KernelUnknown,
    KernelScatters,
    KernelWithoutCode,
    KernelFailed,
    CopyOver,
    FillOfUnknown,
    Opaque,
    Unchecked,
    FreedAndAllocated,
    WrittenBeside,
}

/// The flag is certainly what it was.
const UNTOUCHED: [Since; 6] = [
    Since::Nothing,
    Since::KernelReads,
    Since::KernelElsewhere,
    Since::KernelBeside,
    Since::KernelBoundBeside,
    Since::ScatterElsewhere,
];
const TOUCHED: [Since; 11] = [
    Since::KernelWrites,
    Since::KernelBound,
    Since::KernelUnknown,
    Since::KernelScatters,
    Since::KernelWithoutCode,
    Since::KernelFailed,
    Since::CopyOver,
    Since::FillOfUnknown,
    Since::Opaque,
    Since::Unchecked,
    Since::FreedAndAllocated,
];

#[derive(Clone, Copy, Debug)]
struct Awaited {
    compare: WaitCompare,
    value: u64,
    width: u8,
    /// What the other stream writes, so that the wait ends.
    writes: u64,
}

/// Every condition that memory full of `left` satisfies, or (`ends` is false) none that it does.
fn awaited(left: u64, ends: bool) -> Vec<Awaited> {
    let (ones, one) = (u64::MAX, 1);
    let list: &[(WaitCompare, u64, u64)] = match (ends, left) {
        (true, 0) => &[(WaitCompare::GreaterEqual, 0, 5), (WaitCompare::Equal, 0, 0), (WaitCompare::Nor, one, 0)],
        (true, _) => &[(WaitCompare::GreaterEqual, 1, 5), (WaitCompare::Equal, left, left), (WaitCompare::And, 1, 1)],
        (false, 0) => &[(WaitCompare::GreaterEqual, 1, 1), (WaitCompare::Equal, 1, 1), (WaitCompare::And, 2, 2)],
        (false, _) => &[(WaitCompare::Equal, 7, 7), (WaitCompare::Nor, ones & !left, 0)],
    };
    let of = |width| {
        list.iter().map(move |(compare, value, writes)| Awaited {
            compare: *compare,
            value: *value,
            width,
            writes: *writes,
        })
    };
    of(4).chain(of(8)).collect()
}

/// What memory holds after a fill with 0 or 1.
fn bytes(way: Way, value: u32) -> u64 {
    let once = match way {
        Way::Fill { element: 1, .. } => 0x0101_0101_0101_0101,
        Way::Fill { element: 2, .. } => 0x0001_0001_0001_0001,
        Way::Fill { .. } => 0x0000_0001_0000_0001,
        Way::Copy | Way::Write => 1,
    };
    once * u64::from(value)
}

fn leave(p: &mut Program, way: Way, value: u32, width: u8) {
    match way {
        Way::Fill { element, rows } => {
            let dst = if rows == 1 { Region::linear(ROOM, 256) } else { Region::pitched(ROOM, 16, rows, 64) };
            p.does("cudaMemsetAsync", Op::Set { stream: A, dst, asynchronous: true });
            p.does("cudaMemsetAsync", Op::Filled { dst, value, element });
        }
        Way::Copy => {
            let (dst, src) = (Region::linear(FLAG, 8), Region::linear(PAGEABLE, 8));
            let (dst_space, src_space) = H2D;
            let op = Op::Copy { stream: A, dst, src, dst_space, src_space, asynchronous: false, batch: 0 };
            p.does("cudaMemcpy", op);
            p.does("cudaMemcpy", Op::Contents { ptr: FLAG, bytes: &bytes(way, value).to_le_bytes() });
        }
        Way::Write => write(p, FLAG, bytes(way, value), width),
    }
}

fn write(p: &mut Program, address: u64, value: u64, width: u8) {
    p.does("cuStreamWriteValue32", Op::WriteValue { stream: A, address, value, width, barrier: true });
}

fn happen(p: &mut Program, since: Since, kind: MemoryKind) {
    let mut go = |pointer, does| p.go(A, pointer, &[does]);
    match since {
        Since::Nothing => {}
        Since::KernelReads => go(ROOM, reads(0, Shape::Exact(0, 256))),
        Since::KernelElsewhere => go(ELSEWHERE, writes(0, Shape::Exact(0, N))),
        Since::KernelBeside => go(ROOM, writes(0, Shape::Exact(136, 256))),
        Since::KernelBoundBeside => go(ROOM, writes(0, Shape::Bound(0, 128))),
        Since::ScatterElsewhere => go(ELSEWHERE, writes(0, Shape::Scattered)),
        Since::KernelWrites => go(ROOM, writes(0, Shape::Exact(128, 132))),
        Since::KernelBound => go(ROOM, writes(0, Shape::Bound(0, 256))),
        Since::KernelUnknown => go(ROOM, writes(0, Shape::Unknown)),
        Since::KernelScatters => go(ROOM, writes(0, Shape::Scattered)),
        Since::KernelFailed => go(ELSEWHERE, writes(0, Shape::Failed)),
        Since::KernelWithoutCode => {
            let kernel = p.define("closed");
            p.launch(A, kernel, &[ELSEWHERE]);
        }
        Since::CopyOver => p.copy(A, FLAG, ELSEWHERE, 8, (Space::Device, Space::Device)),
        Since::FillOfUnknown => p.set(A, FLAG, 8),
        Since::Opaque => p.does("cuSomething", Op::Opaque { stream: A }),
        Since::Unchecked => {
            p.does("streamsan_pause", Op::Checking { on: false });
            p.does("streamsan_resume", Op::Checking { on: true });
        }
        Since::FreedAndAllocated => {
            p.free(ROOM, FreeKind::Plain, StreamId::NONE);
            p.alloc(ROOM, 256, kind);
        }
        Since::WrittenBeside => write(p, FLAG + 4, 3, 4),
    }
}

/// Stream A leaves a value; the host waits. Stream A writes memory, then the value, and stream B
/// waits for the value and writes the same memory.
fn program(kind: MemoryKind, way: Way, value: u32, since: Since, awaited: Awaited) -> Program {
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(ELSEWHERE, N);
    p.alloc(ROOM, 256, kind);
    leave(&mut p, way, value, awaited.width);
    happen(&mut p, since, kind);
    p.sync(A);
    p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
    write(&mut p, FLAG, awaited.writes, awaited.width);
    let Awaited { compare, value, width, .. } = awaited;
    p.does("cuStreamWaitValue32", Op::WaitValue { stream: B, address: FLAG, value, width, compare });
    p.go(B, X, &[writes(0, Shape::Exact(0, N))]);
    p
}

#[test]
fn a_wait_that_memory_satisfies_already_is_no_order() {
    let (mut racy, mut silent) = (0, 0);
    for (way, value) in WAYS.iter().flat_map(|way| [(*way, 0), (*way, 1)]) {
        // What happens since has to do with one way as with another.
        for since in UNTOUCHED.into_iter().take(if way == WAYS[3] { UNTOUCHED.len() } else { 1 }) {
            let left = bytes(way, value);
            for of in awaited(left, true) {
                // 32 bits of a value of 64 are its lower ones.
                program(MemoryKind::Device, way, value, since, of).finds("write-after-write certain");
                racy += 1;
            }
            for of in awaited(left, false) {
                program(MemoryKind::Device, way, value, since, of).silent();
                silent += 1;
            }
        }
    }
    assert_eq!((racy, silent), (156, 130));
}

#[test]
fn what_may_have_been_overwritten_is_not_taken_for_certain() {
    let kinds = [MemoryKind::PinnedHost, MemoryKind::RegisteredHost, MemoryKind::Managed];
    let mut silent = 0;
    for (way, value) in WAYS[..7].iter().flat_map(|way| [(*way, 0), (*way, 1)]) {
        for of in awaited(bytes(way, value), true) {
            let beside = [Since::WrittenBeside].into_iter().filter(|_| of.width == 8);
            let on_device = TOUCHED.into_iter().chain(beside).map(|since| (MemoryKind::Device, since));
            // The host may have stored to the others.
            for (kind, since) in on_device.chain(kinds.map(|kind| (kind, Since::Nothing))) {
                let found = program(kind, way, value, since, of).verdict();
                assert!(found.is_empty(), "{way:?} {value} {kind:?} {since:?} {of:?}: {found:?}");
                silent += 1;
            }
        }
    }
    assert_eq!(silent, 1218);
}

/// A fill that is itself ordered before the wait by the stream that writes, and one that is not.
#[test]
fn a_fill_that_was_overwritten_before_the_wait_is_not_found() {
    let of = Awaited { compare: WaitCompare::Equal, value: 0, width: 4, writes: 0 };
    for overwritten in [false, true] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.malloc(ROOM, 256);
        leave(&mut p, WAYS[0], 0, 4);
        p.sync(A);
        // A turn of a ring of buffers: the producer marks it full, the consumer empty.
        if overwritten {
            write(&mut p, FLAG, 1, 4);
            p.order(A, B);
        }
        p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
        write(&mut p, FLAG, of.writes, of.width);
        let op = Op::WaitValue { stream: B, address: FLAG, value: 0, width: 4, compare: of.compare };
        p.does("cuStreamWaitValue32", op);
        p.go(B, X, &[writes(0, Shape::Exact(0, N))]);
        if overwritten { p.silent() } else { drop(p.finds("write-after-write certain")) }
    }
}

/// Traces of before values were recorded say as much as ever.
#[test]
fn without_values_a_wait_is_after_the_write() {
    for width in [4, 8] {
        let mut p = Program::new();
        p.malloc(X, N);
        p.malloc(ROOM, 256);
        p.set(A, ROOM, 256);
        p.sync(A);
        p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
        write(&mut p, FLAG, 0, width);
        let op = Op::WaitValue { stream: B, address: FLAG, value: 0, width, compare: WaitCompare::Equal };
        p.does("cuStreamWaitValue32", op);
        p.go(B, X, &[writes(0, Shape::Exact(0, N))]);
        p.silent();
    }
}

/// Memory of a pool, and blocks that an allocator carves out of memory.
#[test]
fn allocations_of_all_kinds_keep_values() {
    let of = Awaited { compare: WaitCompare::Equal, value: 0, width: 4, writes: 0 };
    for kind in [MemoryKind::Device, MemoryKind::Pool, MemoryKind::Mapped] {
        for block in [false, true] {
            let mut p = Program::new();
            p.malloc(X, N);
            let (context, pool) = (CONTEXT, PoolId(1));
            p.does("cudaMallocAsync", Op::Alloc { ptr: ROOM, size: 256, kind, context, stream: A, pool, flags: 0 });
            if block {
                p.alloc(ROOM + 64, 128, MemoryKind::Block);
            }
            leave(&mut p, WAYS[3], 0, 4);
            p.sync(A);
            p.go(A, X, &[writes(0, Shape::Exact(0, N))]);
            write(&mut p, FLAG, of.writes, of.width);
            let op = Op::WaitValue { stream: B, address: FLAG, value: 0, width: 4, compare: of.compare };
            p.does("cuStreamWaitValue32", op);
            p.go(B, X, &[writes(0, Shape::Exact(0, N))]);
            p.finds("write-after-write certain");
        }
    }
}
