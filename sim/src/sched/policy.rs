//! Picks which of the operations that may run goes first. It chooses only among what CUDA leaves
//! open.
//!
//! A race shows in a result when its two sides run in the order that the program did not mean. So
//! one of them must be held back past work that is not ordered behind anything. No single way of
//! choosing does that for every program: choosing afresh each time hardly ever overtakes a chain of
//! fifty operations as a whole, and ranking whole streams never singles out one operation of a long
//! stream. `random` therefore takes one of four ways by the seed, and the details by the seed too
//! (the ranking of streams with points of change is the idea of probabilistic concurrency testing,
//! Burckhardt et al., ASPLOS 2010).

use std::sync::atomic::{AtomicU64, Ordering};

use super::OpId;
use crate::config::{Config, Schedule};

/// The operation's place in the queue of ready work: smaller goes first. Depends only on the
/// configuration, on how many operations and streams were made before, and on the lane (the stream;
/// a node of a graph is a lane of its own), so that a seed repeats a schedule.
pub(crate) fn key(config: &Config, id: OpId, lane: u64) -> u64 {
    match config.schedule {
        Schedule::Eager | Schedule::InOrder => id.0,
        Schedule::LateFirst => u64::MAX - id.0,
        Schedule::Random => random(config.seed, id.0, lane),
    }
}

/// How often a host thread must ask for unfinished work until one operation may run: a program that
/// asks once and goes on whatever the answer is has a race too.
pub(crate) fn polls(config: &Config) -> u64 {
    match config.schedule {
        Schedule::Random => 1 << (mix(config.seed ^ BACK) % 4),
        Schedule::LateFirst => 3,
        Schedule::Eager | Schedule::InOrder => 1,
    }
}

/// Whether the next kernel that may begin before the one in front of it has ended does so.
pub(crate) fn overlaps(config: &Config) -> bool {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    match config.schedule {
        Schedule::Eager | Schedule::InOrder => false,
        Schedule::LateFirst => true,
        Schedule::Random => mix(config.seed ^ mix(ASKED.fetch_add(1, Ordering::Relaxed))) & 1 == 0,
    }
}

/// Later than everything that is not held back.
const BACK: u64 = 1 << 63;

fn random(seed: u64, id: u64, lane: u64) -> u64 {
    let detail = mix(seed);
    match seed % 4 {
        // Each operation by itself.
        0 => mix(seed ^ mix(id)),
        // Lanes have ranks, drawn again now and then.
        1 => {
            let span = 4 << (detail % 6);
            mix(detail ^ mix(lane) ^ mix((id + detail % span) / span + BACK))
        }
        // In order, but some operations come as late as they can.
        2 => {
            let one_in = 2 << (detail % 4);
            let draw = mix(detail ^ mix(id));
            if draw.is_multiple_of(one_in) { BACK | draw } else { id }
        }
        // The newest first, but some operations come as late as they can.
        _ => {
            let one_in = 4 << (detail % 4);
            let draw = mix(detail ^ mix(id));
            if draw.is_multiple_of(one_in) { BACK | draw } else { BACK - id }
        }
    }
}

/// A 64-bit mixing function (the finaliser of splitmix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
