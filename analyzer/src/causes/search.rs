//! The search for the smallest set of waits, by trial: each set is put into the recorded order, and
//! the run is analysed again.
//!
//! Owns the loop and its budget. What is tried comes from [`super::cover`]; a trial is
//! [`crate::replan::rerun`].

use rustc_hash::{FxHashMap, FxHashSet};
use trace::StreamId;

use super::asked::{self, AskedWait, Pair};
use super::cover::{self, Group, Occurrence, Positions};
use super::overrun::{self, Overrun};
use super::{Effort, is_worthy};
use crate::Analysis;
use crate::detect::findings::RawFinding;
use crate::replan::records::Records;
use crate::replan::rerun::{Rerun, rerun};
use crate::replan::site::OpSite;
use crate::replan::trial::Trial;
use crate::replan::waits::{AddedWait, Join, Replan};
use crate::report::call_site::site;

/// What a race costs in a pass, in ops: its accesses are compared, kept and named each time.
const RACE: u64 = 200;

/// Times that waits are added for what still races.
const ROUNDS: usize = 8;

/// A wait of the set, with what is known of the streams that it joins.
#[derive(Clone, Debug)]
pub struct FoundWait {
    /// The wait.
    pub wait: AddedWait,
    /// For [`Join::Existing`]: the same wait with a record of its own.
    pub plain: Option<AddedWait>,
}

/// What the search has found.
#[derive(Default)]
pub struct FoundSet {
    /// The set.
    pub waits: Vec<FoundWait>,
    /// Kernels that run past their memory.
    pub overruns: Vec<(OpSite, Overrun)>,
    /// For each finding, its cause: a wait, or behind them a kernel.
    causes: Vec<Option<usize>>,
    /// Findings that are still there with the set.
    pub remaining: FxHashSet<usize>,
    /// Findings that are there only with the set.
    pub fresh: u64,
    /// Waits that may never come to an end.
    pub blocked: u64,
    /// Whether each wait is known to be needed.
    pub smallest: bool,
}

impl FoundSet {
    /// The cause of a finding: its place in the waits and, behind them, the kernels.
    pub fn cause_of(&self, finding: usize) -> Option<usize> {
        self.causes.get(finding).copied().flatten()
    }
}

/// A pair of sites that races.
struct Racing {
    asked: AskedWait,
    overrun: Option<usize>,
}

/// The sites and what stands for them.
struct Search<'a> {
    analysis: &'a mut Analysis,
    records: &'a mut dyn Records,
    pedantic: bool,
    /// Waits that the user has added.
    given: Vec<AddedWait>,
    /// Ops that may still be fed.
    left: u64,
    ops: u64,
    groups: FxHashMap<OpSite, Group>,
    members: Vec<Vec<OpSite>>,
    labels: FxHashMap<(String, crate::replan::site::OpClass), Group>,
    pairs: FxHashMap<Pair, usize>,
    racing: Vec<Racing>,
    overruns: Vec<(OpSite, Overrun)>,
}

impl Search<'_> {
    /// Sites at one line of the program are one group: a wait is written there once.
    fn group(&mut self, at: OpSite) -> Group {
        if let Some(group) = self.groups.get(&at) {
            return *group;
        }
        let label = site(&self.analysis.stacks.resolve(at.stack)).unwrap_or_else(|| format!("{at:?}"));
        let next = self.members.len();
        let group = *self.labels.entry((label, at.class)).or_insert(next);
        if group == next {
            self.members.push(Vec::new());
        }
        self.members[group].push(at);
        self.groups.insert(at, group);
        group
    }

    /// Takes in findings. Returns whether there are new pairs.
    fn add(&mut self, findings: &[RawFinding]) -> bool {
        let before = self.racing.len();
        for raw in findings {
            let pair = asked::pair(&raw.race);
            if !self.pairs.contains_key(&pair) {
                let asked = asked::of(raw);
                if let AskedWait::Wait(_, first, then) = asked {
                    self.group(first);
                    self.group(then);
                }
                self.pairs.insert(pair, self.racing.len());
                self.racing.push(Racing { asked, overrun: None });
            }
        }
        self.racing.len() > before
    }

    fn pair_of(&self, raw: &RawFinding) -> Option<usize> {
        self.pairs.get(&asked::pair(&raw.race)).copied()
    }

    /// One pass. `None`: there is no budget for it, or the records can not be had.
    fn pass(&mut self, waits: &[AddedWait]) -> Option<Rerun> {
        if crate::interrupt::is_asked() {
            return None;
        }
        self.left = self.left.checked_sub(self.ops.max(1) + RACE * self.racing.len() as u64)?;
        let sites = self.groups.keys().copied().collect();
        let all = self.given.iter().chain(waits).cloned().collect();
        let plan = Replan::new(all).noting(Trial::of(sites)).at_most(self.left);
        rerun(self.analysis, self.records, plan).map(|mut pass| {
            let pedantic = self.pedantic;
            self.left = self.left.saturating_sub(pass.plan.added);
            pass.findings.retain(|raw| !raw.race.latent && is_worthy(raw, pedantic));
            pass
        })
    }

    /// Pairs that a pass has left and that a wait is expected to order.
    fn open(&self, pass: &Rerun) -> FxHashSet<usize> {
        let waits = |pair: &usize| {
            let racing = &self.racing[*pair];
            racing.overrun.is_none() && racing.asked != AskedWait::Nothing
        };
        pass.findings.iter().filter_map(|raw| self.pair_of(raw)).filter(waits).collect()
    }

    /// Whether a pass shows nothing that needs a wait.
    fn is_silent(&self, pass: &Rerun) -> bool {
        self.open(pass).is_empty() && pass.findings.iter().all(|raw| self.pair_of(raw).is_some())
    }

    fn wait(&self, join: Join, first: Group, then: Group) -> AddedWait {
        AddedWait { after: self.members[first].clone(), before: self.members[then].clone(), join }
    }

    /// Where the ops of each group stand.
    fn positions(&self, trial: &Trial) -> Positions {
        let mut positions = Positions::default();
        for (at, ops) in &trial.ops {
            let Some(group) = self.groups.get(at) else { continue };
            for (number, stream) in ops {
                positions.entry((*group, *stream)).or_default().push(*number);
            }
        }
        positions.values_mut().for_each(|list| list.sort_unstable());
        positions
    }

    /// The occurrences of pairs that an event may order.
    fn occurrences(&self, trial: &Trial, wanted: &FxHashSet<usize>) -> Vec<Occurrence> {
        let mut list = Vec::new();
        for race in &trial.races {
            let Some(pair) = self.pairs.get(&asked::pair(race)).copied().filter(|pair| wanted.contains(pair)) else {
                continue;
            };
            let AskedWait::Wait(Join::Event, first, then) = self.racing[pair].asked else { continue };
            let number = |access: &crate::memory::Access| trial.numbers.get(&access.epoch).copied();
            let (Some(p), Some(a)) = (number(&race.previous), number(&race.access)) else { continue };
            let (Some(g), Some(h)) = (self.groups.get(&first), self.groups.get(&then)) else { continue };
            let (s, t): (StreamId, StreamId) = (race.previous.site.stream, race.access.site.stream);
            list.push(Occurrence { pair, first: (*g, p, s), then: (*h, a, t) });
        }
        list
    }

    /// Waits for what a pass has left.
    fn more(&self, pass: &Rerun) -> Vec<AddedWait> {
        let open = self.open(pass);
        let Some(trial) = &pass.plan.trial else { return Vec::new() };
        let mut waits: Vec<AddedWait> = Vec::new();
        for pair in &open {
            if let AskedWait::Wait(join, first, then) = self.racing[*pair].asked
                && join != Join::Event
                && let (Some(first), Some(then)) = (self.groups.get(&first), self.groups.get(&then))
            {
                waits.push(self.wait(join, *first, *then));
            }
        }
        let (races, positions) = (self.occurrences(trial, &open), self.positions(trial));
        let seen: FxHashSet<usize> = races.iter().map(|race| race.pair).collect();
        waits.extend(
            cover::cover(&races, &positions).into_iter().map(|(first, then)| self.wait(Join::Event, first, then)),
        );
        // Races that were found too often to be kept.
        for pair in open {
            if let AskedWait::Wait(Join::Event, first, then) = self.racing[pair].asked
                && !seen.contains(&pair)
                && let (Some(first), Some(then)) = (self.groups.get(&first), self.groups.get(&then))
            {
                waits.push(self.wait(Join::Event, *first, *then));
            }
        }
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    /// Finds the kernels that run past their memory.
    fn find_overruns(&mut self, pass: &Rerun) {
        let Some(trial) = &pass.plan.trial else { return };
        for race in &trial.races {
            let Some(pair) = self.pairs.get(&asked::pair(race)).copied() else { continue };
            let threads = |access: &crate::memory::Access| trial.threads.get(&access.epoch).copied();
            if let Some(overrun) = overrun::of(race, threads) {
                let at = OpSite::of_access(if overrun.later { &race.access } else { &race.previous });
                // The mistake is in the kernel, wherever it is launched.
                let known = self.overruns.iter().position(|(site, _)| site.kernel == at.kernel);
                let number = known.unwrap_or_else(|| {
                    self.overruns.push((at, overrun));
                    self.overruns.len() - 1
                });
                self.racing[pair].overrun = Some(number);
            }
        }
    }

    /// The same wait for an event that the program records between the two places already.
    fn existing(&self, wait: &AddedWait, pass: &Rerun, seen: &Seen) -> Option<AddedWait> {
        let trial = pass.plan.trial.as_ref().filter(|_| wait.join == Join::Event)?;
        let Seen { positions, races } = seen;
        let (first, then) = (*self.groups.get(wait.after.first()?)?, *self.groups.get(wait.before.first()?)?);
        let mut covered = races.iter().filter(|race| cover::orders((first, then), race, positions)).peekable();
        covered.peek()?;
        let mut found: Option<Vec<OpSite>> = None;
        for race in covered {
            let waits = positions.get(&(then, race.then.2))?;
            let wait = *waits[..waits.partition_point(|at| *at <= race.then.1)].last()?;
            let between = trial
                .records
                .iter()
                .filter(|(at, _, stream, _)| *stream == race.first.2 && *at > race.first.1 && *at < wait);
            let sites: Vec<OpSite> = between.map(|(_, site, ..)| *site).collect();
            found = Some(match found {
                None => sites,
                Some(old) => old.into_iter().filter(|site| sites.contains(site)).collect(),
            });
        }
        let after = vec![*found?.first()?];
        Some(AddedWait { after, before: wait.before.clone(), join: Join::Existing })
    }
}

/// What a pass has noted, in the terms of [`super::cover`].
struct Seen {
    positions: Positions,
    races: Vec<Occurrence>,
}

/// Searches. The error is half a sentence: why nothing could be tried.
pub fn search(
    analysis: &mut Analysis,
    records: &mut dyn Records,
    findings: &[RawFinding],
    given: Vec<AddedWait>,
    (pedantic, effort): (bool, Effort),
) -> Result<FoundSet, String> {
    const TOO_LONG: &str = "the run has too many operations and findings to be checked again";
    const INTERRUPTED: &str = "the analysis was interrupted";
    let why = || if crate::interrupt::is_asked() { INTERRUPTED } else { TOO_LONG };
    let ops = analysis.coverage.ops;
    let mut search = Search {
        analysis,
        records,
        pedantic,
        given,
        left: effort.0,
        ops,
        groups: FxHashMap::default(),
        members: Vec::new(),
        labels: FxHashMap::default(),
        pairs: FxHashMap::default(),
        racing: Vec::new(),
        overruns: Vec::new(),
    };
    search.add(findings);
    let first = search.pass(&[]).ok_or_else(why)?;
    search.find_overruns(&first);
    let mut waits = search.more(&first);
    let mut last = first;
    let mut is_silent = waits.is_empty();
    for _ in 0..ROUNDS {
        if is_silent {
            break;
        }
        let Some(pass) = search.pass(&waits) else { return Err(why().into()) };
        is_silent = search.is_silent(&pass);
        last = pass;
        if is_silent {
            break;
        }
        // New findings bring new places, whose ops were not noted.
        if search.add(&last.findings) {
            let Some(pass) = search.pass(&waits) else { return Err(why().into()) };
            last = pass;
        }
        let more = search.more(&last);
        let before = waits.len();
        waits.extend(more.into_iter().filter(|wait| !waits.contains(wait)).collect::<Vec<_>>());
        if waits.len() == before {
            break;
        }
    }
    let mut smallest = is_silent;
    let mut needed: Vec<(AddedWait, FxHashSet<usize>)> = Vec::new();
    if is_silent {
        // Each is left out once. What is kept is needed by what races without it.
        let mut kept = waits.clone();
        for wait in waits.iter().rev() {
            let without: Vec<AddedWait> = kept.iter().filter(|other| *other != wait).cloned().collect();
            let Some(pass) = search.pass(&without) else {
                smallest = false;
                break;
            };
            if search.is_silent(&pass) {
                kept = without;
                last = pass;
            } else {
                needed.push((wait.clone(), search.open(&pass)));
            }
        }
        waits = kept;
    }
    let mut found = FoundSet { smallest, overruns: search.overruns.clone(), ..FoundSet::default() };
    let needed: FxHashMap<AddedWait, FxHashSet<usize>> = needed.into_iter().collect();
    let order = |wait: &AddedWait| needed.get(wait);
    let trial_of = last.plan.trial.take();
    let plain: Vec<AddedWait> = waits.clone();
    found.causes = causes(&search, findings, &plain, order, trial_of.as_ref());
    last.plan.trial = trial_of;
    found.waits = plain.iter().map(|wait| FoundWait { wait: wait.clone(), plain: None }).collect();
    if is_silent {
        reuse_events(&mut search, &mut found, &mut last);
    }
    found.blocked = last.plan.applied.iter().map(|applied| applied.blocked).sum();
    let still: FxHashSet<usize> = last.findings.iter().filter_map(|raw| search.pair_of(raw)).collect();
    let pairs: Vec<Option<usize>> = findings.iter().map(|raw| search.pair_of(raw)).collect();
    found.remaining = (0..findings.len()).filter(|at| pairs[*at].is_some_and(|pair| still.contains(&pair))).collect();
    let known: FxHashSet<usize> = pairs.iter().flatten().copied().collect();
    found.fresh = still.iter().filter(|pair| !known.contains(pair)).count() as u64;
    found.fresh += last.findings.iter().filter(|raw| search.pair_of(raw).is_none()).count() as u64;
    Ok(found)
}

/// Takes an event that the program records already, where that serves as well.
fn reuse_events(search: &mut Search<'_>, found: &mut FoundSet, last: &mut Rerun) {
    let Some(first) = search.pass(&[]) else { return };
    let Some(trial) = &first.plan.trial else { return };
    let all: FxHashSet<usize> = (0..search.racing.len()).collect();
    let seen = Seen { positions: search.positions(trial), races: search.occurrences(trial, &all) };
    for at in 0..found.waits.len() {
        let Some(existing) = search.existing(&found.waits[at].wait, &first, &seen) else { continue };
        let mut waits: Vec<AddedWait> = found.waits.iter().map(|found| found.wait.clone()).collect();
        waits[at] = existing.clone();
        let Some(pass) = search.pass(&waits) else { return };
        if search.is_silent(&pass) {
            let plain = std::mem::replace(&mut found.waits[at].wait, existing);
            found.waits[at].plain = Some(plain);
            *last = pass;
        }
    }
}

/// The cause of each finding: the wait that orders it by its place, else one that it needs.
fn causes<'a>(
    search: &Search<'_>,
    findings: &[RawFinding],
    waits: &[AddedWait],
    needed: impl Fn(&AddedWait) -> Option<&'a FxHashSet<usize>>,
    trial: Option<&Trial>,
) -> Vec<Option<usize>> {
    let positions = trial.map(|trial| search.positions(trial)).unwrap_or_default();
    let number = |access: &crate::memory::Access| trial.and_then(|trial| trial.numbers.get(&access.epoch)).copied();
    let of = |raw: &RawFinding| {
        let pair = search.pair_of(raw)?;
        let racing = &search.racing[pair];
        if let Some(overrun) = racing.overrun {
            return Some(waits.len() + overrun);
        }
        let AskedWait::Wait(join, first, then) = racing.asked else { return None };
        let needs = |wait: &AddedWait| needed(wait).is_some_and(|pairs| pairs.contains(&pair));
        let (g, h) = (*search.groups.get(&first)?, *search.groups.get(&then)?);
        let own = search.wait(join, g, h);
        if let Some(at) = waits.iter().position(|wait| *wait == own) {
            return Some(at);
        }
        let race = (join == Join::Event)
            .then(|| {
                let (p, a) = (&raw.race.previous, &raw.race.access);
                let first = (g, number(p)?, p.site.stream);
                Some(Occurrence { pair, first, then: (h, number(a)?, a.site.stream) })
            })
            .flatten();
        let by_place = |wait: &AddedWait| {
            let ends = (wait.after.first(), wait.before.first());
            let (Some(from), Some(to)) = ends else { return false };
            let groups = (search.groups.get(from), search.groups.get(to));
            match (groups, &race) {
                ((Some(from), Some(to)), Some(race)) => cover::orders((*from, *to), race, &positions),
                _ => false,
            }
        };
        let both = waits.iter().position(|wait| needs(wait) && by_place(wait));
        // Several waits may order it only together: one that touches its places stands for them.
        let touches = |wait: &AddedWait| wait.before == own.before || wait.after == own.after;
        both.or_else(|| waits.iter().position(by_place))
            .or_else(|| waits.iter().position(needs))
            .or_else(|| waits.iter().position(touches))
            .or_else(|| (!waits.is_empty()).then_some(0))
    };
    findings.iter().map(of).collect()
}
