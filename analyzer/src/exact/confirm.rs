//! Findings on trial: kernels of which a summary makes a finding that is not certain are measured
//! from their next launch on, and what was measured speaks for or against the finding.
//!
//! Owns the list of kernels that are wanted, and the rule by which a finding is refuted. Which
//! findings there are is the business of `findings`; how kernels are measured, the shim's.
//!
//! # When a finding is refuted
//!
//! A launch that is measured takes part twice: with the bytes that were measured, as in exact mode,
//! and, in maps apart, with those that its summary predicts. A pair of launches (or of a launch and
//! a copy) that the predictions would make a race of is *supposed*. It is refuted when both sides
//! are known to the byte and the measured bytes of the later op raise no race in that allocation at
//! all, with nobody: so a race that only has another partner is not mistaken for none.
//!
//! What was not measured is not refuted: a finding whose places were never seen again stays as it
//! was. And what was measured are later launches of the same places, not the first one. Where the
//! bytes are data, they may have met there all the same; the count of withdrawn findings says that
//! there were such.

use crate::detect::confidence::Confidence;
use crate::detect::race::Race;
use crate::memory::{Access, Cause, Precision};
use rustc_hash::FxHashSet;
use trace::KernelId;

/// The trial of one process.
#[derive(Default)]
pub struct Confirm {
    named: FxHashSet<KernelId>,
    fresh: Vec<KernelId>,
    /// Races that the op at hand would have by the predictions of what was measured.
    pub supposed: Vec<Race>,
}

impl Confirm {
    /// Takes note of a race: the kernels of one that is worth showing and not certain are wanted.
    pub fn suspect(&mut self, race: &Race, least: Confidence) {
        if race.confidence == Confidence::Certain || race.confidence < least || race.latent || race.freed_early {
            return;
        }
        for site in [race.previous.site, race.access.site] {
            let open = site.cause == Cause::Kernel && !site.measured && !site.kernel.is_none();
            if open && self.named.insert(site.kernel) {
                self.fresh.push(site.kernel);
            }
        }
    }

    /// A kernel that is to be measured from now on, each once.
    pub fn wanted(&mut self) -> Option<KernelId> {
        self.fresh.pop()
    }
}

/// Whether what was measured refutes a supposed race; `races` are those that the same op really
/// has.
pub fn is_refuted(supposed: &Race, races: &[Race]) -> bool {
    let known = |a: &Access| a.site.measured || a.extent.precision == Precision::Exact;
    let op = &supposed.access;
    let same = |r: &Race| r.access.same_op(op) && r.access.allocation == op.allocation;
    known(&supposed.previous) && known(op) && !races.iter().any(same)
}
