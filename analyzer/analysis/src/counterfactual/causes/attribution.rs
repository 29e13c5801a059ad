//! Which wait of the set stands for which finding.
//!
//! Owns the choice: the wait that orders a finding by its place, else one that it needs. Does not
//! change the set.

use rustc_hash::FxHashMap;

use super::asked::AskedWait;
use super::places::{Group, Occurrence, ordered_by};
use super::search::{Needed, Search};
use crate::counterfactual::edits::notes::TrialNotes;
use crate::counterfactual::edits::waits::AddedWait;
use detect::findings::RawFinding;
use detect::memory::Access;
use detect::state::op_site::OpSite;
use report::cause::Join;

/// A set of waits, by what a finding knows of them. Of several waits the first one counts.
struct Index<'a> {
    whole: FxHashMap<&'a AddedWait, usize>,
    after: FxHashMap<&'a [OpSite], usize>,
    before: FxHashMap<&'a [OpSite], usize>,
    needed: FxHashMap<usize, Vec<usize>>,
}

impl<'a> Index<'a> {
    fn of(waits: &'a [AddedWait], needed: &Needed) -> Self {
        let mut index = Self {
            whole: FxHashMap::default(),
            after: FxHashMap::default(),
            before: FxHashMap::default(),
            needed: FxHashMap::default(),
        };
        for (at, wait) in waits.iter().enumerate() {
            index.whole.entry(wait).or_insert(at);
            index.after.entry(&wait.after).or_insert(at);
            index.before.entry(&wait.before).or_insert(at);
            for pair in needed.get(wait).into_iter().flatten() {
                index.needed.entry(*pair).or_default().push(at);
            }
        }
        index
    }
}

/// The cause of each finding: a wait, or behind the waits a kernel. `notes`: of the run without the
/// waits, as the findings are.
pub(crate) fn causes(
    search: &Search<'_>,
    findings: &[RawFinding],
    waits: &[AddedWait],
    needed: &Needed,
    notes: Option<&TrialNotes>,
) -> Vec<Option<usize>> {
    let positions = notes.map(|notes| search.positions(notes)).unwrap_or_default();
    let number = |access: &Access| notes.and_then(|notes| notes.numbers.get(&access.epoch)).copied();
    let index = Index::of(waits, needed);
    let mut causes = vec![None; findings.len()];
    // Findings that a wait orders by its place, if any does.
    let mut placed: Vec<(usize, AddedWait, usize, Option<Occurrence>)> = Vec::new();
    for (at, raw) in findings.iter().enumerate() {
        let Some(pair) = search.pair_of(raw) else { continue };
        let racing = &search.racing[pair];
        if let Some(overrun) = racing.overrun {
            causes[at] = Some(waits.len() + overrun);
            continue;
        }
        let AskedWait::Wait(join, first, then) = racing.asked else { continue };
        let (Some(g), Some(h)) = (search.groups.get(&first), search.groups.get(&then)) else { continue };
        let own = search.wait(join, *g, *h);
        causes[at] = index.whole.get(&own).copied();
        if causes[at].is_some() {
            continue;
        }
        let occurrence = || {
            let (p, a) = (&raw.race.previous, &raw.race.access);
            let first = (*g, number(p)?, p.site.stream);
            Some(Occurrence { pair, first, then: (*h, number(a)?, a.site.stream) })
        };
        placed.push((at, own, pair, (join == Join::Event).then(occurrence).flatten()));
    }
    let group = |sites: &[OpSite]| sites.first().and_then(|site| search.groups.get(site)).copied();
    const NOWHERE: Group = usize::MAX;
    let ends = |wait: &AddedWait| group(&wait.after).zip(group(&wait.before)).unwrap_or((NOWHERE, NOWHERE));
    let ends: Vec<(Group, Group)> = waits.iter().map(ends).collect();
    let races: Vec<Occurrence> = placed.iter().filter_map(|(.., race)| *race).collect();
    let mut by_place = ordered_by(&ends, &races, &positions).into_iter();
    for (at, own, pair, race) in &placed {
        let by: Vec<usize> = match race {
            Some(_) => by_place.next().unwrap_or_default().into_iter().map(|at| at as usize).collect(),
            None => Vec::new(),
        };
        let needs = index.needed.get(pair).map_or(&[][..], Vec::as_slice);
        let both = by.iter().find(|at| needs.binary_search(at).is_ok());
        // Several waits may order it only together: one that touches its places stands for them.
        let touches = || {
            let (before, after) = (index.before.get(&own.before[..]), index.after.get(&own.after[..]));
            before.into_iter().chain(after).min()
        };
        let of = both.or(by.first()).or(needs.first()).or_else(touches).copied();
        causes[*at] = of.or_else(|| (!waits.is_empty()).then_some(0));
    }
    causes
}
