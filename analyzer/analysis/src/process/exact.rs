//! Ranges that do not come from the code alone: measured on the device, learned by earlier runs, or
//! put on trial by a measurement (`--exact`, `--confirm`).
//!
//! Owns the state of these modes, and which kernels they ask to be measured. The rules are those of
//! [`detect::exact`].

use super::options::AnalysisOptions;
use detect::confidence::Confidence;
use detect::exact::confirm::Confirm;
use detect::exact::learned::Lessons;
use detect::exact::measuring::SimMeasuring;
use detect::exact::oracle::Oracle;
use detect::exact::pending::PendingRecords;
use detect::exact::settle::Settle;
use detect::race::Race;
use trace::KernelId;
use trace::ring::back_channel::LaunchClass;

/// Measured and learned ranges during one pass.
pub(crate) struct ExactRanges {
    /// Records that wait for a measured launch.
    pub(crate) pending: PendingRecords,
    /// Predictions compared with measurements.
    pub(crate) oracle: Oracle,
    /// Findings on trial.
    pub(crate) confirm: Option<Confirm>,
    settle: Option<Settle>,
    /// The simulated GPU measures launches by itself.
    pub(crate) measuring: Option<Box<SimMeasuring>>,
    /// Ranges learned by earlier runs, and those learned by this one.
    pub(crate) learned: Option<Lessons>,
}

impl ExactRanges {
    pub(super) fn new(options: &AnalysisOptions) -> Self {
        Self {
            pending: PendingRecords::default(),
            oracle: Oracle::default(),
            confirm: options.confirm.then(|| Confirm::new(options.measured_from_start)),
            settle: options.settle.then(Settle::default),
            measuring: None,
            learned: None,
        }
    }

    /// Whether nothing was measured or learned so far, and no answer is waited for.
    pub(super) fn is_unused(&self) -> bool {
        self.settle.is_none() && self.confirm.is_none() && self.learned.is_none() && self.pending.is_unused()
    }

    /// Which launches need no measuring, if that is asked.
    pub(crate) fn settle(&mut self) -> Option<&mut Settle> {
        self.settle.as_mut().or(self.measuring.as_mut().map(|measuring| &mut measuring.settle))
    }

    /// Which kernels are to be measured because findings rest on them, if that is asked.
    fn asks(&mut self) -> Option<&mut Confirm> {
        self.confirm.as_mut().or(self.measuring.as_mut().map(|measuring| &mut measuring.asks))
    }

    /// Where races go that only the predictions of a measured launch make.
    pub(crate) fn supposed(&mut self) -> Option<&mut Vec<Race>> {
        self.confirm.as_mut().map(|confirm| &mut confirm.supposed)
    }

    /// The next kernel to measure from now on. Each kernel is returned once.
    pub(crate) fn wanted(&mut self) -> Option<KernelId> {
        self.asks()?.wanted()
    }

    /// The next class of launches whose need for measurement has changed; true when it need not be
    /// measured.
    pub(crate) fn settled(&mut self) -> Option<(LaunchClass, bool)> {
        self.settle()?.changed()
    }

    /// Puts the races of the current op on trial.
    pub(super) fn suspect(&mut self, races: &[Race], least: Confidence) {
        if let Some(trial) = self.asks() {
            races.iter().for_each(|race| trial.suspect(race, least));
        }
    }
}
