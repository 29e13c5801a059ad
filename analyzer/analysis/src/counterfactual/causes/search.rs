//! The search for the smallest set of waits, by trial: each set is put into the recorded order, and
//! the run is analysed again.
//!
//! Owns the loop and its budget. What is tried comes from [`super::cover`]; a trial is
//! [`super::rerun`]. Most waits of a large set are shown to be needed by the races of one trial
//! ([`super::proof`]), so that the trials do not grow with the waits.

use rustc_hash::{FxHashMap, FxHashSet};
use trace::StreamId;

use super::asked::{self, AskedWait, Pair};
use super::overrun::{self, Overrun};
use super::places::{Group, Occurrence, Positions};
use super::proof::ActingPlaces;
use super::{Effort, attribution, cover, is_worthy, is_worthy_race, reuse};
use crate::Analysis;
use crate::counterfactual::causes::rerun::{Rerun, rerun};
use crate::counterfactual::edits::notes::TrialNotes;
use crate::counterfactual::edits::waits::{AddedWait, Replan};
use crate::counterfactual::trial::records::Records;
use detect::findings::RawFinding;
use detect::state::op_site::OpSite;
use report::call_site::site;
use report::cause::Join;

/// What a race costs in a pass, in ops: its accesses are compared, kept and named each time.
pub(super) const RACE: u64 = 200;

/// Times that waits are added for what still races.
const ROUNDS: usize = 8;

/// A wait of the set, with what is known of the streams that it joins.
#[derive(Clone, Debug)]
pub(crate) struct FoundWait {
    /// The wait.
    pub(crate) wait: AddedWait,
    /// For [`Join::Existing`]: the same wait with a record of its own.
    pub(crate) plain: Option<AddedWait>,
}

/// What the search has found.
#[derive(Default)]
pub(crate) struct FoundSet {
    /// The set.
    pub(crate) waits: Vec<FoundWait>,
    /// Kernels that run past their memory.
    pub(crate) overruns: Vec<(OpSite, Overrun)>,
    /// For each finding, its cause: a wait, or behind them a kernel.
    pub(super) causes: Vec<Option<usize>>,
    /// Findings that are still there with the set.
    pub(crate) remaining: FxHashSet<usize>,
    /// Findings that are there only with the set.
    pub(crate) fresh: u64,
    /// Waits that may never come to an end.
    pub(crate) blocked: u64,
    /// Whether each wait is known to be needed.
    pub(crate) smallest: bool,
    /// Times that the run was analysed again, and waits that were weighed for a race.
    pub(crate) work: (u64, u64),
}

impl FoundSet {
    /// The cause of a finding: its place in the waits and, behind them, the kernels.
    pub(crate) fn cause_of(&self, finding: usize) -> Option<usize> {
        self.causes.get(finding).copied().flatten()
    }
}

/// A pair of sites that races.
pub(super) struct Racing {
    pub(crate) asked: AskedWait,
    pub(crate) overrun: Option<usize>,
}

/// Waits of a set that are needed, each with the pairs of sites that race without it.
pub(super) type Needed = FxHashMap<AddedWait, FxHashSet<usize>>;

/// The sites and what stands for them.
pub(super) struct Search<'a> {
    analysis: &'a mut Analysis,
    records: &'a mut dyn Records,
    pedantic: bool,
    /// Waits that the user has added.
    given: Vec<AddedWait>,
    /// Ops that may still be fed.
    left: u64,
    ops: u64,
    passes: u64,
    weighed: u64,
    pub(crate) groups: FxHashMap<OpSite, Group>,
    /// Further sites of ops that race.
    beside: FxHashSet<OpSite>,
    members: Vec<Vec<OpSite>>,
    labels: FxHashMap<(String, detect::state::op_site::OpClass), Group>,
    pairs: FxHashMap<Pair, usize>,
    pub(crate) racing: Vec<Racing>,
    overruns: Vec<(OpSite, Overrun)>,
}

impl Search<'_> {
    /// Sites at one line of the program are one group: a wait is written there once.
    fn group(&mut self, at: OpSite) -> Group {
        if let Some(group) = self.groups.get(&at) {
            return *group;
        }
        let label = site(&self.analysis.facts.stacks.resolve(at.stack)).unwrap_or_else(|| format!("{at:?}"));
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
                    self.beside.extend([OpSite::of_access(&raw.race.previous), OpSite::of_access(&raw.race.access)]);
                }
                self.pairs.insert(pair, self.racing.len());
                self.racing.push(Racing { asked, overrun: None });
            }
        }
        self.racing.len() > before
    }

    pub(super) fn pair_of(&self, raw: &RawFinding) -> Option<usize> {
        self.pairs.get(&asked::pair(&raw.race)).copied()
    }

    /// One pass. `None`: there is no budget for it, or the records can not be had.
    pub(super) fn pass(&mut self, waits: &[AddedWait]) -> Option<Rerun> {
        if system::interrupt::is_asked() {
            return None;
        }
        self.left = self.left.checked_sub(self.ops.max(1) + RACE * self.racing.len() as u64)?;
        self.passes += 1;
        let sites = self.groups.keys().chain(&self.beside).copied().collect();
        let all = self.given.iter().chain(waits).cloned().collect();
        let plan = Replan::new(all).noting(TrialNotes::of(sites)).at_most(self.left);
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
    pub(super) fn is_silent(&self, pass: &Rerun) -> bool {
        self.open(pass).is_empty() && pass.findings.iter().all(|raw| self.pair_of(raw).is_some())
    }

    pub(super) fn wait(&self, join: Join, first: Group, then: Group) -> AddedWait {
        AddedWait { after: self.members[first].clone(), before: self.members[then].clone(), join }
    }

    /// Where the ops of each group stand.
    pub(super) fn positions(&self, notes: &TrialNotes) -> Positions {
        let mut positions = Positions::default();
        for (at, ops) in &notes.ops {
            let Some(group) = self.groups.get(at) else { continue };
            for (number, stream) in ops {
                positions.entry((*group, *stream)).or_default().push(*number);
            }
        }
        positions.values_mut().for_each(|list| list.sort_unstable());
        positions
    }

    /// The occurrences of pairs that an event may order.
    pub(super) fn occurrences(&self, notes: &TrialNotes, wanted: &FxHashSet<usize>) -> Vec<Occurrence> {
        let mut list = Vec::new();
        for race in &notes.races {
            let Some(pair) = self.pairs.get(&asked::pair(race)).copied().filter(|pair| wanted.contains(pair)) else {
                continue;
            };
            let AskedWait::Wait(Join::Event, first, then) = self.racing[pair].asked else { continue };
            let number = |access: &detect::memory::Access| notes.numbers.get(&access.epoch).copied();
            let (Some(p), Some(a)) = (number(&race.previous), number(&race.access)) else { continue };
            let (Some(g), Some(h)) = (self.groups.get(&first), self.groups.get(&then)) else { continue };
            let (s, t): (StreamId, StreamId) = (race.previous.site.stream, race.access.site.stream);
            list.push(Occurrence { pair, first: (*g, p, s), then: (*h, a, t) });
        }
        list
    }

    /// Waits for what a pass has left.
    fn more(&mut self, pass: &Rerun) -> Vec<AddedWait> {
        let open = self.open(pass);
        let Some(notes) = &pass.plan.notes else { return Vec::new() };
        let mut waits: Vec<AddedWait> = Vec::new();
        for pair in &open {
            if let AskedWait::Wait(join, first, then) = self.racing[*pair].asked
                && join != Join::Event
                && let (Some(first), Some(then)) = (self.groups.get(&first), self.groups.get(&then))
            {
                waits.push(self.wait(join, *first, *then));
            }
        }
        let (races, positions) = (self.occurrences(notes, &open), self.positions(notes));
        let seen: FxHashSet<usize> = races.iter().map(|race| race.pair).collect();
        let chosen = cover::cover(&races, &positions, &mut self.weighed);
        waits.extend(chosen.into_iter().map(|(first, then)| self.wait(Join::Event, first, then)));
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

    /// Leaves out waits that are not needed, the last ones first, and notes what races without each
    /// of the others. `last` becomes the trial of those that are kept. False: some could not be
    /// tried.
    fn leave_out(
        &mut self,
        first: &Rerun,
        waits: &mut Vec<AddedWait>,
        needed: &mut Needed,
        last: &mut Option<Rerun>,
    ) -> bool {
        self.prove(first, waits, needed);
        let open = waits.iter().rev().filter(|wait| !needed.contains_key(wait)).cloned();
        let (captures, others): (Vec<_>, Vec<_>) = open.partition(|wait| wait.join == Join::Capture);
        // Many at once: none of them may be needed, and what races tells which are.
        let mut groups = vec![captures, others];
        while let Some(mut group) = groups.pop() {
            if group.is_empty() {
                continue;
            }
            let out: FxHashSet<&AddedWait> = group.iter().collect();
            let without: Vec<AddedWait> = waits.iter().filter(|wait| !out.contains(wait)).cloned().collect();
            let Some(pass) = self.pass(&without) else { return false };
            if self.is_silent(&pass) {
                *waits = without;
                *last = Some(pass);
                continue;
            }
            if let [wait] = &group[..] {
                needed.insert(wait.clone(), self.open(&pass));
                continue;
            }
            self.prove(&pass, &group, needed);
            group.retain(|wait| !needed.contains_key(wait));
            let rest = group.split_off(group.len() / 2);
            groups.extend([rest, group]);
        }
        true
    }

    /// Notes which of the waits that a pass has left out are needed for certain.
    fn prove(&self, pass: &Rerun, left_out: &[AddedWait], needed: &mut Needed) {
        let Some(notes) = pass.plan.notes.as_ref().filter(|notes| !notes.waits_for_values) else { return };
        if left_out.iter().any(|wait| wait.join == Join::Capture) {
            return;
        }
        let mut places: FxHashMap<Group, Vec<u64>> = FxHashMap::default();
        for ((group, _), at) in self.positions(notes) {
            places.entry(group).or_default().extend(at);
        }
        places.values_mut().for_each(|at| at.sort_unstable());
        let of = |sites: &[OpSite]| {
            let group = sites.first().and_then(|site| self.groups.get(site));
            group.and_then(|group| places.get(group)).map_or(&[][..], Vec::as_slice)
        };
        let mut spans = ActingPlaces::default();
        for (index, wait) in left_out.iter().enumerate() {
            match wait.join {
                Join::KeepAlive => spans.add_places(index, of(&wait.before)),
                _ => spans.add(index, of(&wait.after), of(&wait.before)),
            }
        }
        let open = self.open(pass);
        let races = notes.races.iter().filter_map(|race| {
            let pair = asked::pair(race);
            let stands = !race.latent && is_worthy_race(race, self.pedantic) && !pass.fallen.contains(&pair);
            let number = self.pairs.get(&pair).filter(|number| stands && open.contains(number))?;
            let at = |access: &detect::memory::Access| notes.numbers.get(&access.epoch).copied();
            Some((*number, at(&race.previous)?, at(&race.access)?))
        });
        for (wait, pair) in spans.needed(races) {
            needed.entry(left_out[wait].clone()).or_default().insert(pair);
        }
    }

    /// Finds the kernels that run past their memory.
    fn find_overruns(&mut self, pass: &Rerun) {
        let Some(notes) = &pass.plan.notes else { return };
        for race in &notes.races {
            let Some(pair) = self.pairs.get(&asked::pair(race)).copied() else { continue };
            let threads = |access: &detect::memory::Access| notes.threads.get(&access.epoch).copied();
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
}

/// Searches. The error is half a sentence: why nothing could be tried.
pub(crate) fn search(
    analysis: &mut Analysis,
    records: &mut dyn Records,
    findings: &[RawFinding],
    given: Vec<AddedWait>,
    (pedantic, effort): (bool, Effort),
) -> Result<FoundSet, String> {
    const TOO_LONG: &str = "the run has too many operations and findings to be checked again";
    const INTERRUPTED: &str = "the analysis was interrupted";
    let why = || if system::interrupt::is_asked() { INTERRUPTED } else { TOO_LONG };
    let ops = analysis.ops();
    let mut search = Search {
        analysis,
        records,
        pedantic,
        given,
        left: effort.0,
        ops,
        passes: 0,
        weighed: 0,
        groups: FxHashMap::default(),
        beside: FxHashSet::default(),
        members: Vec::new(),
        labels: FxHashMap::default(),
        pairs: FxHashMap::default(),
        racing: Vec::new(),
        overruns: Vec::new(),
    };
    search.add(findings);
    let mut first = search.pass(&[]).ok_or_else(why)?;
    search.find_overruns(&first);
    let mut waits = search.more(&first);
    let mut is_silent = waits.is_empty();
    let mut last = None;
    for _ in 0..ROUNDS {
        if is_silent {
            break;
        }
        let Some(pass) = search.pass(&waits) else { return Err(why().into()) };
        is_silent = search.is_silent(&pass);
        let pass = last.insert(pass);
        if is_silent {
            break;
        }
        // New findings bring new places, whose ops were not noted.
        if search.add(&pass.findings) {
            let Some(again) = search.pass(&waits) else { return Err(why().into()) };
            *pass = again;
            let Some(again) = search.pass(&[]) else { return Err(why().into()) };
            first = again;
        }
        let more = search.more(pass);
        let (before, known) = (waits.len(), waits.iter().cloned().collect::<FxHashSet<AddedWait>>());
        waits.extend(more.into_iter().filter(|wait| !known.contains(wait)));
        if waits.len() == before {
            break;
        }
    }
    let mut needed = Needed::default();
    let smallest = is_silent && search.leave_out(&first, &mut waits, &mut needed, &mut last);
    let mut found = FoundSet { smallest, overruns: search.overruns.clone(), ..FoundSet::default() };
    found.causes = attribution::causes(&search, findings, &waits, &needed, first.plan.notes.as_ref());
    found.waits = waits.into_iter().map(|wait| FoundWait { wait, plain: None }).collect();
    if is_silent {
        reuse::events(&mut search, &mut found, &first, &mut last);
    }
    found.work = (search.passes, search.weighed);
    let last = last.unwrap_or(first);
    found.blocked = last.plan.applied.iter().map(|applied| applied.blocked).sum();
    let still: FxHashSet<usize> = last.findings.iter().filter_map(|raw| search.pair_of(raw)).collect();
    let pairs: Vec<Option<usize>> = findings.iter().map(|raw| search.pair_of(raw)).collect();
    found.remaining = (0..findings.len()).filter(|at| pairs[*at].is_some_and(|pair| still.contains(&pair))).collect();
    let known: FxHashSet<usize> = pairs.iter().flatten().copied().collect();
    found.fresh = still.iter().filter(|pair| !known.contains(pair)).count() as u64;
    found.fresh += last.findings.iter().filter(|raw| search.pair_of(raw).is_none()).count() as u64;
    Ok(found)
}
