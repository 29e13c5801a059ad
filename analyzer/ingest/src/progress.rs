//! Progress of a long analysis, on standard error.
//!
//! Owns one line on a terminal, which is erased at the end, and elsewhere a line a minute. Prints
//! nothing for an analysis that is shorter than a second there and a minute here.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// On a terminal: time before the first line, and between two.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);
/// Elsewhere: both.
const MINUTE: Duration = Duration::from_secs(60);

/// The progress line.
pub struct Progress {
    terminal: bool,
    quiet: bool,
    /// Bytes, where it is known how many there are.
    total: Option<u64>,
    began: Instant,
    shown: Option<Instant>,
}

impl Progress {
    /// Progress of `total` bytes.
    pub fn new(total: u64) -> Self {
        Self::of(Some(total.max(1)))
    }

    /// Progress of the rest of a run whose program has ended: how much there is is not known.
    pub fn of_rest() -> Self {
        Self::of(None)
    }

    fn of(total: Option<u64>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { terminal, quiet: false, total, began: Instant::now(), shown: None }
    }

    /// Nothing is printed where the user has asked for that.
    pub fn unless(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Sets the number of bytes done.
    pub(crate) fn at(&mut self, done: u64) {
        self.show(done, Instant::now());
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.show(0, Instant::now());
    }

    fn show(&mut self, done: u64, now: Instant) {
        if self.quiet || !self.is_due(now) {
            return;
        }
        self.shown = Some(now);
        let text = line(done, self.total, now - self.began);
        if self.terminal {
            let mut to = std::io::stderr().lock();
            let _ = write!(to, "\r\x1b[Kstreamsan: {text}").and_then(|()| to.flush());
        } else {
            system::say!("{text}");
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let (first, next) = if self.terminal { (PATIENCE, PAUSE) } else { (MINUTE, MINUTE) };
        self.shown.map_or(now - self.began >= first, |last| now - last >= next)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() && self.terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn line(done: u64, total: Option<u64>, took: Duration) -> String {
    const WIDTH: u64 = 30;
    let Some(total) = total else {
        return format!("checking what the program has left, {} s", took.as_secs());
    };
    let done = done.min(total);
    let full = (done * WIDTH / total) as usize;
    let left = took.as_secs_f64() / (done as f64 / total as f64).max(1e-9) - took.as_secs_f64();
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH as usize - full));
    format!("checking [{bar}] {:3} %, {left:.0} s left", done * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let text = line(50, Some(200), Duration::from_secs(10));
        assert_eq!(text, "checking [#######.......................]  25 %, 30 s left");
        assert!(line(0, Some(1), Duration::ZERO).contains("  0 %"));
        assert!(line(9, Some(3), Duration::ZERO).contains("100 %"));
        assert_eq!(line(0, None, Duration::from_millis(2900)), "checking what the program has left, 2 s");
    }

    #[test]
    fn a_terminal_gets_a_line_that_moves_and_a_log_one_a_minute() {
        let due = |terminal, times: &[u64]| {
            let mut progress = Progress { terminal, ..Progress::of_rest() };
            let mut shown = Vec::new();
            for time in times {
                let now = progress.began + Duration::from_millis(*time);
                if progress.is_due(now) {
                    progress.shown = Some(now);
                    shown.push(*time);
                }
            }
            shown
        };
        let times = [0, 900, 1_000, 1_100, 1_200, 59_000, 60_000, 119_000, 120_000];
        assert_eq!(due(true, &times), [1_000, 1_200, 59_000, 60_000, 119_000, 120_000]);
        assert_eq!(due(false, &times), [60_000, 120_000]);
    }
}
