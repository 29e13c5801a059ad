//! `streamsan timeline`: the ops of a trace for Perfetto and chrome://tracing, in Chrome's trace
//! event format.
//!
//! Owns the drawing. A trace holds an order but no clock: **time is logical**. Every op takes one
//! step. A stream's op begins after the ones before it in its stream, after what the stream waits
//! for, and not before it was submitted. Streams and host threads are tracks, ops are slices, and
//! flow arrows show what orders two tracks. Ops that take part in a race are red, and an arrow
//! leads from the previous access to the access ([`races`]).

mod races;

use super::{TracedProcess, each_op};
use races::Races;
use report::model::{Outcome, titled};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use symbols::demangle;
use trace::file::FileError;
use trace::{EventId, Op, Record, Region, StreamId, StreamKind, SyncId, SyncScope, ThreadId};

/// Length of one step, in the microseconds of viewers.
const STEP: u64 = 10;

/// The argument of a slice that names the findings which it takes part in.
const RACES: &str = "races";

/// Tracks of host threads come after those of streams.
const HOST: u64 = 1_000_000;

/// The place where an arrow starts.
#[derive(Clone, Copy)]
struct Mark {
    track: u64,
    time: u64,
}

/// A wait of the host that has begun.
struct Waiting {
    began: u64,
    thread: ThreadId,
    /// The ops that it waits for.
    marks: Vec<Mark>,
    /// Its call, and where: only the record of its beginning has them.
    call: String,
    at: String,
}

#[derive(Default)]
struct Lanes {
    /// The end of the last slice of each stream.
    streams: FxHashMap<StreamId, u64>,
    events: FxHashMap<EventId, Mark>,
    syncs: FxHashMap<SyncId, Waiting>,
    tracks: BTreeMap<u64, Track>,
    now: u64,
    /// The findings of the process.
    races: Races,
}

/// The names of a track.
#[derive(Default)]
struct Track {
    /// `stream 3`, `host thread`.
    name: String,
    /// What the program calls the stream by NVTX; empty if it does not.
    called: String,
    /// Behind the name: ` (non-blocking)`.
    kind: &'static str,
}

struct Drawing<W: Write> {
    to: W,
    first: bool,
    flows: u64,
    slices: u64,
}

impl<W: Write> Drawing<W> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let comma = if self.first { "" } else { ",\n" };
        self.first = false;
        write!(self.to, "{comma}{event}")
    }

    fn slice(&mut self, pid: u32, at: Mark, steps: u64, name: &str, kind: &str, args: Value) -> io::Result<()> {
        self.slices += 1;
        // Slices end just before the next step, so that neighbours do not overlap.
        let dur = steps * STEP - 1;
        let (ts, tid) = (at.time * STEP, at.track);
        let racing = args.get(RACES).is_some();
        let mut slice =
            json!({ "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "cat": kind, "args": args });
        if racing {
            // The red of the viewers' palette.
            slice["cname"] = "terrible".into();
        }
        self.event(&slice)
    }

    /// An arrow between two slices.
    fn flow(&mut self, pid: u32, from: Mark, to: Mark, (kind, name): (&str, &str)) -> io::Result<()> {
        self.flows += 1;
        let id = self.flows;
        let mut end = |ph: &str, at: Mark| {
            let mut event = json!({ "ph": ph, "pid": pid, "tid": at.track, "ts": at.time * STEP + 1, "id": id, "name": name, "cat": kind });
            if ph == "f" {
                event["bp"] = "e".into();
            }
            self.event(&event)
        };
        end("s", from)?;
        end("f", to)
    }
}

/// The size of the drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drawn {
    /// Slices.
    pub(crate) slices: u64,
    /// Arrows.
    pub(crate) flows: u64,
}

/// Draws a trace with the findings of its processes. The readable part of a damaged one is drawn,
/// and the file is complete in any case. The error is returned beside it.
pub fn draw(path: &std::path::Path, outcomes: &[Outcome], to: impl Write) -> io::Result<(Drawn, Option<FileError>)> {
    let mut d = Drawing { to, first: true, flows: 0, slices: 0 };
    d.to.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"tool\":\"streamsan\",\"time\":\"logical: one step an op, no clock\"},\"traceEvents\":[\n")?;
    let mut processes = BTreeMap::new();
    let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
    let mut races = Races::of(outcomes);
    let mut written = Ok(());
    let error = each_op(path, &mut processes, |number, process, record| {
        if written.is_ok() {
            let lanes = lanes.entry(number).or_insert_with(|| {
                let races = races.remove(&process.names.process.pid).unwrap_or_default();
                Lanes { races, ..Lanes::default() }
            });
            written = lanes.op(&mut d, process, record);
        }
    })
    .err();
    written?;
    for (number, process) in &processes {
        let p = &process.names.process;
        let exe = p.exe.rsplit('/').next().unwrap_or_default();
        let name = json!({ "name": format!("{exe} (time is logical)") });
        d.event(&json!({ "ph": "M", "pid": p.pid, "tid": 0, "name": "process_name", "args": name }))?;
        if let Some(lanes) = lanes.get(number) {
            lanes.name_tracks(&mut d, p.pid)?;
        }
    }
    d.to.write_all(b"\n]}\n")?;
    d.to.flush()?;
    Ok((Drawn { slices: d.slices, flows: d.flows }, error))
}

impl Lanes {
    fn op<W: Write>(&mut self, d: &mut Drawing<W>, process: &mut TracedProcess, record: &Record<'_>) -> io::Result<()> {
        self.now += 1;
        let pid = process.names.process.pid;
        let thread = record.origin.thread;
        let args = |process: &mut TracedProcess, more: Value| {
            let call = process.call(record.origin.call, record.origin.stack);
            let mut args = json!({ "call": call, "at": process.site(record.origin.stack) });
            if let (Some(args), Some(more)) = (args.as_object_mut(), more.as_object()) {
                args.extend(more.clone());
            }
            args
        };
        let bytes = |r: &Region| json!({ "bytes": size(r) });
        match record.op {
            Op::StreamCreate { stream, kind, .. } => {
                let numbered = format!("stream {}", stream.0);
                let (name, kind) = match kind {
                    StreamKind::Blocking => (numbered, " (blocking)"),
                    StreamKind::NonBlocking => (numbered, " (non-blocking)"),
                    StreamKind::Legacy => ("legacy default stream".to_string(), ""),
                    StreamKind::PerThread => (format!("per-thread default stream of thread {}", thread.0), ""),
                };
                self.tracks.entry(stream.0.into()).or_insert(Track { name, called: String::new(), kind });
                Ok(())
            }
            Op::StreamName { stream, name } => {
                self.tracks.entry(stream.0.into()).or_default().called = name.lossy().into_owned();
                Ok(())
            }
            Op::Launch { stream, kernel, shape, .. } => {
                let name = process.names.kernel(kernel).map_or_else(|| "kernel".to_string(), |k| demangle(&k.name));
                let args = args(process, json!({ "grid": shape.grid, "block": shape.block }));
                self.work(d, process, stream, thread, &name, "kernel", args, None)
            }
            Op::Copy { stream, ref dst, .. } => {
                let args = args(process, bytes(dst));
                let name = called(process, record, "copy");
                self.work(d, process, stream, thread, &name, "copy", args, None)
            }
            Op::Set { stream, ref dst, .. } => {
                let args = args(process, bytes(dst));
                let name = called(process, record, "fill");
                self.work(d, process, stream, thread, &name, "fill", args, None)
            }
            Op::GraphLaunch { stream, exec } => {
                let args = args(process, json!({ "graph": exec.0 }));
                self.work(d, process, stream, thread, "graph", "graph", args, None)
            }
            Op::HostFunc { stream, .. } => {
                let args = args(process, json!({}));
                self.work(d, process, stream, thread, "host function", "host", args, None)
            }
            Op::WriteValue { stream, address, value, .. } | Op::WaitValue { stream, address, value, .. } => {
                let args = args(process, json!({ "address": format!("{address:#x}"), "value": value }));
                self.work(d, process, stream, thread, record.op.name(), "value", args, None)
            }
            Op::EventRecord { event, stream, .. } => {
                let args = args(process, json!({ "event": event.0 }));
                let time = self.begin(stream);
                self.work(d, process, stream, thread, "event record", "event", args, None)?;
                self.events.insert(event, Mark { track: u64::from(stream.0), time });
                Ok(())
            }
            Op::StreamWait { stream, event, .. } => {
                let args = args(process, json!({ "event": event.0 }));
                let from = self.events.get(&event).copied();
                self.work(d, process, stream, thread, "wait for event", "event", args, from)
            }
            Op::Alloc { stream, size, .. } if !stream.is_none() => {
                let args = args(process, json!({ "bytes": size }));
                self.work(d, process, stream, thread, "allocate", "memory", args, None)
            }
            Op::Free { stream, .. } if !stream.is_none() => {
                let args = args(process, json!({}));
                self.work(d, process, stream, thread, "free", "memory", args, None)
            }
            Op::Alloc { .. } | Op::Free { .. } => {
                let args = args(process, json!({}));
                let at = self.host(process, thread);
                d.slice(pid, at, 1, record.op.name(), "memory", args)
            }
            Op::SyncBegin { sync, scope, stream, event, .. } => {
                let marks = match scope {
                    SyncScope::Event => self.events.get(&event).copied().into_iter().collect(),
                    SyncScope::Stream => self.last(stream).into_iter().collect(),
                    _ => self
                        .streams
                        .keys()
                        .copied()
                        .collect::<Vec<_>>()
                        .into_iter()
                        .filter_map(|s| self.last(s))
                        .collect(),
                };
                let call = called(process, record, "wait");
                let at = process.site(record.origin.stack);
                self.syncs.insert(sync, Waiting { began: self.now, thread, marks, call, at });
                Ok(())
            }
            Op::SyncEnd { sync } => {
                let Some(Waiting { began, thread, marks, call, at }) = self.syncs.remove(&sync) else {
                    return Ok(());
                };
                let track = self.host(process, thread).track;
                // The host continues when the last op that it waits for has ended.
                let end = marks.iter().map(|m| m.time + 1).fold(self.now, u64::max);
                self.now = end;
                let from = Mark { track, time: began };
                d.slice(pid, from, end - began + 1, &call, "wait", json!({ "at": at }))?;
                for mark in marks {
                    d.flow(pid, mark, Mark { track, time: end }, (ORDER, "host waits"))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn last(&self, stream: StreamId) -> Option<Mark> {
        let end = *self.streams.get(&stream)?;
        Some(Mark { track: u64::from(stream.0), time: end.checked_sub(1)? })
    }

    fn begin(&self, stream: StreamId) -> u64 {
        self.streams.get(&stream).copied().unwrap_or_default().max(self.now)
    }

    #[expect(clippy::too_many_arguments, reason = "one slice and where it comes from")]
    fn work<W: Write>(
        &mut self,
        d: &mut Drawing<W>,
        process: &mut TracedProcess,
        stream: StreamId,
        thread: ThreadId,
        name: &str,
        kind: &str,
        mut args: Value,
        after: Option<Mark>,
    ) -> io::Result<()> {
        let pid = process.names.process.pid;
        let track = u64::from(stream.0);
        let named = self.tracks.entry(track).or_default();
        if named.name.is_empty() {
            named.name = format!("stream {}", stream.0);
        }
        let time = self.begin(stream).max(after.map_or(0, |mark| mark.time + 1));
        args["thread"] = process.names.thread(thread).map_or(0, |(tid, _)| tid).into();
        let at = Mark { track, time };
        let text = |key: &str| args[key].as_str().unwrap_or_default();
        let races = self.races.parts(stream, text("call"), text("at"), at);
        if !races.is_empty() {
            args[RACES] = races.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ").into();
        }
        d.slice(pid, at, 1, name, kind, args)?;
        self.streams.insert(stream, time + 1);
        for part in &races {
            match part.previous {
                // Arrows lead forward in time; what is drawn side by side has none.
                Some(from) if from.time < time => d.flow(pid, from, at, (RACE, &part.name))?,
                Some(to) if to.time > time => d.flow(pid, at, to, (RACE, &part.name))?,
                _ => {}
            }
        }
        match after {
            Some(from) if from.track != track => d.flow(pid, from, at, (ORDER, "event")),
            _ => Ok(()),
        }
    }

    fn host(&mut self, process: &TracedProcess, thread: ThreadId) -> Mark {
        let track = HOST + u64::from(thread.0);
        let named = || match process.names.thread(thread) {
            Some((tid, name)) => format!("host thread {tid} {name}").trim_end().to_owned(),
            None => "host".to_owned(),
        };
        self.tracks.entry(track).or_insert_with(|| Track { name: named(), ..Track::default() });
        Mark { track, time: self.now }
    }

    /// Writes the names of the tracks, which are complete only when all ops were seen: a program
    /// may name a stream late.
    fn name_tracks<W: Write>(&self, d: &mut Drawing<W>, pid: u32) -> io::Result<()> {
        for (track, Track { name, called, kind }) in &self.tracks {
            let args = json!({ "name": format!("{}{kind}", titled(name, called)) });
            d.event(&json!({ "ph": "M", "pid": pid, "tid": track, "name": "thread_name", "args": args }))?;
            let args = json!({ "sort_index": track });
            d.event(&json!({ "ph": "M", "pid": pid, "tid": track, "name": "thread_sort_index", "args": args }))?;
        }
        Ok(())
    }
}

/// The categories of arrows: what orders two slices, and what does not.
const ORDER: &str = "order";
const RACE: &str = "race";

/// The name of a slice: its call, as reports name it.
fn called(process: &mut TracedProcess, record: &Record<'_>, otherwise: &str) -> String {
    let call = process.call(record.origin.call, record.origin.stack);
    if call.is_empty() { otherwise.to_owned() } else { call }
}

fn size(region: &Region) -> u64 {
    region.width.saturating_mul(u64::from(region.height.max(1))).saturating_mul(u64::from(region.depth.max(1)))
}
