//! The lines that close a run: COVERAGE with its NOTEs and ERRORs, and SUMMARY.
//!
//! Owns their wording, which scripts and `docs/reference/coverage.md` rely on. Findings are told by
//! [`super::text`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::breach::RuleKind;
use crate::cause::RootCause;
use crate::format::finding_pages;
use crate::format::json::fidelity;
use crate::format::programs;
use crate::format::unproven;
use crate::model::{Breach, Finding, GateStatus, Report};
use crate::words::{CauseKind, counted};
use detect::coverage::Coverage;
use symbols::frame::Frame;
use symbols::library::is_own;

/// The line of fixed form at the end of every run.
pub fn summary(report: &Report) -> String {
    let [certain, likely, possible, latent] = report.counts();
    let total = (certain + likely + possible) as u64;
    let occurrences = report.occurrences();
    let mut kinds = format!("{certain} certain, {likely} likely");
    if report.pedantic {
        let _ = write!(kinds, ", {possible} possible");
    }
    let mut line = format!(
        "streamsan: SUMMARY: {} ({kinds}), {}, {}",
        counted(total, "finding", "findings"),
        counted(occurrences, "occurrence", "occurrences"),
        counted(report.processes.len() as u64, "process", "processes"),
    );
    let causes = report.causes_of(report.failures()).len();
    if causes > 0 {
        let _ = write!(line, ", {}", counted(causes as u64, "cause", "causes"));
    }
    if latent > 0 {
        let _ = write!(line, ", {latent} latent");
    }
    let lets_pass = |b: &&Breach| b.standing == GateStatus::New && !b.fails(report.fail_on);
    let pass = report.shown().filter(|f| !report.fails(f) && !f.latent).count()
        + report.breaches.iter().filter(lets_pass).count();
    if pass > 0 {
        let _ = write!(line, ", {pass} below --fail-on");
    }
    let broken = report.failing_breaches().count() as u64;
    if broken > 0 {
        let _ = write!(line, ", {broken} forbidden");
    }
    let breaches = |standing: fn(GateStatus) -> bool| report.breaches.iter().filter(|b| standing(b.standing)).count();
    let known = report.set_aside().filter(|f| f.standing == GateStatus::Known).count();
    let suppressed = report.set_aside().count() - known;
    let known = known + breaches(|standing| standing == GateStatus::Known);
    if known > 0 {
        let _ = write!(line, ", {known} known");
    }
    let suppressed = suppressed + breaches(|standing| matches!(standing, GateStatus::Suppressed(_)));
    if suppressed > 0 {
        let _ = write!(line, ", {suppressed} suppressed");
    }
    let inside = report.coverage.launches_inside;
    if inside > 0 {
        let _ = write!(line, ", {} checked inside", counted(inside, "launch", "launches"));
    }
    line
}

/// What was tried to mend the findings of the run, as a line.
pub(crate) fn trial(report: &Report) -> String {
    let Some(m) = &report.mended else { return String::new() };
    if !m.skipped.is_empty() {
        let mend = if report.coverage.gaps > 0 || system::interrupt::is_asked() {
            ""
        } else {
            "; record the run (-o FILE) and check the trace"
        };
        return format!("streamsan: NOTE: the mending waits were not tried: {}{mend}\n", m.skipped);
    }
    if m.waits == 0 {
        return String::new();
    }
    let is_wait = |cause: &&RootCause| matches!(cause.kind, CauseKind::MissingWait | CauseKind::MissingHostWait);
    let are_waits = report.causes.iter().filter(|cause| cause.tried).all(|cause| is_wait(&cause));
    let (adding, what) = if are_waits { ("adding", "wait") } else { ("making", "change") };
    let these = if m.waits == 1 { format!("this {what}") } else { format!("these {} {what}s", m.waits) };
    let findings = counted(m.findings, "finding", "findings");
    let mut line = format!("streamsan: TRIED: {adding} {these} ");
    match (m.remain, m.fresh) {
        (0, 0) if m.findings == 1 => line.push_str("removes the finding"),
        (0, 0) => {
            let _ = write!(line, "removes all {findings}");
        }
        (remain, fresh) => {
            let _ = write!(line, "leaves {remain} of {findings}");
            if fresh > 0 {
                let _ = write!(line, " and {fresh} new");
            }
        }
    }
    match m.blocked {
        0 => line.push_str(" without deadlock"),
        _ => line.push_str(", but a wait may never end, behind a value that is written later"),
    }
    if m.waits > 1 && m.smallest {
        line.push_str(if m.waits == 2 { "; both are needed" } else { "; all are needed" });
    }
    // Findings of several processes become one. Each process has tried its own.
    if m.findings > report.findings.len() as u64 {
        line.push_str("; each process counts its own findings");
    } else if m.findings > report.shown().count() as u64 && report.set_aside().next().is_some() {
        line.push_str("; findings that are set aside count");
    }
    line.push('\n');
    line
}

/// Where to read what the kinds of findings are, a line each.
pub(crate) fn further(report: &Report) -> String {
    let line = |(command, address): (String, Option<String>)| {
        let address = address.map_or_else(String::new, |address| format!(" ({address})"));
        format!("streamsan: MORE: {command}{address}\n")
    };
    finding_pages::further(report).into_iter().map(line).collect()
}

/// What became of the waits that the user wrote down, a line each.
fn with(report: &Report) -> String {
    let mut out = String::new();
    for w in &report.with {
        if w.blocked > 0 {
            let _ = writeln!(
                out,
                "streamsan: NOTE: {} ({}): left out {}: a wait there might never end, behind a value that is written later",
                w.text,
                w.place,
                counted(w.blocked, "time", "times")
            );
        }
        let _ = match (w.records, w.waits, w.idle) {
            (_, 0, 0) if w.blocked > 0 => Ok(()),
            (_, waits, _) if waits > 0 => {
                writeln!(out, "streamsan: WITH: {} ({}): {} added", w.text, w.place, counted(waits, "wait", "waits"))
            }
            _ if w.captured > 0 => writeln!(
                out,
                "streamsan: NOTE: {} ({}): only one of the two places is captured into a graph; what waits for other work is the \
                 line that launches the graph",
                w.text, w.place
            ),
            (0, _, 0) => {
                writeln!(out, "streamsan: NOTE: {} ({}): nothing was submitted at either place", w.text, w.place)
            }
            (0, ..) => {
                writeln!(out, "streamsan: NOTE: {} ({}): nothing was submitted at the first place", w.text, w.place)
            }
            (_, _, 0) => {
                writeln!(out, "streamsan: NOTE: {} ({}): nothing was submitted at the second place", w.text, w.place)
            }
            _ => writeln!(
                out,
                "streamsan: NOTE: {} ({}): the second place always came before the first, or on the same stream; a wait \
                 for a later record orders nothing",
                w.text, w.place
            ),
        };
    }
    out
}

/// What filters left out, a line each. `idle`: those that left out nothing, too.
fn filtered(report: &Report, idle: bool) -> String {
    let mut out = String::new();
    for filter in report.judgement.filters.iter().filter(|filter| idle || filter.left_out > 0) {
        let left_out = counted(filter.left_out, "finding", "findings");
        let _ = writeln!(out, "streamsan: NOTE: not everything was wanted: {} left out {left_out}", filter.text);
    }
    out
}

/// The findings that the user's files set aside or left out, a line each.
fn judgement(report: &Report) -> String {
    let mut out = String::new();
    let j = &report.judgement;
    out.push_str(&filtered(report, true));
    for s in &j.suppressions {
        let _ = match s.findings {
            0 => writeln!(out, "streamsan: NOTE: {} ({}) suppressed nothing", s.text, s.place),
            n => writeln!(
                out,
                "streamsan: SUPPRESSED: {} with {} by {} ({})",
                counted(n, "finding", "findings"),
                counted(s.hits, "occurrence", "occurrences"),
                s.text,
                s.place
            ),
        };
    }
    if let Some(absent) = j.absent.filter(|n| *n > 0) {
        let what = counted(absent, "finding of the baseline", "findings of the baseline");
        let _ = writeln!(out, "streamsan: NOTE: {what} did not come up (--write-baseline takes stock anew)");
    }
    out
}

/// The coverage: what could be seen and what could not.
pub fn coverage(report: &Report) -> String {
    let c = &report.coverage;
    let mut out = programs::table(&report.programs);
    let _ = write!(
        out,
        "streamsan: COVERAGE: {} ({} with ranges{}, {} with reads and writes only, {} unknown, {} partly indirect{}), {}",
        counted(c.launches, "launch", "launches"),
        c.launches_exact,
        {
            let in_part = match c.launches_in_part {
                0 => String::new(),
                some => format!(" ({some} in part)"),
            };
            match (c.launches_measured, c.launches_learned) {
                (0, 0) => String::new(),
                (measured, 0) => format!(" of which {measured} measured{in_part}"),
                (measured, learned) => format!(" of which {measured} measured{in_part} and {learned} learned"),
            }
        },
        c.launches_kinds_only,
        c.launches_unknown,
        c.launches_indirect,
        match c.launches_unmeasured {
            0 => String::new(),
            left => format!(", {left} left unmeasured"),
        },
        counted(c.memory_ops, "copy or fill", "copies and fills"),
    );
    let calls: u64 = c.not_modelled.values().sum();
    let _ = write!(out, ", {}", counted(calls, "call not modelled", "calls not modelled"));
    if calls > 0 {
        let _ = write!(out, " ({})", most_frequent(&c.not_modelled));
    }
    out.push('\n');
    for (library, calls) in fidelity::stand_ins(c) {
        let what = counted(calls, "call", "calls");
        let _ = writeln!(out, "streamsan: NOTE: {what} of {library} by the simulator's stand-in");
    }
    if c.unwatched_managed + c.unwatched_pinned > 0 {
        let kinds = [(c.unwatched_managed, "managed"), (c.unwatched_pinned, "pinned")];
        let what = kinds.iter().filter(|k| k.0 > 0).map(|(n, kind)| format!("{n} {kind}")).collect::<Vec<_>>();
        let noun = if c.unwatched_managed + c.unwatched_pinned == 1 { "allocation" } else { "allocations" };
        let _ = writeln!(
            out,
            "streamsan: NOTE: devices used {} {noun} in which loads and stores of the host are not seen ({})",
            what.join(" and "),
            c.watching_option().map_or("not on this driver".into(), |option| format!("{option} sees them"))
        );
    }
    if c.launches_system > 0 {
        let what = counted(c.launches_system, "launch", "launches");
        let _ = writeln!(
            out,
            "streamsan: NOTE: {what} used memory that no CUDA call allocated; this device reaches what malloc \
             gave, and no option watches that (cudaMallocManaged in its place is checked)"
        );
    }
    out.push_str(&unknown_launches(report));
    out.push_str(&unproven::inexact(c));
    out.push_str(&unproven::indirect(c));
    out.push_str(&unobserved(report));
    out.push_str(&left_inside(report));
    out.push_str(&forgotten(report));
    let internal = report.findings.iter().filter(|f| f.internal && !report.pedantic).count() as u64;
    if internal > 0 {
        let what = counted(internal, "finding", "findings");
        let _ = writeln!(
            out,
            "streamsan: NOTE: {what} inside memory that a CUDA library keeps for itself (see --pedantic)"
        );
    }
    let guessed = report.findings.iter().filter(|f| f.is_guessed() && !report.pedantic).count() as u64;
    if guessed > 0 {
        let what = counted(guessed, "finding", "findings");
        let _ = writeln!(
            out,
            "streamsan: NOTE: {what} only if kernels of which nothing is known write their pointers (see --pedantic)"
        );
    }
    out.push_str(&unproven::weak(report));
    let withdrawn = report.withdrawn().count() as u64;
    if withdrawn > 0 {
        let what = counted(withdrawn, "finding", "findings");
        let _ = writeln!(out, "streamsan: NOTE: {what} withdrawn: exact ranges do not meet");
    }
    out.push_str(&paused(report));
    out.push_str(&escaped(report));
    out.push_str(&unmet_rules(report));
    out.push_str(&unmet_names(report));
    out.push_str(&with(report));
    out.push_str(&judgement(report));
    out.push_str(&errors(report));
    out.push_str(&without_work(report));
    out
}

/// Refusals of the simulated GPU that are printed one by one.
const MOST_REFUSALS: usize = 20;

/// What makes a run doubtful in which nothing was found: lines that every report has. Where the
/// coverage is printed, they stand in it.
pub(crate) fn doubts(report: &Report) -> String {
    let c = &report.coverage;
    let mut out = String::new();
    let calls: u64 = c.not_modelled.values().sum();
    if calls > 0 {
        let what = counted(calls, "call not modelled", "calls not modelled");
        let _ = writeln!(out, "streamsan: NOTE: {what}: {}", most_frequent(&c.not_modelled));
    }
    for doubt in [
        unknown_launches,
        unobserved,
        left_inside,
        forgotten,
        paused,
        escaped,
        unmet_rules,
        unmet_names,
        idle_suppressions,
    ] {
        out.push_str(&doubt(report));
    }
    out.push_str(&filtered(report, false));
    out
}

/// A line, if there is something to say.
fn note(text: Option<String>) -> String {
    text.map_or_else(String::new, |text| format!("streamsan: NOTE: {text}\n"))
}

fn unknown_launches(report: &Report) -> String {
    let reasons = &report.coverage.reasons;
    note((!reasons.is_empty()).then(|| format!("unknown launches: {}", most_frequent(reasons))))
}

fn unobserved(report: &Report) -> String {
    let unobserved = &report.coverage.unobserved;
    note((!unobserved.is_empty()).then(|| format!("not observed: {}", most_frequent(unobserved))))
}

fn left_inside(report: &Report) -> String {
    let left = &report.coverage.inside_left;
    note((!left.is_empty()).then(|| format!("not compared inside kernels: {}", most_frequent(left))))
}

fn forgotten(report: &Report) -> String {
    let c = &report.coverage;
    let said = || {
        format!(
            "{} for lack of room, {} not kept, {}",
            counted(c.forgotten, "access was forgotten", "accesses were forgotten"),
            counted(c.findings_dropped, "occurrence was", "occurrences were"),
            counted(c.damaged, "record could not be read", "records could not be read"),
        )
    };
    note((c.forgotten + c.findings_dropped + c.damaged > 0).then(said))
}

fn paused(report: &Report) -> String {
    let paused = report.coverage.paused;
    let what = || counted(paused, "operation was", "operations were");
    note((paused > 0).then(|| format!("{} not checked, because the program had stopped checking", what())))
}

fn escaped(report: &Report) -> String {
    report.coverage.escaped.iter().map(|line| note(Some(line.clone()))).collect()
}

fn unmet_rules(report: &Report) -> String {
    let processes = report.processes.len() as u64;
    let unmet = report.coverage.rules_unmet.iter().filter(|(_, unmet)| **unmet >= processes);
    let line = |rule: &String| {
        let is_range = rule.starts_with(RuleKind::Sync.word());
        let what = if is_range { "the program entered no such NVTX range" } else { "no such module used a stream" };
        note(Some(format!("--forbid {rule}: {what}")))
    };
    unmet.map(|(rule, _)| line(rule)).collect()
}

fn unmet_names(report: &Report) -> String {
    report.unmet_names.iter().map(|line| note(Some(line.clone()))).collect()
}

fn idle_suppressions(report: &Report) -> String {
    let idle = report.judgement.suppressions.iter().filter(|s| s.findings == 0);
    idle.map(|s| note(Some(format!("{} ({}) suppressed nothing", s.text, s.place)))).collect()
}

/// What a run says that had nothing to check.
pub(crate) const NO_WORK: &str = "no CUDA work was seen, so nothing was checked";

/// That nothing was there to be checked.
pub(crate) fn without_work(report: &Report) -> String {
    let c = &report.coverage;
    let nothing = !c.any_work() && c.unchecked.is_empty();
    note(nothing.then(|| NO_WORK.to_owned()))
}

/// Why a run is not clean even if nothing was found: parts of it were not checked. A line each.
pub(crate) fn incomplete(c: &Coverage) -> Vec<String> {
    let refused = c.not_simulated.iter().take(MOST_REFUSALS);
    let refused = refused.map(|why| format!("not run on the simulated GPU, and not checked: {why}"));
    let more = c.not_simulated.len().checked_sub(MOST_REFUSALS).filter(|more| *more > 0);
    let more = more.map(|more| format!("and {more} more that the simulated GPU refused"));
    unrecorded(c).into_iter().chain(refused).chain(more).collect()
}

/// The same without what the simulated GPU refused.
pub fn unrecorded(c: &Coverage) -> Vec<String> {
    let unread = c.unread.iter().map(|why| format!("not read to its end: {why}"));
    let unjudged = c.unjudged.iter().map(|what| format!("not judged: {what}"));
    let mistaken = c.mispredicted.iter();
    let mistaken = mistaken.map(|what| format!("a prediction is wrong: {what}; other launches may be judged by it"));
    let unchecked = c.unchecked.iter().map(|why| format!("not checked: {why}"));
    let disabled = c.disabled.iter();
    let disabled = disabled.map(|why| format!("recording was switched off: {why}; what came later was not checked"));
    let lost = (!c.lost.is_empty()).then(|| format!("lost, and not checked: {}", most_frequent(&c.lost)));
    unread.chain(unjudged).chain(mistaken).chain(unchecked).chain(disabled).chain(lost).collect()
}

/// What could not be checked at all: these lines stand in every report, the quiet one too.
pub(crate) fn errors(report: &Report) -> String {
    let mut out = String::new();
    let c = &report.coverage;
    for why in incomplete(c) {
        let _ = writeln!(out, "streamsan: ERROR: {why}");
    }
    for what in &c.partial {
        let _ = writeln!(out, "streamsan: NOTE: {what}");
    }
    if c.gaps > 0 {
        let processes = counted(c.gaps, "process", "processes");
        let _ = writeln!(
            out,
            "streamsan: NOTE: {processes} with missing segments: no hints, no wait tried, nothing compared between processes"
        );
    }
    for what in &c.assumed {
        let _ = writeln!(out, "streamsan: WHAT IF: {what}");
    }
    for line in programs::unsettled(&report.programs) {
        let _ = writeln!(out, "streamsan: NOTE: {line}");
    }
    for line in programs::errors(&report.programs) {
        let _ = writeln!(out, "streamsan: ERROR: {line}");
    }
    out
}

fn most_frequent(counts: &BTreeMap<String, u64>) -> String {
    let mut list: Vec<(&String, &u64)> = counts.iter().collect();
    list.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
    let shown: Vec<String> = list.iter().take(6).map(|(name, n)| format!("{name}: {n}")).collect();
    let more = if list.len() > 6 { format!(", and {} more", list.len() - 6) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// What would name lines. `nvcc -lineinfo` makes a line table of kernels only (nvcc's manual,
/// "--generate-line-info").
pub(crate) const NO_LINES: &str = "streamsan: NOTE: the program's calls are named by functions: compile with -g to see their lines \
                            (nvcc -lineinfo gives lines inside kernels only)\n";

/// Whether a side of a finding has a function of the program, and no line.
pub(crate) fn shows_no_line(f: &Finding) -> bool {
    [&f.access, &f.previous].iter().any(|side| {
        let own = |frame: &&Frame| is_own(frame) && !frame.function.is_empty();
        let mut own = side.stack.iter().filter(own).peekable();
        own.peek().is_some() && own.all(|frame| frame.file.is_none())
    })
}
