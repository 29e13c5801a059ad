//! Whether the analysis takes cores from the program.
//!
//! Owns that question, and for how long the analysis is held back. The threads of a parallel region
//! wait for the slowest of them, so a program whose regions use every core waits for the thread
//! that shares its core with the analyzer, until the next tick of the system. On an H200 with 16
//! cores, while kernels were new to the analyzer, each step of 0.5 ms with a parallel region of
//! OpenMP took 8.0 ms (2026-11-30), at each priority of the analyzer. So the analysis stops for a
//! moment, as long as the records have room, when threads of the program wait for processors and
//! do not without it.
//!
//! What the program uses does not tell: it uses little while it waits. How long its threads waited
//! does, and whether they wait less while the analysis is held back: what other processes take, and
//! what a program with more threads than cores takes from itself, the analysis cannot give back.
//!
//! Does not wait: all who analyse do, at safepoints ([`kernels::safepoint`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::process_watch::Processors;

/// The analysis is behind if it uses this part of one core. Otherwise nothing is asked.
const BUSY: u32 = 4;
/// The program waits if its threads, all together, waited for this part of the time.
const MUCH: u32 = 4;
/// For how long the analysis is held back at first. Each further time in a row is twice as long, up
/// to the last. (What was begun before is ended, which takes a part of this time.)
const FIRST: Duration = Duration::from_millis(300);
const LAST: Duration = Duration::from_millis(600);
/// How long it is not, after that did not help at first. Each further time is twice as long, too.
const PATIENCE: Duration = Duration::from_millis(500);
const MOST_PATIENCE: Duration = Duration::from_secs(8);

/// What a program has to wait for.
pub(crate) struct Load {
    program: Processors,
    /// Whether the records have room.
    is_roomy: Arc<AtomicBool>,
    /// Processor time of the analysis at the last look.
    used: Option<Sample>,
    rule: Rule,
}

/// A sum of times up to a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    at: Instant,
    sum: Duration,
}

impl Sample {
    /// What was added per second since an earlier one, in thousandths.
    fn per_second(self, before: Sample) -> u32 {
        let took = self.at.saturating_duration_since(before.at).as_micros().max(1);
        let added = self.sum.saturating_sub(before.sum).as_micros();
        u32::try_from(added * 1000 / took).unwrap_or(u32::MAX)
    }
}

impl Load {
    pub(crate) fn of(program: Processors, is_roomy: Arc<AtomicBool>) -> Self {
        Self { program, is_roomy, used: None, rule: Rule::new(Instant::now()) }
    }

    /// Holds the analysis back for a moment if the program waits for it.
    pub(crate) fn look(&mut self, now: Instant) {
        if !self.is_roomy.load(Ordering::Relaxed) {
            return kernels::go_on();
        }
        let used = Processors::of_this_process().time().map(|sum| Sample { at: now, sum });
        let before = std::mem::replace(&mut self.used, used);
        let used = used.zip(before).map_or(0, |(used, before)| used.per_second(before));
        let program = self.program;
        let waited = || program.waited().map(|sum| Sample { at: now, sum });
        if let Some(time) = self.rule.judge(now, used * BUSY >= 1000, waited) {
            kernels::hold_back(time);
        }
    }
}

/// When the analysis is held back.
struct Rule {
    /// Not asked before.
    next: Instant,
    /// How long the program had waited when it was asked last.
    waited: Option<Sample>,
    /// How much it waited before the analysis was held back, while it is, and whether the second
    /// half of that time has begun, which is judged.
    held: Option<(u32, bool)>,
    time: Duration,
    half: Duration,
    patience: Duration,
}

impl Rule {
    fn new(now: Instant) -> Self {
        Self { next: now, waited: None, held: None, time: FIRST, half: FIRST / 2, patience: PATIENCE }
    }

    /// For how long the analysis is held back from now on. `waited` is how long the program has
    /// waited for processors so far.
    fn judge(&mut self, now: Instant, is_busy: bool, waited: impl FnOnce() -> Option<Sample>) -> Option<Duration> {
        if now < self.next {
            return None;
        }
        if self.held.is_none() && !is_busy {
            self.waited = None;
            return None;
        }
        let waited = waited();
        let before = std::mem::replace(&mut self.waited, waited);
        let rate = waited?.per_second(before?);
        match self.held.take() {
            Some((working, false)) => {
                self.held = Some((working, true));
                self.next = now + self.half;
                return None;
            }
            Some((working, true)) if rate.saturating_mul(2) <= working => {
                self.patience = PATIENCE;
                return None;
            }
            Some(_) => {
                self.next = now + self.patience;
                self.patience = (self.patience * 2).min(MOST_PATIENCE);
                self.waited = None;
                return None;
            }
            None => {}
        }
        if rate * MUCH < 1000 {
            self.time = FIRST;
            return None;
        }
        let time = self.time;
        self.time = (time * 2).min(LAST);
        self.held = Some((rate, false));
        self.half = time / 2;
        self.next = now + self.half;
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_millis(20);

    /// A program whose threads wait for a part of the time (in percent) while the analysis works,
    /// and another one while it is held back. How often and how long it is held back, in ms.
    fn held(working: u32, held_back: u32, is_busy: bool, beats: u32) -> Vec<u128> {
        let began = Instant::now();
        let (mut rule, mut sum, mut until, mut all) = (Rule::new(began), Duration::ZERO, began, Vec::new());
        for beat in 1..=beats {
            let now = began + BEAT * beat;
            sum += BEAT * if now <= until { held_back } else { working } / 100;
            if let Some(time) = rule.judge(now, is_busy, || Some(Sample { at: now, sum })) {
                until = now + time;
                all.push(time.as_millis());
            }
        }
        all
    }

    #[test]
    fn the_analysis_is_held_back_longer_each_time_where_that_helps() {
        assert_eq!(held(100, 3, true, 100), [300, 600, 600, 600]);
    }

    #[test]
    fn what_does_not_help_is_tried_less_and_less() {
        let tried = held(700, 650, true, 2000);
        // 40 seconds: after a half, 1, 2, 4 and 8 of them.
        assert!(tried.len() <= 9 && !tried.is_empty(), "{tried:?}");
    }

    #[test]
    fn nothing_is_held_back_where_nobody_waits_or_nothing_is_analysed() {
        assert!(held(10, 0, true, 100).is_empty() && held(100, 0, false, 100).is_empty());
        let (now, mut rule) = (Instant::now(), Rule::new(Instant::now()));
        assert_eq!([1, 2, 3].map(|beat| rule.judge(now + BEAT * beat, true, || None)), [None; 3]);
    }

    #[test]
    fn a_program_that_does_not_wait_holds_nothing_back_and_records_without_room_let_go() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawn");
        let watch = crate::process_watch::ProcessWatch::new(child.id() as i32);
        let is_roomy = Arc::new(AtomicBool::new(true));
        let mut load = Load::of(watch.processors().expect("the system says"), Arc::clone(&is_roomy));
        let now = Instant::now();
        (0..4).for_each(|beat| load.look(now + BEAT * beat));
        assert!(!kernels::is_held_back());
        kernels::hold_back(Duration::from_secs(600));
        load.look(now);
        assert!(kernels::is_held_back());
        is_roomy.store(false, Ordering::Relaxed);
        load.look(now);
        assert!(!kernels::is_held_back());
        child.kill().expect("kill");
        child.wait().expect("wait");
    }
}
