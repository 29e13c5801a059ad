//! The fast path of repeated launches: from the bytes of a record to the accesses that the launch
//! made last time.
//!
//! Owns the conditions under which a launch may take this path, and its steps. Most ops of a long
//! run are launches that were made before and find their memory where it was. This path does
//! nothing that the slow path ([`Pass::feed`]) does not do, in the same order. It steps aside for
//! anything out of the ordinary, before it has changed anything.
//!
//! [`detect::launch_memory`] describes this layer among the others that remember launches.

use super::Pass;
use super::analysis::Analysis;
use crate::process::facts::ProcessFacts;
use detect::launch_memory::launch_key::LaunchKey;
use detect::launches::effects::Launch;
use detect::memory::{Cause, Site};
use trace::launch_flags::{EXACT, INSIDE_LIBRARY, PARAMS_UNKNOWN, PROGRAMMATIC_SERIALIZATION};
use trace::{LaunchRecord, Record};

/// Flags that give a launch a meaning beyond its bytes.
const SPECIAL: u32 = EXACT | INSIDE_LIBRARY | PARAMS_UNKNOWN | PROGRAMMATIC_SERIALIZATION;

impl Analysis {
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
            && self.pass.feed_repeated(&mut self.facts, &launch, hash)
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
        self.facts.code.prefetch(record.kernel, &Launch { shape: record.shape, params: record.params })
    }
}

impl Pass {
    /// Whether launches may take the fast path: nothing is done with them but checking. This
    /// changes only with records that take the slow path.
    pub(super) fn is_direct(&self) -> bool {
        let state = &self.state;
        state.is_plain()
            && state.exact.measuring.is_none()
            && state.exact.pending.is_idle()
            && self.observers.pass_launches_over()
            && !state.paused
            && state.memory.escapes.is_idle()
            && !state.gaps.are_doubtful()
            && self.edits.replan.is_none()
    }

    /// Takes the next record of the trace, a launch whose hash [`Analysis::prefetch`] returned.
    /// False: nothing was done, and the record has to take the slow path.
    #[inline]
    fn feed_repeated(&mut self, facts: &mut ProcessFacts, record: &LaunchRecord<'_>, hash: u64) -> bool {
        let LaunchRecord { ref origin, stream, kernel, shape, params } = *record;
        if !self.direct || shape.flags & SPECIAL != 0 {
            return false;
        }
        let state = &mut self.state;
        if state.ordering.is_behind_fired(stream) {
            return false;
        }
        let launch = Launch { shape, params };
        let key = LaunchKey { hash, words: LaunchKey::shape(kernel, &launch) };
        let Some(replay) = facts.code.replay_log(&key, &launch).filter(|replay| replay.holds(&state.memory)) else {
            return false;
        };
        let epoch = state.ordering.launch(stream, kernel, origin.thread);
        let marks = (facts.names.has_torch_blocks(), false);
        state.submissions.launch(&mut state.coverage, (stream, kernel), origin, epoch, marks);
        let site = Site { kernel, ..state.submissions.context(origin, epoch).site(Cause::Kernel, stream) };
        replay.replay(&mut state.memory, (&state.ordering, epoch, None), &site, &mut state.races);
        let tally = replay.tally();
        facts.code.count(tally);
        self.judge_races(&facts.names);
        true
    }
}
