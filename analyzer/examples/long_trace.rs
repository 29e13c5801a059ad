//! Writes a trace of any length, like that of a long training run: `long_trace OPS FILE`
//! (100,000,000 ops: 12 GB of records, minutes).
//!
//!     cargo run --release -p analyzer --example long_trace 100000000 /tmp/long.trace
//!     /usr/bin/time -v target/release/streamsan check /tmp/long.trace
//!
//! A step is a thousand launches of 40 kernels (PTX in the trace) on 300 tensors, 400 call stacks,
//! three streams that wait for each other by events, tensors that are freed and allocated again in
//! one of two places, two uploads, and a synchronisation. Nothing races. A launch has the same size
//! and the same tensors in every step. With a third argument, `fresh`, every launch has new ones.
//!
//! `train` as third argument writes training steps instead: 24 layers forward and backward in one
//! stream, 432 launches with 128 bytes of parameters, a tensor allocated or freed for each of them
//! as PyTorch's allocator does (the same addresses in every step), the gradients reduced in 19
//! other streams, an upload, and a synchronisation.
//!
//! `sites` writes the first kind with its waits at 200 call sites, for `streamsan excess`. `racy`
//! writes it with one wait in five thousand left out, or in as many as a fourth argument says.

use std::io::BufWriter;
use trace::file::Writer;
use trace::*;

const BASE: u64 = 0x7f00_0000_0000;
const TENSORS: u64 = 300;
const TENSOR: u64 = 1 << 18;

/// Layers of a model, launches of each forward, and backward.
const LAYERS: u64 = 24;
const DEPTH: u64 = 8;
/// Streams that reduce gradients.
const SIDES: u64 = 19;

/// `out[i] = a[i] + b[i]` for the first n numbers, under 40 names.
fn code() -> String {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for id in 1..=40 {
        text += &format!(
            ".visible .entry kernel_{id}(.param .u64 p_a, .param .u64 p_b, .param .u64 p_out, .param .u32 p_n, .param .align 8 .b8 p_rest[96])\n{{\n\
             .reg .pred %p<2>;\n.reg .f32 %f<4>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<11>;\n\
             ld.param.u64 %rd1, [p_a];\nld.param.u64 %rd2, [p_b];\nld.param.u64 %rd3, [p_out];\nld.param.u32 %r2, [p_n];\n\
             mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.s32 %r1, %r3, %r4, %r5;\n\
             setp.ge.s32 %p1, %r1, %r2;\n@%p1 bra END;\n\
             cvta.to.global.u64 %rd4, %rd1;\nmul.wide.s32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd4, %rd5;\n\
             cvta.to.global.u64 %rd7, %rd2;\nadd.s64 %rd8, %rd7, %rd5;\ncvta.to.global.u64 %rd9, %rd3;\nadd.s64 %rd10, %rd9, %rd5;\n\
             ld.global.f32 %f1, [%rd6];\nld.global.f32 %f2, [%rd8];\nadd.f32 %f3, %f1, %f2;\nst.global.f32 [%rd10], %f3;\n\
             END:\nret;\n}}\n"
        );
    }
    text + "\0"
}

struct Out {
    writer: Writer<BufWriter<std::fs::File>>,
    buffer: Vec<u8>,
    ops: u64,
    bytes: u64,
    random: u64,
    /// Call sites of waits.
    sites: u32,
    /// One wait in so many is left out; 0: none.
    left_out: u64,
    waits: u64,
}

impl Out {
    fn push(&mut self, stack: u32, op: Op<'_>) {
        let call = match op {
            Op::Launch { .. } => 1,
            Op::EventRecord { .. } => 2,
            Op::StreamWait { .. } => 3,
            _ => 4,
        };
        let origin = Origin { call: CallId(call), thread: ThreadId(1), stack: StackId(stack), ..Origin::default() };
        let len = Record { origin, op }.encode(&mut self.buffer).expect("a record fits");
        self.ops += u64::from(op.tag() >= 32);
        self.bytes += len as u64 + 4;
        self.writer.record(0, &self.buffer[..len]).expect("write");
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }
}

const MODE: EventMode = EventMode::Plain;

impl Out {
    /// A launch of one of the kernels: a and b are added into the third tensor.
    fn launch(&mut self, n: u64, stream: u32, tensors: [u64; 3], elements: u32, rest: usize) {
        let mut params: Vec<u8> = tensors.iter().flat_map(|w| w.to_le_bytes()).collect();
        params.extend(elements.to_le_bytes());
        params.resize(params.len() + rest, 7);
        let (kernel, stack) = (KernelId((n % 40) as u32 + 1), (n % 400) as u32 + 1);
        let shape = LaunchShape::new([elements.div_ceil(256), 1, 1], [256, 1, 1]);
        let (stream, params) = (StreamId(stream), &params[..]);
        self.push(stack, Op::Launch { stream, kernel, shape, params });
    }

    fn alloc(&mut self, ptr: u64) {
        let (stream, pool, kind) = (StreamId(0), PoolId(0), MemoryKind::Block);
        self.push(3, Op::Alloc { ptr, size: TENSOR, kind, context: ContextId(1), stream, pool, flags: 0 });
    }

    fn free(&mut self, ptr: u64, stream: u32) {
        self.push(3, Op::Free { ptr, kind: FreeKind::Block, stream: StreamId(stream) });
    }

    /// `to` waits for everything submitted to `from` so far.
    fn order(&mut self, event: u64, from: u32, to: u32) {
        let site = if self.sites > 0 { 1 + self.random(u64::from(self.sites)) as u32 } else { 2 };
        let event = EventId(event as u32 % 64 + 1);
        self.push(2, Op::EventRecord { event, stream: StreamId(from), mode: MODE });
        self.waits += 1;
        if self.left_out > 0 && self.waits.is_multiple_of(self.left_out) {
            return;
        }
        self.push(site, Op::StreamWait { stream: StreamId(to), event, mode: MODE });
    }

    fn upload(&mut self, stream: u32, to: u64) {
        let src = Region::linear(0x5500_0000_0000 + self.random(1 << 20) * 4096, TENSOR);
        let (dst, dst_space, src_space) = (Region::linear(to, TENSOR), Space::Unified, Space::Unified);
        self.push(
            4,
            Op::Copy { stream: StreamId(stream), dst, src, dst_space, src_space, asynchronous: true, batch: 0 },
        );
    }

    fn synchronise(&mut self, sync: u64, stream: u32) {
        let (sync, scope, stream, event) = (SyncId(sync as u32), SyncScope::Stream, StreamId(stream), EventId(0));
        self.push(5, Op::SyncBegin { sync, scope, stream, event, context: ContextId(1) });
        self.push(5, Op::SyncEnd { sync });
    }
}

/// A thousand launches on three streams.
fn mixed(out: &mut Out, ops: u64, fresh: bool) {
    let mut homes: Vec<u64> = (0..TENSORS).map(|i| BASE + 2 * i * TENSOR).collect();
    homes.iter().for_each(|ptr| out.alloc(*ptr));
    let mut event = 1;
    while out.ops < ops {
        let mut on = 1;
        for i in 0..1000_u64 {
            if i % 100 == 0 {
                let before = on;
                on = on % 3 + 1;
                out.order(event, before, on);
                event += 1;
            }
            if i % 20 == 7 {
                // A tensor is freed and allocated again in another place, whose bytes were last
                // used by work that this stream has waited for.
                let which = out.random(TENSORS) as usize;
                out.free(homes[which], on);
                homes[which] ^= TENSOR;
                out.alloc(homes[which]);
            }
            let of = |n: u64| homes[(n % TENSORS) as usize];
            let tensors =
                if fresh { [(); 3].map(|()| of(out.random(TENSORS))) } else { [of(i * 7), of(i * 3 + 1), of(i)] };
            let less = if fresh { out.random(1000) } else { i % 50 };
            out.launch(i, on, tensors, (TENSOR / 4 - less) as u32, 0);
        }
        for _ in 0..2 {
            let to = homes[out.random(TENSORS) as usize];
            out.upload(on, to);
        }
        out.synchronise(event, on);
    }
}

/// Training steps.
fn training(out: &mut Out, ops: u64) {
    let tensor = |i: u64| BASE + i * TENSOR;
    let (weights, gradients, input, kept, scratch) = (0, LAYERS, 2 * LAYERS, 2 * LAYERS + 1, 450);
    (0..=input).for_each(|i| out.alloc(tensor(i)));
    let (main, copies, all) = (1, 2, (TENSOR / 4) as u32);
    let side = |layer: u64| 3 + (layer % SIDES) as u32;
    let mut step = 0;
    while out.ops < ops {
        step += 1;
        let mut n = 0;
        out.order(0, main, copies);
        out.upload(copies, tensor(input));
        out.order(1, copies, main);
        for layer in 0..LAYERS {
            for i in 0..DEPTH {
                let from = (layer * DEPTH + i).checked_sub(1).map_or(input, |before| kept + before);
                let to = kept + layer * DEPTH + i;
                out.alloc(tensor(to));
                out.launch(n, main, [tensor(from), tensor(weights + layer), tensor(to)], all, 100);
                n += 1;
            }
        }
        for layer in (0..LAYERS).rev() {
            for i in (0..DEPTH).rev() {
                let (saved, grown) = (kept + layer * DEPTH + i, if i == 0 { gradients + layer } else { scratch });
                if i != 0 {
                    out.alloc(tensor(scratch));
                }
                out.launch(n, main, [tensor(saved), tensor(weights + layer), tensor(grown)], all, 100);
                n += 1;
                if i != 0 {
                    out.free(tensor(scratch), main);
                }
                out.free(tensor(saved), main);
            }
            let (reduced, on) = (tensor(gradients + layer), side(layer));
            out.order(2 + layer, main, on);
            out.launch(n, on, [reduced, reduced, reduced], all, 100);
            n += 1;
        }
        for other in 0..SIDES {
            out.order(30 + other, side(other), main);
        }
        for layer in 0..LAYERS {
            out.launch(
                n,
                main,
                [tensor(weights + layer), tensor(gradients + layer), tensor(weights + layer)],
                all,
                100,
            );
            n += 1;
        }
        out.synchronise(step, main);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, ops, file, rest @ ..] = &args[..] else {
        panic!("usage: long_trace OPS FILE [fresh|train|sites|racy [EVERY]]")
    };
    let ops: u64 = ops.parse().expect("a number");
    let writer = Writer::new(BufWriter::new(std::fs::File::create(file).expect("create"))).expect("header");
    let mut out = Out {
        writer,
        buffer: vec![0; 1 << 20],
        ops: 0,
        bytes: 0,
        random: 0x9e37_79b9_7f4a_7c15,
        sites: 0,
        left_out: 0,
        waits: 0,
    };
    define(&mut out);
    out.sites = if rest.first().is_some_and(|word| word == "sites") { 200 } else { 0 };
    let every = rest.get(1).map_or(5000, |word| word.parse().expect("a number"));
    out.left_out = if rest.first().is_some_and(|word| word == "racy") { every } else { 0 };
    match rest.first().map(String::as_str) {
        Some("train") => training(&mut out, ops),
        word => mixed(&mut out, ops, word == Some("fresh")),
    }
    out.writer.finish().expect("write");
    let size = std::fs::metadata(file).expect("just written").len();
    println!(
        "{} ops, {:.1} bytes an op encoded, {:.2} bytes an op in the file ({} MB)",
        out.ops,
        out.bytes as f64 / out.ops as f64,
        size as f64 / out.ops as f64,
        size >> 20
    );
}

/// The definitions that the ops refer to.
fn define(out: &mut Out) {
    let names = ["cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyAsync"];
    let process = Op::Process {
        pid: 1,
        parent: 0,
        exe: "/usr/bin/train".into(),
        args: "".into(),
        cwd: "/".into(),
        driver: 13000,
    };
    out.push(0, process);
    for (id, name) in names.into_iter().enumerate() {
        out.push(0, Op::CallName { id: CallId(id as u16 + 1), name: name.into() });
    }
    for id in 1..=400_u32 {
        let native: Vec<u64> = (0..24).map(|n| 0x40_0000 + u64::from(id) * 64 + n * 4096).collect();
        let (native, python) = (trace::codec::List::new(&native), trace::codec::List::new(&[]));
        out.push(0, Op::Stack { id: StackId(id), native, python });
    }
    out.push(0, Op::Device { ordinal: 0, arch: 90, name: "GPU".into() });
    let context = ContextId(1);
    out.push(0, Op::ContextCreate { context, device: 0, handle: 1 });
    let code = code();
    let (source, bytes) = (ImageSource::Inline, code.as_bytes());
    out.push(0, Op::Image { id: ImageId(1), source, path: "".into(), offset: 0, size: bytes.len() as u64, bytes });
    for id in 1..=40 {
        let name = format!("kernel_{id}");
        let sizes = [(0, 8), (8, 8), (16, 8), (24, 4), (32, 96)];
        let params = sizes.map(|(offset, size)| ParamSlot { offset, size });
        let params = trace::codec::List::new(&params);
        out.push(0, Op::Kernel { id: KernelId(id), name: name.as_str().into(), image: ImageId(1), params, handle: 0 });
    }
    for id in 1..=2 + SIDES as u32 {
        let (stream, kind) = (StreamId(id), StreamKind::NonBlocking);
        out.push(1, Op::StreamCreate { stream, context, kind, priority: 0, handle: 0 });
    }
    let (kind, stream, pool) = (MemoryKind::Device, StreamId(0), PoolId(0));
    out.push(1, Op::Alloc { ptr: BASE, size: 2 * TENSORS * TENSOR, kind, context, stream, pool, flags: 0 });
}
