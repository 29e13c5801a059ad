//! Tools on traces besides race detection: the ops on a time line, the memory, the kernels, the
//! functions called.
//!
//! Owns the resolving of ids that the tools share, process by process. Does not order or judge
//! anything.
//!
//! `timeline`, `memory` and `function_coverage` read a trace, `snapshot` prints what `memory` has
//! read, and `explain` reads a code image. Apart from `snapshot` and `memory` the files do not know
//! each other.

pub mod explain;
pub(crate) mod function_coverage;
pub mod memory;
pub mod snapshot;
pub mod timeline;

use detect::state::names::Names;
use ingest::recorded;
use report::call_site::site;
use report::elaborate::called;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use symbols::Symbolizer;
use symbols::frame::Frame;
use trace::file::{FileError, LATE};
use trace::{CallId, Op, Record, StackId};

/// The definitions of one process.
#[derive(Default)]
pub(crate) struct TracedProcess {
    /// Calls, kernels, threads.
    pub(crate) names: Names,
    symbols: Symbolizer,
    sites: FxHashMap<StackId, String>,
    calls: FxHashMap<(CallId, StackId), String>,
}

impl TracedProcess {
    /// Takes a definition; other ops are ignored.
    fn define(&mut self, op: &Op<'_>) {
        if !self.names.define(op) || matches!(op, Op::Process { .. }) {
            self.symbols.define(op);
        }
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn frames(&mut self, stack: StackId) -> Vec<Frame> {
        self.symbols.resolve(stack)
    }

    /// The call site of a stack, as `file:line`; empty when unknown.
    pub(crate) fn site(&mut self, stack: StackId) -> String {
        if let Some(known) = self.sites.get(&stack) {
            return known.clone();
        }
        let text = site(&self.symbols.resolve(stack)).unwrap_or_default();
        self.sites.insert(stack, text.clone());
        text
    }

    /// The function that the program called, as reports name it; empty when unknown.
    pub(crate) fn call(&mut self, call: CallId, stack: StackId) -> String {
        if let Some(known) = self.calls.get(&(call, stack)) {
            return known.clone();
        }
        let text = called(&self.symbols.resolve(stack), self.names.call(call));
        self.calls.insert((call, stack), text.clone());
        text
    }
}

/// Passes every op of a trace to `each`, with its process and its number. Definitions are kept. The
/// readable part of a damaged trace is passed on before the error.
pub(crate) fn each_op(
    path: &std::path::Path,
    processes: &mut BTreeMap<u32, TracedProcess>,
    mut each: impl FnMut(u32, &mut TracedProcess, &Record<'_>),
) -> Result<(), FileError> {
    recorded::each_late(path, |number, op, _| processes.entry(number).or_default().symbols.define(op));
    recorded::each_record(path, |number, bytes| {
        if number & LATE != 0 {
            return;
        }
        let process = processes.entry(number).or_default();
        let Ok(record) = Record::decode(bytes) else { return };
        if record.op.is_definition() {
            process.define(&record.op);
        } else {
            match record.op {
                Op::ContextCreate { .. } => drop(process.names.define(&record.op)),
                Op::Gap { .. } => process.symbols.define(&record.op),
                _ => {}
            }
            each(number, process, &record);
        }
    })
}
