//! What a run does not prove, in lines: pairs that a rule sets aside, and launches of which not all
//! is predicted.
//!
//! Owns their wording and their order. Where the lines stand is decided by
//! [`crate::format::closing`].

use std::collections::BTreeMap;

use crate::format::text;
use crate::model::{Finding, GateStatus, Report};
use crate::words::counted;
use detect::confidence::{Confidence, Weakness};
use detect::coverage::Coverage;
use symbols::demangle;

/// The pairs that are possible only by a rule, which may be the wrong one here.
pub(crate) fn weak(report: &Report) -> String {
    let of = |why: Weakness| {
        let which = |f: &&Finding| f.confidence == Confidence::Possible && f.weakness == Some(why);
        let shown = |f: &&Finding| f.internal || f.latent || f.standing != GateStatus::New;
        report.findings.iter().filter(which).filter(|f| !shown(f)).count() as u64
    };
    // The words for one pair and for several, where they are the same.
    let invariant = |why: Weakness, words: &'static str| (of(why), words, words);
    let kinds = [
        (of(Weakness::Rim), "that meets at the edge of an upper bound", "that meet at the edge of an upper bound"),
        invariant(Weakness::Indices, "selected by loaded indices on both sides"),
        invariant(Weakness::Texels, "of texels that are not known (--exact or --confirm tells, on the simulated GPU)"),
        invariant(Weakness::Pieces, "around bytes that data select (--exact or --confirm tells)"),
        invariant(Weakness::Claims, "of elements that threads claim by compare-and-swap"),
        invariant(Weakness::Locks, "of critical sections, which a lock may order"),
        (
            of(Weakness::Handover),
            "handed over by an atomic store, which a load may have seen",
            "handed over by atomic stores, which loads may have seen",
        ),
        (
            of(Weakness::Flag),
            "behind a kernel that polls a flag, which may order it",
            "behind kernels that poll flags, which may order them",
        ),
        (
            of(Weakness::Condition),
            "of a body of a conditional node, which may not run (--exact or --confirm tells)",
            "of bodies of conditional nodes, which may not run (--exact or --confirm tells)",
        ),
        invariant(
            Weakness::HostFunction,
            "behind a host function that may wait for the host (--host-order threads decides)",
        ),
        invariant(
            Weakness::Calls,
            "of launches of one kernel whose calls are not followed (--exact or --confirm tells)",
        ),
        (
            of(Weakness::OpenWait),
            "behind a wait for a value in memory that the host may write",
            "behind waits for values in memory that the host may write",
        ),
        (
            of(Weakness::SameValue),
            "inside a kernel whose threads write one value",
            "inside kernels whose threads write one value",
        ),
        (
            of(Weakness::Unpromised),
            "inside a kernel that lockstep, volatile or a compare-and-swap may order",
            "inside kernels that lockstep, volatile or a compare-and-swap may order",
        ),
        (
            of(Weakness::PartlyWritten),
            "inside a kernel that reads bytes which nothing wrote beside others, or copies them",
            "inside kernels that read bytes which nothing wrote beside others, or copy them",
        ),
        (
            of(Weakness::SameBounds),
            "of a graph with memory that was freed and allocated again by the same line",
            "of graphs with memory that was freed and allocated again by the same line",
        ),
        (
            of(Weakness::NotHandedOut),
            "of a graph with a block that is back in its pool, and whose bytes nobody else has",
            "of graphs with blocks that are back in their pools, and whose bytes nobody else has",
        ),
        invariant(Weakness::Message, "of the host with work that may exchange messages with it through memory"),
    ];
    let said: Vec<String> = kinds.iter().filter(|k| k.0 > 0).map(|(n, one, many)| counted(*n, one, many)).collect();
    let all = kinds.iter().map(|k| k.0).sum::<u64>();
    if report.pedantic || all == 0 {
        return String::new();
    }
    let what = counted(all, "pair", "pairs");
    format!("streamsan: NOTE: {what} set aside as possible only (see --pedantic): {}\n", said.join(", "))
}

/// What would make most launches exact: why extents are unknown, the reason with most launches
/// first, each with the kernels it concerns most.
pub(crate) fn lost_exactness(c: &Coverage) -> Vec<(&'static str, u64, Vec<&str>)> {
    let mut reasons: BTreeMap<&'static str, Vec<(u64, &str)>> = BTreeMap::new();
    for (name, kernel) in &c.kernels {
        for (gap, launches) in &kernel.gaps {
            reasons.entry(gap.reason.words()).or_default().push((*launches, name));
        }
    }
    let named = |(words, mut kernels): (_, Vec<(u64, _)>)| {
        kernels.sort_by_key(|(launches, name)| (std::cmp::Reverse(*launches), *name));
        let launches = kernels.iter().map(|(launches, _)| launches).sum::<u64>();
        (words, launches, kernels.into_iter().map(|(_, name)| name).collect())
    };
    let mut lost: Vec<_> = reasons.into_iter().map(named).collect();
    lost.sort_by_key(|(words, launches, _)| (std::cmp::Reverse(*launches), *words));
    lost
}

/// The same as a line: the three reasons with most launches.
pub(crate) fn inexact(c: &Coverage) -> String {
    let reasons = lost_exactness(c);
    let all: u64 = reasons.iter().map(|r| r.1).sum();
    if all == 0 {
        return String::new();
    }
    let one = |(words, launches, kernels): &(&str, u64, Vec<&str>)| {
        let names: Vec<String> = kernels.iter().take(2).map(|k| text::short_kernel(&demangle(k))).collect();
        let more = if kernels.len() > 2 { ", ..." } else { "" };
        format!("{words}: {launches} ({}{more})", names.join(", "))
    };
    let shown: Vec<String> = reasons.iter().take(3).map(one).collect();
    // A run that has measured is told why it could not measure the others.
    let measure = if c.launches_measured == 0 { " (--exact measures them)" } else { "" };
    format!("streamsan: NOTE: why launches have no ranges: {}{measure}\n", shown.join("; "))
}

/// The kernels that go through addresses which they load from memory, the most frequent first.
/// Races there are not looked for unless the bytes are measured.
pub(crate) fn indirect(c: &Coverage) -> String {
    let mut kernels: Vec<(u64, &str)> =
        c.kernels.iter().filter(|(_, k)| k.indirect > 0).map(|(name, k)| (k.indirect, name.as_str())).collect();
    if kernels.is_empty() {
        return String::new();
    }
    kernels.sort_by_key(|(launches, name)| (std::cmp::Reverse(*launches), *name));
    let all = kernels.iter().map(|(launches, _)| launches).sum::<u64>();
    let names: Vec<String> = kernels.iter().take(2).map(|(_, name)| text::short_kernel(&demangle(name))).collect();
    let more = if kernels.len() > 2 { ", ..." } else { "" };
    let what = counted(all, "launch goes", "launches go");
    let measure = if c.launches_measured == 0 { " (--exact measures them)" } else { "" };
    format!(
        "streamsan: NOTE: {what} through addresses loaded from memory, which are not checked: {}{more}{measure}\n",
        names.join(", ")
    )
}
