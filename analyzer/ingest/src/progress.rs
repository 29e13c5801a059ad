//! Progress of a long analysis, on a terminal.
//!
//! Owns one line on stderr, which is erased at the end. Prints nothing elsewhere, or for an
//! analysis of less than a second.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time before the first line.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);

/// The progress line.
pub struct Progress {
    terminal: bool,
    total: u64,
    began: Instant,
    shown: Option<Instant>,
}

impl Progress {
    /// Progress of `total` bytes.
    pub fn new(total: u64) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), total: total.max(1), began: Instant::now(), shown: None }
    }

    /// Sets the number of bytes done.
    pub(crate) fn at(&mut self, done: u64) {
        let now = Instant::now();
        let due = self.shown.map_or(now - self.began >= PATIENCE, |last| now - last >= PAUSE);
        if self.terminal && due {
            self.shown = Some(now);
            let mut to = std::io::stderr().lock();
            let _ = write!(to, "\r\x1b[K{}", line(done, self.total, now - self.began));
            let _ = to.flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn line(done: u64, total: u64, took: Duration) -> String {
    const WIDTH: u64 = 30;
    let done = done.min(total);
    let full = (done * WIDTH / total) as usize;
    let left = took.as_secs_f64() / (done as f64 / total as f64).max(1e-9) - took.as_secs_f64();
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH as usize - full));
    format!("streamsan: checking [{bar}] {:3} %, {left:.0} s left", done * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let text = line(50, 200, Duration::from_secs(10));
        assert_eq!(text, "streamsan: checking [#######.......................]  25 %, 30 s left");
        assert!(line(0, 1, Duration::ZERO).contains("  0 %"));
        assert!(line(9, 3, Duration::ZERO).contains("100 %"));
    }
}
