//! Writes a trace of any length, as a long training run leaves it: `long_trace OPS FILE` (100,000,000 ops: 12 GB of records, minutes).
//!
//!     cargo run --release -p analyzer --example long_trace 100000000 /tmp/long.trace
//!     /usr/bin/time -v target/release/streamsan check /tmp/long.trace
//!
//! A step is a thousand launches of 40 kernels (PTX that comes with the trace) on 300 tensors, 400 call stacks, three streams that wait for
//! each other by events, tensors that are freed and allocated again in one of two places, two uploads, a synchronisation. Nothing races. A
//! launch has the size that it has in every step, and its tensors; with a third argument, `fresh`, every launch has others that never were.

use std::io::BufWriter;
use trace::file::Writer;
use trace::*;

const BASE: u64 = 0x7f00_0000_0000;
const TENSORS: u64 = 300;
const TENSOR: u64 = 1 << 18;

/// `out[i] = a[i] + b[i]` for the first n numbers, under 40 names.
fn code() -> String {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for id in 1..=40 {
        text += &format!(
            ".visible .entry kernel_{id}(.param .u64 p_a, .param .u64 p_b, .param .u64 p_out, .param .u32 p_n)\n{{\n\
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
        let mut to = Encoder::new(&mut self.buffer);
        Record { origin, op }.encode(&mut to);
        let len = to.finish().expect("a record fits");
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

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, ops, file, rest @ ..] = &args[..] else { panic!("usage: long_trace OPS FILE [fresh]") };
    let fresh = rest.first().is_some_and(|word| word == "fresh");
    let ops: u64 = ops.parse().expect("a number");
    let writer = Writer::new(BufWriter::new(std::fs::File::create(file).expect("create"))).expect("header");
    let mut out = Out { writer, buffer: vec![0; 1 << 20], ops: 0, bytes: 0, random: 0x9e37_79b9_7f4a_7c15 };
    define(&mut out);
    let context = ContextId(1);
    let (stream, pool, kind) = (StreamId(0), PoolId(0), MemoryKind::Block);
    let mut homes: Vec<u64> = (0..TENSORS).map(|i| BASE + 2 * i * TENSOR).collect();
    for ptr in &homes {
        out.push(1, Op::Alloc { ptr: *ptr, size: TENSOR, kind, context, stream, pool, flags: 0 });
    }
    let mut event = 1;
    while out.ops < ops {
        let mut on = 1;
        for i in 0..1000_u64 {
            if i % 100 == 0 {
                let (mode, before) = (EventMode::Plain, StreamId(on));
                on = on % 3 + 1;
                let event_id = EventId(event % 64 + 1);
                event += 1;
                out.push(2, Op::EventRecord { event: event_id, stream: before, mode });
                out.push(2, Op::StreamWait { stream: StreamId(on), event: event_id, mode });
            }
            if i % 20 == 7 {
                // A tensor goes, and comes back in another place: its bytes were last used by work that this stream has waited for.
                let which = out.random(TENSORS) as usize;
                out.push(3, Op::Free { ptr: homes[which], kind: FreeKind::Block, stream: StreamId(on) });
                homes[which] ^= TENSOR;
                out.push(3, Op::Alloc { ptr: homes[which], size: TENSOR, kind, context, stream, pool, flags: 0 });
            }
            let of = |n: u64| (n % TENSORS) as usize;
            let words = if fresh {
                [(); 3].map(|()| homes[of(out.random(TENSORS))])
            } else {
                [i * 7, i * 3 + 1, i].map(|n| homes[of(n)])
            };
            let mut params: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let n = TENSOR as u32 / 4 - if fresh { out.random(1000) as u32 } else { i as u32 % 50 };
            params.extend(n.to_le_bytes());
            let (kernel, stack) = (KernelId((i % 40) as u32 + 1), (i % 400) as u32 + 1);
            let (grid, block) = ([n.div_ceil(256), 1, 1], [256, 1, 1]);
            out.push(
                stack,
                Op::Launch {
                    stream: StreamId(on),
                    kernel,
                    grid,
                    block,
                    cluster: [0; 3],
                    shared: 0,
                    flags: 0,
                    params: &params,
                },
            );
        }
        for _ in 0..2 {
            let dst = Region::linear(homes[out.random(TENSORS) as usize], TENSOR);
            let src = Region::linear(0x5500_0000_0000 + out.random(1 << 20) * 4096, TENSOR);
            let (dst_space, src_space) = (Space::Unified, Space::Unified);
            let copy = Op::Copy { stream: StreamId(on), dst, src, dst_space, src_space, asynchronous: true, batch: 0 };
            out.push(4, copy);
        }
        let sync = SyncId(event);
        let (scope, stream, event) = (SyncScope::Stream, StreamId(on), EventId(0));
        out.push(5, Op::SyncBegin { sync, scope, stream, event, context });
        out.push(5, Op::SyncEnd { sync });
    }
    out.writer.flush().expect("write");
    let size = std::fs::metadata(file).expect("just written").len();
    println!(
        "{} ops, {:.1} bytes an op encoded, {:.2} bytes an op in the file ({} MB)",
        out.ops,
        out.bytes as f64 / out.ops as f64,
        size as f64 / out.ops as f64,
        size >> 20
    );
}

/// What the ops name.
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
        let params = [0, 8, 16, 24].map(|offset| ParamSlot { offset, size: if offset == 24 { 4 } else { 8 } });
        let params = trace::codec::List::new(&params);
        out.push(0, Op::Kernel { id: KernelId(id), name: name.as_str().into(), image: ImageId(1), params, handle: 0 });
    }
    for id in 1..=3 {
        let (stream, kind) = (StreamId(id), StreamKind::NonBlocking);
        out.push(1, Op::StreamCreate { stream, context, kind, priority: 0, handle: 0 });
    }
    let (kind, stream, pool) = (MemoryKind::Device, StreamId(0), PoolId(0));
    out.push(1, Op::Alloc { ptr: BASE, size: 2 * TENSORS * TENSOR, kind, context, stream, pool, flags: 0 });
}
