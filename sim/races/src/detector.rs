//! The detector of one launch: takes the events, keeps the state, and gives the races. What an
//! access does to the state is in `accesses`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::accesses::OBJECT;
use crate::clock::{Known, Snapshot, join, union};
use crate::deferred::Log;
use crate::events::{
    FenceOrder, LANES, Lanes, Meeting, Memory, MemoryEvents, ObjectPlace, Proxies, RegisterUse, Scope, ThreadOf,
    WarpAccess,
};
use crate::grade::Grade;
use crate::grids::Grids;
use crate::lives::Lives;
use crate::locations::Location;
use crate::objects::Objects;
use crate::records::{Habits, Race, Records, Remedy, Side};
use crate::shadow::{Access, Shadow};
use crate::sources::Sources;
use crate::threads::{Block, threads};
use crate::trials::Tape;
use crate::unwritten::{Unwritten, WrittenBytes};

/// How the code of a launch is to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// It is machine code, which does not say everything:
    ///
    /// - There is no barrier of the warp where the compiler has proved that the lanes are together
    ///   already. So accesses of different instructions by lanes of one warp are not judged, and
    ///   what one lane releases or acquires, all lanes of its warp do: the barrier may have been
    ///   between.
    /// - Accesses to shared memory have no strength, and the assembler makes loops of a plain load
    ///   and a compare-and-swap of atomic operations that shared memory lacks. So a plain read
    ///   there and an atomic operation are not judged, nor are atomic operations of different
    ///   sizes, nor is a load that is polled ([`Strength::Volatile`](crate::Strength::Volatile)),
    ///   which acquires.
    pub machine: bool,
}

/// What was not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inexact {
    /// Accesses that stand for those of more threads than there were; races with them are at most
    /// possible.
    pub widened: u64,
    /// Pairs that are not judged for [`Reading::machine`].
    pub unsaid: u64,
}

/// What a barrier beyond a block has got in a phase.
#[derive(Default)]
struct Phase {
    given: Vec<Snapshot>,
    whole: Option<Arc<Known>>,
    /// Of those whose arrival was relaxed, and gives no clock.
    come: Vec<Snapshot>,
    /// Of all that have come.
    all: Option<Arc<Known>>,
}

/// The same by the phase.
type Phases = FxHashMap<u64, Phase>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) reading: Reading,
    pub(crate) blocks: FxHashMap<u32, Block>,
    /// The cluster of each block, if clusters have several.
    pub(crate) clusters: FxHashMap<u32, u32>,
    pub(crate) shadows: FxHashMap<Memory, Shadow>,
    /// Reads of global memory that are not in its shadow yet.
    pub(crate) log: Log,
    pub(crate) locations: FxHashMap<(Memory, u64), Location>,
    meetings: FxHashMap<(Meeting, u32), Phases>,
    pub(crate) objects: Objects,
    pub(crate) grids: Grids,
    pub(crate) sources: Sources,
    pub(crate) lives: Lives,
    /// What is told now was judged when it began.
    pub(crate) judged: bool,
    pub(crate) records: Records,
    pub(crate) habits: Habits,
    pub(crate) inexact: Inexact,
    /// There is a barrier object somewhere.
    pub(crate) has_objects: bool,
    pub(crate) events: u64,
    /// Reads of unwritten bytes, if they are looked for.
    unwritten: Option<Unwritten>,
    /// Tests compare: nothing goes the short way.
    #[cfg(test)]
    pub(crate) no_short_way: bool,
    /// The same: no read is put off.
    #[cfg(test)]
    pub(crate) defers_nothing: bool,
    /// Room for a history that is made anew.
    pub(crate) scratch: Vec<Access>,
}

/// Finds the races of a launch.
#[derive(Default)]
pub struct Detector {
    state: Mutex<State>,
    pub(crate) tape: Option<Tape>,
}

impl Detector {
    /// For one launch.
    pub fn new(reading: Reading) -> Detector {
        Detector { state: Mutex::new(State { reading, ..State::default() }), tape: None }
    }

    /// Keeps what it is told, for [`Detector::trials`].
    #[must_use]
    pub fn recording(self) -> Detector {
        Detector { tape: Some(Tape::default()), ..self }
    }

    /// Looks for reads of unwritten bytes, too. They are told with the races
    /// ([`Remedy::FirstWrite`](crate::Remedy::FirstWrite)).
    #[must_use]
    pub fn watching(self, global: &'static dyn WrittenBytes) -> Detector {
        self.state().unwritten = Some(Unwritten::new(global));
        self
    }

    /// The races so far, the surest first.
    pub fn races(&self) -> Vec<Race> {
        let state = self.state();
        let mut races = state.records.races(&state.habits);
        if let Some(unwritten) = &state.unwritten {
            races.extend(unwritten.found());
            races.sort_by_key(|race| (std::cmp::Reverse(race.grade), race.sides, race.shared));
        }
        races
    }

    /// What was not exact so far.
    pub fn inexact(&self) -> Inexact {
        let state = self.state();
        let widened: u64 = state.shadows.values().map(|shadow| shadow.inexact).sum();
        Inexact { widened: state.inexact.widened + widened, ..state.inexact }
    }

    /// Bytes that the histories take now.
    pub fn shadow_bytes(&self) -> u64 {
        let state = self.state();
        state.shadows.values().map(Shadow::bytes).sum::<u64>() + state.log.bytes()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, number: u32, run: impl FnOnce(&mut Block)) {
        if let Some(block) = self.state().blocks.get_mut(&number) {
            run(block);
        }
    }
}

impl MemoryEvents for Detector {
    fn block_starts(&self, block: u32, threads: u32, cluster: u32) {
        let mut state = self.state();
        let past = state.grids.past();
        state.blocks.insert(block, Block::new(block, threads, cluster, &past));
        if cluster != block {
            state.clusters.extend([(block, cluster), (cluster, cluster)]);
        }
    }

    fn block_ends(&self, block: u32) {
        let mut state = self.state();
        state.block_leaves(block);
        state.blocks.remove(&block);
        state.objects.block_ends(block);
        state.sources.block_ends(block);
        state.habits.block_ends(block);
        if let Some(unwritten) = &mut state.unwritten {
            unwritten.block_ends(block);
        }
        if let Some(shadow) = state.shadows.remove(&Memory::Shared(block)) {
            state.inexact.widened += shadow.inexact;
            state.locations.retain(|(memory, _), _| *memory != Memory::Shared(block));
        }
    }

    fn exits(&self, lanes: Lanes, site: u32) {
        let mut state = self.state();
        let State { blocks, meetings, clusters, lives, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        if !clusters.is_empty() {
            lives.exits(lanes, site);
            // The cluster's barrier waits for threads that have not ended only.
            let phases = meetings.entry((Meeting::Cluster, block.cluster)).or_default();
            for at in threads(lanes.warp, lanes.mask) {
                let next = block.phase(Meeting::Cluster, at) + 1;
                phases.entry(next).or_default().given.push(block.snapshot(at));
            }
        }
        if let Some((phase, snapshot)) = block.exits(lanes) {
            meetings.entry((Meeting::Grid, 0)).or_default().entry(phase).or_default().given.push(snapshot);
        }
    }

    fn access(&self, access: &WarpAccess<'_>) {
        let mut state = self.state();
        if let Some(unwritten) = &mut state.unwritten
            && access.size != 0
        {
            unwritten.access(access);
        }
        state.access(access);
    }

    fn fence(&self, lanes: Lanes, scope: Scope, order: FenceOrder) {
        let mut state = self.state();
        let machine = state.reading.machine;
        let Some(block) = state.blocks.get_mut(&lanes.block) else { return };
        let whole = Lanes { mask: block.alive(lanes.warp), ..lanes };
        if machine {
            block.warp_meets(whole);
        }
        block.fence(lanes, scope, order);
        if machine {
            block.warp_meets(whole);
        }
    }

    fn warp_meets(&self, lanes: Lanes) {
        self.block(lanes.block, |block| block.warp_meets(lanes));
    }

    fn barrier_arrives(&self, number: u8, lanes: Lanes, waits: bool) {
        self.block(lanes.block, |block| block.barrier_arrives(number, lanes, waits));
    }

    fn barrier_completes(&self, block: u32, number: u8, whole: bool) {
        self.block(block, |block| block.barrier_completes(number, whole));
    }

    fn meeting_arrives(&self, meeting: Meeting, lanes: Lanes, releases: bool) {
        let mut state = self.state();
        let State { blocks, meetings, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        let of = if meeting == Meeting::Cluster { block.cluster } else { 0 };
        let phases = meetings.entry((meeting, of)).or_default();
        for (phase, snapshot) in block.meeting_arrives(meeting, lanes, releases) {
            phases.entry(phase).or_default().given.push(snapshot);
        }
        if meeting == Meeting::Cluster && !releases {
            for at in threads(lanes.warp, lanes.mask) {
                let phase = block.phase(meeting, at);
                phases.entry(phase).or_default().come.push(block.snapshot(at));
                block.threads[at].released();
            }
        }
    }

    fn meeting_passes(&self, meeting: Meeting, lanes: Lanes) {
        let mut state = self.state();
        let State { blocks, meetings, lives, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        let of = if meeting == Meeting::Cluster { block.cluster } else { 0 };
        let phases = meetings.entry((meeting, of)).or_default();
        for at in threads(lanes.warp, lanes.mask) {
            let phase = block.phase(meeting, at);
            // Who passes a phase has left those before it behind, with everybody else.
            phases.retain(|&number, _| number >= phase);
            let Phase { given, whole, come, all } = phases.entry(phase).or_default();
            let whole = whole.get_or_insert_with(|| union(given));
            block.meeting_passes(at, whole);
            if meeting == Meeting::Cluster {
                let all = all.get_or_insert_with(|| join(whole, &union(come)));
                lives.has_met(lanes.block, all);
            }
        }
    }

    fn allocated(&self, address: u64, size: u64) {
        let mut state = self.state();
        state.settle(address, size);
        if let Some(shadow) = state.shadows.get_mut(&Memory::Global) {
            shadow.forget(address, size);
        }
        let within = |at: u64| at.wrapping_sub(address) < size;
        state.locations.retain(|&(memory, at), _| memory != Memory::Global || !within(at));
    }

    fn given(&self, memory: Memory, address: u64, size: u64) {
        if let Some(unwritten) = &mut self.state().unwritten {
            unwritten.given(memory, address, size);
        }
    }

    fn copies_committed(&self, lanes: Lanes) {
        self.block(lanes.block, |block| block.copies_committed(lanes));
    }

    fn copies_awaited(&self, lanes: Lanes, pending: Option<u32>) {
        let mut state = self.state();
        let State { blocks, sources, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        block.copies_awaited(lanes, pending);
        if !sources.is_empty() {
            let done = sources.end(lanes, |thread, group| block.done_at(thread, group).is_some());
            done.iter().for_each(|source| state.has_read(source));
        }
    }

    fn copies_arrive(&self, lanes: Lanes, memory: Memory, addresses: &[u64; LANES]) {
        let mut state = self.state();
        state.has_objects = true;
        let State { blocks, locations, objects, sources, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        // Who passes the object's phase has the copies behind it, which is not followed here.
        sources.end(lanes, |_, _| true);
        for at in threads(lanes.warp, lanes.mask) {
            let mut known = Known::default();
            known.learn(vec![block.copies_so_far(at)]);
            if objects.has((memory, addresses[at % LANES])) {
                objects.arrives((memory, addresses[at % LANES]), &Arc::new(known), false);
                continue;
            }
            let location = locations.entry((memory, addresses[at % LANES])).or_default();
            location.object = true;
            location.release(Scope::Block, lanes.block, block.cluster, &Arc::new(known));
        }
    }

    fn object_begins(&self, thread: ThreadOf, object: ObjectPlace) {
        let mut state = self.state();
        state.objects.begins(thread, object);
        state.lives.begins(object);
        let (memory, address) = object;
        let shared = if let Memory::Shared(block) = memory { Some(block) } else { None };
        state.records.object_begins(shared, address);
    }

    fn object_arrives(&self, thread: ThreadOf, object: ObjectPlace, releases: bool, far: bool) {
        let mut state = self.state();
        let State { blocks, objects, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&thread.block) else { return };
        let at = thread.thread as usize;
        let far = far && reach_of(thread, object) == Scope::Cluster;
        if releases {
            objects.arrives(object, &Arc::new(block.snapshot(at).clock()), far);
            block.threads[at].released();
        } else if let Some(left) = block.threads[at].fenced(reach_of(thread, object)) {
            objects.arrives(object, &Arc::new(left.clock()), far);
        }
    }

    fn object_turns(&self, object: ObjectPlace) {
        self.state().objects.turns(object);
    }

    fn object_passes(&self, thread: ThreadOf, object: ObjectPlace, acquires: bool, far: bool) {
        let mut state = self.state();
        let State { blocks, objects, .. } = &mut *state;
        let [known, beyond] = objects.passed(object);
        let Some(block) = blocks.get_mut(&thread.block) else { return };
        // A fence behind a relaxed wait has a scope of its own.
        let known = if far || !acquires { join(&known, &beyond) } else { known };
        if acquires {
            block.learns(thread.thread as usize, &known);
            if !far && !beyond.is_empty() {
                block.threads[thread.thread as usize].misses(&beyond);
            }
        } else {
            let mut met = [None, None, None];
            met[reach_of(thread, object) as usize] = Some(known);
            block.threads[thread.thread as usize].acquire(thread.block, &met, false);
        }
    }

    fn bulk_completes(&self, operation: u64, object: ObjectPlace) {
        self.state().objects.completes(operation, object);
    }

    fn product_issued(&self, lanes: Lanes, operation: u64) {
        let mut state = self.state();
        let State { blocks, objects, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&lanes.block) else { return };
        let issued = threads(lanes.warp, lanes.mask).map(|at| block.issues_product(at)).collect();
        objects.issued(operation, issued);
    }

    fn bulk_awaited(&self, thread: ThreadOf, operation: u64) {
        let mut state = self.state();
        let State { blocks, objects, .. } = &mut *state;
        let Some(block) = blocks.get_mut(&thread.block) else { return };
        let epoch = block.threads[thread.thread as usize].epoch;
        objects.awaited(operation, thread, epoch);
    }

    fn proxy_fence(&self, lanes: Lanes, proxies: Proxies) {
        self.block(lanes.block, |block| {
            threads(lanes.warp, lanes.mask).for_each(|at| block.proxy_fence(at, proxies));
        });
    }

    fn map_fence(&self, lanes: Lanes, acquires: bool) {
        self.block(lanes.block, |block| {
            threads(lanes.warp, lanes.mask).for_each(|at| block.map_fence(at, acquires));
        });
    }

    fn uses_register(&self, used: &RegisterUse) {
        let mut state = self.state();
        state.events += 1;
        let ThreadOf { block, thread } = used.thread;
        let side =
            |(site, kind), asynchronous| Side { site, kind, scope: None, asynchronous, block, thread: Some(thread) };
        let remedy = if used.fence { Remedy::RegisterFence } else { Remedy::AwaitProduct };
        let sides = [side(used.product, true), side(used.other, false)];
        // The PTX has it so; what the source has is not known: see `Grade`.
        let race = Race { sides, shared: Some(block), address: 0, grade: Grade::Likely, remedy, count: 0 };
        let event = state.events;
        state.records.add(race, true, event);
    }

    fn init_fence(&self, lanes: Lanes) {
        let mut state = self.state();
        let State { objects, shadows, lives, .. } = &mut *state;
        for at in threads(lanes.warp, lanes.mask) {
            for (memory, address) in objects.take_begun((lanes.block, at as u32)) {
                if let Some(shadow) = shadows.get_mut(&memory) {
                    shadow.update(address, 1 << OBJECT, |_, history| {
                        if let Some(init) = history.iter().rfind(|init| init.is(Access::WRITE)) {
                            lives.known_to_cluster((memory, address), init);
                        }
                    });
                    shadow.forget(address, 1 << OBJECT);
                }
            }
        }
    }
}

/// The scope that a fence needs at least beside a relaxed operation on an object.
fn reach_of(thread: ThreadOf, (memory, _): ObjectPlace) -> Scope {
    if memory == Memory::Shared(thread.block) { Scope::Block } else { Scope::Cluster }
}
