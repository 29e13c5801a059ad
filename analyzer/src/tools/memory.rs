//! `streamsan memory`: the allocations of a trace over its run. The peak, what was allocated at the
//! peak, and what was never freed.
//!
//! Owns the bookkeeping and the text. Allocations that a program's own pool carves out (PyTorch's
//! blocks) are counted apart from the memory that they lie in. A trace has successful calls only,
//! so failed allocations are not in it, and the text says so.

use super::{TracedProcess, each_op};
use report::escape::harmless;
use report::words::{counted, memory_kind};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use symbols::frame::{Frame, FrameKind};
use symbols::stack_text::{self, Line};
use trace::file::FileError;
use trace::{CallId, FreeKind, MemoryKind, Op, StackId};

/// Maximum number of call sites listed.
const MAX_SITES: usize = 12;

/// One allocation or free, in the order of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryEvent {
    /// Number of the op in its process, from 1.
    pub(crate) time: u64,
    /// Whether it is an allocation. Otherwise a free.
    pub(crate) made: bool,
    /// First address.
    pub(crate) ptr: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Kind of memory.
    pub(crate) kind: MemoryKind,
    /// The stream, for stream-ordered memory; 0 otherwise.
    pub(crate) stream: u32,
    /// Where.
    pub(crate) stack: StackId,
}

/// A live allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Live {
    /// The event that made it.
    pub(crate) made: MemoryEvent,
}

/// Memory that is counted together: of the device, of the host, blocks of the program's pools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    /// On a GPU.
    Device,
    /// Pinned on the host.
    Host,
    /// Inside the others.
    Block,
}

impl Class {
    /// The class of a kind of memory; `None` for what is no allocation of its own (registered and
    /// imported memory, variables).
    pub(crate) fn of(kind: MemoryKind) -> Option<Self> {
        match kind {
            MemoryKind::Device
            | MemoryKind::Managed
            | MemoryKind::Pool
            | MemoryKind::Mapped
            | MemoryKind::GraphNode => Some(Self::Device),
            MemoryKind::PinnedHost => Some(Self::Host),
            MemoryKind::Block => Some(Self::Block),
            MemoryKind::RegisteredHost | MemoryKind::ModuleGlobal | MemoryKind::Imported => None,
        }
    }

    /// In prose.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Device => "device memory",
            Self::Host => "pinned host memory",
            Self::Block => "blocks of the program's own pools",
        }
    }
}

/// The highest level of one class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peak {
    /// Bytes now.
    pub(crate) now: u64,
    /// Bytes at the peak.
    pub(crate) bytes: u64,
    /// When, as a number of an op.
    pub(crate) time: u64,
    /// Allocations made.
    pub(crate) count: u64,
}

/// The memory of one process.
#[derive(Default)]
pub(crate) struct MemoryTotals {
    time: u64,
    /// Everything that happened.
    pub(crate) events: Vec<MemoryEvent>,
    /// Live allocations, by class and address.
    pub(crate) live: BTreeMap<(Class, u64), Live>,
    /// Levels.
    pub(crate) peaks: BTreeMap<Class, Peak>,
    /// Calls that failed for lack of memory, by place: how many, and how much device memory was
    /// allocated at the first.
    pub(crate) failed: BTreeMap<(CallId, StackId), (u64, u64)>,
}

impl MemoryTotals {
    fn op(&mut self, op: &Op<'_>, call: CallId, stack: StackId) {
        self.time += 1;
        match *op {
            Op::Alloc { ptr, size, kind, stream, .. } => {
                let Some(class) = Class::of(kind) else { return };
                let event = MemoryEvent { time: self.time, made: true, ptr, size, kind, stream: stream.0, stack };
                // Seen twice (an address that was queried): the first one counts.
                if self.live.contains_key(&(class, ptr)) {
                    return;
                }
                self.live.insert((class, ptr), Live { made: event });
                self.events.push(event);
                let peak = self.peaks.entry(class).or_default();
                peak.count += 1;
                peak.now += size;
                if peak.now > peak.bytes {
                    (peak.bytes, peak.time) = (peak.now, self.time);
                }
            }
            Op::Free { ptr, kind, .. } => {
                let classes: &[Class] = match kind {
                    FreeKind::Block => &[Class::Block],
                    FreeKind::Host => &[Class::Host],
                    FreeKind::Plain | FreeKind::Async | FreeKind::Unmap => &[Class::Device],
                    FreeKind::Unregister | FreeKind::Imported => return,
                };
                for class in classes {
                    let Some(Live { made }) = self.live.remove(&(*class, ptr)) else { continue };
                    self.events.push(MemoryEvent { time: self.time, made: false, stack, ..made });
                    if let Some(peak) = self.peaks.get_mut(class) {
                        peak.now = peak.now.saturating_sub(made.size);
                    }
                }
            }
            // What lives is told again; the rest was freed in what is missing.
            Op::Gap { resumed: false } => {
                for ((class, _), Live { made }) in std::mem::take(&mut self.live) {
                    self.events.push(MemoryEvent { time: self.time, made: false, stack: StackId::NONE, ..made });
                    if let Some(peak) = self.peaks.get_mut(&class) {
                        peak.now = peak.now.saturating_sub(made.size);
                    }
                }
            }
            Op::OutOfMemory {} => {
                let held = self.peaks.get(&Class::Device).map_or(0, |peak| peak.now);
                self.failed.entry((call, stack)).or_insert((0, held)).0 += 1;
            }
            _ => {}
        }
    }

    /// The allocations that were live after the op of this number.
    pub(crate) fn at(&self, class: Class, time: u64) -> Vec<MemoryEvent> {
        let mut live: BTreeMap<u64, MemoryEvent> = BTreeMap::new();
        for event in self.events.iter().filter(|e| e.time <= time && Class::of(e.kind) == Some(class)) {
            if event.made {
                live.insert(event.ptr, *event)
            } else {
                live.remove(&event.ptr)
            };
        }
        live.into_values().collect()
    }
}

/// The memory of all processes of a trace.
pub struct MemoryReport {
    /// By the trace's number of the process.
    pub(crate) processes: BTreeMap<u32, (TracedProcess, MemoryTotals)>,
    /// Why reading stopped before the end.
    pub(crate) error: Option<FileError>,
}

/// Reads a trace.
pub fn read(path: &std::path::Path) -> MemoryReport {
    let mut processes = BTreeMap::new();
    let mut memory: BTreeMap<u32, MemoryTotals> = BTreeMap::new();
    let error = each_op(path, &mut processes, |number, _, record| {
        memory.entry(number).or_default().op(&record.op, record.origin.call, record.origin.stack);
    })
    .err();
    let with = |(number, process)| (number, (process, memory.remove(&number).unwrap_or_default()));
    MemoryReport { processes: processes.into_iter().map(with).collect(), error }
}

/// A call site and the memory allocated there.
struct Holder {
    bytes: u64,
    count: u64,
    kind: MemoryKind,
    frames: Vec<Frame>,
}

fn holders(process: &mut TracedProcess, events: &[MemoryEvent]) -> Vec<Holder> {
    let mut by_stack: FxHashMap<StackId, (u64, u64, MemoryKind)> = FxHashMap::default();
    for event in events {
        let entry = by_stack.entry(event.stack).or_insert((0, 0, event.kind));
        (entry.0, entry.1) = (entry.0 + event.size, entry.1 + 1);
    }
    let mut list: Vec<_> = by_stack.into_iter().collect();
    list.sort_by_key(|(stack, (bytes, ..))| (std::cmp::Reverse(*bytes), stack.0));
    list.into_iter()
        .map(|(stack, (bytes, count, kind))| Holder { bytes, count, kind, frames: process.frames(stack) })
        .collect()
}

impl MemoryReport {
    /// For people.
    pub fn text(&mut self) -> String {
        let mut out = String::new();
        for (process, memory) in self.processes.values_mut() {
            let _ = writeln!(
                out,
                "streamsan: MEMORY: {}, {}",
                process.names.process.name(),
                counted(memory.time, "op", "ops")
            );
            if memory.peaks.is_empty() {
                let _ = writeln!(out, "  nothing was allocated");
            }
            for (class, peak) in &memory.peaks {
                let (name, made) = (class.name(), counted(peak.count, "allocation", "allocations"));
                let _ = writeln!(
                    out,
                    "\n{name}: peak {} at op {}, {made}, {} at the end",
                    bytes(peak.bytes),
                    peak.time,
                    bytes(peak.now)
                );
                let at_peak = holders(process, &memory.at(*class, peak.time));
                list(&mut out, "  held at the peak by", &at_peak);
                let left: Vec<MemoryEvent> =
                    memory.live.iter().filter(|((c, _), _)| c == class).map(|(_, live)| live.made).collect();
                if !left.is_empty() {
                    list(&mut out, "  never freed", &holders(process, &left));
                }
            }
            for ((call, stack), (count, held)) in &memory.failed {
                let name = process.names.call(*call).to_string();
                let times = if *count > 1 { format!("{count} times") } else { "once".to_string() };
                let _ = writeln!(
                    out,
                    "\n{name} failed {times} for lack of memory, with {} of device memory allocated",
                    bytes(*held)
                );
                frames(&mut out, &process.frames(*stack));
            }
            out.push('\n');
        }
        out
    }

    /// For machines. An event is the number of its op, what it was, address, bytes, kind of memory,
    /// and its place among `places` (stacks).
    pub fn json(&mut self) -> Value {
        let sites = |list: Vec<Holder>| -> Vec<Value> {
            let site = |h: Holder| json!({ "bytes": h.bytes, "count": h.count, "kind": format!("{:?}", h.kind), "stack": report::format::json::stack(&h.frames) });
            list.into_iter().map(site).collect()
        };
        let mut list = Vec::new();
        for (process, memory) in self.processes.values_mut() {
            let mut classes = Vec::new();
            for (class, peak) in &memory.peaks {
                let left: Vec<MemoryEvent> =
                    memory.live.iter().filter(|((c, _), _)| c == class).map(|(_, live)| live.made).collect();
                classes.push(json!({
                    "class": class.name(),
                    "peak": { "bytes": peak.bytes, "op": peak.time, "held": sites(holders(process, &memory.at(*class, peak.time))) },
                    "allocations": peak.count,
                    "end": { "bytes": peak.now, "held": sites(holders(process, &left)) },
                }));
            }
            let mut places: Vec<StackId> = memory.events.iter().map(|e| e.stack).collect();
            places.sort_unstable();
            places.dedup();
            let event = |e: &MemoryEvent| {
                let (what, place) = (if e.made { "alloc" } else { "free" }, places.partition_point(|p| *p < e.stack));
                json!([e.time, what, e.ptr, e.size, format!("{:?}", e.kind), place])
            };
            let events: Vec<Value> = memory.events.iter().map(event).collect();
            let places: Vec<Value> =
                places.iter().map(|stack| report::format::json::stack(&process.frames(*stack))).collect();
            let failed: Vec<Value> = memory
                .failed
                .iter()
                .map(|((call, stack), (count, held))| {
                    let stack = report::format::json::stack(&process.frames(*stack));
                    json!({ "call": process.names.call(*call), "count": count, "device_bytes": held, "stack": stack })
                })
                .collect();
            let pid = process.names.process.pid;
            list.push(
                json!({ "pid": pid, "ops": memory.time, "classes": classes, "failed": failed, "events": events, "places": places }),
            );
        }
        json!({ "version": 1, "time": "logical: numbers of ops", "processes": list })
    }
}

fn list(out: &mut String, title: &str, holders: &[Holder]) {
    let _ = writeln!(out, "{title}:");
    for h in holders.iter().take(MAX_SITES) {
        let times = if h.count > 1 { format!(" in {} allocations", h.count) } else { String::new() };
        let _ = writeln!(out, "    {}{times}, {}", bytes(h.bytes), memory_kind(Some(h.kind)));
        frames(out, &h.frames);
    }
    if holders.len() > MAX_SITES {
        let rest: u64 = holders[MAX_SITES..].iter().map(|h| h.bytes).sum();
        let _ = writeln!(out, "    {} at {} more places", bytes(rest), holders.len() - MAX_SITES);
    }
}

/// The innermost frames of a stack that are informative.
fn frames(out: &mut String, stack: &[Frame]) {
    let frames: Vec<Frame> = stack.iter().filter(|f| f.kind != FrameKind::Folded).cloned().collect();
    for line in stack_text::lines(&frames).iter().take(4) {
        match line {
            Line::Folded(text) => drop(writeln!(out, "        ... {}", harmless(text))),
            Line::Frame { name, place, .. } => {
                let _ = writeln!(out, "        {}{}", harmless(name), harmless(place));
            }
        }
    }
}

/// A number of bytes for people, exact below a kilobyte.
fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 4 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        counted(n, "byte", "bytes")
    } else {
        format!("{value:.1} {} ({n} bytes)", ["", "KiB", "MiB", "GiB", "TiB"][unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{ContextId, PoolId, StreamId};

    fn alloc(ptr: u64, size: u64, kind: MemoryKind) -> Op<'static> {
        Op::Alloc { ptr, size, kind, context: ContextId(1), stream: StreamId(0), pool: PoolId(0), flags: 0 }
    }

    fn free(ptr: u64, kind: FreeKind) -> Op<'static> {
        Op::Free { ptr, kind, stream: StreamId(0) }
    }

    #[test]
    fn peaks_and_leaks() {
        let mut m = MemoryTotals::default();
        m.op(&alloc(0x1000, 100, MemoryKind::Device), CallId(1), StackId(1));
        m.op(&alloc(0x1000, 60, MemoryKind::Block), CallId(1), StackId(2));
        m.op(&alloc(0x2000, 50, MemoryKind::Device), CallId(1), StackId(3));
        m.op(&free(0x1000, FreeKind::Block), CallId(1), StackId(4));
        m.op(&free(0x1000, FreeKind::Plain), CallId(1), StackId(4));
        m.op(&alloc(0x1000, 70, MemoryKind::Pool), CallId(1), StackId(5));
        m.op(&alloc(0x9000, 8, MemoryKind::ModuleGlobal), CallId(1), StackId(6));
        m.op(&free(0x7777, FreeKind::Plain), CallId(1), StackId(7));
        m.op(&Op::OutOfMemory {}, CallId(2), StackId(8));
        m.op(&Op::OutOfMemory {}, CallId(2), StackId(8));
        assert_eq!(m.failed[&(CallId(2), StackId(8))], (2, 120));
        let device = &m.peaks[&Class::Device];
        assert_eq!((device.bytes, device.time, device.now, device.count), (150, 3, 120, 3));
        let block = &m.peaks[&Class::Block];
        assert_eq!((block.bytes, block.now), (60, 0));
        let held: Vec<u64> = m.at(Class::Device, 3).iter().map(|e| e.size).collect();
        assert_eq!(held, [100, 50]);
        let left: Vec<u64> = m.live.values().map(|l| l.made.size).collect();
        assert_eq!(left, [70, 50]);
        assert_eq!(bytes(1536), "1.5 KiB (1536 bytes)");
    }
}
