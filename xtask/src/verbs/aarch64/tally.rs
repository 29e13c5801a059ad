//! Test binaries that run to their end, whatever fails, and a table of what they said.
//!
//! Owns the counts. What is run, and where, is for others to say.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// What each step said.
pub struct Tally {
    began: Instant,
    rows: Vec<Row>,
}

/// A row of the table.
struct Row {
    what: String,
    passed: u32,
    failed: u32,
    ignored: u32,
    seconds: u64,
}

impl Tally {
    /// An empty table; time begins.
    pub fn new() -> Tally {
        Tally { began: Instant::now(), rows: Vec::new() }
    }

    /// Says what comes next.
    pub fn step(&self, what: &str) {
        println!("\n== {:4} s  aarch64: {what}", self.began.elapsed().as_secs());
    }

    /// Runs a command, passes on what it prints, and counts the tests in it. What fails is kept for
    /// the end.
    pub fn run(&mut self, what: &str, command: &mut Command) -> Result<()> {
        let began = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("{what}: {command:?}"))?;
        let mut row = Row { what: what.to_owned(), passed: 0, failed: 0, ignored: 0, seconds: 0 };
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        for line in lines.map_while(Result::ok) {
            println!("{line}");
            row.add(&line);
        }
        let status = child.wait()?;
        row.seconds = began.elapsed().as_secs();
        if !status.success() {
            println!("{what}: {status}");
            // What ended before it could say which test failed counts as one that did.
            row.failed = row.failed.max(1);
        }
        self.rows.push(row);
        Ok(())
    }

    /// Prints the table. An error if anything failed, or if a step ran no test.
    pub fn end(&self) -> Result<()> {
        let bold = if std::io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        println!("\n{}| tests | passed | failed | ignored | seconds |{}\n|---|---|---|---|---|", bold.0, bold.1);
        for row in &self.rows {
            println!("| {} | {} | {} | {} | {} |", row.what, row.passed, row.failed, row.ignored, row.seconds);
        }
        let wrong: Vec<&str> =
            self.rows.iter().filter(|row| row.failed > 0 || row.passed == 0).map(|row| row.what.as_str()).collect();
        if !wrong.is_empty() {
            bail!("failed, or ran no test: {}", wrong.join(", "));
        }
        Ok(())
    }
}

impl Row {
    /// Adds what a line says: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ").and_then(|(_, rest)| rest.split_once(". ")) else {
            return;
        };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => (),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up_and_what_ran_nothing_is_no_success() {
        let mut tally = Tally::new();
        let say = |text: &str, code: u32| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("printf '{text}\\n'; exit {code}")]);
            command
        };
        let ok = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out; finished in 0.00s";
        tally.run("two binaries", &mut say(&format!("{ok}\\n{ok}"), 0)).expect("runs");
        assert_eq!((tally.rows[0].passed, tally.rows[0].failed, tally.rows[0].ignored), (4, 0, 2));
        tally.end().expect("all passed");
        tally.run("nothing", &mut say("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured", 0)).expect("runs");
        assert!(tally.end().expect_err("no test").to_string().contains("nothing"));
        tally.rows.pop();
        tally.run("killed", &mut say(ok, 3)).expect("runs");
        assert!(tally.end().expect_err("a failure").to_string().contains("killed"));
    }
}
