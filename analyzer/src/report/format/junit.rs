//! The report as JUnit XML, which CI systems show as test results: every finding that fails the run
//! is a failed test.
//!
//! Owns the mapping and XML's escaping. The shape is what Jenkins' schema and the older Ant one
//! have in common: a clean run is one test that passed, a run that checked nothing is one that was
//! skipped, a tool that failed is an error.

use super::text;
use crate::report::call_site::site;
use crate::report::format::{Event, Reporter, Verdict};
use crate::report::model::{Finding, GateStatus, Report};
use std::fmt::Write as _;

/// When and where the report was made, which JUnit wants to know.
pub struct Place {
    /// ISO 8601, seconds, UTC, without a zone.
    pub time: String,
    /// The host.
    pub host: String,
}

impl Place {
    /// Now, on this machine.
    pub fn here() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self { time: iso(now), host: crate::output::host() }
    }
}

/// Seconds since 1970 as a date, by the civil calendar.
fn iso(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0: leap days come last in such years.
    let z = days + 719_468;
    let era = z / 146_097;
    let day = z % 146_097;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Writes JUnit XML.
pub struct Junit {
    place: Place,
    cases: String,
    tests: u64,
    failures: u64,
    skipped: u64,
    out: String,
}

impl Junit {
    /// A report made there and then.
    pub fn new(place: Place) -> Self {
        Self { place, cases: String::new(), tests: 0, failures: 0, skipped: 0, out: String::new() }
    }

    fn finding(&mut self, f: &Finding, verdict: Verdict) {
        self.tests += 1;
        let at = |stack| site(stack).unwrap_or_else(|| "unknown place".into());
        let name =
            format!("{} {} after {} [{}]", f.hazard.name(), at(&f.access.stack), at(&f.previous.stack), f.fingerprint);
        let _ = write!(self.cases, "    <testcase name=\"{}\" classname=\"streamsan\" time=\"0\">", escape(&name));
        match verdict {
            Verdict::Fails => {
                self.failures += 1;
                let body = text::finding(f, text::Style::default());
                let (kind, message) = (f.hazard.name(), text::headline(f));
                let _ = write!(
                    self.cases,
                    "\n      <failure type=\"{kind}\" message=\"{}\">{}</failure>\n    ",
                    escape(&message),
                    escape(&body)
                );
            }
            _ => {
                self.skipped += 1;
                let why = match f.standing {
                    GateStatus::Known => "known from the baseline",
                    GateStatus::Suppressed(_) => "suppressed",
                    GateStatus::New => "does not fail the run",
                };
                let _ = write!(self.cases, "\n      <skipped message=\"{why}\"/>\n    ");
            }
        }
        self.cases.push_str("</testcase>\n");
    }

    fn whole(&mut self, report: &Report) -> String {
        let mut errors = 0;
        let mut case = |inner: &str| {
            let _ = writeln!(
                self.cases,
                "    <testcase name=\"races between CUDA streams\" classname=\"streamsan\" time=\"0\">{inner}</testcase>"
            );
            self.tests += 1;
        };
        if !report.coverage.disabled.is_empty() {
            errors = 1;
            let why = escape(&report.coverage.disabled.join("; "));
            case(&format!("<error type=\"switched-off\" message=\"{why}\"/>"));
        } else if self.failures == 0 && !report.coverage.any_work() {
            self.skipped += 1;
            case("<skipped message=\"no CUDA work was seen, so nothing was checked\"/>");
        } else if self.failures == 0 {
            case("");
        }
        let counts = format!("tests=\"{}\" failures=\"{}\" errors=\"{errors}\"", self.tests, self.failures);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"streamsan\" {counts} skipped=\"{}\" time=\"0\" timestamp=\"{}\" \
             hostname=\"{}\">\n    <properties>\n      <property name=\"version\" value=\"{}\"/>\n    </properties>\n{}    <system-out>{}</system-out>\n    \
             <system-err></system-err>\n  </testsuite>\n</testsuites>\n",
            self.skipped,
            escape(&self.place.time),
            escape(&self.place.host),
            env!("CARGO_PKG_VERSION"),
            self.cases,
            escape(&format!("{}{}", text::coverage(report), text::summary(report))),
        )
    }
}

impl Reporter for Junit {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) => {}
            Event::Finding(f, verdict) => self.finding(f, verdict),
            Event::End(report) => self.out = self.whole(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

/// Text for XML 1.0: control characters, which it cannot hold, become question marks.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(iso(0), "1970-01-01T00:00:00");
        assert_eq!(iso(951_782_400), "2000-02-29T00:00:00");
        assert_eq!(iso(1_795_305_599), "2026-11-21T23:59:59");
        assert_eq!(iso(4_107_542_400), "2100-03-01T00:00:00");
    }

    #[test]
    fn nothing_escapes() {
        assert_eq!(escape("a<b>&\"\u{1b}[1m\u{0}é"), "a&lt;b&gt;&amp;&quot;?[1m?é");
    }
}
