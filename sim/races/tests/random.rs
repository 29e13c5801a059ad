//! Random programs, against a detector that keeps all accesses and all clocks whole.

use std::collections::{BTreeSet, HashMap};

use sim_races::{Kind, Lanes, Meeting, Memory, MemoryEvents, Order, Scope, Strength};

use crate::script::{GLOBAL, Script, Thread};

/// Blocks, and threads of each. They are in two warps.
const BLOCKS: u32 = 2;
const THREADS: [u32; 4] = [0, 1, 32, 33];

type Clock = HashMap<Thread, u64>;

fn join(into: &mut Clock, from: &Clock) {
    for (&thread, &time) in from {
        let known = into.entry(thread).or_default();
        *known = time.max(*known);
    }
}

/// A thread, and its time at an access.
type Moment = (Thread, u64);

struct Past {
    thread: Thread,
    time: u64,
    writes: bool,
    strong: Option<Scope>,
    size: u32,
}

#[derive(Default)]
struct Naive {
    clocks: HashMap<Thread, Clock>,
    fences: HashMap<(Thread, Scope), Clock>,
    pending: HashMap<(Thread, Scope), Clock>,
    released: HashMap<u64, Vec<(Thread, Scope, Clock)>>,
    past: HashMap<u64, Vec<Past>>,
    /// The strong write that an address holds, and the read-modify-writes behind it, with scope and
    /// size: what a strong read observes.
    chains: HashMap<u64, Vec<(Moment, Scope, u32)>>,
    /// Who has observed a write.
    observers: HashMap<Moment, Vec<Moment>>,
    racy: BTreeSet<u64>,
}

fn reaches(scope: Scope, from: Thread, to: Thread) -> bool {
    scope == Scope::Device || from.0 == to.0
}

impl Naive {
    fn step(&mut self, thread: Thread) -> u64 {
        let time = self.clocks.entry(thread).or_default().entry(thread).or_default();
        *time += 1;
        *time
    }

    fn access(&mut self, thread: Thread, at: u64, size: u32, kind: Kind, strong: Option<(Order, Scope)>) {
        let time = self.step(thread);
        let mut clock = self.clocks[&thread].clone();
        if let Some((order, scope)) = strong
            && kind != Kind::Write
        {
            for (from, theirs, released) in self.released.get(&at).into_iter().flatten() {
                if reaches(*theirs, *from, thread) && reaches(scope, thread, *from) {
                    join(&mut clock, released);
                    if order.acquire {
                        join(self.clocks.get_mut(&thread).unwrap(), released);
                    } else {
                        let reach = Scope::ALL.into_iter().find(|&reach| reaches(reach, *from, thread)).unwrap();
                        join(self.pending.entry((thread, reach)).or_default(), released);
                    }
                }
            }
        }
        let writes = kind != Kind::Read;
        let morally_strong = |mine: Scope, other: Thread, theirs: Scope, of: u32| {
            reaches(mine, thread, other) && reaches(theirs, other, thread) && size == of
        };
        for byte in at..at + u64::from(size) {
            let past = self.past.entry(byte).or_default();
            for before in past.iter() {
                let is_behind = |of: &Thread, at: u64| *of == thread || clock.get(of).is_some_and(|&known| known >= at);
                let observers = self.observers.get(&(before.thread, before.time));
                let ordered = is_behind(&before.thread, before.time)
                    || observers.into_iter().flatten().any(|(of, at)| {
                        // What is read now is no way to an observer before a fence has made it one.
                        *of == thread || self.clocks[&thread].get(of).is_some_and(|&known| known >= *at)
                    });
                let morally = match (strong, before.strong) {
                    (Some((_, mine)), Some(theirs)) => morally_strong(mine, before.thread, theirs, before.size),
                    _ => false,
                };
                if (writes || before.writes) && !ordered && !morally {
                    self.racy.insert(byte);
                }
            }
            past.push(Past { thread, time, writes, strong: strong.map(|(_, scope)| scope), size });
        }
        // PTX ISA, "Observation Order" and "Causality Order".
        if let Some((_, scope)) = strong.filter(|_| kind != Kind::Write) {
            let chain = self.chains.get(&at).into_iter().flatten().rev();
            for (write, ..) in chain.take_while(|(of, theirs, its)| morally_strong(scope, of.0, *theirs, *its)) {
                self.observers.entry(*write).or_default().push((thread, time));
            }
        }
        if !writes {
            return;
        }
        if kind != Kind::Atomic || strong.is_none() {
            self.chains.remove(&at);
        }
        let others = |start: &u64, chain: &[(Moment, Scope, u32)]| {
            let reach = chain.last().map_or(0, |(.., size)| u64::from(*size));
            *start + reach <= at || at + u64::from(size) <= *start || *start == at && reach == u64::from(size)
        };
        self.chains.retain(|start, chain| others(start, chain));
        if let Some((_, scope)) = strong {
            self.chains.entry(at).or_default().push(((thread, time), scope, size));
        }
        let Some((order, scope)) = strong else {
            for byte in at..at + u64::from(size) {
                self.released.remove(&byte);
            }
            return;
        };
        if kind == Kind::Write {
            self.released.remove(&at);
        }
        let list = self.released.entry(at).or_default();
        if order.release {
            list.push((thread, scope, self.clocks[&thread].clone()));
        } else {
            for reach in Scope::ALL.into_iter().filter(|&reach| reach <= scope) {
                if let Some(clock) = self.fences.get(&(thread, reach)) {
                    list.push((thread, reach, clock.clone()));
                }
            }
        }
    }

    fn fence(&mut self, thread: Thread, scope: Scope) {
        self.acquire(thread, scope);
        for reach in Scope::ALL.into_iter().filter(|&reach| reach <= scope) {
            self.fences.insert((thread, reach), self.clocks[&thread].clone());
        }
    }

    fn acquire(&mut self, thread: Thread, scope: Scope) {
        self.step(thread);
        for reach in Scope::ALL.into_iter().filter(|&reach| reach <= scope) {
            if let Some(pending) = self.pending.remove(&(thread, reach)) {
                join(self.clocks.get_mut(&thread).unwrap(), &pending);
            }
        }
    }

    fn meet(&mut self, waiting: &[Thread], gone: &[Thread]) {
        let mut all = Clock::new();
        for &thread in waiting.iter().chain(gone) {
            self.step(thread);
            join(&mut all, &self.clocks[&thread]);
        }
        for &thread in waiting {
            join(self.clocks.get_mut(&thread).unwrap(), &all);
        }
    }
}

/// Each address has one scope, so that who sees whom is the pair's matter alone.
const PLACES: [(u64, Scope); 4] =
    [(0x100, Scope::Block), (0x108, Scope::Device), (0x110, Scope::Device), (0x3fc, Scope::Device)];

fn run(seed: u64, steps: u32) -> (BTreeSet<u64>, BTreeSet<u64>, String) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let mut script = Script::new(BLOCKS, 64);
    for block in 0..BLOCKS {
        for thread in (0..64).filter(|thread| !THREADS.contains(thread)) {
            script.exit((block, thread));
        }
    }
    let (mut naive, mut text) = (Naive::default(), String::new());
    let busy = random(3) + 1;
    for _ in 0..steps {
        let thread: Thread = (random(u64::from(BLOCKS)) as u32, THREADS[random(4) as usize]);
        match random(10 + busy) {
            0 => {
                let scope = if random(2) == 0 { Scope::Block } else { Scope::Device };
                if random(4) == 0 {
                    text += &format!("{thread:?} acquires {scope:?}\n");
                    script.acquire(thread, scope);
                    naive.acquire(thread, scope);
                } else {
                    text += &format!("{thread:?} fence {scope:?}\n");
                    script.fence(thread, scope);
                    naive.fence(thread, scope);
                }
            }
            1 => {
                let warp = thread.1 / 32;
                text += &format!("warp {warp} of block {} meets\n", thread.0);
                script.warp_sync(thread.0, warp, 3);
                naive.meet(&[(thread.0, warp * 32), (thread.0, warp * 32 + 1)], &[]);
            }
            2 => {
                let block = thread.0;
                text += &format!("block {block} meets\n");
                script.barrier(0, block, &THREADS, &[]);
                naive.meet(&THREADS.map(|thread| (block, thread)), &[]);
            }
            3 => {
                let block = thread.0;
                let (waiting, gone) = if random(2) == 0 { (vec![0, 33], vec![]) } else { (vec![1, 32], vec![0]) };
                text += &format!("block {block}: {waiting:?} wait for {gone:?}\n");
                script.barrier(3, block, &waiting, &gone);
                let of = |list: &[u32]| list.iter().map(|&thread| (block, thread)).collect::<Vec<_>>();
                naive.meet(&of(&waiting), &of(&gone));
            }
            4 if random(4) == 0 => {
                let all: Vec<Thread> = (0..BLOCKS).flat_map(|block| THREADS.map(|thread| (block, thread))).collect();
                text += "the grid meets\n";
                all.iter().for_each(|&thread| script.arrive(Meeting::Grid, thread, true));
                all.iter().for_each(|&thread| script.pass(Meeting::Grid, thread));
                naive.meet(&all, &[]);
            }
            _ => {
                let (place, scope) = PLACES[random(4) as usize];
                let (size, within) = [(4, 0), (4, 0), (8, 0), (1, random(4)), (2, 2)][random(5) as usize];
                let size = if place == 0x3fc { size.min(4) } else { size };
                let at = place + within;
                let kind = [Kind::Read, Kind::Read, Kind::Write, Kind::Write, Kind::Atomic][random(5) as usize];
                let order = Order { acquire: random(2) == 0, release: random(2) == 0 };
                let order = match kind {
                    Kind::Read => Order { release: false, ..order },
                    Kind::Write => Order { acquire: false, ..order },
                    Kind::Atomic => order,
                };
                let strong = (kind == Kind::Atomic || random(2) == 0).then_some((order, scope));
                let strength = strong.map_or(Strength::Plain, |(order, scope)| Strength::Strong(order, scope));
                text += &format!("{thread:?} {kind:?} {size} at {at:#x} {strength:?}\n");
                script.access(thread, GLOBAL, at, size, kind, strength);
                naive.access(thread, at, size, kind, strong);
            }
        }
    }
    // Of a range one byte is named: the first that raced. So ask for each byte by itself.
    let mut found = BTreeSet::new();
    for race in script.races() {
        found.insert(race.address);
    }
    (found, naive.racy, text)
}

#[test]
fn random_programs_have_the_races_that_whole_clocks_find() {
    let mut racy = 0;
    // In the others an observer is covered, or there are writes of several sizes.
    for seed in (0..1_500u64).chain([1_570, 1_707, 2_865, 3_117, 10_003]) {
        let (found, want, text) = run(seed, 6 + (seed % 30) as u32);
        assert_eq!(found.is_empty(), want.is_empty(), "seed {seed}: found {found:x?}, want {want:x?}\n{text}");
        assert!(found.iter().all(|byte| want.contains(byte)), "seed {seed}: found {found:x?}, want {want:x?}\n{text}");
        racy += u32::from(!want.is_empty());
    }
    assert!((500..1_480).contains(&racy), "{racy} of 1505 are racy");
}

/// The lanes of a warp go together; what is found must be what each lane finds by itself.
#[test]
fn lanes_together_are_lanes_one_by_one() {
    for seed in 0..300u64 {
        let mut state = seed + 1;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut together, mut alone) = (Script::new(1, 64), Script::new(1, 64));
        for _ in 0..12 {
            let warp = random(2) as u32;
            let mask = random(1 << 32) as u32;
            match random(4) {
                0 => [&mut together, &mut alone].into_iter().for_each(|s| s.sync(0)),
                1 => [&mut together, &mut alone].into_iter().for_each(|s| s.warp_sync(0, warp, mask | 1)),
                _ => {
                    let (base, stride) = (0x400 + random(8) * 4, random(3) * 4);
                    let at = std::array::from_fn(|lane| base + lane as u64 * stride);
                    let kind = if random(2) == 0 { Kind::Read } else { Kind::Write };
                    together.lanes_access(Lanes { block: 0, warp, mask }, GLOBAL, &at, 4, kind, Strength::Plain);
                    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
                        let lanes = Lanes { block: 0, warp, mask: 1 << lane };
                        alone.lanes_access(lanes, GLOBAL, &at, 4, kind, Strength::Plain);
                    }
                }
            }
        }
        let bytes = |s: &Script| s.races().iter().map(|race| race.address).collect::<BTreeSet<_>>();
        assert_eq!(bytes(&together).is_empty(), bytes(&alone).is_empty(), "seed {seed}");
    }
}

#[test]
fn memories_are_apart() {
    let mut s = Script::new(2, 32);
    for (block, memory) in [(0, Memory::Shared(0)), (1, Memory::Shared(1)), (0, GLOBAL)] {
        s.access((block, 0), memory, 64, 4, Kind::Write, Strength::Plain);
    }
    assert_eq!(s.races(), []);
    s.detector.block_ends(0);
    s.detector.block_ends(1);
    assert_eq!(s.races(), []);
}
