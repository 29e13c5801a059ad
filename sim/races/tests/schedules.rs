//! The verdict does not depend on the schedule: 64 of them give the same bytes that race, and those
//! are the ones that the program has by its barriers alone. (Where values steer threads or say
//! which release was met, another schedule is another execution.)

use sim_races::{Kind, Memory, Order, Scope, Strength};

use crate::script::{GLOBAL, Script, Thread};

const SCHEDULES: u64 = 64;
const WORDS: usize = 4;

/// Blocks, and threads of each: in two warps.
const BLOCKS: u32 = 2;
const LANES: [u32; 4] = [0, 1, 32, 33];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Access(usize, Kind),
    /// The lanes of the warp meet.
    Warp,
    /// The block meets.
    Block,
}

/// What each thread does. Threads of a warp meet equally often, and those of a block.
fn program(random: &mut Random) -> Vec<(Thread, Vec<Step>)> {
    let (phases, few) = (1 + random.below(3), 1 + random.below(3));
    let warps: Vec<bool> = (0..2 * BLOCKS).map(|_| random.below(2) == 0).collect();
    let mut threads = Vec::new();
    for block in 0..BLOCKS {
        for lane in LANES {
            let mut steps = Vec::new();
            for phase in 0..phases {
                if phase > 0 {
                    steps.push(Step::Block);
                }
                for half in 0..2 {
                    if half > 0 && warps[(block * 2 + lane / 32) as usize] {
                        steps.push(Step::Warp);
                    }
                    for _ in 0..random.below(few) {
                        let word = random.below(WORDS as u64) as usize;
                        let kind = [Kind::Read, Kind::Read, Kind::Read, Kind::Write, Kind::Atomic];
                        steps.push(Step::Access(word, kind[random.below(5) as usize]));
                    }
                }
            }
            threads.push(((block, lane), steps));
        }
    }
    threads
}

/// Whether a word has a race by the barriers that stand between.
fn by_barriers(program: &[(Thread, Vec<Step>)], word: usize) -> bool {
    let accesses = |steps: &[Step]| {
        let (mut blocks, mut warps, mut found) = (0, 0, Vec::new());
        for step in steps {
            match *step {
                Step::Access(of, kind) if of == word => found.push((kind, blocks, warps)),
                Step::Access(..) => {}
                Step::Block => blocks += 1,
                Step::Warp => warps += 1,
            }
        }
        found
    };
    program.iter().enumerate().any(|(at, (a, steps))| {
        program[at + 1..].iter().any(|(b, others)| {
            accesses(steps).iter().any(|&(kind, block, warp)| {
                accesses(others).iter().any(|&(other, its_block, its_warp)| {
                    let conflict =
                        (kind, other) != (Kind::Read, Kind::Read) && (kind, other) != (Kind::Atomic, Kind::Atomic);
                    let apart = a.0 == b.0 && (block != its_block || a.1 / 32 == b.1 / 32 && warp != its_warp);
                    conflict && !apart
                })
            })
        })
    })
}

/// Whether the detector finds a race at a word, in a schedule.
fn found(program: &[(Thread, Vec<Step>)], word: usize, memory: Memory, random: &mut Random) -> bool {
    let mut s = Script::new(BLOCKS, 64);
    let mut done = vec![0; program.len()];
    let next = |done: &[usize], at: usize| program[at].1.get(done[at]).copied();
    loop {
        let left: Vec<usize> = (0..program.len()).filter(|&at| next(&done, at).is_some()).collect();
        let Some(&at) = left.get(random.below(left.len().max(1) as u64) as usize) else { break };
        let (thread, step) = (program[at].0, next(&done, at));
        let is_of = |other: usize, warp: bool| {
            let of = program[other].0;
            of.0 == thread.0 && (!warp || of.1 / 32 == thread.1 / 32)
        };
        match step {
            Some(Step::Access(of, kind)) => {
                let strength = match kind {
                    Kind::Atomic => Strength::Strong(Order::RELAXED, Scope::Device),
                    _ => Strength::Plain,
                };
                if of == word && (memory == GLOBAL || thread.0 == 0) {
                    s.access(thread, memory, 0x100 + 4 * of as u64, 4, kind, strength);
                }
                done[at] += 1;
            }
            Some(meets @ (Step::Warp | Step::Block)) => {
                let all: Vec<usize> = (0..program.len()).filter(|&at| is_of(at, meets == Step::Warp)).collect();
                if all.iter().all(|&at| next(&done, at) == Some(meets)) {
                    all.iter().for_each(|&at| done[at] += 1);
                    match meets {
                        Step::Warp => s.warp_sync(thread.0, thread.1 / 32, !0),
                        _ => s.sync(thread.0),
                    }
                }
            }
            None => {}
        }
    }
    !s.races().is_empty()
}

#[test]
fn every_schedule_finds_the_same_bytes() {
    let (mut racy, mut clean) = (0, 0);
    for seed in 1..=24 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
        let global = program(&mut random);
        // Shared memory is that of block 0.
        let shared: Vec<_> = global.iter().filter(|(thread, _)| thread.0 == 0).cloned().collect();
        for (program, memory) in [(&global, GLOBAL), (&shared, Memory::Shared(0))] {
            for word in 0..WORDS {
                let wanted = by_barriers(program, word);
                for schedule in 0..SCHEDULES {
                    let found = found(program, word, memory, &mut random);
                    assert_eq!(found, wanted, "program {seed}, word {word} of {memory:?}, schedule {schedule}");
                }
                (racy, clean) = (racy + usize::from(wanted), clean + usize::from(!wanted));
            }
        }
    }
    assert!(racy > 40 && clean > 40, "{racy} racy, {clean} clean");
}
