//! The groups of a warp: lanes that stand at one instruction. Owns how they part, wait, join, and
//! which of them runs next, and says where they stand when nobody can go on; `Warp::run` executes
//! the one that was picked.

use std::collections::BTreeMap;
use std::fmt::Write;

use sim_races::{Meeting, SyncKind};

use crate::block::{BARRIER_AND, BARRIER_POPC, RESULT_ALL, RESULT_ANY};
use crate::program::{LANES, Pred};
use crate::warp::Warp;

/// What keeps a group from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing.
    None,
    /// A barrier of the block: its number and the phase that must end.
    Barrier(u8, u32),
    /// The cluster's barrier: the phase that must end.
    Cluster(u32),
    /// Registers from the block's pool: as many as make this count (`setmaxnreg`).
    Registers(u32),
    /// The other warps of the warp group: so many groups of products that they have to issue.
    Products(u64),
    /// Other lanes of the warp (`.sync` instructions). The mask is all lanes that any of the group
    /// waits for.
    Lanes(u32),
}

impl Wait {
    /// Other warps or blocks end it.
    pub(crate) fn is_for_others(self) -> bool {
        !matches!(self, Wait::None | Wait::Lanes(_))
    }
}

/// Lanes that stand at one instruction.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub(crate) pc: u32,
    pub(crate) rbase: u32,
    pub(crate) pbase: u32,
    pub(crate) lbase: u32,
    pub(crate) mask: u32,
    pub(crate) wait: Wait,
    pub(crate) stamp: u64,
}

impl Group {
    fn same_place(&self, other: &Group) -> bool {
        self.pc == other.pc && self.rbase == other.rbase && self.pbase == other.pbase && self.lbase == other.lbase
    }
}

impl Warp<'_> {
    /// Takes lanes out of the running group and lets them go on elsewhere.
    pub fn send(&mut self, mask: u32, group: Group) {
        self.active &= !mask;
        if mask != 0 {
            self.stamp += 1;
            self.groups.push(Group { mask, stamp: self.stamp, ..group });
        }
    }

    /// The running group's place, with another program counter.
    pub fn here(&self, pc: u32) -> Group {
        Group {
            pc,
            rbase: self.rbase,
            pbase: self.pbase,
            lbase: self.lbase,
            mask: self.active,
            wait: Wait::None,
            stamp: self.stamp,
        }
    }

    /// Chooses the group to run next. Returns false when none can.
    pub(crate) fn pick(&mut self, oldest: bool) -> bool {
        if self.active != 0 {
            let group = self.here(self.pc);
            self.send(self.active, group);
        }
        for at in 0..self.groups.len() {
            if let Wait::Barrier(number, phase) = self.groups[at].wait
                && let Some(result) = self.block().barrier_passed(number, phase)
            {
                let group = &mut self.groups[at];
                group.wait = Wait::None;
                let resume = *group;
                group.pc += 1;
                self.write_barrier_result(resume, result);
            } else if let Wait::Cluster(phase) = self.groups[at].wait
                && self.block().members.passed(phase)
            {
                let group = &mut self.groups[at];
                group.wait = Wait::None;
                group.pc += 1;
                let passed = group.mask;
                self.tell_lanes(passed, |events, lanes| events.meeting_passes(Meeting::Cluster, lanes));
            } else if let Wait::Registers(count) = self.groups[at].wait {
                let index = self.index as usize;
                if self.block().registers.take(index, count) {
                    let group = &mut self.groups[at];
                    group.wait = Wait::None;
                    group.pc += 1;
                }
            } else if let Wait::Products(groups) = self.groups[at].wait {
                // The instruction looks again.
                let index = self.index;
                if self.block().has_issued_products(index, groups) {
                    self.groups[at].wait = Wait::None;
                }
            }
        }
        self.merge();
        if self.groups.len() > 1 || self.groups.iter().any(|group| group.wait != Wait::None) {
            self.wake_lanes();
        }
        let ready = self.groups.iter().enumerate().filter(|(_, group)| group.wait == Wait::None);
        let best = if oldest {
            ready.min_by_key(|(_, group)| group.stamp)
        } else {
            ready.min_by_key(|(_, group)| (u32::MAX - group.rbase, group.pc))
        };
        let Some((at, _)) = best else { return false };
        let group = self.groups.swap_remove(at);
        (self.pc, self.rbase, self.pbase, self.lbase) = (group.pc, group.rbase, group.pbase, group.lbase);
        self.active = group.mask;
        self.set_frame();
        true
    }

    /// Writes what a barrier's reduction (`barrier.red`) found for lanes that waited at it.
    fn write_barrier_result(&mut self, group: Group, result: u32) {
        let (what, to) = self.env.program.code[group.pc as usize].barrier_result();
        if what < BARRIER_POPC {
            return;
        }
        // The running frame may be another one: results go to the frame of the lanes that waited.
        let (rbase, pbase) = (self.rbase, self.pbase);
        (self.rbase, self.pbase) = (group.rbase, group.pbase);
        match what {
            BARRIER_POPC => {
                let row = self.absolute(group.rbase + to.0);
                (0..LANES).filter(|l| group.mask >> l & 1 != 0).for_each(|l| row.0[l] = u64::from(result & 0xffff));
            }
            kind => {
                let flag = if kind == BARRIER_AND { RESULT_ALL } else { RESULT_ANY };
                self.set_pred(Pred(to.0), group.mask, if result & flag != 0 { u32::MAX } else { 0 });
            }
        }
        (self.rbase, self.pbase) = (rbase, pbase);
    }

    /// Joins groups that stand at the same place.
    fn merge(&mut self) {
        let mut at = 0;
        while at < self.groups.len() {
            let mut other = at + 1;
            while other < self.groups.len() {
                let (first, second) = (self.groups[at], self.groups[other]);
                let barrier = first.wait.is_for_others() || second.wait.is_for_others();
                if first.same_place(&second) && !barrier {
                    self.groups[at].mask |= second.mask;
                    self.groups[at].stamp = first.stamp.min(second.stamp);
                    self.groups[at].wait = match (first.wait, second.wait) {
                        (Wait::Lanes(a), Wait::Lanes(b)) => Wait::Lanes(a | b),
                        _ => Wait::None,
                    };
                    self.groups.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// Lets groups go on that wait for lanes of the warp which have come.
    fn wake_lanes(&mut self) {
        let alive = self.alive;
        let code = &self.env.program.code;
        let mut waiting = 0;
        for group in &mut self.groups {
            if let Wait::Lanes(need) = group.wait {
                if need & alive & !group.mask == 0 {
                    group.wait = Wait::None;
                }
                if code[group.pc as usize].meeting().is_none() {
                    waiting |= group.mask;
                }
            }
        }
        // `bar.warp.sync` at several places of the code: it is one barrier, and all have come to
        // one of them.
        if !self.groups.iter().any(|group| group.wait == Wait::None) {
            let mut met = 0;
            for at in 0..self.groups.len() {
                let group = self.groups[at];
                if let Wait::Lanes(need) = group.wait
                    && need & alive & !waiting == 0
                    && self.env.program.code[group.pc as usize].is_warp_barrier()
                {
                    self.groups[at].wait = Wait::None;
                    self.groups[at].pc += 1;
                    met |= group.mask;
                    self.tell_synchronises(Some((group.pc, SyncKind::Divided)));
                }
            }
            self.tell_synchronises(None);
            self.tell_lanes(met, |events, lanes| events.warp_meets(lanes));
        }
        if !self.groups.iter().any(|group| group.wait == Wait::None) {
            self.let_waiting_go();
        }
    }
}

/// Places of a stuck block that are named one by one.
const MOST: usize = 8;

/// Threads as ranges of their numbers in the block.
fn ranges(threads: &[u32]) -> String {
    let mut out = String::new();
    for part in threads.chunk_by(|a, b| a + 1 == *b) {
        let separator = if out.is_empty() { "" } else { ", " };
        let (first, last) = (part[0], part[part.len() - 1]);
        let _ = match part.len() {
            1 => write!(out, "{separator}{first}"),
            _ => write!(out, "{separator}{first} to {last}"),
        };
        if out.len() > 60 {
            out.push_str(", ...");
            break;
        }
    }
    out
}

/// What a thread of a group waits for.
fn what(wait: Wait) -> String {
    match wait {
        Wait::None => "run".to_owned(),
        Wait::Barrier(number, _) => format!("wait at barrier {number}"),
        Wait::Cluster(_) => "wait at the cluster's barrier".to_owned(),
        Wait::Registers(count) => format!("wait for {count} registers each"),
        Wait::Products(_) => "wait for the products of their warp group".to_owned(),
        Wait::Lanes(mask) => format!("wait for the lanes {mask:#x} of their warp"),
    }
}

fn place(warp: &Warp<'_>, pc: u32) -> String {
    let program = warp.env.program;
    match program.source(pc) {
        Some((file, line)) => format!("{file}:{line}"),
        None if program.machine.is_some() => format!("machine code at {:#x}", program.line(pc)),
        None => format!("PTX line {}", program.line(pc)),
    }
}

/// The threads of a block that can no longer go on, by what they wait for and where; those that
/// have ended come last.
pub(crate) fn waits(warps: &[Warp<'_>]) -> String {
    let mut places: BTreeMap<(u32, String), (String, Vec<u32>)> = BTreeMap::new();
    let mut ended = Vec::new();
    for warp in warps {
        let threads = |mask: u32| {
            let lanes = (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0);
            lanes.map(|lane| warp.index * LANES as u32 + lane)
        };
        let mut add_to = |pc: u32, what: String, mask: u32| {
            let new = || (place(warp, pc), Vec::new());
            places.entry((pc, what)).or_insert_with(new).1.extend(threads(mask));
        };
        let polls = warp.polls.lanes() & warp.alive;
        if polls != 0 {
            add_to(warp.polls.pc, "poll the barrier of a grid or a tile".to_owned(), polls);
        }
        let mut add = |pc, wait, mask| {
            if mask != 0 {
                add_to(pc, what(wait), mask);
            }
        };
        match warp.parked {
            Some((number, phase)) => add(warp.pc, Wait::Barrier(number, phase), warp.active),
            None => warp.groups.iter().for_each(|group| add(group.pc, group.wait, group.mask & !polls)),
        }
        ended.extend(threads(warp.began_with() & !warp.alive));
    }
    let more = places.len().saturating_sub(MOST);
    let mut out: Vec<String> = places
        .into_iter()
        .take(MOST)
        .map(|((_, what), (place, threads))| format!("threads {} {what} ({place})", ranges(&threads)))
        .collect();
    if more > 0 {
        out.push(format!("threads at {more} more places wait"));
    }
    if !ended.is_empty() {
        out.push(format!("threads {} have ended", ranges(&ended)));
    }
    out.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_in_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3]), "0 to 3");
        assert_eq!(ranges(&[0, 2, 3, 9]), "0, 2 to 3, 9");
        let odd: Vec<u32> = (0..200).map(|at| at * 2).collect();
        assert!(ranges(&odd).ends_with(", ...") && ranges(&odd).len() < 80, "{}", ranges(&odd));
    }
}
