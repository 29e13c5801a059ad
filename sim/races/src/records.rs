//! The races that were found: one record for each pair of instructions, with its example and its
//! remedy. Owns what makes two races the same.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::events::{Kind, LANES, Scope, WarpAccess, lanes};
use crate::grade::{Grade, of_guess};

/// One side of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// The instruction.
    pub site: u32,
    /// What it does.
    pub kind: Kind,
    /// The scope, if it is strong; `volatile` is, at the widest scope.
    pub scope: Option<Scope>,
    /// It is a copy behind the back of its thread.
    pub asynchronous: bool,
    /// The block.
    pub block: u32,
    /// The thread in the block; `None`: it is one of many.
    pub thread: Option<u32>,
}

/// What would order the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// `__syncwarp()` between them.
    WarpBarrier,
    /// `__syncthreads()` between them.
    BlockBarrier,
    /// A wait for the copy, and a barrier where another thread reads.
    AwaitCopy,
    /// A scope that includes the other block.
    WiderScope,
    /// An atomic operation in place of the plain access.
    Atomic,
    /// A barrier of the cluster.
    ClusterBarrier,
    /// A release and an acquire through a flag, or a barrier of the grid.
    ReleaseAcquire,
    /// A fence between the generic and the asynchronous proxy.
    ProxyFence,
    /// A wait for the phase of the barrier object that a bulk operation reports to.
    AwaitPhase,
    /// A wait for the group that a bulk operation is in.
    AwaitGroup,
    /// A bulk operation that begins when those who use the bytes have arrived.
    AwaitUsers,
    /// Another place of a launch in the kernel that makes it, or one stream for both grids.
    LaunchOrder,
    /// Fences of the proxy of tensor maps: a release behind the write, an acquire before the copy.
    MapFence,
    /// A block of the cluster that ends when nobody accesses its shared memory any more.
    BlockStays,
    /// A wait at a barrier object that acquires for the cluster.
    WiderWait,
    /// A fence (`wgmma.fence`) between a write of a register and a product that uses it.
    RegisterFence,
    /// A wait for the group of a product that uses a register.
    AwaitProduct,
    /// An arrival of each thread that reads, where one has waited for a product of them all.
    EachReader,
    /// One thread that initialises a barrier object, and a barrier of all its threads behind it.
    OneBegins,
    /// A write before it. It is no race, but a read of bytes that nothing has written: both sides
    /// are the one that reads.
    FirstWrite,
}

/// Races of two instructions with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The sides, in the order of their instructions.
    pub sides: [Side; 2],
    /// In shared memory, of that block; else in global memory.
    pub shared: Option<u32>,
    /// The first byte, as the access has it: an address, or an offset in shared memory.
    pub address: u64,
    /// How sure the surest of them is.
    pub grade: Grade,
    /// What would order it.
    pub remedy: Remedy,
    /// Accesses that met an unordered one.
    pub count: u64,
}

/// What makes races the same: the instructions, what they do, and in which kind of memory.
type Key = ([(u32, Kind); 2], bool);

/// All of a launch.
#[derive(Debug, Default)]
pub(crate) struct Records {
    races: FxHashMap<Key, Record>,
    /// Those of swaps of a word for itself, by the swap.
    vain: FxHashMap<(u32, Key), Record>,
}

fn key(race: &Race) -> Key {
    (race.sides.map(|side| (side.site, side.kind)), race.shared.is_some())
}

#[derive(Debug, Clone)]
struct Record {
    race: Race,
    /// The last access that was counted.
    last: u64,
    /// The model has a race; else see `Evidence::flag_like`.
    by_model: bool,
}

impl Record {
    /// Counts a race, and keeps it if it is surer or smaller.
    fn add(&mut self, race: Race, count: u64, (by_model, event): (bool, u64)) {
        self.race.count += if self.last == event { 0 } else { count };
        (self.last, self.by_model) = (event, self.by_model || by_model);
        let place = |race: &Race| {
            let [a, b] = race.sides.map(|side| (side.block, side.thread.unwrap_or(u32::MAX)));
            (std::cmp::Reverse(race.grade), a.max(b), a.min(b), race.address)
        };
        if place(&race) < place(&self.race) {
            self.race = Race { count: self.race.count, ..race };
        }
    }
}

/// What instructions turned out to do, beside single accesses.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// Plain reads that an atomic operation of the same thread at the same place follows: what a
    /// loop of compare-and-swaps begins with, or a guard. Whether it was a compare-and-swap.
    pub(crate) guesses: FxHashMap<u32, bool>,
    /// Reads of words of which a compare-and-swap of the same thread leaves some bytes as they are,
    /// and fails if they have changed.
    pub(crate) keepers: FxHashSet<u32>,
    /// Compare-and-swaps that have changed a part of their word.
    pub(crate) partial_swaps: FxHashSet<u32>,
    /// Plain reads that a wider one of the same thread follows, with the wider one. In machine code
    /// a swap of 2 bytes reads its word first, and is one of the word.
    widened: FxHashSet<(u32, u32)>,
    /// The last read of 2 bytes of each warp, by its block and its number there.
    halves: FxHashMap<(u32, u32), HalfRead>,
    /// Strong accesses that a thread repeats at one place, or that meet a release: it waits for a
    /// flag.
    pub(crate) polls: FxHashSet<u32>,
}

/// A plain read of 2 bytes by lanes of a warp.
#[derive(Debug)]
struct HalfRead {
    site: u32,
    lanes: u32,
    addresses: [u64; LANES],
}

impl Habits {
    /// Looks at a plain read of global memory in machine code: see [`Habits::widened`].
    pub(crate) fn reads(&mut self, access: &WarpAccess<'_>) {
        let warp = (access.block, access.warp);
        let addresses = *access.addresses;
        match access.size {
            2 => {
                let read = HalfRead { site: access.site, lanes: access.lanes, addresses };
                let kept = self.halves.entry(warp).or_insert(read);
                if kept.site != access.site {
                    kept.lanes = 0;
                }
                (kept.site, kept.lanes) = (access.site, kept.lanes | access.lanes);
                lanes(access.lanes).for_each(|lane| kept.addresses[lane as usize] = addresses[lane as usize]);
            }
            4 => {
                let Some(half) = self.halves.get(&warp) else { return };
                let within = |lane: u32| half.addresses[lane as usize] & !3 == addresses[lane as usize];
                if lanes(half.lanes & access.lanes).any(within) {
                    self.widened.insert((half.site, access.site));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn block_ends(&mut self, block: u32) {
        self.halves.retain(|(of, _), _| *of != block);
    }

    /// Whether a plain read was a guess, and then whether a compare-and-swap has checked it.
    fn guess(&self, site: u32) -> Option<bool> {
        let wider = self.widened.iter().filter(|(read, _)| *read == site).map(|(_, wider)| wider);
        wider.chain([&site]).filter_map(|site| self.guesses.get(site)).copied().max()
    }
}

impl Records {
    /// Takes a race. `event` tells accesses apart, which are counted once for all their bytes.
    pub(crate) fn add(&mut self, mut race: Race, by_model: bool, event: u64) {
        race.sides.sort_unstable();
        let new = || Record { race: Race { count: 0, ..race }, last: 0, by_model };
        let kept = self.races.entry(key(&race)).or_insert_with(new);
        kept.add(race, 1, (by_model, event));
    }

    /// Takes a race of a swap of a word for itself. If the instruction changes parts of words at
    /// other times, which part it was for is not known, and it checks the rest; else it reads.
    pub(crate) fn add_of_vain_swap(&mut self, mut race: Race, swap: u32, event: u64) {
        race.sides.sort_unstable();
        let new = || Record { race: Race { count: 0, ..race }, last: 0, by_model: true };
        let kept = self.vain.entry((swap, key(&race))).or_insert_with(new);
        kept.add(race, 1, (true, event));
    }

    /// What one instruction has just written there with several threads is a barrier object.
    pub(crate) fn object_begins(&mut self, shared: Option<u32>, address: u64) {
        for Record { race, .. } in self.races.values_mut().chain(self.vain.values_mut()) {
            let [a, b] = &race.sides;
            if (race.shared, race.address) == (shared, address) && a.site == b.site && a.kind == Kind::Write {
                race.remedy = Remedy::OneBegins;
            }
        }
    }

    /// All of them, the surest first.
    pub(crate) fn races(&self, habits: &Habits) -> Vec<Race> {
        let waits = |side: &Side| side.scope.is_some() && side.kind != Kind::Write && habits.polls.contains(&side.site);
        let mut all = self.races.clone();
        for ((swap, key), vain) in &self.vain {
            let mut race = vain.race;
            if habits.partial_swaps.contains(swap) {
                race.grade = of_guess(race.grade, true);
            }
            let new = || Record { race: Race { count: 0, ..race }, last: 0, by_model: true };
            all.entry(*key).or_insert_with(new).add(race, race.count, (true, vain.last));
        }
        let is_race = |record: &&Record| record.by_model || !record.race.sides.iter().any(waits);
        let mut races: Vec<Race> = all.values().filter(is_race).map(|record| record.race).collect();
        for race in &mut races {
            let atomic = race.sides.iter().any(|side| side.kind == Kind::Atomic);
            let plainly_written = race.sides.iter().any(|side| side.kind == Kind::Write && side.scope.is_none());
            for side in race.sides.iter().filter(|side| side.kind == Kind::Read) {
                if side.scope.is_none()
                    && atomic
                    && let Some(checked) = habits.guess(side.site)
                {
                    race.grade = of_guess(race.grade, checked);
                }
                if plainly_written && habits.keepers.contains(&side.site) {
                    race.grade = of_guess(race.grade, true);
                }
            }
        }
        races.sort_by_key(|race| (std::cmp::Reverse(race.grade), race.sides, race.shared));
        races
    }
}
