//! What is asked of an analysis.
//!
//! Owns [`AnalysisOptions`], and what they mean to the order.

use report::doubt::Measuring;
use report::gate::forbidden::Forbidden;
use settings::{Assumptions, Judging};

/// Options of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnalysisOptions {
    /// What counts as order, and what is looked for.
    pub judging: Judging,
    /// Also compare the predicted bytes of launches with the bytes that exact mode measured.
    pub compare: bool,
    /// Check findings that are not certain by measurement: ask for their kernels to be measured,
    /// and withdraw the findings that the measurements refute.
    pub confirm: bool,
    /// With `confirm`: some kernels are measured from the start.
    pub measured_from_start: bool,
    /// What the run measures, for the words of what it leaves in doubt.
    pub measuring: Measuring,
    /// Determine which kernels need no measuring.
    pub settle: bool,
    /// What is assumed of the program, if anything is.
    pub assumptions: Option<&'static Assumptions>,
    /// What the program must not do, if anything.
    pub forbidden: Option<&'static [Forbidden]>,
}

impl AnalysisOptions {
    /// What the engine of the order is to know.
    pub(crate) fn order(&self) -> order::Options {
        let mut options = order::Options::default();
        options.policy = self.judging.policy;
        options.latent = self.judging.latent;
        // XLA reuses host buffers from host functions, and other programs fulfil promises there.
        options.host_functions_signal = true;
        // Without the trace's word for it, host threads share a timeline all the same.
        options.host_threads = self.judging.host_threads;
        options.pageable_copies_wait = !self.judging.pageable_copies;
        options.left_values = true;
        options
    }

    /// The options of a trial: what the first pass has answered is not asked again.
    pub(crate) fn of_trial(self) -> Self {
        let judging = Judging { hints: false, ..self.judging };
        Self { judging, compare: false, settle: false, forbidden: None, ..self }
    }
}
