//! A recorded trace, read back into plain values: what a test asserts on.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use trace::file::Reader;
use trace::{Op, Record};

/// One op (definitions are folded away).
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which process of the trace, from 0.
    pub process: u32,
    /// The shim's number for the host thread.
    pub thread: u32,
    /// Timeline and counter.
    pub epoch: (u32, u64),
    /// The symbol that was called; empty for what follows from another call.
    pub call: String,
    /// The op's name.
    pub op: String,
    /// The kernel's name and parameter bytes, of a launch.
    pub launch: Option<(String, Vec<u8>)>,
    /// The stream's number, of a launch.
    pub stream: u32,
    /// Whether the op has a stack.
    pub has_stack: bool,
}

/// A whole trace.
#[derive(Default, Debug)]
pub struct Trace {
    /// The ops in the order of the file.
    pub ops: Vec<Seen>,
    /// Process ids, by the trace's number.
    pub processes: BTreeMap<u32, u32>,
    /// Records that could not be decoded.
    pub unreadable: usize,
    /// Why reading stopped before the end.
    pub error: Option<String>,
}

impl Trace {
    /// Reads a trace file.
    pub fn read(path: &Path) -> Self {
        let mut trace = Self::default();
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut reader = match Reader::new(std::io::BufReader::new(file)) {
            Ok(reader) => reader,
            Err(error) => return Self { error: Some(error.to_string()), ..trace },
        };
        let (mut calls, mut kernels) = (BTreeMap::new(), BTreeMap::new());
        loop {
            let frame = reader.frame(|process, bytes| {
                let Ok(record) = Record::decode(bytes) else {
                    trace.unreadable += 1;
                    return;
                };
                match record.op {
                    Op::CallName { id, name } => {
                        calls.insert((process, id), name.lossy().into_owned());
                    }
                    Op::Kernel { id, name, .. } => {
                        kernels.insert((process, id), name.lossy().into_owned());
                    }
                    Op::Process { pid, .. } => {
                        trace.processes.insert(process, pid);
                    }
                    op => {
                        let debug = format!("{op:?}");
                        let name = debug.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
                        let (mut launch, mut on) = (None, 0);
                        if let Op::Launch { kernel, params, stream, .. } = op {
                            let kernel = kernels.get(&(process, kernel)).cloned().unwrap_or_default();
                            launch = Some((kernel, params.to_vec()));
                            on = stream.0;
                        }
                        trace.ops.push(Seen {
                            process,
                            thread: record.origin.thread.0,
                            epoch: (record.origin.epoch.timeline.0, record.origin.epoch.time),
                            call: calls.get(&(process, record.origin.call)).cloned().unwrap_or_default(),
                            op: name,
                            launch,
                            stream: on,
                            has_stack: record.origin.stack.0 != 0,
                        });
                    }
                }
            });
            match frame {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    trace.error = Some(error.to_string());
                    break;
                }
            }
        }
        trace
    }

    /// How often each symbol of the driver was called, as far as it left an op.
    pub fn calls(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for op in self.ops.iter().filter(|op| !op.call.is_empty()) {
            *counts.entry(op.call.as_str()).or_default() += 1;
        }
        counts
    }

    /// How many ops of a name there are.
    pub fn count(&self, op: &str) -> usize {
        self.ops.iter().filter(|seen| seen.op == op).count()
    }

    /// The launches.
    pub fn launches(&self) -> impl Iterator<Item = &Seen> {
        self.ops.iter().filter(|seen| seen.launch.is_some())
    }
}

/// Hands out each readable op of a trace file that is no definition of a name, with the symbol that
/// was called.
pub fn each(path: &Path, mut take: impl FnMut(&str, &Op<'_>)) {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = Reader::new(std::io::BufReader::new(file)).expect("a trace");
    let mut calls = BTreeMap::new();
    let mut more = true;
    while more {
        let frame = reader.frame(|process, bytes| {
            let record = Record::decode(bytes).expect("a record");
            if let Op::CallName { id, name } = record.op {
                calls.insert((process, id), name.lossy().into_owned());
            } else {
                take(calls.get(&(process, record.origin.call)).map_or("", String::as_str), &record.op);
            }
        });
        more = frame.expect("a whole trace");
    }
}
