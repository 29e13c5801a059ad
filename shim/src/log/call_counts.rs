//! Counts of the calls that came through the wrappers, on request (`count-calls` in
//! `STREAMSAN_OPTIONS`).
//!
//! Owns one counter a function. They are there to compare the shim's view of a program with
//! CUPTI's, so that an entry point that calls slip through is found. Rows marked `skip` are
//! forwarded by a jump and not counted.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use cuda_sys::{FnId, When};
use trace::{NoteKind, Op};

use super::core::Core;
use crate::runtime::options;

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

#[unsafe(link_section = "streamsan_state")]
static WANTED: AtomicU8 = AtomicU8::new(UNKNOWN);
static COUNTS: [AtomicU32; FnId::COUNT] = [const { AtomicU32::new(0) }; FnId::COUNT];

/// Counts a call, once although it is observed before and after.
#[inline]
pub fn count(call: FnId, is_before: bool) {
    if WANTED.load(Ordering::Relaxed) != NO {
        count_slow(call, is_before);
    }
}

#[cold]
fn count_slow(call: FnId, is_before: bool) {
    if WANTED.load(Ordering::Relaxed) == UNKNOWN {
        let wanted = options::is_on(::options::Id::CountCalls);
        WANTED.store(if wanted { YES } else { NO }, Ordering::Relaxed);
        if !wanted {
            return;
        }
    }
    if let Some(counter) = COUNTS.get(call.index())
        && (is_before || call.info().when == When::After)
    {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes the counts into the trace.
pub fn log(core: &Core) {
    if WANTED.load(Ordering::Relaxed) != YES {
        return;
    }
    for (index, counter) in COUNTS.iter().enumerate() {
        let count = u64::from(counter.load(Ordering::Relaxed));
        if count > 0
            && let Some(mut shared) = core.lock()
        {
            let text = FnId(index as u16).name().into();
            shared.define(&Op::Note { kind: NoteKind::Info, text, count });
        }
    }
}
