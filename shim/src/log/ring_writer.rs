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

/// Words with a bit for each function: those of the table, of libraries and of MPI.
const NAMED: usize = (call_names::FIRST_OF_MPI as usize + call_names::MOST_OF_MPI).div_ceil(64);

/// The writing end of the ring, with what it takes to wait for room.
#[repr(C)]
pub struct RingWriter {
    named: [u64; NAMED],
    producer: Producer,
}

impl RingWriter {
    /// Writes to this end of a ring.
    pub fn new(producer: Producer) -> Self {
        Self { producer, named: [0; NAMED] }
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

    /// Writes a record, waiting for room while the analyzer lives. One that can never fit is left
    /// out, and named as lost.
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
        let len = Origin::encoded_len(op);
        let has_room = self.producer.has_room(len) || self.make_room(len, op.name());
        if has_room && !self.write(len, |room| origin.encode(op, room)) {
            self.lose(op.name());
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

    /// Makes room for a record of the op of this name, however long that takes. False: there will
    /// be none. Where that is for its size, the op is named as lost.
    #[cold]
    #[inline(never)]
    pub fn make_room(&mut self, most: usize, op: &str) -> bool {
        let can_be = most <= self.producer.max_record();
        if !can_be {
            self.lose(op);
        }
        can_be && self.wait_for_room(most)
    }

    /// An op of this name can not be written. The note that says so is short: it always fits.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, op: &str) {
        let text = format!("{op} larger than half the ring (raise ring-mib)");
        let op = Op::Note { kind: NoteKind::Lost, text: text.as_str().into(), count: 1 };
        let len = Origin::encoded_len(&op);
        if self.producer.has_room(len) || self.wait_for_room(len) {
            self.write(len, |room| Origin::default().encode(&op, room));
        }
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

#[cfg(test)]
mod tests;
