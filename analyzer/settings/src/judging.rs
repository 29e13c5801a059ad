//! How strictly pairs of accesses are judged.
//!
//! Owns [`Judging`], the options that the command line and the analysis share.

use order::Policy;

/// What counts as order, and which pairs and mistakes are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judging {
    /// Which synchronisations count as order.
    pub policy: Policy,
    /// Also look for pairs that only an unpromised synchronisation orders.
    pub latent: bool,
    /// Judge work that is not ordered after the end of a synchronous copy from pageable memory.
    pub pageable_copies: bool,
    /// Also compare unknown extents at different addresses, and show weak findings.
    pub pedantic: bool,
    /// Also look for calls that are no race but probably a mistake.
    pub hints: bool,
    /// Give each host thread a timeline.
    pub host_threads: bool,
}

impl Default for Judging {
    fn default() -> Self {
        Self {
            policy: Policy::Observed,
            latent: false,
            pageable_copies: true,
            pedantic: false,
            hints: false,
            host_threads: false,
        }
    }
}
