//! The report as text: for people, with a stable `key=value` block for scripts.
//!
//! Owns the wording and the layout. The three paragraphs (this access, the previous access, the
//! allocation, each with its stack) follow PyTorch's CUDA Sanitizer. The synchronisation that is
//! there, what is missing and what would fix it follow Vulkan's synchronization validation.

use crate::cause::RootCause;
use crate::escape::percent_encoded;
use crate::format::access_text::{allocation, is_in_call, side};
use crate::format::by_cause::{CauseGroup, IN_FULL};
pub(crate) use crate::format::no_race_text::breach;
use crate::format::no_race_text::{fault, hint};
use crate::format::{Event, Reporter, Verdict, feed};
use crate::format::{closing, in_kernel_text, programs, stale_text};
use crate::model::{Actor, Finding, Report, Side};
use crate::words::{Established, FindingKind, counted};
use detect::race::Hazard;
use std::fmt::Write as _;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style {
    /// Use ANSI colours.
    pub color: bool,
    /// Make places of frames links that terminals open (OSC 8).
    pub links: bool,
    /// More than one process took part, so the process is named.
    pub processes: bool,
    /// Leave out the line of each finding that is for scripts: a person reads at a terminal.
    pub no_machine_lines: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Ink {
    Alarm,
    Title,
    Code,
    Faint,
}

impl Style {
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Alarm => "1;31",
            Ink::Title => "1",
            Ink::Code => "32",
            Ink::Faint => "2",
        };
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A place, `FILE:LINE` behind blanks, as a link to the file. What is no whole path leads
    /// nowhere and stays text.
    pub(super) fn linked(self, place: &str) -> String {
        let text = place.trim_start();
        let path = match text.rsplit_once(':') {
            Some((path, line)) if line.bytes().all(|b| b.is_ascii_digit()) => path,
            _ => text,
        };
        if !self.links || !path.starts_with('/') {
            return self.paint(Ink::Title, place);
        }
        let blanks = &place[..place.len() - text.len()];
        let (host, path) = (percent_encoded(&system::output::host()), percent_encoded(path));
        self.paint(Ink::Title, &format!("{blanks}\x1b]8;;file://{host}{path}\x1b\\{text}\x1b]8;;\x1b\\"))
    }
}

/// Whether places become links: on a terminal with colours. One that calls itself `dumb` shows the
/// codes, whatever colours were asked for.
pub fn wants_links(color: bool, terminal: bool, term: Option<&str>) -> bool {
    color && terminal && term.is_some_and(|term| term != "dumb")
}

/// Whether to use colours on a stream: asked for, or a terminal that has them (`TERM` says what it
/// is, and that is not `dumb`) without `NO_COLOR`.
pub fn wants_color(color: settings::Color, terminal: bool, no_color: Option<&str>, term: Option<&str>) -> bool {
    match color {
        settings::Color::Always => true,
        settings::Color::Never => false,
        settings::Color::Auto => {
            terminal && no_color.is_none_or(str::is_empty) && term.is_some_and(|term| term != "dumb")
        }
    }
}

/// One finding.
pub(crate) fn finding(f: &Finding, style: Style) -> String {
    let mut out = String::new();
    let rule = style.paint(Ink::Faint, &"=".repeat(80));
    let latent = if f.latent { ", latent" } else { "" };
    let inside = f.in_kernel.as_ref();
    let (what, sure) = match inside {
        Some(k) if f.kind == FindingKind::UninitializedRead => ("READ OF UNWRITTEN MEMORY".to_owned(), k.grade.name()),
        Some(k) => (format!("DATA RACE INSIDE A KERNEL: {}", f.hazard.name()), k.grade.name()),
        None if f.stale.is_some() => ("STALE GRAPH MEMORY".to_owned(), f.confidence.name()),
        None => (format!("DATA RACE: {}", f.hazard.name()), f.confidence.name()),
    };
    let head = format!("streamsan: {what} ({sure}{latent})");
    let _ = writeln!(out, "{rule}\n{}", style.paint(Ink::Alarm, &head));
    let _ = writeln!(out, "{}.", headline(f));
    out.push_str(&doubts(f));
    if let Some(k) = inside {
        let _ = writeln!(out, "The kernel ran as {} on the simulated GPU.", k.code);
    } else if f.established == Established::Exact {
        let _ = writeln!(out, "Measured: the bytes of every kernel here are those that it really touched.");
    }
    if !f.programs.is_empty() {
        let _ = writeln!(out, "In {}.", programs::listed(&f.programs));
    } else if style.processes {
        let others = f.processes.len().saturating_sub(1) as u64;
        let others = if others > 0 { format!(" and {}", counted(others, "other", "others")) } else { String::new() };
        let _ = writeln!(out, "In {}{others}.", f.origin);
    }
    out.push('\n');
    if let Some(k) = inside {
        in_kernel_text::paragraphs(&mut out, style, f, k);
    } else if let Some(stale) = &f.stale {
        stale_text::paragraphs(&mut out, style, f, stale);
    } else {
        side(&mut out, style, "Access", &f.access, f);
        side(&mut out, style, "Previous access", &f.previous, f);
    }
    match &f.allocation {
        _ if inside.is_some() || f.stale.is_some() => {}
        Some(memory) => allocation(&mut out, style, "Memory", memory, f),
        None => {
            let _ = writeln!(
                out,
                "{}: pageable host memory, not an allocation of CUDA\n",
                style.paint(Ink::Title, "Memory")
            );
        }
    }
    if let Some(memory) = &f.previous_allocation {
        allocation(&mut out, style, "The previous access took it for", memory, f);
    }
    let s = &f.synchronisation;
    let _ = writeln!(out, "{}:", style.paint(Ink::Title, "Synchronisation"));
    for line in s.facts.iter().chain([&s.missing]).filter(|l| !l.is_empty()) {
        let _ = writeln!(out, "  {line}");
    }
    for mend in s.mend.iter().filter(|mend| !mend.lines.is_empty()) {
        let orders = f.stale.is_none() && f.kind != FindingKind::UninitializedRead;
        let title = match (mend.api.is_cuda(), orders) {
            (true, true) => "This would order them".into(),
            (true, false) => "This would mend it".into(),
            _ => format!("In {}", mend.api),
        };
        let _ = writeln!(out, "  {title}:");
        for line in &mend.lines {
            let _ = writeln!(out, "      {}", style.paint(Ink::Code, line));
        }
    }
    if style.no_machine_lines {
        let _ = writeln!(
            out,
            "\n{}",
            style.paint(Ink::Faint, &format!("Fingerprint {}, cause {}", f.fingerprint, f.cause))
        );
    } else {
        let _ = writeln!(out, "\n{}", style.paint(Ink::Faint, &machine(f)));
    }
    out
}

/// Why a finding is not certain, and what would settle it.
fn doubts(f: &Finding) -> String {
    let mut out = String::new();
    match &f.doubts[..] {
        [] => return out,
        [one] => drop(writeln!(out, "Certain but for one reason: {}.", one.sentence())),
        several => {
            let _ = writeln!(out, "Not certain, for {} reasons:", several.len());
            for doubt in several {
                let _ = writeln!(out, "  {}", doubt.sentence());
            }
        }
    }
    let mut told: Vec<&str> = Vec::new();
    for settle in f.doubts.iter().flat_map(|doubt| &doubt.settle) {
        if !told.contains(&settle.as_str()) {
            told.push(settle);
        }
    }
    if !told.is_empty() {
        let _ = writeln!(out, "  To settle it: {}.", told.join("; "));
    }
    out
}

/// The hazard as a sentence, for people who do not know the abbreviation.
fn hazard_sentence(hazard: Hazard) -> &'static str {
    match hazard {
        Hazard::ReadAfterWrite => "reads what an unfinished operation may still be writing",
        Hazard::WriteAfterWrite => "writes what an unfinished operation may still be writing",
        Hazard::WriteAfterRead => "overwrites what an unfinished operation may still be reading",
    }
}

/// One line that says what happened.
pub(crate) fn headline(f: &Finding) -> String {
    if let Some(k) = &f.in_kernel {
        return in_kernel_text::headline(f, k);
    }
    if f.stale.is_some() {
        return stale_text::headline(f);
    }
    let actor = match &f.access.kernel {
        Some(kernel) => format!("Kernel {} on {}", short_kernel(kernel), f.access.stream.long),
        None if f.access.actor == Actor::Host => "The host".to_string(),
        None if is_in_call(&f.access) => f.access.call.clone(),
        None if f.access.call.is_empty() => format!("An operation on {}", f.access.stream.long),
        None => format!("{} on {}", f.access.call, f.access.stream.long),
    };
    if f.kind != FindingKind::Race {
        let what = if f.kind == FindingKind::FreedWhileUsed {
            "block of a pool was freed"
        } else {
            "tensor was freed without record_stream"
        };
        return format!(
            "A {what} while {} may still use it: the allocation below could have been given its memory",
            f.previous.stream.long
        );
    }
    let what = match f.access.actor {
        Actor::Free => "frees what an unfinished operation may still be using",
        _ if f.previous.actor == Actor::Free => "uses memory that another stream has freed",
        _ if f.previous.actor == Actor::Alloc => {
            "uses memory before its stream-ordered allocation has come into effect"
        }
        _ => hazard_sentence(f.hazard),
    };
    format!("{actor} {what}")
}

/// A kernel's name without parameters and long template arguments.
pub fn short_kernel(name: &str) -> String {
    let mut depth = 0_u32;
    let mut short = String::new();
    for (at, c) in name.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    short.push_str("<...>");
                }
            }
            // Parentheses are part of two names; elsewhere parameters begin.
            '(' if depth == 0 && !name[at..].starts_with("(anonymous namespace)") && !short.ends_with("operator") => {
                break;
            }
            c if depth == 0 => short.push(c),
            _ => {}
        }
    }
    let short = short.strip_prefix("void ").unwrap_or(&short).trim().to_string();
    if short.is_empty() || name.len() <= 60 { name.strip_prefix("void ").unwrap_or(name).to_string() } else { short }
}

/// The block for machines: one line, keys in a fixed order, values without spaces.
fn machine(f: &Finding) -> String {
    let call = |s: &Side| match s.call.as_str() {
        _ if s.actor == Actor::Host => "host".to_string(),
        "" => "-".to_string(),
        call => call.to_string(),
    };
    let (address, size) = f.allocation.as_ref().map_or((0, 0), |m| (m.address, m.size));
    format!(
        "[streamsan hazard={} confidence={} established={} host={} latent={} access={} stream={} previous={} previous_stream={} \
         bytes={}-{} allocation={address:#x} size={size} count={} pid={} fingerprint={} cause={}]",
        f.hazard.name(),
        f.confidence.name(),
        f.established,
        if f.host { "yes" } else { "no" },
        if f.latent { "yes" } else { "no" },
        call(&f.access),
        f.access.stream.id,
        call(&f.previous),
        f.previous.stream.id,
        f.from,
        f.to,
        f.count,
        f.pid,
        f.fingerprint,
        f.cause,
    )
}

/// The report as text: findings (at most `max_findings` in full), coverage, summary.
pub struct Text {
    style: Style,
    max_findings: u64,
    /// Another reporter of the same run prints the findings.
    told: bool,
    quiet: bool,
    out: String,
    printed: u64,
    left: u64,
    /// Broken rules, behind the findings.
    rules: String,
    /// Causes of what is printed, in the order of the report, each with its findings.
    groups: Vec<CauseGroup>,
    /// Findings of one cause that are printed in full.
    per_cause: u64,
    /// Whether a finding was printed that shows no line of the program.
    without_lines: bool,
}

impl Text {
    /// A report in this style.
    pub fn new(style: Style, max_findings: u64) -> Self {
        Self {
            style,
            max_findings,
            told: false,
            quiet: false,
            out: String::new(),
            printed: 0,
            left: 0,
            rules: String::new(),
            groups: Vec::new(),
            per_cause: IN_FULL,
            without_lines: false,
        }
    }

    /// A report without the findings, which another reporter prints.
    pub(crate) fn beside() -> Self {
        Self { told: true, ..Self::new(Style::default(), 0) }
    }

    /// Of each cause this many findings in full, and the others in one line each; 0: all in full.
    pub fn per_cause(self, findings: u64) -> Self {
        Self { per_cause: if findings == 0 { u64::MAX } else { findings }, ..self }
    }

    /// With `quiet`, findings and errors only: no coverage and no notes, and a summary only beside
    /// findings.
    pub fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }
}

impl Reporter for Text {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(report) => {
                self.style.processes |= report.processes.len() > 1;
                self.groups = report.causes.iter().map(CauseGroup::of).collect();
            }
            Event::Finding(_, Verdict::SetAside) | Event::Breach(_, Verdict::SetAside) => {}
            Event::Breach(b, _) if self.printed < self.max_findings => {
                self.printed += 1;
                self.rules.push_str(&breach(b, self.style));
            }
            Event::Breach(..) => self.left += 1,
            Event::Finding(f, _) => {
                let mut unknown = CauseGroup::default();
                let group = self.groups.iter_mut().find(|group| group.cause.fingerprint == f.cause);
                let is_known = group.is_some();
                let group = group.unwrap_or(&mut unknown);
                group.count(f);
                if self.printed < self.max_findings {
                    self.printed += 1;
                    self.without_lines |= closing::shows_no_line(f);
                    group.take(f, self.style);
                } else {
                    self.left += 1;
                }
                if !is_known {
                    self.out.push_str(&unknown.findings(self.style, u64::MAX));
                }
            }
            Event::End(report) => {
                let any = self.printed + self.left > 0;
                let has_findings = |cause: &RootCause| report.findings.iter().any(|f| f.cause == cause.fingerprint);
                for group in std::mem::take(&mut self.groups) {
                    // One without findings shows once the others are mended: not where there are
                    // none, nor where its findings were set aside.
                    let told = !self.told && group.is_told(any && !has_findings(&group.cause));
                    let (style, full) = (self.style, self.per_cause);
                    self.out.push_str(&if told { group.text(style, full) } else { group.findings(style, full) });
                }
                self.out.push_str(&self.rules);
                if self.printed > 0 {
                    let _ = writeln!(self.out, "{}", self.style.paint(Ink::Faint, &"=".repeat(80)));
                }
                if self.printed + self.left > 0 {
                    self.out.push_str(&closing::trial(report));
                }
                if self.left > 0 && !self.told {
                    let what = counted(self.left, "finding", "findings");
                    let _ = writeln!(self.out, "streamsan: NOTE: {what} not printed (see --max-findings)");
                }
                if self.without_lines && !self.told {
                    self.out.push_str(closing::NO_LINES);
                }
                for h in &report.hints {
                    hint(&mut self.out, self.style, h);
                }
                for f in &report.faults {
                    fault(&mut self.out, self.style, f);
                }
                let quiet = || closing::doubts(report) + &closing::errors(report);
                if self.printed > 0 && !self.quiet {
                    self.out.push_str(&closing::further(report));
                }
                self.out.push_str(&if self.quiet { quiet() } else { closing::coverage(report) });
                if self.quiet && self.printed + self.left == 0 {
                    return;
                }
                let ink = if report.failing() > 0 { Ink::Alarm } else { Ink::Title };
                let _ = writeln!(self.out, "{}", self.style.paint(ink, &closing::summary(report)));
            }
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out).into_bytes()
    }
}

/// The whole report.
pub fn report(report: &Report, style: Style, max_findings: u64) -> String {
    String::from_utf8_lossy(&feed(report, &mut Text::new(style, max_findings))).into_owned()
}
