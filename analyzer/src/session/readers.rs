//! The real reader behind the stacks of an [`crate::Analysis`]: debug information.
//!
//! Owns the adapter only; `symbols` reads debug information.

use trace::{Op, StackId};

use crate::report::model::Frame;
use crate::stacks::Stacks;
use crate::symbols::{Symbolizer, demangle};

impl Stacks for Symbolizer {
    fn define(&mut self, op: &Op<'_>) {
        Symbolizer::define(self, op);
    }

    fn resolve(&mut self, stack: StackId) -> Vec<Frame> {
        Symbolizer::resolve(self, stack)
    }

    fn demangle(&self, name: &str) -> String {
        demangle(name)
    }
}
