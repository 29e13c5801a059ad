//! Whether the analysis takes cores from the program.
//!
//! Owns that question, and how long the pass pauses for it. The threads of a parallel region wait
//! for the slowest of them, so a program whose regions use every core waits a time slice of the
//! system for the thread that shares its core with the analyzer. On an H200 with 16 cores, while
//! kernels were new to the analyzer, each step of 0.5 ms with a parallel region of OpenMP took
//! 8.0 ms (2026-11-30), at each priority of the analyzer. So the threads that work ahead stop while
//! the program has work for nearly all cores, and the pass works a part of the time, as long as the
//! records have room. They do not for what other processes use: the analysis would only end later.
//!
//! How much the program uses does not tell: threads that wait for the slowest one may sleep. How
//! many of its threads want to run does, and is looked at while the cores have no time left.
//!
//! Does not wait: [`crate::backlog`] does, and `detect` for its threads.

use std::num::NonZero;
use std::time::{Duration, Instant};

use crate::process_watch::Processors;
use system::background;

/// Percent of the cores' time, from which on nearly nothing of it is left.
const NEARLY_ALL: u32 = 80;
/// The clock is read for each of so many records.
const RECORDS: u32 = 16;
/// How long the pass works before it looks.
const SLICE: Duration = Duration::from_millis(10);
/// The first pause; each further one in a row is twice as long, up to the last.
const FIRST: Duration = Duration::from_millis(20);
const LAST: Duration = Duration::from_millis(160);

/// What a program takes of the cores.
pub(crate) struct Load {
    program: Processors,
    cores: u32,
    before: Option<Used>,
    /// The next look at the program's threads.
    next: Instant,
}

/// Processor time that was used up to a moment.
#[derive(Clone, Copy)]
struct Used {
    at: Instant,
    by_program: Duration,
    by_analyzer: Duration,
}

impl Load {
    pub(crate) fn of(program: Processors) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { program, cores: u32::try_from(cores).unwrap_or(u32::MAX), before: None, next: Instant::now() }
    }

    /// Holds the analysis back for a moment if the program has work for nearly all cores.
    pub(crate) fn look(&mut self, now: Instant) {
        let both = self.program.time().zip(Processors::of_this_process().time());
        let used = both.map(|(by_program, by_analyzer)| Used { at: now, by_program, by_analyzer });
        let before = std::mem::replace(&mut self.before, used);
        if now >= self.next
            && before.zip(used).is_some_and(|(before, used)| nothing_is_left(before, used, self.cores))
            && self.program.wants(wanted_of(self.cores))
        {
            background::hold_back();
            // Nothing changes while the analysis is held back.
            self.next = now + background::HELD * 2 / 3;
        }
    }
}

/// Whether these two use nearly all of the cores.
fn nothing_is_left(before: Used, now: Used, cores: u32) -> bool {
    let all = now.at.saturating_duration_since(before.at) * cores;
    let program = now.by_program.saturating_sub(before.by_program);
    let analyzer = now.by_analyzer.saturating_sub(before.by_analyzer);
    (program + analyzer) * 100 >= all * NEARLY_ALL
}

/// How many threads want nearly all cores. (At a moment, some of a region's threads may be between
/// two regions.)
fn wanted_of(cores: u32) -> usize {
    (cores - cores / 8) as usize
}

/// When the pass works.
pub(crate) struct Turns {
    records: u32,
    next: Instant,
    pause: Duration,
}

impl Turns {
    /// The pass starts to work now.
    pub(crate) fn begin() -> Self {
        Self { records: 0, next: Instant::now() + SLICE, pause: FIRST }
    }

    /// The pass has waited for records.
    pub(crate) fn rested(&mut self) {
        self.next = Instant::now() + SLICE;
    }

    /// How long to pause before the next record.
    #[inline]
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        self.records = self.records.wrapping_add(1);
        if self.records.is_multiple_of(RECORDS) { self.judge(Instant::now(), background::is_held_back) } else { None }
    }

    fn judge(&mut self, now: Instant, is_held_back: impl FnOnce() -> bool) -> Option<Duration> {
        if now < self.next {
            return None;
        }
        let pause = is_held_back().then_some(self.pause);
        self.pause = pause.map_or(FIRST, |pause| (pause * 2).min(LAST));
        self.next = now + SLICE + pause.unwrap_or_default();
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_where_program_and_analyzer_use_nearly_all() {
        let judged = |program: u32, analyzer: u32, cores: u32| {
            let before = Used { at: Instant::now(), by_program: SLICE * 7, by_analyzer: SLICE * 3 };
            // Tenths of the time of all cores.
            let tenth = SLICE * cores / 10;
            let (program, analyzer) = (tenth * program, tenth * analyzer);
            let now = Used {
                at: before.at + SLICE,
                by_program: before.by_program + program,
                by_analyzer: before.by_analyzer + analyzer,
            };
            nothing_is_left(before, now, cores)
        };
        assert!(judged(9, 1, 16) && judged(8, 0, 16) && judged(5, 4, 2) && judged(4, 5, 2));
        assert!(!judged(1, 1, 16) && !judged(5, 2, 2) && !judged(0, 0, 1));
    }

    #[test]
    fn threads_for_seven_of_eight_cores_want_nearly_all() {
        assert_eq!([1, 2, 4, 8, 16, 32].map(wanted_of), [1, 2, 4, 7, 14, 28]);
    }

    #[test]
    fn the_pass_pauses_longer_each_time() {
        let (mut turns, start) = (Turns::begin(), Instant::now() + SLICE);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let paused: Vec<_> = (0..6).map(|turn| turns.judge(at(turn * 1000), || true)).collect();
        assert_eq!(paused, [20, 40, 80, 160, 160, 160].map(|ms| Some(Duration::from_millis(ms))));
        // Within the pause, and the slice behind it.
        assert_eq!(turns.judge(at(5100), || unreachable!()), None);
        assert_eq!(turns.judge(at(5165), || unreachable!()), None);
        assert_eq!(turns.judge(at(6000), || false), None);
        assert_eq!(turns.judge(at(7000), || true), Some(FIRST));
    }

    #[test]
    fn a_pass_that_waits_for_records_works_a_slice() {
        let mut turns = Turns::begin();
        turns.rested();
        assert_eq!(turns.judge(Instant::now(), || unreachable!()), None);
    }

    #[test]
    fn a_program_that_leaves_cores_holds_nothing_back() {
        let mut load = Load::of(Processors::of_this_process());
        load.cores = 1 << 20;
        let now = Instant::now();
        load.look(now);
        load.look(now + SLICE);
        assert!(!background::is_held_back() && load.before.is_some());
        // This thread runs, and uses all of one core.
        load.cores = 1;
        let upto = load.before.map(|before| before.by_program + SLICE);
        while load.program.time() < upto {}
        load.look(now + SLICE * 2);
        assert!(background::is_held_back());
    }
}
