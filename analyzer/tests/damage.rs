//! The analysis does not panic, whatever a trace holds: damaged, foreign and hostile records.

use crate::support::*;
use proptest::prelude::*;
use report::format::{json, text};
use settings::Judging;
use trace::codec::{List, Text};
use trace::*;

/// Numbers that break arithmetic: limits, near misses, and a few ordinary addresses that overlap.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0_u64..16).prop_map(|n| X + n * 512),
        1 => (0_u64..4).prop_map(|n| u64::MAX - n),
        1 => 0_u64..4,
        1 => any::<u64>(),
        1 => Just(1 << 63),
    ]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0_u32..6, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

fn region() -> impl Strategy<Value = Region> {
    (number(), number(), small(), small(), number(), number(), 0_u32..3).prop_map(
        |(start, width, height, depth, pitch, slice_pitch, array)| Region {
            start,
            width,
            height,
            depth,
            pitch,
            slice_pitch,
            array: ArrayId(array.saturating_sub(1)),
        },
    )
}

/// One op as its encoding, so that the strategies need not hold borrowed data.
fn op() -> impl Strategy<Value = Vec<u8>> {
    let kinds = (0_u8..10, 0_u8..7, 0_u8..4, any::<bool>());
    (
        0_u32..22,
        small(),
        small(),
        number(),
        number(),
        region(),
        region(),
        kinds,
        proptest::collection::vec(any::<u8>(), 0..64),
    )
        .prop_map(|(which, a, b, p, q, r1, r2, (k10, k7, k4, flag), bytes)| {
            let stream = StreamId(a % 8);
            let event = EventId(b);
            let exec = GraphExecId(b % 3);
            let context = ContextId(a % 3);
            let slots: Vec<ParamSlot> =
                bytes.iter().map(|n| ParamSlot { offset: u32::from(*n) << 24, size: a }).collect();
            let edges: Vec<Dependency> =
                bytes.iter().map(|n| Dependency { from: u32::from(n % 9), port: b % 4 }).collect();
            let space = [Space::Unified, Space::Host, Space::Device, Space::Array][k4 as usize];
            let memory = [
                MemoryKind::Device,
                MemoryKind::Managed,
                MemoryKind::PinnedHost,
                MemoryKind::RegisteredHost,
                MemoryKind::Pool,
                MemoryKind::Mapped,
                MemoryKind::ModuleGlobal,
                MemoryKind::Imported,
                MemoryKind::GraphNode,
                MemoryKind::Block,
            ][k10 as usize];
            let free = [
                FreeKind::Plain,
                FreeKind::Host,
                FreeKind::Unregister,
                FreeKind::Async,
                FreeKind::Unmap,
                FreeKind::Imported,
                FreeKind::Block,
            ][k7 as usize];
            let kind =
                [StreamKind::Blocking, StreamKind::NonBlocking, StreamKind::Legacy, StreamKind::PerThread][k4 as usize];
            let mode = EventMode::Plain;
            let words: Vec<u8> = [p, q].iter().flat_map(|w| w.to_le_bytes()).chain(bytes.iter().copied()).collect();
            let op = match which {
                0 => Op::Alloc { ptr: p, size: q, kind: memory, context, stream, pool: PoolId(1), flags: 0 },
                1 => Op::Alloc { ptr: p, size: 1024, kind: memory, context, stream, pool: PoolId(1), flags: 0 },
                2 => Op::Free { ptr: p, kind: free, stream },
                3 => Op::Alias { ptr: p, target: q, size: u64::from(a) << 8 },
                4 => Op::Alias { ptr: p, target: r1.start, size: q },
                5 => Op::ArrayCreate { array: ArrayId(a % 3), handle: 1, size: q },
                6 => Op::ArrayDestroy { array: ArrayId(a % 3) },
                7 => Op::ObjectCreate { object: p, region: r1, writable: flag },
                8 => Op::Copy {
                    stream,
                    dst: r1,
                    src: r2,
                    dst_space: space,
                    src_space: space,
                    asynchronous: flag,
                    batch: b % 3,
                },
                9 => Op::Set { stream, dst: r1, asynchronous: flag },
                10 | 11 => Op::Launch {
                    stream,
                    kernel: KernelId(b % 4),
                    shape: LaunchShape {
                        grid: [a, b, 1],
                        block: [b, a, 7],
                        cluster: [0; 3],
                        shared: a,
                        flags: u32::from(k10),
                    },
                    params: &words,
                },
                12 => Op::WriteValue { stream, address: p, value: q, width: k10, barrier: flag },
                13 => Op::Prefetch { stream, region: r1, discard: flag },
                14 => Op::GraphExec { exec, nodes: b, flags: 0, handle: 0 },
                15 => Op::GraphNode {
                    exec,
                    index: a,
                    stack: StackId(b),
                    call: CallId(1),
                    enabled: flag,
                    dependencies: List::new(&edges),
                    tag: [64, 65, 96, 97, 98, 133][usize::from(k4) + usize::from(flag)],
                    body: &words,
                },
                16 => Op::GraphLaunch { stream, exec },
                17 => Op::StreamCreate { stream, context, kind, priority: 0, handle: 0 },
                18 => Op::StreamDestroy { stream },
                19 => Op::EventRecord { event, stream, mode },
                20 => Op::StreamWait { stream, event, mode },
                _ => Op::Kernel {
                    id: KernelId(b % 4),
                    name: Text(&bytes),
                    image: ImageId(a % 2),
                    params: List::new(&slots),
                    handle: 0,
                },
            };
            let mut buffer = vec![0; 4096];
            let origin = Origin { call: CallId(1), thread: ThreadId(1), stack: StackId(a % 5), ..Origin::default() };
            let len = Record { origin, op }.encode(&mut buffer).expect("fits");
            buffer.truncate(len);
            buffer
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn hostile_records_do_no_harm(records in proptest::collection::vec(op(), 1..60), pedantic in any::<bool>()) {
        let mut p = Program::with(analysis::AnalysisOptions { judging: Judging { pedantic, latent: pedantic, ..Default::default() }, ..Default::default() });
        p.malloc(X, 8192);
        for bytes in &records {
            match Record::decode(bytes) {
                Ok(record) => p.analysis.feed(&record),
                Err(_) => p.analysis.damaged(),
            }
        }
        let report = report::Report::merge(vec![p.outcome()], pedantic);
        let _ = text::report(&report, text::Style::default(), 5);
        let _ = json::report(&report).to_string();
    }
}
