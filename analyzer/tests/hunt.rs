//! The report of a hunt: outcomes that travel through a file, and findings of several programs that
//! are one.

use crate::support::*;
use analyzer::hunt::handed::Handed;
use report::cause::SetCheck;
use report::gate::ending::of_hunt;
use report::model::{Outcome, Report};
use report::program::{Checked, Program as Hunted};
use settings::exit_code::{CLEAN, FINDINGS, INTERNAL, NO_CUDA, PROGRAM_FAILED};
use std::path::PathBuf;
use std::time::Duration;

const N: u64 = 4 << 20;

/// Two kernels on two streams, the first of this name.
fn outcome(first: &str) -> Outcome {
    let mut p = Program::new();
    p.line(40).malloc(X, N);
    let fill = p.kernel(first, &[writes(0, Shape::Exact(0, N))]);
    let scale = p.kernel("scale", &[reads(0, Shape::Bound(0, N)), writes(0, Shape::Exact(0, N))]);
    p.line(52).launch(A, fill, &[X]);
    p.line(53).launch(B, scale, &[X]);
    p.outcome()
}

#[test]
fn outcomes_arrive_as_they_were_sent() {
    let mut first = outcome("fill");
    // The cost of a search is not handed over.
    let cost = |mended: SetCheck| SetCheck { trials: 0, weighed: 0, ..mended };
    first.mended = first.mended.map(cost);
    let sent = Handed {
        outcomes: vec![first, Outcome::default()],
        ended: Err(11),
        timed_out: true,
        code: 3,
        unchecked: vec!["why".to_owned()],
    };
    assert!(!sent.outcomes[0].findings.is_empty() && !sent.outcomes[0].coverage.kernels.is_empty());
    let file = std::env::temp_dir().join(format!("streamsan-handed-{}", std::process::id()));
    sent.write(&file).expect("written");
    assert_eq!(Handed::read(&file), Some(sent));
    // A run that was ended while it wrote has handed over nothing.
    let bytes = std::fs::read(&file).expect("there");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
    assert_eq!(Handed::read(&file), None);
    std::fs::remove_file(&file).expect("there");
    assert_eq!(Handed::read(&file), None);
    assert!(sent_nowhere().is_err());
}

fn sent_nowhere() -> Result<(), String> {
    Handed { outcomes: Vec::new(), ended: Ok(0), timed_out: false, code: 0, unchecked: Vec::new() }
        .write(&PathBuf::from("/nowhere/file"))
}

#[test]
fn findings_of_several_programs_are_one_by_fingerprint() {
    let own = |outcomes: Vec<Outcome>| Report::merge(outcomes, false);
    let reports = [
        ("a", own(vec![Outcome::default(), outcome("fill")])),
        ("b", own(vec![outcome("fill")])),
        ("c\u{1b}", own(vec![outcome("clear")])),
    ];
    let alone = reports[1].1.findings[0].clone();
    let all = Report::of_programs(reports.map(|(name, report)| (name.to_owned(), report)).into(), false);
    let same = all.findings.iter().find(|f| f.programs == ["a", "b"]).expect("one finding of two programs");
    assert_eq!((same.count, &same.fingerprint), (2 * alone.count, &alone.fingerprint));
    assert_eq!((&same.processes[..], &same.occurrences[..]), (&[1, 2][..], &[alone.count; 2][..]));
    let other = all.findings.iter().find(|f| f.programs == ["c\\u{1b}"]).expect("another kernel, another finding");
    assert_ne!(other.fingerprint, alone.fingerprint);
    assert_eq!(all.findings.len(), 2);
    let programs: Vec<_> = all.processes.iter().flat_map(|process| process.program.as_deref()).collect();
    assert_eq!(programs, ["a", "a", "b", "c\\u{1b}"]);
    assert_eq!(all.coverage.launches, 6);
}

#[test]
fn what_was_not_checked_to_its_end_is_never_green() {
    let program = |ended| Hunted {
        name: "it".to_owned(),
        kind: "executable",
        command: Vec::new(),
        folder: String::new(),
        ended,
        why: String::new(),
        launches: 0,
        findings: 0,
        took: Duration::ZERO,
        output: String::new(),
        second: None,
    };
    let code = |outcomes: &[Checked], require_cuda: bool| {
        let mut report = Report::default();
        report.coverage.launches = u64::from(outcomes.contains(&Checked::Clean));
        report.programs = outcomes.iter().map(|ended| program(*ended)).collect();
        of_hunt(&report, FINDINGS, require_cuda).code()
    };
    use Checked::{Clean, Failed, NoCuda, NotChecked, NotRun, Skipped, TimedOut};
    assert_eq!(code(&[Clean, Skipped, NoCuda], false), CLEAN);
    assert_eq!(code(&[Clean, Skipped, NoCuda], true), NO_CUDA);
    assert_eq!((code(&[NoCuda, Skipped], false), code(&[Skipped], false)), (NO_CUDA, NO_CUDA));
    assert_eq!(code(&[Clean, Failed, NoCuda], true), PROGRAM_FAILED);
    for bad in [NotChecked, NotRun, TimedOut] {
        assert_eq!(code(&[Clean, Failed, bad, NoCuda], true), INTERNAL);
    }
    // Findings that are not to count hide nothing else.
    let mut report = Report::merge(vec![outcome("fill")], false);
    report.programs = vec![program(NotChecked)];
    assert_eq!((of_hunt(&report, FINDINGS, false).code(), of_hunt(&report, 0, false).code()), (FINDINGS, INTERNAL));
}
