//! Escaping of names that come from the program: a kernel, a thread, a file or an NVTX range may
//! have any name, also one that moves a terminal's cursor, ends the line and begins another report,
//! or reverses the direction of text.
//!
//! Owns which texts of a report are escaped: all of them, once, when the outcomes of the processes
//! are merged, so that no format has to care. Which characters are harmful is
//! [`system::printable`]. Owns also how a path is written in a URI. Does not escape markup, which
//! each format does itself. Tables that are looked up by name keep their names.

use crate::breach::Breach;
use crate::cause::{CausePoint, GivenWait, RootCause};
use crate::doubt::Doubt;
use crate::model::{
    AllocationInfo, Fault, FaultSite, Finding, Hint, InKernel, Inside, MendingLines, Running, SharedArray, Side,
    StaleMemory, StreamName, Synchronisation, UnjoinedStream,
};
use crate::neighbourhood::{Scene, Shown};
use detect::coverage::Coverage;
use detect::state::names::Process;
use std::collections::BTreeMap;
use symbols::frame::Frame;
pub use system::printable::harmless;
use system::printable::is_harmful;

/// Data whose texts can be escaped in place.
pub trait Harmless {
    /// Escapes all texts.
    fn disarm(&mut self);
}

impl Harmless for String {
    fn disarm(&mut self) {
        if let std::borrow::Cow::Owned(text) = harmless(self) {
            *self = text;
        }
    }
}

impl<T: Harmless> Harmless for Option<T> {
    fn disarm(&mut self) {
        self.iter_mut().for_each(T::disarm);
    }
}

impl<T: Harmless> Harmless for Vec<T> {
    fn disarm(&mut self) {
        self.iter_mut().for_each(T::disarm);
    }
}

impl Harmless for (u32, String) {
    fn disarm(&mut self) {
        self.1.disarm();
    }
}

impl<V> Harmless for BTreeMap<String, V> {
    fn disarm(&mut self) {
        if self.keys().any(|key| key.chars().any(is_harmful)) {
            let all = std::mem::take(self).into_iter();
            self.extend(all.map(|(key, value)| (harmless(&key).into_owned(), value)));
        }
    }
}

/// Lists the fields that hold text, and all others, so that a new one cannot be forgotten.
macro_rules! disarm {
    ($($type:ident: $($text:ident),+; $($other:ident),*;)*) => { $(
        impl Harmless for $type {
            fn disarm(&mut self) {
                let Self { $($text,)+ $($other: _,)* } = self;
                $($text.disarm();)+
            }
        }
    )* };
}

disarm! {
    Frame: function, file, module, source; kind, line, address, inlined;
    StreamName: long, name, called, short, stack; id, kind, handle;
    Side: through, call, seen_by, kernel, operator, stream, thread, gaps, stack, launched, regions, inside, arguments, started,
        encoded;
        actor, verb, does_both, to_output, guessed, symbol, node, param, from, to, precision, process;
    Inside: file, source; line;
    AllocationInfo: name, call, stack, freed; kind, levels, address, size;
    Synchronisation: facts, missing, mend; ;
    Shown: label, at, source; lane, operation, role, after, skipped;
    Scene: lanes, steps; ;
    Doubt: reason, line, settle; side, known, at;
    Finding: origin, ranges, programs, doubts, access, previous, allocation, previous_allocation, synchronisation, in_kernel, stale, scene;
        cause, own_cause, identity, fingerprint, standing, hazard, kind, confidence, weakness, established, latent, host, internal, count, pid, processes, occurrences,
        from, to;
    InKernel: shared, variable, graph; grade, code, threads, address, grid, block, launches, two_grids, registers;
    StaleMemory: place, now, instantiated; ;
    SharedArray: name; offset, size, byte;
    Breach: text, rule, origin, ranges, programs, side;
        kind, identity, fingerprint, standing, confidence, count, pid, processes, occurrences;
    CausePoint: at, stack, streams; ;
    MendingLines: lines; api;
    RootCause: missing, after, before, mend; fingerprint, kind, tried;
    Hint: text, stack, other; kind, count, pid;
    FaultSite: kernel, stack; count;
    Running: stream, oldest; total, places;
    GivenWait: text, place; records, waits, idle, blocked, captured;
    UnjoinedStream: stream, short, drawn_in, last; ;
    Fault: call, stack, culprit, stream, running, origin, unjoined; pid, result;
    Process: exe, args, trace, program; pid, parent, driver;
    Coverage: not_modelled, unobserved, lost, reasons, kernels, unchecked, disabled, mispredicted, escaped, assumed, unjudged, rules_unmet, not_simulated, unread, partial, inside_left;
        code, simulated_as, ops, memory_ops, host_touches, launches, launches_exact, launches_kinds_only, launches_unknown, launches_indirect, launches_measured,
        launches_learned, launches_in_part, launches_unmeasured, launches_inside, unknown_memory, launches_system, unwatched_managed, unwatched_pinned, forgotten, paused, graph_launches, findings_dropped, damaged, gaps;
}

/// A path as part of a URI.
pub(crate) fn percent_encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(percent_encoded("a b/ü.cu"), "a%20b/%C3%BC.cu");
    }

    #[test]
    fn what_is_harmless_stays_and_the_rest_is_spelt_out() {
        for text in ["", "void f<int>(float const*)", "größe\tµ", "数据.cu", "a\\nb"] {
            assert!(matches!(harmless(text), std::borrow::Cow::Borrowed(same) if same == text));
        }
        assert_eq!(harmless("a\nb\r\u{1b}[2J\u{7f}\u{9b}"), "a\\nb\\r\\u{1b}[2J\\u{7f}\\u{9b}");
        assert_eq!(harmless("x\u{202e}cba\u{2066}\u{2028}"), "x\\u{202e}cba\\u{2066}\\u{2028}");
        let mut map = BTreeMap::from([("a\0".to_string(), 1), ("b".to_string(), 2)]);
        map.disarm();
        assert_eq!(map, BTreeMap::from([("a\\u{0}".to_string(), 1), ("b".to_string(), 2)]));
    }
}
