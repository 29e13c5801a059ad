//! How many ops a second the analysis processes on one core, for three mixes:
//!
//!     cargo run --release -p analyzer --example throughput
//!
//! `sync`: event records and waits only. `copy`: copies and fills on two ordered streams. `step`:
//! launches with three pointers each out of 300 tensors on three streams, with an event pair every
//! tenth op, as in a training step.
//!
//! `kept`: the same in turns with keeping the records for a second analysis, as a live run does up
//! to 64 MiB: the ratio of the times, its median and quartiles over 31 rounds.

use analysis::counterfactual::trial::records::KeptRecords;
use analysis::{Analysis, AnalysisOptions};
use detect::launches::effects::{Effect, EffectBase, EffectExtent, Launch};
use detect::launches::kernel_code::{CodeReader, KernelCode};
use detect::memory::AccessKind;
use std::time::Instant;
use symbols::stacks::RawStacks;
use trace::*;

const BASE: u64 = 0x7f00_0000_0000;
const TENSOR: u64 = 1 << 16;

/// Every kernel reads its first two pointers and writes the third, a whole tensor each.
struct Reader;

impl CodeReader for Reader {
    fn read(&mut self, _: ImageId, _: &str, _: u32) -> Result<Box<dyn KernelCode>, String> {
        Ok(Box::new(Kernel))
    }
    fn image(&mut self, _: &Op<'_>) {}
}

struct Kernel;

impl KernelCode for Kernel {
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>) {
        for (i, word) in launch.params.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let kind = if i == 2 { AccessKind::Write } else { AccessKind::Read };
            let bytes =
                EffectExtent::Bounded { lo: value, hi: value + TENSOR, width: TENSOR, dims: Vec::new(), exact: true };
            effects.push(Effect::new(EffectBase::Param(i as u32 * 8, value), kind, bytes));
        }
    }
    fn indirect(&self) -> bool {
        false
    }
    fn dependency(&self) -> kernels::Dependency {
        kernels::Dependency { triggers: kernels::Triggers::AtOnce, ..Default::default() }
    }
}

/// Encoded records, so that decoding is part of the measurement, as in a real run.
#[derive(Default)]
struct Tape {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Tape {
    fn push(&mut self, op: Op<'_>) {
        let mut buffer = [0; 512];
        let origin = Origin {
            call: CallId(1),
            thread: ThreadId(1),
            stack: StackId(self.ends.len() as u32 % 64 + 1),
            ..Origin::default()
        };
        let len = Record { origin, op }.encode(&mut buffer).expect("a record fits 512 bytes");
        self.bytes.extend_from_slice(&buffer[..len]);
        self.ends.push(self.bytes.len());
    }

    fn play(&self, analysis: &mut Analysis) {
        let mut from = 0;
        for &end in &self.ends {
            let record = Record::decode(&self.bytes[from..end]).expect("just encoded");
            analysis.feed(&record);
            from = end;
        }
    }
}

fn setting() -> Analysis {
    let mut analysis = Analysis::new(AnalysisOptions::default(), Box::new(RawStacks::default()), Box::new(Reader));
    let mut tape = Tape::default();
    let context = ContextId(1);
    tape.push(Op::Device { ordinal: 0, arch: 90, name: "GPU".into() });
    tape.push(Op::ContextCreate { context, device: 0, handle: 1 });
    for id in 1..=3 {
        let kind = StreamKind::NonBlocking;
        tape.push(Op::StreamCreate { stream: StreamId(id), context, kind, priority: 0, handle: 0 });
    }
    for id in 1..=8 {
        tape.push(Op::EventCreate { event: EventId(id), context, flags: 0, handle: 0 });
    }
    let (kind, stream, pool) = (MemoryKind::Device, StreamId(0), PoolId(0));
    tape.push(Op::Alloc { ptr: BASE, size: 300 * TENSOR, kind, context, stream, pool, flags: 0 });
    for i in 0..300 {
        let (ptr, kind) = (BASE + i * TENSOR, MemoryKind::Block);
        tape.push(Op::Alloc { ptr, size: TENSOR, kind, context, stream, pool, flags: 0 });
    }
    for id in 1..=40 {
        let name = "kernel".into();
        tape.push(Op::Kernel {
            id: KernelId(id),
            name,
            image: ImageId(1),
            params: trace::codec::List::new(&[]),
            handle: 0,
        });
    }
    tape.play(&mut analysis);
    analysis
}

fn measure(name: &str, tape: &Tape, rounds: usize) {
    let mut analysis = setting();
    tape.play(&mut analysis);
    let start = Instant::now();
    for _ in 0..rounds {
        tape.play(&mut analysis);
    }
    let seconds = start.elapsed().as_secs_f64();
    let ops = (tape.ends.len() * rounds) as f64;
    let (roots, blocks, entries) = analysis.footprint();
    println!(
        "{name:>5}: {:6.2} million ops/s, {:5.0} ns/op   ({} findings, {roots} roots, {blocks} blocks, {entries} entries)",
        ops / seconds / 1e6,
        seconds / ops * 1e9,
        analysis.finish().findings.len(),
    );
}

/// What keeping the records adds to analysing them.
fn measure_kept(name: &str, tape: &Tape) {
    const ROUNDS: usize = 31;
    // Below the bound, above which nothing is kept.
    let times = (60 << 20) / (tape.bytes.len() + size_of::<u32>() * tape.ends.len());
    let play = |kept: &mut Option<KeptRecords>| {
        let mut analysis = setting();
        tape.play(&mut analysis);
        let start = Instant::now();
        for _ in 0..times {
            let mut from = 0;
            for &end in &tape.ends {
                let bytes = &tape.bytes[from..end];
                if let Some(kept) = kept {
                    kept.keep(bytes);
                }
                analysis.feed(&Record::decode(bytes).expect("just encoded"));
                from = end;
            }
        }
        start.elapsed().as_secs_f64()
    };
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let mut kept = Some(KeptRecords::bounded(64 << 20));
            // The first of a pair is not always the same.
            let (plain, with) = if round % 2 == 0 {
                let plain = play(&mut None);
                (plain, play(&mut kept))
            } else {
                let with = play(&mut kept);
                (play(&mut None), with)
            };
            assert!(kept.is_some_and(|kept| !kept.is_overflown()), "all of it is kept");
            with / plain
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let [low, median, high] = [ROUNDS / 4, ROUNDS / 2, 3 * ROUNDS / 4].map(|at| ratios[at]);
    let ops = tape.ends.len() * times;
    println!("{name:>5}: kept, {ops} ops in 60 MiB: {median:.3} times as long ({low:.3} to {high:.3})");
}

fn main() {
    let mut sync = Tape::default();
    for i in 0..1000_u32 {
        let (event, mode) = (EventId(i % 8 + 1), EventMode::Plain);
        sync.push(Op::EventRecord { event, stream: StreamId(1), mode });
        sync.push(Op::StreamWait { stream: StreamId(2), event, mode });
    }
    measure("sync", &sync, 3000);
    measure_kept("sync", &sync);

    let mut copy = Tape::default();
    for i in 0..1000_u64 {
        let space = Space::Device;
        let (dst, src) =
            (Region::linear(BASE + i % 300 * TENSOR, TENSOR), Region::linear(BASE + (i + 7) % 300 * TENSOR, TENSOR));
        let stream = StreamId(1);
        copy.push(Op::Copy { stream, dst, src, dst_space: space, src_space: space, asynchronous: true, batch: 0 });
        copy.push(Op::Set { stream, dst, asynchronous: true });
    }
    measure("copy", &copy, 1000);
    measure_kept("copy", &copy);

    let mut step = Tape::default();
    for i in 0..1000_u64 {
        let stream = StreamId((i / 100 % 3) as u32 + 1);
        if i % 100 == 0 {
            let (event, mode) = (EventId(1), EventMode::Plain);
            let before = StreamId(((i / 100 + 2) % 3) as u32 + 1);
            step.push(Op::EventRecord { event, stream: before, mode });
            step.push(Op::StreamWait { stream, event, mode });
        }
        if i == 999 {
            let sync = SyncId(1);
            step.push(Op::SyncBegin {
                sync,
                scope: SyncScope::Stream,
                stream,
                event: EventId(0),
                context: ContextId(0),
            });
            step.push(Op::SyncEnd { sync });
        }
        let words = [i % 300, (i * 7 + 3) % 300, (i * 3 + 1) % 300].map(|n| BASE + n * TENSOR);
        let params: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let kernel = KernelId((i % 40) as u32 + 1);
        let shape = LaunchShape::new([64, 1, 1], [256, 1, 1]);
        step.push(Op::Launch { stream, kernel, shape, params: &params });
    }
    measure("step", &step, 1000);
    measure_kept("step", &step);
}
