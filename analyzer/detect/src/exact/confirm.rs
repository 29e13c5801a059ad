//! Confirmation of findings: kernels whose predicted bytes make a finding that is not certain are
//! measured from their next launch on, and the measurements confirm or refute the finding.
//!
//! Owns the list of kernels to measure, and the rule by which a finding is refuted. Does not own
//! the findings ([`crate::findings`]) and does not measure: the shim does.
//!
//! # When a finding is refuted
//!
//! A launch that is measured takes part twice: with its measured bytes, as in exact mode, and, in
//! separate maps, with its predicted bytes. A pair of launches (or of a launch and a copy) that
//! races by the predictions is *supposed*. It is refuted when both sides are known to the byte and
//! the measured bytes of the later op raise no race in that allocation at all, with any partner. So
//! a race that only has another partner is not mistaken for none.
//!
//! What was not measured is not refuted: a finding whose places were never seen again stays as it
//! was. With `--exact=PATTERN` besides, the kernels so named are measured from the start, and a
//! refuted race is told as withdrawn though it never was a finding: a hunt's second run asks for
//! that. Otherwise the measurements are of later launches of the same places, not of the first one.
//! Where the bytes are selected by data, the first launches may have met there all the same. The
//! count of withdrawn findings says that there were such.

use crate::confidence::{Confidence, Weakness};
use crate::memory::{Access, Cause, Precision};
use crate::race::Race;
use rustc_hash::FxHashSet;
use trace::KernelId;

/// The confirmation of findings of one process.
#[derive(Default)]
pub struct Confirm {
    named: FxHashSet<KernelId>,
    fresh: Vec<KernelId>,
    /// Kernels are measured from the start, so what is refuted may never have been a finding.
    from_start: bool,
    /// Races that the current op has by the predictions of measured launches.
    pub supposed: Vec<Race>,
}

impl Confirm {
    /// Of a process whose kernels, or some of them, are measured from the start, or are not.
    pub fn new(from_start: bool) -> Self {
        Self { from_start, ..Self::default() }
    }

    /// Whether a refuted race of which there is no finding is to be told: without measurements it
    /// would have been shown.
    pub fn tells(&self, supposed: &Race, least: Confidence) -> bool {
        self.from_start && supposed.confidence >= least && !supposed.latent && !supposed.freed_early
    }

    /// Notes a race. If it is worth showing, guessed, at the rim of a bound, among indices or
    /// texels that data select or behind a condition, and not certain, its kernels are to be
    /// measured.
    pub fn suspect(&mut self, race: &Race, least: Confidence) {
        if race.confidence == Confidence::Certain || race.latent || race.freed_early {
            return;
        }
        // Some are never shown for more than possible, and measuring settles them.
        let guessed = race.previous.site.guessed || race.access.site.guessed;
        let settles = matches!(
            race.weakness,
            Some(
                Weakness::Condition
                    | Weakness::Rim
                    | Weakness::Indices
                    | Weakness::Texels
                    | Weakness::Pieces
                    | Weakness::Calls
                    | Weakness::Claims
            )
        );
        if race.confidence < least && !guessed && !settles {
            return;
        }
        for site in [race.previous.site, race.access.site] {
            let open = site.cause == Cause::Kernel && !site.measured && !site.kernel.is_none();
            if open && self.named.insert(site.kernel) {
                self.fresh.push(site.kernel);
            }
        }
    }

    /// The next kernel to measure from now on. Each kernel is returned once.
    pub fn wanted(&mut self) -> Option<KernelId> {
        self.fresh.pop()
    }
}

/// Whether the measured bytes refute a supposed race. `races`: the races that the same op really
/// has.
pub fn is_refuted(supposed: &Race, races: &[Race]) -> bool {
    let known = |a: &Access| a.site.measured || a.extent.precision == Precision::Exact;
    let op = &supposed.access;
    let same = |r: &Race| r.access.same_op(op) && r.access.allocation == op.allocation;
    known(&supposed.previous) && known(op) && !races.iter().any(same)
}
