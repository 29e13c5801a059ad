//! What else a trace tells besides races: its ops on a time line, its memory.
//!
//! Owns the definitions that both need, process by process. Nothing here is ordered or judged.

pub mod explain;
pub mod function_coverage;
pub mod memory;
pub mod snapshot;
pub mod timeline;

use crate::ingest::recorded;
use crate::report::call_site::site;
use crate::state::names::Names;
use crate::symbols::Symbolizer;
use crate::symbols::frame::Frame;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::file::{FileError, LATE};
use trace::{Op, Record, StackId};

/// What the ids of one process stand for.
#[derive(Default)]
pub struct TracedProcess {
    /// Calls, kernels, threads.
    pub names: Names,
    symbols: Symbolizer,
    sites: FxHashMap<StackId, String>,
}

impl TracedProcess {
    /// Takes a definition; others are passed over.
    fn define(&mut self, op: &Op<'_>) {
        if !self.names.define(op) || matches!(op, Op::Process { .. }) {
            self.symbols.define(op);
        }
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&mut self, stack: StackId) -> Vec<Frame> {
        self.symbols.resolve(stack)
    }

    /// The line of the program that a stack leads to, as `file:line`; empty when unknown.
    pub fn site(&mut self, stack: StackId) -> String {
        if let Some(known) = self.sites.get(&stack) {
            return known.clone();
        }
        let text = site(&self.symbols.resolve(stack)).unwrap_or_default();
        self.sites.insert(stack, text.clone());
        text
    }
}

/// Hands over every op of a trace, with the process it belongs to and its number. Definitions are
/// kept. What is readable of a damaged trace is handed over before the error.
pub fn each_op(
    path: &str,
    processes: &mut BTreeMap<u32, TracedProcess>,
    mut each: impl FnMut(u32, &mut TracedProcess, &Record<'_>),
) -> Result<(), FileError> {
    recorded::each_late(path, |number, op| processes.entry(number).or_default().symbols.define(op));
    recorded::each_record(path, |number, bytes| {
        if number & LATE != 0 {
            return;
        }
        let process = processes.entry(number).or_default();
        let Ok(record) = Record::decode(bytes) else { return };
        if record.op.tag() < 32 {
            process.define(&record.op);
        } else {
            if let Op::ContextCreate { .. } = record.op {
                process.names.define(&record.op);
            }
            each(number, process, &record);
        }
    })
}
