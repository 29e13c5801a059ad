//! Launches that come again, the short way: from the bytes of a record to the accesses that the
//! launch left behind the last time.
//!
//! Owns what such a launch passes by: most ops of a long run are launches that were made before and
//! find their memory as it was. It does nothing that the long way ([`Analysis::feed`]) does not do,
//! in the same order, and steps aside for all that is out of the ordinary.

use super::{Analysis, OpContext};
use crate::launch_memory::launch_key::LaunchKey;
use crate::launches::effects::Launch;
use crate::memory::{Cause, Site};
use trace::launch_flags::{EXACT, INSIDE_LIBRARY, PARAMS_UNKNOWN, PROGRAMMATIC_SERIALIZATION};
use trace::{LaunchRecord, LaunchShape};

/// What makes a launch another one than its bytes tell.
const SPECIAL: u32 = EXACT | INSIDE_LIBRARY | PARAMS_UNKNOWN | PROGRAMMATIC_SERIALIZATION;

impl Analysis {
    /// Whether launches may go the short way: nothing is done with them but to check them. Changes
    /// with records that go the long way only.
    pub(super) fn is_direct(&self) -> bool {
        self.is_plain() && self.hold.is_idle() && !self.options.hints && !self.paused
    }

    /// The hash of a launch that will come; asks for where it is remembered.
    #[inline(always)]
    pub(crate) fn foresee(&self, record: &LaunchRecord<'_>) -> u64 {
        self.code.foresee(record.kernel, &launch_of(&record.shape, record.params))
    }

    /// Takes the next record of the trace, a launch whose hash [`Analysis::foresee`] has told.
    /// False: nothing was done, it has to go the long way.
    #[inline]
    pub(crate) fn feed_again(&mut self, record: &LaunchRecord<'_>, hash: u64) -> bool {
        let LaunchRecord { ref origin, stream, kernel, ref shape, params } = *record;
        if !self.direct || shape.flags & SPECIAL != 0 {
            return false;
        }
        let launch = launch_of(shape, params);
        let key = LaunchKey { hash, words: LaunchKey::shape(kernel, &launch) };
        let Some(trail) = self.code.again(&key, &launch).filter(|trail| trail.is_good(&self.memory)) else {
            return false;
        };
        self.coverage.ops += 1;
        let epoch = self.ordering.launch(stream, origin.thread);
        if self.names.torch {
            self.freed_early.interrupt(origin.thread);
        }
        self.recent.launch(stream, kernel, origin, epoch);
        self.faults.launched(stream, kernel, origin.stack, epoch);
        self.copied = None;
        let moment = OpContext { origin: *origin, epoch, graph: None, region: self.regions.current(origin.thread) };
        let site = Site { kernel, ..moment.site(Cause::Kernel, stream) };
        trail.replay(&mut self.memory, (&self.ordering, epoch, None), &site, &mut self.races);
        let tally = trail.tally();
        self.code.count(tally);
        self.repeats += 1;
        if !self.races.is_empty() {
            self.count_races();
        }
        true
    }
}

#[inline(always)]
fn launch_of<'a>(shape: &LaunchShape, params: &'a [u8]) -> Launch<'a> {
    let LaunchShape { grid, block, cluster, shared, .. } = *shape;
    Launch { grid, block, cluster, shared, params }
}
