//! Which of the operations that may run goes first. Only a choice among what CUDA leaves open.

use super::OpId;
use crate::config::{Config, Schedule};

/// The operation's place in the queue of ready work: smaller goes first. Depends only on the configuration and on how
/// many operations were enqueued before, so that a seed repeats a schedule.
pub fn key(config: &Config, id: OpId) -> u64 {
    match config.schedule {
        Schedule::Eager | Schedule::InOrder => id.0,
        Schedule::LateFirst => u64::MAX - id.0,
        Schedule::Random => mix(config.seed ^ mix(id.0)),
    }
}

/// A 64-bit mixing function (the finaliser of splitmix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
