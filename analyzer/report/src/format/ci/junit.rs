//! The report as JUnit XML, which CI systems show as test results: every finding that fails the run
//! is a failed test.
//!
//! Owns the mapping. The shape is what Jenkins' schema and the older Ant one have in common: a
//! clean run is one test that passed, a run that checked nothing is one that was skipped, a tool
//! that failed is an error.

use crate::call_site::site;
use crate::cause::RootCause;
use crate::format::json::fidelity;
use crate::format::{Event, Reporter, Verdict, closing, text};
use crate::model::{Breach, Finding, GateStatus, Report};
use crate::program::{Checked, Program};
use chrono::{DateTime, Utc};
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

/// When and where the report was made, which JUnit wants to know.
pub struct Origin {
    /// ISO 8601, seconds, UTC, without a zone.
    pub time: String,
    /// The host.
    pub host: String,
}

impl Origin {
    /// Now, on this machine.
    pub fn here() -> Self {
        Self { time: iso(Utc::now()), host: system::output::host() }
    }
}

fn iso(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Writes JUnit XML.
pub struct Junit {
    suite: TestSuite,
    causes: Vec<RootCause>,
    out: String,
}

impl Junit {
    /// A report made there and then.
    pub fn new(place: Origin) -> Self {
        let mut suite = TestSuite::new("streamsan");
        // The crate writes a zone behind the time, and fractions of seconds, which Ant's schema
        // refuses.
        for (name, value) in [("time", "0"), ("timestamp", &*place.time), ("hostname", &*place.host)] {
            suite.extra.insert(name.into(), value.into());
        }
        suite.add_property(Property::new("version", env!("CARGO_PKG_VERSION")));
        Self { suite, causes: Vec::new(), out: String::new() }
    }

    fn case(&mut self, name: &str, status: TestCaseStatus) {
        let mut case = TestCase::new(name, status);
        case.set_classname("streamsan");
        case.extra.insert("time".into(), "0".into());
        self.suite.add_test_case(case);
    }

    fn breach(&mut self, b: &Breach, verdict: Verdict) {
        let at = site(&b.side.stack).unwrap_or_else(|| "unknown place".into());
        let name = format!("{} at {at} [{}]", b.kind.name(), b.fingerprint);
        let status = match verdict {
            Verdict::Fails => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(b.kind.name()).set_message(b.text.as_str());
                status.set_description(text::breach(b, text::Style::default()));
                status
            }
            _ => passed_over(b.standing),
        };
        self.case(&name, status);
    }

    fn finding(&mut self, f: &Finding, verdict: Verdict) {
        let at = |stack| site(stack).unwrap_or_else(|| "unknown place".into());
        let name = format!("{} {} after {} [{}]", f.rule(), at(&f.access.stack), at(&f.previous.stack), f.fingerprint);
        let status = match verdict {
            Verdict::Fails => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(f.rule()).set_message(text::headline(f));
                let cause = self.causes.iter().find(|cause| cause.fingerprint == f.cause);
                let cause = cause
                    .map_or_else(String::new, |c| format!("Cause {} ({}): {}\n", c.fingerprint, c.kind, c.missing));
                status.set_description(format!("{cause}{}", text::finding(f, text::Style::default())));
                status
            }
            _ => passed_over(f.standing),
        };
        self.case(&name, status);
    }

    /// A program of a hunt. Its findings are failures of their own.
    fn program(&mut self, p: &Program) {
        let mut status = match p.ended {
            Checked::Clean | Checked::Findings => TestCaseStatus::success(),
            Checked::NoCuda | Checked::Skipped => TestCaseStatus::skipped(),
            Checked::NotChecked | Checked::NotRun | Checked::TimedOut | Checked::Failed => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_type(p.ended.name().replace(' ', "-"));
                status
            }
        };
        if !matches!(p.ended, Checked::Clean | Checked::Findings) {
            status.set_message(if p.why.is_empty() { p.ended.name() } else { &p.why });
        }
        let mut case = TestCase::new(p.name.as_str(), status);
        case.set_classname("streamsan.hunt");
        case.extra.insert("time".into(), format!("{:.3}", p.took.as_secs_f64()).into());
        self.suite.add_test_case(case);
    }

    fn whole(&mut self, report: &Report) -> String {
        const ALL: &str = "races between CUDA streams";
        report.programs.iter().for_each(|program| self.program(program));
        let incomplete = closing::incomplete(&report.coverage);
        if !incomplete.is_empty() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("incomplete").set_message(incomplete.join("; "));
            self.case(ALL, status);
        } else if !report.coverage.mispredicted.is_empty() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("mispredicted").set_message(report.coverage.mispredicted.join("; "));
            self.case(ALL, status);
        } else if !report.programs.is_empty() {
            // Each of them is a test of its own.
        } else if self.suite.failures == 0 && !report.coverage.any_work() {
            let mut status = TestCaseStatus::skipped();
            status.set_message(closing::NO_WORK);
            self.case(ALL, status);
        } else if self.suite.failures == 0 {
            self.case(ALL, TestCaseStatus::success());
        }
        self.suite.add_property(Property::new("fidelity", fidelity::line(&report.coverage)));
        self.suite.set_system_out(format!(
            "{}{}{}",
            closing::trial(report),
            closing::coverage(report),
            closing::summary(report)
        ));
        self.suite.set_system_err("");
        let mut all = quick_junit::Report::unnamed();
        all.add_test_suite(self.suite.clone());
        without_totals(all.to_string().unwrap_or_default())
    }
}

/// What does not fail the run.
fn passed_over(standing: GateStatus) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(match standing {
        GateStatus::Known => "known from the baseline",
        GateStatus::Suppressed(_) => "suppressed",
        GateStatus::New => "does not fail the run",
    });
    status
}

/// The root without its attributes: the crate repeats the suite's numbers there, with one that
/// Jenkins' schema refuses (`skipped`).
fn without_totals(mut xml: String) -> String {
    const ROOT: &str = "<testsuites";
    if let Some(from) = xml.find(ROOT).map(|at| at + ROOT.len())
        && let Some(to) = xml[from..].find('>')
    {
        xml.replace_range(from..from + to, "");
    }
    xml
}

impl Reporter for Junit {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(report) => self.causes.clone_from(&report.causes),
            Event::Finding(f, verdict) => self.finding(f, verdict),
            Event::Breach(b, verdict) => self.breach(b, verdict),
            Event::End(report) => self.out = self.whole(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let of = |seconds| iso(DateTime::from_timestamp(seconds, 0).expect("a time"));
        assert_eq!(of(0), "1970-01-01T00:00:00");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00");
        assert_eq!(of(1_795_305_599), "2026-11-21T23:59:59");
        assert_eq!(of(4_107_542_400), "2100-03-01T00:00:00");
    }

    #[test]
    fn nothing_escapes() {
        let mut junit = Junit::new(Origin { time: "t".into(), host: "a<b>&\"\u{1b}[1m\u{0}é".into() });
        let xml = junit.whole(&Report::default());
        assert!(xml.contains("hostname=\"a&lt;b&gt;&amp;&quot;é\""), "{xml}");
        assert!(xml.contains("\n<testsuites>\n"), "{xml}");
    }
}
