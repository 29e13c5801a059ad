//! How far the hunt is, on standard error.
//!
//! Owns a plain line for each program that has ended and, on a terminal, one line below them with
//! what runs, which is erased at the end.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use report::escape::harmless;
use report::program::{Checked, Program};
use report::words::counted;

/// Between two looks of the line with what runs.
const PAUSE: Duration = Duration::from_millis(500);

/// What is shown.
pub(crate) struct HuntProgress {
    terminal: bool,
    quiet: bool,
    total: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    /// Names, and when they began.
    running: Vec<(String, Instant)>,
    shown: Option<Instant>,
}

impl HuntProgress {
    /// Of so many programs.
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), quiet, total, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program begins.
    pub(crate) fn begin(&self, name: &str) {
        let mut state = self.state();
        state.running.push((harmless(name).into_owned(), Instant::now()));
        state.shown = None;
        self.show(&mut state);
    }

    /// Time passes.
    pub(crate) fn tick(&self) {
        self.show(&mut self.state());
    }

    fn show(&self, state: &mut State) {
        let is_due = state.shown.is_none_or(|at| at.elapsed() >= PAUSE);
        let Some((name, began)) = state.running.first().filter(|_| self.terminal && !self.quiet && is_due) else {
            return;
        };
        let more = state.running.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let line = format!("[{}/{}] {name}{more}, {} s", state.done, self.total, began.elapsed().as_secs());
        // A line that wraps could not be erased.
        let line: String = line.chars().take(78).collect();
        let mut to = std::io::stderr().lock();
        let _ = write!(to, "\r\x1b[K{line}").and_then(|()| to.flush());
        state.shown = Some(Instant::now());
    }

    /// A program has ended.
    pub(crate) fn end(&self, program: &Program) {
        let mut state = self.state();
        state.done += 1;
        let name = harmless(&program.name).into_owned();
        if let Some(at) = state.running.iter().position(|(running, _)| *running == name) {
            state.running.remove(at);
        }
        if !self.quiet {
            let erase = if self.terminal { "\r\x1b[K" } else { "" };
            eprintln!("{erase}{}", line(state.done, self.total, &name, program));
        }
        state.shown = None;
        self.show(&mut state);
    }

    /// Nothing runs any more.
    pub(crate) fn clear(&self) {
        if self.terminal && !self.quiet {
            eprint!("\r\x1b[K");
        }
    }
}

fn line(done: usize, total: usize, name: &str, program: &Program) -> String {
    let width = total.to_string().len();
    let outcome = match program.outcome() {
        Checked::Findings => counted(program.findings, "finding", "findings"),
        other => other.name().to_owned(),
    };
    let second = match program.second.as_ref().filter(|second| second.made) {
        Some(second) => format!("; second run: {}, {:.1} s", second.settled(), second.took.as_secs_f64()),
        None => String::new(),
    };
    format!("streamsan: [{done:>width$}/{total}] {name}: {outcome}, {:.1} s{second}", program.took.as_secs_f64())
}
