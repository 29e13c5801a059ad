//! The elaborator of an analysis: everything that names what its ids stand for.
//!
//! Owns which fields that takes. The naming is [`report::elaborate`].

use super::Analysis;
use report::elaborate::Elaborator;

/// The elaborator of an analysis. A macro for the analysis itself, because it borrows only these fields, which a method
/// could not: findings, hints and faults are iterated at the same time.
macro_rules! elaborator {
    ($analysis:expr) => {
        report::elaborate::Elaborator {
            names: &$analysis.names,
            streams: &$analysis.streams,
            regions: &$analysis.submissions.regions,
            handovers: &$analysis.submissions.handovers,
            graphs: &$analysis.graphs,
            stacks: &mut *$analysis.stacks,
            schemas: $analysis.schemas.clone(),
            code: &mut $analysis.code,
            memory_names: $analysis.memory.names(),
            measuring: $analysis.options.measuring,
            resolved: Default::default(),
        }
    };
}
pub(crate) use elaborator;

impl Analysis {
    /// The elaborator of this analysis.
    pub fn elaborator(&mut self) -> Elaborator<'_> {
        elaborator!(self)
    }
}
