//! Rules already worked out, by the address they are for. Shared by all threads.
//!
//! Owns the table only. It is a direct-mapped table without locks: an entry is two words, the rule and a check word that
//! is a function of address and rule; a reader that meets a half-written entry sees a wrong check and takes it for a
//! miss. No thread has a cache of its own, so short-lived threads leave nothing behind and start warm.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::rule::Rule;

const BITS: u32 = 13;
/// Addresses of user space have 47 bits; the rest of the key is the epoch.
const EPOCH_SHIFT: u32 = 48;

struct Entry {
    check: AtomicU64,
    rule: AtomicU64,
}

/// 128 KiB of zeros until they are used.
static TABLE: [Entry; 1 << BITS] = [const { Entry { check: AtomicU64::new(0), rule: AtomicU64::new(0) } }; 1 << BITS];

/// Counts changes of the modules: part of every key, so that older entries no longer match.
static EPOCH: AtomicU64 = AtomicU64::new(0);

#[inline]
fn key(address: u64) -> u64 {
    address ^ EPOCH.load(Relaxed) << EPOCH_SHIFT
}

#[inline]
fn entry(key: u64) -> &'static Entry {
    &TABLE[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize]
}

#[inline]
fn check(key: u64, rule: u64) -> u64 {
    key ^ rule.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The rule kept for `address`.
#[inline]
pub fn get(address: u64) -> Option<Rule> {
    let key = key(address);
    let entry = entry(key);
    let rule = entry.rule.load(Relaxed);
    // A torn entry fits only when the check words of two writers cancel out: then a wrong rule is used once, and the walk
    // ends early or shows a wrong frame. Reads are bounded whatever the rule says.
    (entry.check.load(Relaxed) == check(key, rule)).then_some(Rule::from_bits(rule))
}

/// Keeps `rule` for `address`.
pub fn put(address: u64, rule: Rule) {
    let key = key(address);
    let entry = entry(key);
    entry.rule.store(rule.bits(), Relaxed);
    entry.check.store(check(key, rule.bits()), Relaxed);
}

/// Forgets everything.
pub fn forget_all() {
    let before = EPOCH.fetch_add(1, Relaxed);
    // The key holds 16 bits of the epoch: before they repeat, clear the table for real.
    if before & 0xffff == 0xffff {
        for entry in &TABLE {
            entry.check.store(u64::MAX, Relaxed);
        }
    }
}
