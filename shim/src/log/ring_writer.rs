//! The writing end of the ring: records, and the wait for room.
//!
//! Owns back-pressure (the program is held back until the analyzer has caught up), the detection of
//! a dead analyzer, and the definitions of function names. Does not order records: its caller holds
//! the lock of the log.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trace::ring::Producer;
use trace::{CallId, NoteKind, Op, Origin, USUAL_RECORD};

use super::call_names;
use crate::runtime::lifecycle;

/// The writing end of the ring, with what it takes to wait for room.
#[repr(C)]
pub struct RingWriter {
    named: [u64; 16],
    producer: Producer,
}

impl RingWriter {
    /// Writes to this end of a ring.
    pub fn new(producer: Producer) -> Self {
        Self { producer, named: [0; 16] }
    }

    /// The id of a function's name, defining it when it is new.
    pub fn name(&mut self, call: cuda_sys::FnId) -> CallId {
        let id = CallId(call.0 + 1);
        let (word, bit) = (usize::from(call.0) / 64, 1 << (call.0 % 64));
        if let Some(named) = self.named.get_mut(word)
            && *named & bit == 0
        {
            *named |= bit;
            self.define_name(id, call);
        }
        id
    }

    #[cold]
    #[inline(never)]
    fn define_name(&mut self, id: CallId, call: cuda_sys::FnId) {
        let op = Op::CallName { id, name: call_names::name_of(call).into() };
        self.emit(&Origin::default(), &op);
    }

    /// Writes a record, waiting for room while the analyzer lives. What cannot ever fit is left out
    /// and named.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn emit(&mut self, origin: &Origin, op: &Op<'_>) {
        if !self.write(USUAL_RECORD, |room| origin.encode(op, room)) {
            self.emit_long(origin, op);
        }
    }

    /// As [`RingWriter::emit`], of what is longer than most, or when there is no room.
    #[cold]
    #[inline(never)]
    fn emit_long(&mut self, origin: &Origin, op: &Op<'_>) {
        let most = USUAL_RECORD + lists(op);
        if self.producer.has_room(most) || self.make_room(most) {
            self.write(most, |room| origin.encode(op, room));
        }
    }

    /// Writes a record of at most so many bytes. False: there is no room for it.
    #[inline(always)]
    pub fn write(&mut self, most: usize, encode: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let len = self.producer.try_reserve(most).and_then(encode);
        len.inspect(|len| self.producer.commit(*len)).is_some()
    }

    /// Whether a record of at most so many bytes fits now.
    #[inline(always)]
    pub fn has_room(&mut self, most: usize) -> bool {
        self.producer.has_room(most)
    }

    /// Makes room for a record, however long that takes. False: there will be none.
    #[cold]
    #[inline(never)]
    pub fn make_room(&mut self, most: usize) -> bool {
        let can_be = most <= self.producer.max_record();
        if !can_be {
            self.too_large();
        }
        can_be && self.wait_for_room(most)
    }

    #[cold]
    #[inline(never)]
    fn too_large(&mut self) {
        let text = "a record larger than half the ring (raise ring-mib)".into();
        let op = Op::Note { kind: NoteKind::Unobserved, text, count: 1 };
        self.emit(&Origin::default(), &op);
    }

    /// Holds the program back until the analyzer has caught up. False when the analyzer is dead:
    /// then the shim is off.
    #[cold]
    fn wait_for_room(&mut self, len: usize) -> bool {
        if lifecycle::is_off() {
            return false;
        }
        let beat = |out: &Self| out.producer.ring().header().heartbeat.load(Ordering::Relaxed);
        let mut last = (beat(self), Instant::now());
        let mut pause = Duration::from_micros(20);
        loop {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
            if self.producer.try_reserve(len).is_some() {
                return true;
            }
            let now = beat(self);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(5) {
                lifecycle::switch_off(format_args!("the analyzer has died"));
                return false;
            }
        }
    }
}

/// At least as many bytes as the op's lists take.
fn lists(op: &Op<'_>) -> usize {
    match op {
        Op::Launch { params, .. } => params.len(),
        Op::Process { exe, args, cwd, .. } => exe.0.len() + args.0.len() + cwd.0.len(),
        Op::CallName { name, .. } | Op::Thread { name, .. } | Op::Device { name, .. } => name.0.len(),
        Op::Module { path, build_id, .. } => path.0.len() + build_id.len(),
        Op::Stack { native, python, .. } => native.len() * 8 + python.len() * 8,
        Op::PyCode { file, name, lines, .. } => file.0.len() + name.0.len() + lines.len(),
        Op::Image { path, bytes, .. } => path.0.len() + bytes.len(),
        Op::Kernel { name, params, .. } => name.0.len() + params.len() * 8,
        Op::Note { text, .. } => text.0.len(),
        Op::Exact { runs, .. } | Op::ExactPart { runs, .. } => runs.len() * 32,
        Op::ExactNodes { nodes, .. } => nodes.len() * 4,
        Op::MemoryName { name, heap, .. } => name.0.len() + heap.0.len(),
        Op::SharedEvent { key, .. } | Op::SharedMemory { key, .. } => key.len(),
        Op::Global { name, .. } => name.0.len(),
        Op::GraphNode { dependencies, body, .. } => dependencies.len() * 8 + body.len(),
        _ => 0,
    }
}
