//! Random little programs against an oracle: StreamSan must find something exactly when some pair
//! races.
//!
//! The oracle is as plain as can be: every op is a node, CUDA's rules of order are edges, "ordered"
//! is reachability, and a race is a pair of overlapping accesses, one of them a write, with no path
//! between them. It shares no code with the product. `RANDOM_SEED=n` runs one program;
//! `RANDOM_COUNT=n` runs that many (150).

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use tests::{build, fake, run};

/// xorshift: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

const STREAMS: usize = 4;
const EVENTS: usize = 3;
const BUFFERS: usize = 3;
/// The buffer that is allocated and freed in the order of streams; the others are plain device
/// memory.
const POOLED: usize = 2;
const BYTES: usize = 4096;

/// One access of one op: buffer, bytes, write or read.
#[derive(Clone, Copy)]
struct Access {
    buffer: usize,
    from: usize,
    to: usize,
    write: bool,
}

/// What the oracle knows of a program.
#[derive(Default)]
struct Oracle {
    /// For each op the ops that are finished before it starts (transitively).
    before: Vec<Vec<bool>>,
    accesses: Vec<Vec<Access>>,
    /// The latest op of each stream.
    last: [Option<usize>; STREAMS],
    /// What an event stands for: the op that recorded it.
    recorded: [Option<usize>; EVENTS],
    /// Ops that the host has seen finish.
    seen: Vec<bool>,
    /// The last ops of streams that were destroyed.
    orphans: Vec<usize>,
    /// Streams that take part in the order of the legacy stream.
    blocking: [bool; STREAMS],
}

impl Oracle {
    fn merge(into: &mut Vec<bool>, other: &[bool]) {
        into.resize(into.len().max(other.len()), false);
        for (to, from) in into.iter_mut().zip(other) {
            *to |= *from;
        }
    }

    /// An op and everything before it.
    fn closure(&self, op: usize) -> Vec<bool> {
        let mut all = self.before[op].clone();
        all.resize(self.before.len(), false);
        all[op] = true;
        all
    }

    /// Adds an op to a stream (0: the legacy stream).
    fn op(&mut self, stream: usize, wait: Option<usize>, accesses: Vec<Access>) -> usize {
        let mut before = self.seen.clone();
        let mut behind: Vec<usize> = self.last[stream].into_iter().chain(wait).collect();
        if stream == 0 {
            behind.extend((1..STREAMS).filter(|s| self.blocking[*s]).filter_map(|s| self.last[s]));
        } else if self.blocking[stream] {
            behind.extend(self.last[0]);
        }
        for op in behind {
            Self::merge(&mut before, &self.closure(op));
        }
        let op = self.before.len();
        before.resize(op, false);
        self.before.push(before);
        self.accesses.push(accesses);
        self.last[stream] = Some(op);
        op
    }

    fn host_sees(&mut self, op: Option<usize>) {
        if let Some(op) = op {
            let all = self.closure(op);
            Self::merge(&mut self.seen, &all);
        }
    }

    /// Pairs of ops that race.
    fn races(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for later in 0..self.before.len() {
            for earlier in 0..later {
                let conflict = self.accesses[later].iter().any(|a| {
                    let overlaps = |b: &Access| a.buffer == b.buffer && a.from < b.to && b.from < a.to;
                    self.accesses[earlier].iter().any(|b| overlaps(b) && (a.write || b.write))
                });
                if conflict && !self.before[later][earlier] {
                    found.push((earlier, later));
                }
            }
        }
        found
    }
}

/// A random program: its script, and what the oracle says.
fn program(seed: u64) -> (String, Oracle) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..8).for_each(|_| {
        random.below(2);
    });
    let mut oracle = Oracle { blocking: [true; STREAMS], ..Oracle::default() };
    let mut script = String::new();
    for stream in 1..STREAMS {
        let non_blocking = random.below(3) > 0;
        oracle.blocking[stream] = !non_blocking;
        let _ = writeln!(script, "S {stream} {}", u8::from(non_blocking));
    }
    (0..EVENTS).for_each(|event| {
        let _ = writeln!(script, "E {event}");
    });
    (0..POOLED).for_each(|buffer| {
        let _ = writeln!(script, "B {buffer} {BYTES}");
    });
    let mut buffers = POOLED;
    let whole = vec![Access { buffer: POOLED, from: 0, to: BYTES, write: true }];
    // Few programs use the legacy stream, or they would all be ordered.
    let first = usize::from(random.below(3) > 0);
    let ops = 6 + random.below(20);
    for _ in 0..ops {
        let stream = first + random.below(STREAMS - first);
        let event = random.below(EVENTS);
        let part = |random: &mut Random, write| {
            let from = random.below(8) * (BYTES / 8);
            let length = (1 + random.below(2)) * (BYTES / 8);
            let to = (from + length).min(BYTES);
            Access { buffer: random.below(buffers), from, to, write }
        };
        match random.below(22) {
            0..=5 => {
                let a = part(&mut random, true);
                let _ = writeln!(script, "f {stream} {} {} {}", a.buffer, a.from, a.to - a.from);
                oracle.op(stream, None, vec![a]);
            }
            6..=8 => {
                let mut a = part(&mut random, true);
                let mut b = part(&mut random, false);
                let length = (a.to - a.from).min(b.to - b.from);
                (a.to, b.to) = (a.from + length, b.from + length);
                let _ = writeln!(script, "c {stream} {} {} {} {} {length}", a.buffer, a.from, b.buffer, b.from);
                oracle.op(stream, None, vec![a, b]);
            }
            20 if buffers == POOLED => {
                // Counts as a write of the whole block.
                let _ = writeln!(script, "A {POOLED} {BYTES} {stream}");
                oracle.op(stream, None, whole.clone());
                buffers = BUFFERS;
            }
            // A blocking stream that is gone may or may not still hold the legacy stream up: not
            // asked.
            21 if stream != 0 && !oracle.blocking[stream] => {
                let _ = writeln!(script, "x {stream}\nS {stream} 1");
                oracle.orphans.extend(oracle.last[stream].take());
            }
            9..=12 => {
                let _ = writeln!(script, "r {event} {stream}");
                oracle.recorded[event] = Some(oracle.op(stream, None, Vec::new()));
                // Mostly somebody waits for it, or too few programs would be clean.
                if random.below(3) > 0 {
                    let waiting = first + random.below(STREAMS - first);
                    let _ = writeln!(script, "w {waiting} {event}");
                    oracle.op(waiting, oracle.recorded[event], Vec::new());
                }
            }
            // A wait for an event that was never recorded is no op, not even of the legacy stream
            // (measured: tests/gpu/programs/what_waits.cu).
            13..=16 => {
                let _ = writeln!(script, "w {stream} {event}");
                if oracle.recorded[event].is_some() {
                    oracle.op(stream, oracle.recorded[event], Vec::new());
                }
            }
            17 => {
                let _ = writeln!(script, "{} {stream}", ['y', 'q'][random.below(2)]);
                // Waiting for the legacy stream is waiting for what it would wait for.
                let before: Vec<_> = if stream == 0 {
                    (0..STREAMS).filter(|s| oracle.blocking[*s]).map(|s| oracle.last[s]).collect()
                } else {
                    vec![oracle.last[stream]]
                };
                before.into_iter().for_each(|op| oracle.host_sees(op));
            }
            18 => {
                let _ = writeln!(script, "{} {event}", ['v', 'p'][random.below(2)]);
                oracle.host_sees(oracle.recorded[event]);
            }
            _ => {
                if random.below(4) == 0 {
                    script.push_str("d\n");
                    oracle.last.into_iter().for_each(|op| oracle.host_sees(op));
                    oracle.orphans.clone().into_iter().for_each(|op| oracle.host_sees(Some(op)));
                }
            }
        }
    }
    // At the end only: an allocation after a free may get the same bytes, and is then ordered
    // behind it.
    if buffers == BUFFERS && random.below(2) == 0 {
        let stream = first + random.below(STREAMS - first);
        let _ = writeln!(script, "F {POOLED} {stream}");
        oracle.op(stream, None, whole);
    }
    (script, oracle)
}

/// What StreamSan says of a script: exit code and report.
fn checked(script: &str) -> (Option<i32>, String) {
    let program = build::c_program("script.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    let mut command = run::streamsan(["run", "--no-stacks", "--"]);
    command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("start");
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("write");
    let ended = run::end_of(child);
    (ended.code(), ended.err)
}

#[test]
fn random_programs_race_exactly_when_the_oracle_says_so() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds: Vec<u64> = match number("RANDOM_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("RANDOM_COUNT").unwrap_or(150)).collect(),
    };
    let (mut racy, mut wrong) = (0, Vec::new());
    for seed in &seeds {
        let (script, oracle) = program(*seed);
        let races = oracle.races();
        racy += usize::from(!races.is_empty());
        let (code, said) = checked(&script);
        let wanted = if races.is_empty() { 0 } else { 66 };
        if code != Some(wanted) {
            wrong.push(format!("seed {seed}: exit {code:?}, races {races:?}\n{script}{said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n\n{}", wrong.len(), seeds.len(), wrong[..wrong.len().min(3)].join("\n"));
    if seeds.len() > 50 {
        assert!(racy > seeds.len() / 5 && racy < seeds.len() * 4 / 5, "{racy} of {} race: a poor mix", seeds.len());
    }
}
