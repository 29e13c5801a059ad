//! What ids stand for: the facts of a process that its definitions state.
//!
//! Owns [`ProcessFacts`]. They are the same in every pass over the records of a process, so a trial
//! borrows them from the analysis instead of reading them again. What ops change during a pass is
//! [`ProcessState`].

use super::state::ProcessState;
use detect::launch_memory::evaluator::LaunchEvaluator;
use detect::launches::kernel_code::CodeReader;
use detect::state::names::Names;
use detect::state::streams::Streams;
use report::elaborate::Elaborator;
use symbols::stacks::Stacks;
use symbols::torch::Schemas;
use trace::{Op, StreamId};

/// What ids stand for in one process.
pub struct ProcessFacts {
    /// Calls, kernels, threads, devices.
    pub names: Names,
    /// Stacks, with names and lines.
    pub stacks: Box<dyn Stacks>,
    /// Operators of PyTorch.
    pub(crate) schemas: Schemas,
    /// The code of kernels, and what launches of it access.
    pub(crate) code: LaunchEvaluator,
}

impl ProcessFacts {
    /// No fact is known yet. Stacks are resolved with `stacks`, kernels are read with `code`.
    pub(crate) fn new(stacks: Box<dyn Stacks>, code: Box<dyn CodeReader>) -> Self {
        Self { names: Names::default(), stacks, schemas: Schemas::default(), code: LaunchEvaluator::new(code) }
    }

    /// Takes a definition.
    pub(crate) fn define(&mut self, op: &Op<'_>) {
        if let Op::Process { .. } = op {
            self.stacks.define(op);
        }
        if self.names.define(op) {
            return;
        }
        match *op {
            Op::Stack { .. } | Op::Module { .. } | Op::Symbol { .. } | Op::Source { .. } => self.stacks.define(op),
            Op::PyCode { .. } => {
                self.names.python = true;
                self.stacks.define(op);
            }
            Op::Image { .. } | Op::ImageFile { .. } => self.code.image(op),
            Op::Schema { operator, text } => self.schemas.record(&operator.lossy(), &text.lossy()),
            _ => {}
        }
    }

    /// The compute capability of a stream's device.
    pub(crate) fn arch(&self, streams: &Streams, stream: StreamId) -> Option<u32> {
        let context = streams.get(stream).map_or(trace::ContextId::NONE, |s| s.context);
        self.names.arch(context)
    }

    /// Turns ids into names, with what a pass knows of them.
    pub(crate) fn elaborator<'a>(&'a mut self, state: &'a ProcessState) -> Elaborator<'a> {
        Elaborator {
            names: &self.names,
            streams: &state.streams,
            regions: &state.submissions.regions,
            handovers: &state.submissions.handovers,
            polls: &state.polls,
            graphs: &state.graphs,
            maps: &state.memory.tensor_maps,
            stacks: &mut *self.stacks,
            schemas: self.schemas.clone(),
            code: &mut self.code,
            memory_names: state.memory.names(),
            array_levels: state.memory.levels(),
            measuring: state.options.measuring,
            resolved: Default::default(),
        }
    }
}
