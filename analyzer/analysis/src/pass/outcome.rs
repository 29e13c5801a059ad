//! The end of an analysis: raw findings become report data.
//!
//! Owns the [`Outcome`] of a process: which findings stand, what the observers have seen, and the
//! coverage. Ids become names in [`report::elaborate`].

use super::Pass;
use super::analysis::Analysis;
use super::observers::Observers;
use crate::counterfactual::edits::Edits;
use crate::ipc::{Member, export};
use crate::process::facts::ProcessFacts;
use crate::process::state::ProcessState;
use crate::rules::elaborate::breach;
use detect::coverage::Coverage;
use detect::findings::FindingState;
use report::fault::{faults, hint};
use report::fingerprint::number;
use report::mend::stale_graph;
use report::mend::superfluous::superfluous;
use report::model::{AllocationInfo, Hint, Outcome, merge_finding};

impl Analysis {
    /// Ends the analysis: all findings, and the coverage.
    pub fn finish(&mut self) -> Outcome {
        let Self { facts, pass, reported, .. } = self;
        pass.end(facts);
        let Pass { state, edits, observers, .. } = pass;
        count_repeated(state, facts);
        facts.code.keep();
        let missed = state.memory.escapes.take_missed();
        let mut coverage = coverage(state, edits, observers, facts);
        let relocated = facts.code.relocated();
        if relocated > 0 {
            let what = "how launches depend on their pointers, whose bytes are those of others moved, as a bound";
            coverage.unobserved.insert(what.to_string(), relocated);
        }
        let replaced = facts.code.replaced().into_iter();
        coverage
            .unchecked
            .extend(replaced.map(|file| format!("kernels of {file}, which was replaced before their code was read")));
        let oracle = std::mem::take(&mut state.exact.oracle);
        let learned = state.exact.learned.as_mut().map(|l| std::mem::take(&mut l.fresh)).unwrap_or_default();
        let mut elaborator = facts.elaborator(state);
        let (mut findings, mut withdrawn) = (Vec::new(), Vec::new());
        for (raw, standing) in state.findings.judged() {
            if standing == FindingState::Replaced {
                continue;
            }
            let finding = elaborator.finding(raw);
            // That function takes the stream as an argument, which the allocator's report does not
            // name.
            let elsewhere =
                |memory: &AllocationInfo| memory.stack.iter().any(|f| f.function == "caching_allocator_alloc");
            if raw.race.freed_early && finding.allocation.as_ref().is_some_and(elsewhere) {
                continue;
            }
            if standing == FindingState::Stands {
                reported.push((raw.clone(), finding.identity));
            }
            merge_finding(if standing == FindingState::Withdrawn { &mut withdrawn } else { &mut findings }, finding);
        }
        for raw in state.inside.all() {
            merge_finding(&mut findings, elaborator.in_kernel(raw));
        }
        for raw in state.stale_graphs.all() {
            merge_finding(&mut findings, stale_graph::finding(&mut elaborator, raw));
        }
        number(&mut findings);
        coverage.escaped = elaborator.missed(&missed);
        let breaches = observers.rules.as_mut().map_or_else(Vec::new, |rules| rules.finish());
        let breaches = breaches.iter().map(|(raw, regions)| breach(raw, regions, &mut elaborator)).collect();
        let mut hints: Vec<Hint> = observers.hints.finish().iter().map(|said| hint(said, &mut elaborator)).collect();
        hints.extend(state.synchronisations.superfluous().map(|sync| superfluous(sync, &mut elaborator)));
        let unknown = state.synchronisations.unknown();
        if unknown > 0 {
            let what = "fences and barriers that were not left out for a trial";
            coverage.inside_left.insert(what.to_owned(), unknown);
        }
        let faults = faults(state.submissions.faults.failures(), &mut elaborator);
        let process = elaborator.names.process.clone();
        for (file, places) in facts.stacks.lost() {
            let what = format!("names of functions in {file}, which was deleted or replaced, or may not be read");
            *coverage.unobserved.entry(what).or_default() += places;
        }
        let outcome = Outcome {
            process,
            member: observers.member.as_ref().map(Member::id),
            findings,
            withdrawn,
            causes: Vec::new(),
            mended: None,
            with: Vec::new(),
            breaches,
            hints,
            faults,
            coverage,
            oracle,
            learned,
        };
        if let Some(member) = &mut observers.member {
            export::leave(member, observers.hints.communicators(), state, facts);
        }
        outcome
    }
}

/// Counts the launches that were replayed.
fn count_repeated(state: &mut ProcessState, facts: &mut ProcessFacts) {
    for (tally, times) in facts.code.counted() {
        let known = &tally.known;
        state.coverage.launched(times, known, known.indirect, tally.unplaced);
        state.kernels.entry(tally.kernel).or_default().count(times, known, tally.several, known.indirect);
    }
}

/// What was seen in all, and what was not.
fn coverage(state: &ProcessState, edits: &Edits, observers: &Observers, facts: &ProcessFacts) -> Coverage {
    let mut coverage = state.coverage.clone();
    for (id, kernel) in &state.kernels {
        let name = facts.names.kernel(*id).map_or("", |k| &k.name);
        coverage.count_code(name, facts.code.is_ptx(*id), kernel.launches);
        coverage.kernels.entry(name.to_string()).or_default().merge(kernel);
    }
    if state.options.judging.host_threads && !state.has_host_edges {
        let what = "synchronisation of host threads (recorded with --host-order threads only)";
        coverage.unobserved.insert(what.to_string(), 1);
    }
    if let Some(rules) = &observers.rules {
        rules.count_in(&mut coverage);
    }
    let unwatched = state.memory.unwatched();
    (coverage.unwatched_managed, coverage.unwatched_pinned) = (unwatched.managed, unwatched.pinned);
    if !state.system_memory {
        coverage.launches_system = 0;
    }
    coverage.assumed = edits.assumed.as_ref().map_or_else(Vec::new, |assumed| assumed.lines());
    coverage.forgotten = state.memory.forgotten();
    coverage.findings_dropped += state.findings.dropped() + state.inside.dropped() + state.stale_graphs.dropped();
    if state.exact.pending.given_up() > 0 {
        let text = "exact ranges of launches that were not seen to end".to_string();
        *coverage.unobserved.entry(text).or_default() += state.exact.pending.given_up();
    }
    if state.exact.pending.inside_late() > 0 {
        coverage.unchecked.push("the inside of launches that were not seen to end".to_string());
    }
    coverage
}
