//! Findings on trial, while records are applied (`--confirm`), and kernels that are to be measured
//! because findings rest on them.
//!
//! Owns when an op's races and supposed races go to the trial. The rules are those of
//! [`detect::exact::confirm`].

use super::Analysis;
use detect::confidence::Confidence;
use detect::exact::confirm;
use detect::race;
use trace::KernelId;

impl Analysis {
    /// The next kernel to measure from now on. Each kernel is returned once.
    pub fn wanted(&mut self) -> Option<KernelId> {
        let measuring = self.measuring.as_mut().map(|measuring| &mut measuring.asks);
        self.confirm.as_mut().or(measuring)?.wanted()
    }

    /// Puts the races of the current op on trial.
    pub(super) fn suspect(&mut self) {
        let least = self.least_suspected();
        let measuring = self.measuring.as_mut().map(|measuring| &mut measuring.asks);
        if let Some(trial) = self.confirm.as_mut().or(measuring) {
            self.races.iter().for_each(|race| trial.suspect(race, least));
        }
    }

    /// What the measured bytes of the current op say of the races that predictions make.
    pub(super) fn judge_supposed(&mut self) {
        let Some(trial) = self.confirm.as_mut().filter(|trial| !trial.supposed.is_empty()) else { return };
        let mut supposed = std::mem::take(&mut trial.supposed);
        race::merge(&mut supposed);
        let least = self.least_suspected();
        for race in supposed.iter().filter(|race| confirm::is_refuted(race, &self.races)) {
            let known = self.findings.refute(race, &self.memory);
            if !known && self.confirm.as_ref().is_some_and(|trial| trial.tells(race, least)) {
                self.findings.withdraw(race, &self.memory, &self.streams, &self.submissions.history);
            }
        }
    }

    /// The least confidence of what is put on trial.
    fn least_suspected(&self) -> Confidence {
        if self.options.pedantic { Confidence::Possible } else { Confidence::Likely }
    }
}
