//! Logs which bytes of global memory each launch really touched.
//!
//! `STREAMSAN_SIM_ADDRESSES=FILE` asks for one line of JSON for each launch that has ended, in the
//! order of their ends:
//!
//! ```json
//! {"pid":1,"launch":1,"kernel":"_Z4copyPfS_i","grid":[4,1,1],"block":[256,1,1],"complete":true,
//!  "accesses":[{"kind":"read","bytes":4,"count":1000,"file":"a.cu","line":9,"ptx_line":57,
//!               "ranges":[["0x700000000200","0x7000000011a0"]]}]}
//! ```
//!
//! Of machine code there is `sass_offset` in place of `ptx_line`: bytes from the start of the
//! section.
//!
//! An access is one instruction (with inlining, one copy of it) and kind: `read`, `write`,
//! `atomic`, `atomic-read` or `atomic-write`. `bytes` is what one lane touches, `count` how many
//! lanes did so. Ranges are merged and sorted, and end before their second address. `complete` is
//! false when the kernel failed. Kernels that a kernel launched have lines of their own. Textures,
//! shared memory and local memory are not listed. Copies and sets are not launches.
//!
//! Owns the file, the collection and the merging.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::appended_file::AppendedFile;
use crate::interp::{AccessKind, Accesses, Launch};

fn file() -> Option<&'static Mutex<AppendedFile>> {
    static FILE: OnceLock<Option<Mutex<AppendedFile>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = crate::config::variable("STREAMSAN_SIM_ADDRESSES")?;
        let opened = AppendedFile::open(path.clone().into());
        opened.map_err(|error| signal_free::say!("streamsan-sim: {}: {error}", path.display())).ok().map(Mutex::new)
    })
    .as_ref()
}

/// Ranges of one instruction. Merged whenever there are many, so that a kernel that sweeps over
/// memory stays small.
#[derive(Default)]
struct Touched {
    bytes: u32,
    count: u64,
    source: Option<(String, u32)>,
    ranges: Vec<(u64, u64)>,
    merged: usize,
}

impl Touched {
    fn add(&mut self, start: u64, end: u64) {
        // Only what has been added since the last merge may grow: what is merged stays sorted.
        if let Some(last) = self.ranges[self.merged..].last_mut()
            && start <= last.1
            && end >= last.0
        {
            *last = (last.0.min(start), last.1.max(end));
            return;
        }
        self.ranges.push((start, end));
        if self.ranges.len() > 2 * self.merged + 4096 {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| {
            let meets = next.0 <= kept.1;
            if meets {
                kept.1 = kept.1.max(next.1);
            }
            meets
        });
        self.merged = self.ranges.len();
    }
}

/// The instructions of a launch: by line of the PTX text (or offset of the machine code) and kind.
type Instructions = BTreeMap<(u32, u8), Touched>;

/// What one launch touches.
pub(crate) struct Collector {
    parts: Vec<Mutex<Instructions>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Collector {
    /// A collector for a launch, when the log was asked for.
    pub(crate) fn new() -> Option<Collector> {
        file()?;
        Some(Collector { parts: (0..16).map(|_| Mutex::default()).collect() })
    }

    /// Takes note of what a warp touches.
    pub(crate) fn observe(&self, accesses: &Accesses<'_>) {
        // Blocks run on several threads: neighbours seldom wait for each other.
        let mut part = lock(&self.parts[accesses.block[0] as usize % self.parts.len()]);
        let touched = part.entry((accesses.line, accesses.kind as u8)).or_default();
        touched.bytes = touched.bytes.max(accesses.size);
        touched.count += accesses.lanes.len() as u64;
        if touched.source.is_none() {
            touched.source = accesses.source.map(|(file, line)| (file.to_owned(), line));
        }
        for &(address, _) in accesses.lanes {
            touched.add(address, address + u64::from(accesses.size));
        }
    }

    /// Writes the launch's line. `place` names what instructions are known by: `ptx_line` or
    /// `sass_offset`.
    pub(crate) fn finish(self, kernel: &str, launch: &Launch, place: &str, complete: bool) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut all = Instructions::new();
        for part in self.parts {
            for (key, touched) in part.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
                let into = all.entry(key).or_default();
                into.bytes = into.bytes.max(touched.bytes);
                into.count += touched.count;
                into.source = into.source.take().or(touched.source);
                into.ranges.extend(touched.ranges);
            }
        }
        let (grid, block) = (launch.grid, launch.block);
        let mut line = format!(
            "{{\"pid\":{},\"launch\":{},\"kernel\":{},\"grid\":{grid:?},\"block\":{block:?},\"complete\":{complete},\"accesses\":[",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed),
            quoted(kernel),
        );
        for (index, ((at, kind), mut touched)) in all.into_iter().enumerate() {
            touched.merge();
            line.push_str(if index > 0 { "," } else { "" });
            let _ = write!(line, "{}", instruction((place, at), kind, &touched));
        }
        line.push_str("]}\n");
        if let Some(file) = file() {
            // One write: lines of several processes stay whole.
            lock(file).append(line.as_bytes());
        }
    }
}

fn instruction((place, at): (&str, u32), kind: u8, touched: &Touched) -> String {
    let kinds = [
        (AccessKind::Read, "read"),
        (AccessKind::Write, "write"),
        (AccessKind::Atomic, "atomic"),
        (AccessKind::AtomicRead, "atomic-read"),
        (AccessKind::AtomicWrite, "atomic-write"),
    ];
    let kind = kinds.iter().find_map(|(known, name)| (*known as u8 == kind).then_some(*name)).unwrap_or_default();
    let source = touched.source.as_ref();
    let source = source.map_or_else(String::new, |(file, line)| format!("\"file\":{},\"line\":{line},", quoted(file)));
    let ranges: Vec<String> =
        touched.ranges.iter().map(|(start, end)| format!("[\"{start:#x}\",\"{end:#x}\"]")).collect();
    format!(
        "{{\"kind\":\"{kind}\",\"bytes\":{},\"count\":{},{source}\"{place}\":{at},\"ranges\":[{}]}}",
        touched.bytes,
        touched.count,
        ranges.join(",")
    )
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if (control as u32) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_in_any_order() {
        let mut touched = Touched::default();
        let mut starts: Vec<u64> = (0..20_000).map(|n| n * 4).collect();
        // Odd ones first, then even ones, then far ones backwards.
        starts.sort_by_key(|n| (n / 4 + 1) % 2);
        starts.extend((0..100).rev().map(|n| 1_000_000 + n * 8));
        starts.iter().for_each(|&at| touched.add(at, at + 4));
        touched.merge();
        assert_eq!(touched.ranges.len(), 101);
        assert_eq!((touched.ranges[0], touched.ranges[1]), ((0, 80_000), (1_000_000, 1_000_004)));
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
