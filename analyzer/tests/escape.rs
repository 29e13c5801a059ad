//! Names of the program in reports: a kernel, thread, file or range may have any name, and a report
//! shows it as a name. No line begins another report or a command of a CI system, and there is no
//! control sequence and no markup.

use crate::support::*;
use detect::hints::HintKind;
use report::format::{Reporter, feed};
use report::format::{code_quality, csan, github, html, json, junit, markdown, sarif, text};
use report::model::{Finding, Hint, Report};
use settings::FailOn;
use symbols::frame::{Frame, FrameKind};
use trace::*;

/// Ends the line, issues a command, clears the screen, reverses the text, leaves the markup.
const NAME: &str = "k\n::error::gotcha\r\nstreamsan: SUMMARY: 0 findings\u{1b}[2J\u{9b}31m\u{202e}</script>\"]]><b a='1'>%0A::set-output";

fn hostile() -> Report {
    let mut p = Program::new();
    p.raw(Op::Thread { id: ThreadId(1), tid: 77, name: NAME.into() });
    p.line(40).malloc(X, 4096);
    let fill = p.kernel(NAME, &[writes(0, Shape::Exact(0, 4096))]);
    let scale = p.kernel(&format!("{NAME}2"), &[reads(0, Shape::Exact(0, 4096))]);
    p.raw(Op::RangePush { name: NAME.into() });
    p.line(52).launch(A, fill, &[X]);
    p.line(53).launch(B, scale, &[X]);
    p.raw(Op::Note { kind: NoteKind::NotModelled, text: NAME.into(), count: 1 });
    p.raw(Op::Note { kind: NoteKind::Disabled, text: NAME.into(), count: 1 });
    let mut outcome = p.outcome();
    let frame = Frame {
        kind: FrameKind::Python,
        function: NAME.into(),
        file: Some(NAME.into()),
        line: Some(3),
        module: Some(NAME.into()),
        address: 0,
        inlined: false,
        source: Some(NAME.into()),
    };
    let f = &mut outcome.findings[0];
    for stack in [&mut f.access.stack, &mut f.previous.stack, &mut f.access.stream.stack, &mut f.previous.launched] {
        stack.insert(0, frame.clone());
    }
    f.access.operator = Some(NAME.into());
    f.allocation.as_mut().expect("memory").stack.push(frame.clone());
    outcome.process.trace = Some(NAME.into());
    outcome.process.args.push(NAME.into());
    let (stack, other) = (vec![frame.clone()], vec![frame]);
    outcome.hints.push(Hint { kind: HintKind::NeverWaitedFor, text: NAME.into(), count: 1, pid: 1, stack, other });
    let mut report = Report::merge(vec![outcome], false);
    report.fail_on = FailOn::Likely;
    report
}

fn printed(mut reporter: impl Reporter) -> String {
    String::from_utf8(feed(&hostile(), &mut reporter)).expect("UTF-8")
}

/// Only printable characters, and lines that the format itself began.
#[track_caller]
fn only_shows(text: &str) {
    for c in ['\r', '\u{1b}', '\u{9b}', '\u{202e}', '\0'] {
        assert!(!text.contains(c), "{c:?} in:\n{text}");
    }
    assert!(text.contains("gotcha"), "the name is shown:\n{text}");
    assert!(!text.lines().any(|l| l.trim_start().starts_with("::error::gotcha")), "{text}");
}

#[test]
fn text_reports() {
    let style = text::Style { color: false, links: false, processes: true, no_machine_lines: false };
    let plain = printed(text::Text::new(style, 50));
    only_shows(&plain);
    let summaries: Vec<&str> = plain.lines().filter(|l| l.starts_with("streamsan: SUMMARY")).collect();
    assert_eq!(summaries.len(), 1, "{plain}");
    assert!(summaries[0].contains("1 finding"), "{plain}");
    assert!(
        plain.contains(r"k\n::error::gotcha\r\nstreamsan: SUMMARY: 0 findings\u{1b}[2J\u{9b}31m\u{202e}"),
        "{plain}"
    );
    only_shows(&printed(csan::Csan::default()));
}

#[test]
fn commands_of_ci_systems() {
    let commands = printed(github::Annotations::new(github::Workspace::new("/nowhere")));
    only_shows(&commands);
    assert!(commands.lines().all(|l| l.starts_with("::error ") || l.starts_with("::warning ")), "{commands}");
    // The finding, and the recording that was switched off.
    assert_eq!(commands.lines().filter(|l| l.starts_with("::error ")).count(), 2);
    // A percent sign of the program is no escape for the runner.
    assert!(commands.contains("%250A::set-output"), "{commands}");
}

#[test]
fn markup() {
    let page = printed(html::Html::default());
    assert_eq!(page.matches("</script>").count(), printed_scripts(), "{page}");
    let xml = printed(junit::Junit::new(junit::Origin::here()));
    assert!(!xml.contains("<b a=") && !xml.contains('\u{1b}'), "{xml}");
    let open = xml.matches('<').count();
    assert_eq!(open, xml.matches('>').count(), "every bracket is the format's own");
    for (what, value) in [
        ("sarif", printed(sarif::Sarif::new(github::Workspace::new("/nowhere")))),
        ("code quality", printed(code_quality::CodeQuality::new(github::Workspace::new("/nowhere")))),
        ("json", format!("{:#}", json::report(&hostile()))),
    ] {
        let parsed: serde_json::Value = serde_json::from_str(&value).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(parsed.to_string().contains("gotcha"));
        assert!(!value.contains('\u{1b}') && !value.contains('\u{202e}'), "{what}");
    }
}

#[test]
fn tables_of_markdown() {
    let page = printed(markdown::Markdown::new(github::Workspace::new("/nowhere"), 50));
    only_shows(&page);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| **")).collect();
    assert_eq!(rows.len(), 1, "{page}");
    let columns = |row: &str| row.replace("\\\\", "").replace("\\|", "").matches('|').count();
    assert_eq!(columns(rows[0]), 7, "{}", rows[0]);
    // Markup outside blocks of code is the format's own.
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let own = line.replace("\\\\", "").replace("\\<", "");
        assert!(fenced || !own.contains("</script") && !own.contains("<b "), "{line}");
    }
    assert_eq!(page.matches("<details>").count(), 1, "{page}");
}

/// Ends of scripts in a page without findings.
fn printed_scripts() -> usize {
    let page = feed(&Report::default(), &mut html::Html::default());
    String::from_utf8(page).expect("UTF-8").matches("</script>").count()
}

#[test]
fn what_identifies_a_finding_is_the_name_itself() {
    let fingerprint = |name: &str| {
        let mut p = Program::new();
        p.line(40).malloc(X, 4096);
        let (fill, scale) =
            (p.kernel(name, &[writes(0, Shape::Exact(0, 8))]), p.kernel("s", &[reads(0, Shape::Exact(0, 8))]));
        p.line(52).launch(A, fill, &[X]);
        p.line(53).launch(B, scale, &[X]);
        let found: Vec<Finding> = p.report().findings;
        found[0].fingerprint.clone()
    };
    assert_ne!(fingerprint("a\n"), fingerprint("a\\n"));
    assert_eq!(fingerprint("a\n"), fingerprint("a\n"));
}
