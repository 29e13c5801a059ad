//! Unwind rules already worked out, by the address that they are for. Shared by all threads.
//!
//! Owns the table only. It has no locks: an entry is one word, a rule in 32 bits and 32 bits of the
//! address's hash; the rest of the hash says in which set of eight, one cache line, an entry may
//! be. Entries are that small because a walk waits for every line that it touches: a training step
//! has some thousand addresses, and between two launches the program fills the caches with its own
//! data. Sets are that wide because a miss costs a thousand times as much as a hit. Two addresses
//! of one set with the same 32 bits would share a rule, once in a hundred thousand programs; then a
//! frame is wrong, but reads are bounded whatever a rule says.
//!
//! Rules that do not fit into 32 bits (frames of more than half a megabyte) are kept in a smaller
//! table with room for them. No thread has a cache of its own, so short-lived threads leave nothing
//! behind and start warm.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::stack::native::unwind_rule::UnwindRule;

const BITS: u32 = 11;
const WAYS: usize = 8;
/// Addresses of programs have at most 48 bits; the rest of the key is the epoch.
const EPOCH_SHIFT: u32 = 48;

#[repr(align(64))]
struct Set([AtomicU64; WAYS]);

/// 128 KiB of zeros, of which only what is used becomes memory.
static TABLE: [Set; 1 << BITS] = [const { Set([const { AtomicU64::new(0) }; WAYS]) }; 1 << BITS];

/// Rules that do not fit, with a check word that is a function of address and rule: a half-written
/// entry is a miss.
static LARGE: [[AtomicU64; 2]; 256] = [const { [const { AtomicU64::new(0) }; 2] }; 256];

/// Counts changes of the modules: part of every key, so that older entries no longer match.
#[unsafe(link_section = "streamsan_state")]
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// A bijection, so that two addresses never agree in all bits of it.
#[inline]
fn hash(address: u64) -> u64 {
    let key = address ^ EPOCH.load(Relaxed) << EPOCH_SHIFT;
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

#[inline]
fn set(hash: u64) -> &'static Set {
    &TABLE[(hash >> (64 - BITS)) as usize]
}

#[inline]
fn check(hash: u64, rule: u64) -> u64 {
    hash ^ rule.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The rule kept for `address`.
#[inline]
pub(crate) fn get(address: u64) -> Option<UnwindRule> {
    let hash = hash(address);
    for entry in &set(hash).0 {
        let entry = entry.load(Relaxed);
        if entry >> 32 == hash & 0xffff_ffff && entry as u32 != 0 {
            return Some(UnwindRule::from_short(entry as u32));
        }
    }
    get_large(hash)
}

#[cold]
#[inline(never)]
fn get_large(hash: u64) -> Option<UnwindRule> {
    let [kept, rule] = &LARGE[(hash >> 56) as usize];
    let rule = rule.load(Relaxed);
    (rule != 0 && kept.load(Relaxed) == check(hash, rule)).then_some(UnwindRule::from_bits(rule))
}

/// Keeps `rule` for `address`.
pub(crate) fn put(address: u64, rule: UnwindRule) {
    let hash = hash(address);
    let Some(short) = rule.short() else {
        let [kept, to] = &LARGE[(hash >> 56) as usize];
        to.store(rule.bits(), Relaxed);
        kept.store(check(hash, rule.bits()), Relaxed);
        return;
    };
    let entries = &set(hash).0;
    let same = |entry: &AtomicU64| entry.load(Relaxed) >> 32 == hash & 0xffff_ffff;
    let free = |entry: &AtomicU64| entry.load(Relaxed) == 0;
    // The same address again, else a free entry, else any.
    let at = entries.iter().position(same).or_else(|| entries.iter().position(free));
    entries[at.unwrap_or((hash >> 40) as usize % WAYS)].store((hash & 0xffff_ffff) << 32 | u64::from(short), Relaxed);
}

/// Changes whenever rules worked out before may be wrong.
#[inline]
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Relaxed)
}

/// Forgets everything.
pub(crate) fn forget_all() {
    EPOCH.fetch_add(1, Relaxed);
    // Entries hold only a part of the address's hash, so older epochs are cleared for real.
    TABLE.iter().flat_map(|set| &set.0).for_each(|entry| entry.store(0, Relaxed));
    LARGE.iter().flatten().for_each(|word| word.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_until_it_is_forgotten() {
        let addresses: Vec<u64> = (0..4000).map(|n| 0x7f12_3450_0000 + n * 97).collect();
        // Frames of 8 bytes and more; every fifth has an offset that fits into no entry.
        let rule = |address: u64| {
            UnwindRule::from_bits(1 | (address % 1000 * 8 + u64::from(address.is_multiple_of(5)) * 4) << 32)
        };
        addresses.iter().for_each(|address| put(*address, rule(*address)));
        let found = addresses.iter().filter(|address| get(**address) == Some(rule(**address))).count();
        assert!(found > 3300, "{found} of 4000: sets have eight entries, the table for large rules 256");
        let wrong = addresses.iter().filter(|address| get(**address).is_some_and(|found| found != rule(**address)));
        assert_eq!(wrong.count(), 0);
        assert_eq!(get(0x7f99_0000_0001), None);
        forget_all();
        assert!(addresses.iter().all(|address| get(*address).is_none()));
    }
}
