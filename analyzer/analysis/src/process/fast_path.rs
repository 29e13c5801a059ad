//! The fast path of repeated launches: from the bytes of a record to the accesses that the launch
//! made last time.
//!
//! Owns the conditions under which a launch may take this path, and its steps. Most ops of a long
//! run are launches that were made before and find their memory where it was. This path does
//! nothing that the slow path ([`Analysis::feed`]) does not do, in the same order. It steps aside
//! for anything out of the ordinary, before it has changed anything.
//!
//! [`detect::launch_memory`] describes this layer among the others that remember launches.

use super::Analysis;
use detect::launch_memory::launch_key::LaunchKey;
use detect::launches::effects::Launch;
use detect::memory::{Cause, Site};
use trace::launch_flags::{EXACT, INSIDE_LIBRARY, PARAMS_UNKNOWN, PROGRAMMATIC_SERIALIZATION};
use trace::{LaunchRecord, Record};

/// Flags that give a launch a meaning beyond its bytes.
const SPECIAL: u32 = EXACT | INSIDE_LIBRARY | PARAMS_UNKNOWN | PROGRAMMATIC_SERIALIZATION;

impl Analysis {
    /// Whether launches may take the fast path: nothing is done with them but checking. This
    /// changes only with records that take the slow path.
    pub(super) fn is_direct(&self) -> bool {
        let is_judged = self.rules.as_ref().is_some_and(|rules| rules.is_for_launches());
        !is_judged
            && self.is_plain()
            && self.measuring.is_none()
            && self.pending.is_idle()
            && !self.options.hints
            && !self.paused
            && self.memory.escapes.is_idle()
            && !self.gaps.are_doubtful()
            && self.replan.is_none()
    }

    /// Decodes and feeds one record. A damaged one is counted and skipped.
    #[inline]
    pub fn feed_encoded(&mut self, bytes: &[u8]) {
        let launch = LaunchRecord::decode(bytes).and_then(Result::ok);
        self.feed_prefetched(bytes, launch.map(|launch| self.prefetch(&launch)));
    }

    /// The same. `launch`: the hash, if the record is a launch.
    #[inline]
    pub fn feed_prefetched(&mut self, bytes: &[u8], launch: Option<u64>) {
        if let Some(hash) = launch
            && let Some(Ok(launch)) = LaunchRecord::decode(bytes)
            && self.feed_repeated(&launch, hash)
        {
            return;
        }
        match Record::decode(bytes) {
            Ok(record) => self.feed(&record),
            Err(_) => self.damaged(),
        }
    }

    /// The hash of a launch that is fed later. Prefetches its cache entry.
    #[inline(always)]
    pub fn prefetch(&self, record: &LaunchRecord<'_>) -> u64 {
        self.code.prefetch(record.kernel, &Launch { shape: record.shape, params: record.params })
    }

    /// Takes the next record of the trace, a launch whose hash [`Analysis::prefetch`] returned.
    /// False: nothing was done, and the record has to take the slow path.
    #[inline]
    pub(crate) fn feed_repeated(&mut self, record: &LaunchRecord<'_>, hash: u64) -> bool {
        let LaunchRecord { ref origin, stream, kernel, shape, params } = *record;
        if !self.direct || shape.flags & SPECIAL != 0 {
            return false;
        }
        let launch = Launch { shape, params };
        let key = LaunchKey { hash, words: LaunchKey::shape(kernel, &launch) };
        let Some(replay) = self.code.replay_log(&key, &launch).filter(|replay| replay.holds(&self.memory)) else {
            return false;
        };
        let epoch = self.ordering.launch(stream, origin.thread);
        let marks = (self.names.has_torch_blocks(), false);
        self.submissions.launch(&mut self.coverage, (stream, kernel), origin, epoch, marks);
        let site = Site { kernel, ..self.submissions.context(origin, epoch).site(Cause::Kernel, stream) };
        replay.replay(&mut self.memory, (&self.ordering, epoch, None), &site, &mut self.races);
        let tally = replay.tally();
        self.code.count(tally);
        if !self.races.is_empty() {
            self.count_races();
        }
        true
    }
}
