//! One block: its shared memory, its barriers, and the turns that its warps take.

use super::cluster::Members;
use super::env::Env;
use super::warp::{Group, Outcome, Wait, Warp};
use crate::bulk_work::Pending;
use crate::bulk_work::object::State;
use crate::bulk_work::products::Products;
use crate::exec::registers::Registers;
use crate::groups;
use crate::interface::FaultKind;
use crate::observed_order::OrderEvent;
use crate::program::{LANES, Row};
use sim_races::Memory;

/// Jumps that a warp may make before the next warp of the block gets its turn.
const TURN: u32 = 1 << 14;

/// A turn is cut in so many where accesses are checked: a warp that polls for another one of its
/// block then polls not as often, and polls that are checked take long.
const PARTS: u32 = 64;

/// Rounds in which warps only come to barriers that a block may have before another one runs.
const ROUNDS: u32 = 256;

/// The number of the block's part in the cluster's barrier, behind those that PTX can name.
const CLUSTER: usize = 16;

/// One of the block's 16 barriers, or its part in the cluster's.
#[derive(Debug, Clone, Default)]
struct Barrier {
    /// Threads that this phase asks for; 0 for all of the block.
    expected: u32,
    phase: u32,
    /// Reductions over the arrivals: how many were true; all; any.
    count: u32,
    all: bool,
    any: bool,
    /// Results of the last two phases: count, and (bits 16, 17) all, any.
    results: [u32; 2],
}

/// Bit of a barrier's result: the predicate was true in all threads.
pub(crate) const RESULT_ALL: u32 = 1 << 16;
/// Bit of a barrier's result: the predicate was true in some thread.
pub(crate) const RESULT_ANY: u32 = 1 << 17;

/// Kinds of block barriers, in `y` of their instruction.
pub const BARRIER_SYNC: u32 = 0;
pub(crate) const BARRIER_ARRIVE: u32 = 1;
pub(crate) use crate::operations::values::BARRIER_POPC;
pub(crate) const BARRIER_AND: u32 = 3;
pub(crate) const BARRIER_OR: u32 = 4;

/// What the warps of a block share.
pub struct BlockState {
    pub index: [u32; 3],
    pub(crate) linear: u64,
    shared: Vec<Row>,
    /// Bytes of it that were asked for, and that are there.
    pub shared_size: u32,
    pub(crate) shared_limit: u32,
    /// Where it ends with what the system keeps.
    pub(crate) shared_end: u32,
    alive: Vec<u32>,
    barriers: [Barrier; CLUSTER + 1],
    /// Lanes of each warp that have arrived in this phase, barrier by barrier.
    arrived: Vec<u32>,
    /// A bit for each barrier that somebody waits at.
    waiting: u32,
    /// The blocks of the cluster, this one among them.
    pub(crate) members: Members,
    /// Bulk operations that its threads have begun.
    pub(crate) bulk: Pending,
    /// Registers of its warps, and those in its pool.
    pub(crate) registers: Registers,
    ended: bool,
    /// A thread has let dependent grids begin.
    pub(crate) triggered: bool,
}

impl BlockState {
    fn new(env: &Env<'_>) -> Self {
        let warps = env.warps() as usize;
        let end = env.shared_limit().max(env.reserved_shared.end);
        BlockState {
            index: [0; 3],
            linear: 0,
            shared: vec![Row([0; LANES]); (end as usize).div_ceil(size_of::<Row>()) + 1],
            shared_size: env.shared_size(),
            shared_limit: env.shared_limit(),
            shared_end: if env.reserved_shared.is_empty() { env.shared_limit() } else { end },
            alive: vec![0; warps],
            barriers: Default::default(),
            arrived: vec![0; warps * (CLUSTER + 1)],
            waiting: 0,
            members: Members::default(),
            bulk: Pending::default(),
            registers: Registers::default(),
            ended: false,
            triggered: false,
        }
    }

    /// Whether the other warps of a warp's group have issued so many groups of products, those that
    /// have not ended.
    pub(crate) fn has_issued_products(&self, warp: u32, groups: u64) -> bool {
        let issues = |other: &u32| self.alive.get(*other as usize).is_some_and(|&alive| alive != 0);
        Products::others(warp).filter(issues).all(|other| self.bulk.products.closed(other) >= groups)
    }

    /// First byte of the shared memory.
    pub fn shared(&mut self) -> *mut u8 {
        self.shared.as_mut_ptr().cast()
    }

    /// The same as an address.
    pub(crate) fn shared_start(&self) -> u64 {
        self.shared.as_ptr() as u64
    }

    /// Lanes arrive at a barrier. Returns the phase that they take part in.
    pub(crate) fn arrive(&mut self, number: u8, warp: usize, mask: u32, expected: u32, truth: u32) -> u32 {
        self.arrive_at(usize::from(number & 15), warp, mask, expected, truth)
    }

    /// Lanes arrive at the cluster's barrier.
    pub(crate) fn arrive_in_cluster(&mut self, warp: usize, mask: u32) {
        self.arrive_at(CLUSTER, warp, mask, 0, 0);
    }

    /// The phase of the cluster's barrier that lanes have arrived for last.
    pub(crate) fn cluster_phase(&self, warp: usize, mask: u32) -> u32 {
        let barrier = &self.barriers[CLUSTER];
        // A lane's mark stays until all of the block have arrived.
        if self.arrived[CLUSTER * self.alive.len() + warp] & mask != 0 {
            barrier.phase
        } else {
            barrier.phase.wrapping_sub(1)
        }
    }

    /// True when this block's threads have all arrived for that phase.
    pub(crate) fn cluster_phase_over(&self, phase: u32) -> bool {
        self.ended || self.barriers[CLUSTER].phase.wrapping_sub(phase) as i32 > 0
    }

    fn arrive_at(&mut self, number: usize, warp: usize, mask: u32, expected: u32, truth: u32) -> u32 {
        let barrier = &mut self.barriers[number];
        if self.waiting >> number & 1 == 0 {
            self.waiting |= 1 << number;
            (barrier.count, barrier.all, barrier.any) = (0, true, false);
            barrier.expected = expected;
        }
        self.arrived[number * self.alive.len() + warp] |= mask;
        barrier.count += (truth & mask).count_ones();
        barrier.all &= truth & mask == mask;
        barrier.any |= truth & mask != 0;
        let phase = barrier.phase;
        self.check(number);
        phase
    }

    fn check(&mut self, number: usize) {
        let (barrier, warps) = (&mut self.barriers[number], self.alive.len());
        let arrived = &mut self.arrived[number * warps..][..warps];
        let complete = if barrier.expected == 0 {
            // Warps mostly come in order: the last one is what is missing.
            (0..warps).rev().all(|warp| self.alive[warp] & !arrived[warp] == 0)
        } else {
            // A warp that has arrived with all its threads counts as a full one.
            let count = |(&alive, &arrived): (&u32, &u32)| match arrived {
                0 => 0,
                _ if alive & !arrived == 0 => LANES as u32,
                _ => arrived.count_ones(),
            };
            self.alive.iter().zip(arrived.iter()).map(count).sum::<u32>() >= barrier.expected
        };
        if complete {
            let flags = if barrier.all { RESULT_ALL } else { 0 } | if barrier.any { RESULT_ANY } else { 0 };
            barrier.results[(barrier.phase & 1) as usize] = barrier.count | flags;
            barrier.phase = barrier.phase.wrapping_add(1);
            arrived.fill(0);
            self.waiting &= !(1 << number);
        }
    }

    /// The result of a phase of a barrier, once that phase has ended.
    pub(crate) fn barrier_passed(&self, number: u8, phase: u32) -> Option<u32> {
        let barrier = &self.barriers[usize::from(number & 15)];
        (barrier.phase != phase).then(|| barrier.results[(phase & 1) as usize])
    }

    /// Whether the last phase of a barrier was for all threads of the block.
    pub(crate) fn is_of_all(&self, number: u8) -> bool {
        self.barriers[usize::from(number)].expected == 0
    }

    /// Lanes of a warp have exited: barriers no longer wait for them. A bit for each barrier that
    /// is complete without them; the cluster's is none of them.
    pub(crate) fn lanes_left(&mut self, warp: usize, alive: u32) -> u32 {
        self.alive[warp] = alive;
        let before = self.waiting;
        let mut left = self.waiting;
        while left != 0 {
            self.check(left.trailing_zeros() as usize);
            left &= left - 1;
        }
        before & !self.waiting & !(1 << CLUSTER)
    }
}

/// A block that runs or is about to. It can be used for one block after the other.
pub(crate) struct Block<'b> {
    env: &'b Env<'b>,
    state: Box<BlockState>,
    warps: Vec<Warp<'b>>,
    done: Vec<bool>,
}

/// What became of a block that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    Paused,
    /// All that is left waits for other blocks of the cluster.
    Blocked,
    /// All that is left waits for the grids that this one depends on.
    Rests,
    /// The warp that is at fault.
    Fault(usize),
}

impl<'b> Block<'b> {
    pub(crate) fn new(env: &'b Env<'b>) -> Self {
        let warps = (0..env.warps()).map(|index| Warp::new(env, index)).collect::<Vec<_>>();
        let done = vec![true; warps.len()];
        Block { env, state: Box::new(BlockState::new(env)), warps, done }
    }

    /// What its warps share. It stays there as long as the block.
    pub(crate) fn state(&mut self) -> *mut BlockState {
        &mut *self.state
    }

    /// Makes it one of a cluster's blocks.
    pub(crate) fn join(&mut self, members: Members) {
        self.state.members = members;
    }

    /// Makes it the block of that linear number, about to begin. `first` is the first block of its
    /// cluster.
    pub(crate) fn start(&mut self, linear: u64, first: u64) {
        if let Some(events) = self.env.events {
            events.block_starts(linear as u32, self.env.launch.block.iter().product(), first as u32);
            let reserved = &self.env.reserved_shared;
            events.given(Memory::Shared(linear as u32), reserved.start.into(), reserved.len() as u64);
        }
        self.state.linear = linear;
        self.state.index = self.env.block_index(linear);
        if self.env.orders {
            let system = self.env.program.order.system;
            self.env.device.observe_order(self.state.index, 0, OrderEvent::Begins { system });
        }
        // Whoever arrives where nobody waits makes it a barrier that is waited at.
        if self.state.waiting != 0 {
            self.state.arrived.fill(0);
            self.state.waiting = 0;
        }
        // All blocks of a cluster count its barrier's phases from the same number.
        self.state.barriers[CLUSTER].phase = 0;
        self.state.ended = false;
        self.state.triggered = false;
        self.state.registers = Registers::new(self.warps.len(), self.env.kernel.registers);
        let state: *mut BlockState = &mut *self.state;
        for (at, warp) in self.warps.iter_mut().enumerate() {
            warp.block = state;
            warp.start();
            self.done[at] = false;
        }
        // Through the pointer, as the warps do, so that theirs stays valid.
        for (at, warp) in self.warps.iter().enumerate() {
            // SAFETY: the box lives as long as the block, and nothing else refers to it now.
            unsafe { (&mut (*state).alive)[at] = warp.alive };
        }
    }

    /// Runs the block until it has ended or has had about `turns` turns of each warp. A turn of
    /// `jumps` jumps.
    pub(crate) fn run(&mut self, turns: u32, impatient: bool) -> Progress {
        // Both are counted in parts.
        let (mut turns, mut rounds, mut rests) = (turns * PARTS, ROUNDS * PARTS, 0);
        let checked = self.env.events.is_some();
        let parts = if checked { PARTS } else { 1 };
        // All warps but one did so at their last turn. Which one is first in a round does not
        // matter then: thread 0 polls at the grid's barrier while its block waits for it.
        let mut others_waited = false;
        while turns > 0 && rounds > 0 {
            let mut progress = false;
            let mut paused = false;
            let mut awaits = false;
            if self.is_held() {
                return Progress::Paused;
            }
            let (mut left, mut cut) = (false, parts > 1);
            let running = if impatient { self.done.iter().filter(|done| !**done).count() } else { 0 };
            let mut blocked = 0;
            let (count, schedule) = (self.warps.len(), self.env.launch.schedule);
            for turn in 0..count {
                let at = (turn + schedule as usize) % count;
                if self.done[at] {
                    continue;
                }
                let alone = impatient && (blocked + 1 >= running || checked && others_waited);
                let jumps = if alone { TURN / 256 } else { TURN >> (schedule % 14) };
                // As it would go round to all others, too.
                cut &= !alone;
                let jumps = if alone { jumps } else { jumps.min(TURN / parts) };
                self.warps[at].vain.now = false;
                self.warps[at].polls.now = false;
                self.warps[at].awaits_grids = false;
                let outcome = self.warps[at].run(jumps);
                if !self.state.bulk.is_empty() {
                    self.state.bulk.turn(self.env.events);
                }
                match outcome {
                    Outcome::Done => {
                        self.done[at] = true;
                        self.state.registers.end(at);
                        progress = true;
                    }
                    Outcome::Blocked => {
                        left = true;
                        blocked += 1;
                    }
                    Outcome::Paused if self.warps[at].awaits_grids => {
                        left = true;
                        awaits = true;
                    }
                    Outcome::Paused => {
                        left = true;
                        progress = true;
                        paused = true;
                    }
                    Outcome::Fault => return Progress::Fault(at),
                }
                if self.is_held() {
                    return Progress::Paused;
                }
            }
            others_waited = blocked > 0 && blocked + 1 >= running;
            if !left {
                self.state.bulk.end(self.env.events);
                self.state.ended = true;
                if let Some(events) = self.env.events {
                    events.block_ends(self.state.linear as u32);
                }
                if self.env.orders {
                    self.env.device.observe_order(self.state.index, 0, OrderEvent::Ends);
                }
                if self.env.opening.is_wanted() && !self.state.triggered {
                    self.env.opening.block_opens(self.env.overlap);
                }
                return Progress::Done;
            }
            if awaits && !progress {
                // Each group of lanes of a warp has had a turn by then.
                rests += 1;
                if rests > LANES {
                    return Progress::Rests;
                }
                rounds = rounds.saturating_sub(PARTS);
                continue;
            }
            rests = 0;
            if self.state.members.count() == 1 && self.is_in_vain() && self.is_stuck() {
                return self.give_up_polling();
            }
            if !progress && !self.can_go_on() {
                let waits = |warp: &Warp<'_>| warp.groups.iter().any(|group| matches!(group.wait, Wait::Cluster(_)));
                if self.state.members.count() > 1 && self.warps.iter().any(waits) {
                    return Progress::Blocked;
                }
                return self.give_up();
            }
            // From barrier to barrier it waits for no other block.
            let part = if cut && paused { 1 } else { PARTS };
            rounds = rounds.saturating_sub(part);
            turns = turns.saturating_sub(if paused { part } else { 0 });
        }
        Progress::Paused
    }

    /// Its threads go on when those of all blocks have let dependent grids begin.
    fn is_held(&self) -> bool {
        self.state.triggered && self.env.opening.holds()
    }

    /// A warp polls a barrier object that nothing has happened to for long.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.warps.iter().zip(&self.done).any(|(warp, done)| !done && warp.vain.is_long())
    }

    /// All threads that are left wait: at barriers, or for the phases of barrier objects.
    pub(crate) fn is_stuck(&self) -> bool {
        let waits = |warp: &Warp<'_>| {
            let at_barriers = warp.groups.iter().filter(|group| group.wait != Wait::None);
            let lanes =
                at_barriers.fold(if warp.vain.now { warp.vain.lanes } else { 0 }, |all, group| all | group.mask);
            warp.parked.is_some() || warp.alive & !lanes == 0
        };
        self.warps.iter().zip(&self.done).all(|(warp, done)| *done || waits(warp))
    }

    /// All threads that are left wait at barriers, or poll one that cooperative groups keep in
    /// memory of the system's, since its last change.
    pub(crate) fn only_polls(&self, changes: u64) -> bool {
        let waits = |warp: &Warp<'_>| {
            let at_barriers = warp.groups.iter().filter(|group| group.wait != Wait::None);
            let lanes = at_barriers.fold(warp.polls.lanes_since(changes), |all, group| all | group.mask);
            warp.parked.is_some() || warp.alive & !lanes == 0
        };
        self.warps.iter().zip(&self.done).all(|(warp, done)| *done || waits(warp))
    }

    /// A warp has polled such a barrier for long.
    pub(crate) fn polls_long(&self) -> bool {
        self.warps.iter().zip(&self.done).any(|(warp, done)| !done && warp.polls.is_long())
    }

    /// Ends at the first warp that polls such a barrier. `others` says what became of other blocks.
    pub(crate) fn give_up_system(&mut self, others: &str) -> usize {
        let at = self.warps.iter().zip(&self.done).position(|(warp, done)| !done && warp.polls.is_long()).unwrap_or(0);
        let why = FaultKind::Deadlock(groups::waits(&self.warps) + others);
        let warp = &mut self.warps[at];
        warp.pc = warp.polls.pc;
        let lanes = warp.polls.lanes();
        let _ = warp.fail(why, lanes);
        at
    }

    /// Says what the object lacks that a warp polls in vain.
    pub(crate) fn give_up_polling(&mut self) -> Progress {
        let polls = self.warps.iter().zip(&self.done).position(|(warp, done)| !done && warp.vain.is_long());
        let at = polls.unwrap_or(0);
        let (start, warp) = (self.state.shared_start(), &mut self.warps[at]);
        // SAFETY: the poll has checked the word, which is the block's or the cluster's.
        let State { expected, missing, bytes, .. } = unsafe { State::at(warp.vain.at) };
        let offset = warp.vain.at.wrapping_sub(start) as u32;
        let kind = FaultKind::Phase { offset, arrivals: [missing, expected], bytes };
        warp.pc = warp.vain.pc;
        let lanes = warp.vain.lanes;
        let _ = warp.fail(kind, lanes);
        Progress::Fault(at)
    }

    /// Ends at the first warp that has not ended, as nobody can go on: says which threads wait, and
    /// where.
    pub(crate) fn give_up(&mut self) -> Progress {
        let of_registers = |group: &Group| matches!(group.wait, Wait::Registers(_));
        let why = match self.warps.iter().any(|warp| warp.groups.iter().any(of_registers)) {
            true => {
                FaultKind::Registers(format!("no warp releases what others wait for: {}", groups::waits(&self.warps)))
            }
            false => FaultKind::Deadlock(groups::waits(&self.warps)),
        };
        let at = self.done.iter().position(|done| !done).unwrap_or(0);
        let warp = &mut self.warps[at];
        if let Some(group) = warp.groups.first() {
            warp.pc = group.pc;
            let mask = group.mask;
            let _ = warp.fail(why, mask);
        } else if warp.parked.is_some() {
            let mask = warp.active;
            let _ = warp.fail(why, mask);
        }
        Progress::Fault(at)
    }

    /// True when a warp that reported to be blocked was released since, by a warp after it.
    pub(crate) fn can_go_on(&mut self) -> bool {
        let state = &self.state;
        self.warps.iter().any(|warp| {
            let parked = warp.parked.is_some_and(|(number, phase)| state.barrier_passed(number, phase).is_some());
            parked
                || warp.groups.iter().any(|group| match group.wait {
                    Wait::None => true,
                    Wait::Barrier(number, phase) => state.barrier_passed(number, phase).is_some(),
                    Wait::Cluster(phase) => state.members.passed(phase),
                    Wait::Registers(count) => state.registers.has(warp.index as usize, count),
                    Wait::Products(groups) => state.has_issued_products(warp.index, groups),
                    Wait::Lanes(_) => false,
                })
        })
    }

    /// The index of the block and a warp, for reports.
    pub(crate) fn culprit(&self, warp: usize) -> ([u32; 3], &Warp<'b>) {
        (self.state.index, &self.warps[warp])
    }
}
