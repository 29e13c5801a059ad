//! Events that the program records already, and that serve as well as a record of one's own.
//!
//! Owns the exchange: which event lies between the places of a wait, and the trial of the exchanged
//! set. Does not choose waits.

use rustc_hash::{FxHashMap, FxHashSet};
use trace::StreamId;

use super::places::{Group, Occurrence, Positions, ordered_by};
use super::search::{FoundSet, Search};
use crate::counterfactual::causes::rerun::Rerun;
use crate::counterfactual::edits::notes::TrialNotes;
use crate::counterfactual::edits::waits::AddedWait;
use detect::state::op_site::OpSite;
use report::cause::Join;

/// The program's own records, ascending.
#[derive(Default)]
struct OwnRecords {
    on: FxHashMap<StreamId, Vec<(u64, OpSite)>>,
    of: FxHashMap<(StreamId, OpSite), Vec<u64>>,
}

impl OwnRecords {
    fn of(notes: &TrialNotes) -> Self {
        let mut records = Self::default();
        for (at, site, stream, _) in &notes.records {
            records.on.entry(*stream).or_default().push((*at, *site));
            records.of.entry((*stream, *site)).or_default().push(*at);
        }
        records
    }

    /// The sites that record on a stream behind one place and before another, in their order.
    fn between(&self, stream: StreamId, from: u64, to: u64) -> Vec<OpSite> {
        let on = self.on.get(&stream).map_or(&[][..], Vec::as_slice);
        let begin = on.partition_point(|(at, _)| *at <= from);
        let mut seen = FxHashSet::default();
        let sites = on[begin..].iter().take_while(|(at, _)| *at < to).map(|(_, site)| *site);
        sites.filter(|site| seen.insert(*site)).collect()
    }

    fn has(&self, site: OpSite, stream: StreamId, from: u64, to: u64) -> bool {
        let of = self.of.get(&(stream, site)).map_or(&[][..], Vec::as_slice);
        of.get(of.partition_point(|at| *at <= from)).is_some_and(|at| *at < to)
    }
}

/// Takes an event that the program records already, where that serves as well. `first`: the trial
/// without waits.
pub(crate) fn events(search: &mut Search<'_>, found: &mut FoundSet, first: &Rerun, last: &mut Option<Rerun>) {
    let Some(notes) = &first.plan.notes else { return };
    let all: FxHashSet<usize> = (0..search.racing.len()).collect();
    let (positions, races) = (search.positions(notes), search.occurrences(notes, &all));
    let group = |sites: &[OpSite]| sites.first().and_then(|site| search.groups.get(site)).copied();
    let of = |(at, wait): (usize, &AddedWait)| Some((at, (group(&wait.after)?, group(&wait.before)?)));
    let plain = found.waits.iter().map(|found| &found.wait).enumerate();
    let (numbers, ends): (Vec<usize>, Vec<(Group, Group)>) =
        plain.filter(|(_, wait)| wait.join == Join::Event).filter_map(of).unzip();
    let mut covered: Vec<Vec<usize>> = vec![Vec::new(); ends.len()];
    for (race, by) in ordered_by(&ends, &races, &positions).into_iter().enumerate() {
        by.into_iter().for_each(|wait| covered[wait as usize].push(race));
    }
    let records = OwnRecords::of(notes);
    let candidates = numbers.iter().zip(&ends).zip(&covered).filter_map(|((at, (_, then)), covered)| {
        let after = serves(*then, covered.iter().map(|race| &races[*race]), &positions, &records)?;
        let before = found.waits[*at].wait.before.clone();
        Some((*at, AddedWait { after: vec![after], before, join: Join::Existing }))
    });
    // All at once, then by halves.
    let mut groups: Vec<Vec<(usize, AddedWait)>> = vec![candidates.collect()];
    while let Some(mut group) = groups.pop() {
        if group.is_empty() {
            continue;
        }
        let mut waits: Vec<AddedWait> = found.waits.iter().map(|found| found.wait.clone()).collect();
        group.iter().for_each(|(at, wait)| waits[*at] = wait.clone());
        let Some(pass) = search.pass(&waits) else { return };
        if search.is_silent(&pass) {
            for (at, wait) in group {
                found.waits[at].plain = Some(std::mem::replace(&mut found.waits[at].wait, wait));
            }
            *last = Some(pass);
        } else if group.len() > 1 {
            let rest = group.split_off(group.len() / 2);
            groups.extend([rest, group]);
        }
    }
}

/// The first site of the program's own records that lies between all of these races and the ops of
/// a group that wait.
fn serves<'a>(
    then: Group,
    races: impl Iterator<Item = &'a Occurrence>,
    positions: &Positions,
    records: &OwnRecords,
) -> Option<OpSite> {
    let mut sites: Option<Vec<OpSite>> = None;
    for race in races {
        let ((_, from, on), (_, end, waiting)) = (race.first, race.then);
        let waits = positions.get(&(then, waiting))?;
        let to = *waits[..waits.partition_point(|at| *at <= end)].last()?;
        match &mut sites {
            None => sites = Some(records.between(on, from, to)),
            Some(sites) => sites.retain(|site| records.has(*site, on, from, to)),
        }
        if sites.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
    }
    sites?.first().copied()
}
