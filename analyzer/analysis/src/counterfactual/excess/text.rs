//! The listing of synchronisations as text.
//!
//! Owns the wording.

use crate::counterfactual::excess::dependents::Dependent;
use crate::counterfactual::excess::listing::{End, Listed, Listing, SyncVerdict};
use report::words::counted;
use std::fmt::Write as _;

/// The heading of a verdict.
pub(crate) fn heading(verdict: SyncVerdict) -> &'static str {
    match verdict {
        SyncVerdict::Nothing => "Orders nothing that is not ordered otherwise in this run",
        SyncVerdict::Together => "Needed only together with others: each can go, but not all of them",
        SyncVerdict::Unknown => "Unknown, because the bytes of some work are not all known",
        SyncVerdict::Host => "Needed for the host, if it uses that memory (its loads and stores are not recorded)",
        SyncVerdict::Capture => "Needed for the capture, but orders nothing that is not ordered otherwise in this run",
        SyncVerdict::Library => "Made by a communication library inside its own call: not the program's to leave out",
        SyncVerdict::Needed => "Needed",
    }
}

/// The heading of what kernels do without gain.
pub(crate) const DEPENDENTS: &str = "Kernels that wait for others, or let others begin, and gain nothing in this run";

/// What a kernel does without gain.
pub(crate) fn dependent(of: &Dependent) -> String {
    let at = if of.at.is_empty() { String::new() } else { format!(" ({})", of.at.join(", ")) };
    format!("{}{at}: {}", of.kernel, of.superfluous.sentence())
}

/// All of it.
pub fn text(all: &[Listing]) -> String {
    let mut out = String::new();
    for listing in all {
        process(&mut out, listing);
    }
    if all.is_empty() {
        out.push_str("streamsan: EXCESS: the trace has no process\n");
    }
    out
}

fn process(out: &mut String, listing: &Listing) {
    let times: u64 = listing.sites.iter().map(|site| site.count).sum();
    let _ = writeln!(
        out,
        "streamsan: EXCESS: {} at {} in {} of {} (PID {})",
        counted(times, "synchronisation", "synchronisations"),
        counted(listing.sites.len() as u64, "site", "sites"),
        counted(listing.ops, "operation", "operations"),
        listing.process,
        listing.pid,
    );
    for verdict in SyncVerdict::ALL {
        let mut sites: Vec<(usize, &Listed)> = listing.of(verdict).collect();
        if sites.is_empty() {
            continue;
        }
        sites.sort_by_key(|(number, site)| (std::cmp::Reverse(site.count), *number));
        let _ = writeln!(out, "{}:", heading(verdict));
        sites.into_iter().for_each(|(number, listed)| site(out, number, listed));
    }
    if !listing.dependents.is_empty() {
        let _ = writeln!(out, "{DEPENDENTS}:");
        listing.dependents.iter().for_each(|listed| {
            let _ = writeln!(out, "  {}", dependent(listed));
        });
    }
    for note in &listing.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    let going: Vec<String> =
        listing.sites.iter().enumerate().filter(|(_, s)| s.can_go).map(|(n, _)| format!("#{}", n + 1)).collect();
    let size = listing.sites.iter().filter(|site| site.can_go).map(|site| site.count).sum();
    let closing = match going.len() {
        0 => "no site can go".to_owned(),
        n => format!(
            "{} can go together ({}): {}",
            counted(n as u64, "site", "sites"),
            counted(size, "synchronisation", "synchronisations"),
            going.join(" "),
        ),
    };
    let _ = writeln!(out, "streamsan: EXCESS: {closing}");
}

fn site(out: &mut String, number: usize, site: &Listed) {
    let at = if site.at.is_empty() { String::new() } else { format!(", {}", site.at) };
    let _ = writeln!(out, "  #{} {}{at}: {}", number + 1, site.call, counted(site.count, "time", "times"));
    if let Some(pair) = &site.pair {
        let (first, more) = (end(&pair.first), pair.then.as_ref().map(end));
        let _ = match (pair.why, more) {
            ("host-writes", _) => writeln!(out, "      before the host may fill again what {first} reads"),
            ("not-captured", _) => writeln!(out, "      without it {first} is not captured"),
            ("unjoined", _) => writeln!(out, "      without it the capture has unjoined work: {first}"),
            (_, None) => writeln!(out, "      before the host may read what {first} writes"),
            ("unknown", Some(then)) => writeln!(out, "      without it {then} is not after {first}"),
            (why, Some(then)) => writeln!(out, "      without it {why}: {then} is not after {first}"),
        };
    }
    if !site.kernels.is_empty() {
        let _ = writeln!(out, "      not all bytes are known of: {}", site.kernels.join("; "));
    }
    if !site.partners.is_empty() {
        let partners: Vec<String> = site.partners.iter().map(|at| format!("#{}", at + 1)).collect();
        let _ = writeln!(out, "      not together with {}", partners.join(" "));
    }
}

fn end(end: &End) -> String {
    let at = if end.at.is_empty() { String::new() } else { format!(" ({})", end.at) };
    let on = if end.stream.is_empty() { String::new() } else { format!(" on {}", end.stream) };
    format!("{}{at}{on}", end.what)
}
