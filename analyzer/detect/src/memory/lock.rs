//! The lock that a kernel holds during an access, or the word by which it hands the bytes over:
//! where its words lie, at most.
//!
//! Owns the comparison of two locks, and the search for a third one between two.
//! [`crate::accesses`] makes a lock from what the code of the kernel says, and
//! [`crate::confidence`] asks whether two may be one.

use std::num::NonZeroU32;

use super::extent::gcd;
use kernels::LockRole;

/// The addresses that a lock may lie at: from `lo` on, `width` bytes in every `stride`. Small,
/// because every access has room for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    lo: u64,
    /// Bytes from the first to the last; the most from address 0 on: up to the end of memory.
    len: NonZeroU32,
    /// 0: one word.
    stride: u16,
    width: u8,
    role: LockRole,
}

impl Lock {
    /// It may be any lock.
    pub const ANY: Self = Self { lo: 0, len: NonZeroU32::MAX, stride: 1, width: 1, role: LockRole::Section };

    /// Some word between two addresses.
    pub(crate) fn between(lo: u64, hi: u64) -> Self {
        let len = u32::try_from(hi.saturating_sub(lo)).ok().and_then(NonZeroU32::new);
        len.map_or(Self::ANY, |len| Self { lo, len, ..Self::ANY })
    }

    /// Some word below `hi` of those that begin at `lo` and at multiples of these strides from it.
    pub(crate) fn words(lo: u64, hi: u64, width: u64, strides: impl Iterator<Item = u64>) -> Self {
        let stride = strides.fold(0, gcd);
        // One piece: an upper bound may be longer than one word.
        let width = if stride == 0 { hi.saturating_sub(lo) } else { width };
        let within = Self::between(lo, hi);
        match (u16::try_from(stride), u8::try_from(width)) {
            (Ok(stride), Ok(width)) if within != Self::ANY && (stride == 0 || u16::from(width) < stride) => {
                Self { stride, width, ..within }
            }
            _ => within,
        }
    }

    /// The same words in another role.
    #[must_use]
    pub(crate) fn with_role(self, role: LockRole) -> Self {
        Self { role, ..self }
    }

    /// Any words in the same role.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self::ANY.with_role(self.role)
    }

    fn is_anywhere(self) -> bool {
        self.with_role(LockRole::Section) == Self::ANY
    }

    /// Whether an atomic load of the words decides that the access is made.
    pub fn awaits(self) -> bool {
        matches!(self.role, LockRole::Awaits | LockRole::Passes)
    }

    /// Whether the one may hand over what the other waits for: both name words, and may name one.
    pub(crate) fn may_hand_over(self, other: Self) -> bool {
        let pair = self.role.may_precede(other.role) || other.role.may_precede(self.role);
        pair && !self.is_anywhere() && !other.is_anywhere() && self.meets(other)
    }

    /// Of two that may hand over to each other from one device to another: whether the store of one
    /// that comes first may reach the other. `is_narrow`: the scope of its stores does not.
    pub(crate) fn may_reach(self, other: Self, is_narrow: (bool, bool)) -> bool {
        self.role.may_precede(other.role) && !is_narrow.0 || other.role.may_precede(self.role) && !is_narrow.1
    }

    fn end(self) -> u64 {
        if self.is_anywhere() { u64::MAX } else { self.lo.saturating_add(u64::from(self.len.get())) }
    }

    /// Either of two.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let strides = [u64::from(self.stride), u64::from(other.stride), self.lo.abs_diff(other.lo)];
        let (lo, hi) = (self.lo.min(other.lo), self.end().max(other.end()));
        Self::words(lo, hi, u64::from(self.width.max(other.width)), strides.into_iter()).with_role(self.role)
    }

    /// Whether the two may be one lock.
    pub(crate) fn may_be(self, other: Self) -> bool {
        self.role == LockRole::Section && other.role == LockRole::Section && self.meets(other)
    }

    /// Whether the two name words that are claimed, and may name one.
    pub(crate) fn may_be_claimed(self, other: Self) -> bool {
        let claims = self.role == LockRole::Claims && other.role == LockRole::Claims;
        claims && !self.is_anywhere() && !other.is_anywhere() && self.meets(other)
    }

    /// Whether the two may have a word in common.
    fn meets(self, other: Self) -> bool {
        let stride = gcd(u64::from(self.stride), u64::from(other.stride));
        let apart = stride != 0 && {
            let from = i128::from(other.lo) - i128::from(self.lo);
            let from = from.rem_euclid(i128::from(stride)) as u64;
            u64::from(self.width) <= from && from + u64::from(other.width) <= stride
        };
        self.lo < other.end() && other.lo < self.end() && !apart
    }

    /// Whether every lock that the other may be is one that this may be.
    pub(crate) fn holds(self, other: Self) -> bool {
        self == other || self.role == other.role && self.stride == 1 && self.lo <= other.lo && other.end() <= self.end()
    }
}

/// Maximum number of relays that are kept. Programs hand data on by a few words.
const MAX_RELAYS: usize = 64;

/// The words by which kernels handed on bytes that had been handed to them ([`LockRole::Passes`]).
#[derive(Debug, Default)]
pub struct Relays(Vec<Lock>);

impl Relays {
    /// Notes the words of an access.
    pub(crate) fn note(&mut self, lock: Lock) {
        let known = lock.role != LockRole::Passes || lock.is_anywhere() || self.0.contains(&lock);
        if !known && self.0.len() < MAX_RELAYS {
            self.0.push(lock);
        }
    }

    /// Whether one of two accesses may be handed over to the other one by these: causality order
    /// is transitive.
    pub(crate) fn link(&self, one: Lock, other: Lock) -> bool {
        let follows = |from: Lock, to: Lock| from.role.may_precede(to.role) && from.meets(to);
        let leads = |from: Lock, to: Lock| {
            if from.is_anywhere() || to.is_anywhere() || !from.role.may_precede(to.role) {
                return false;
            }
            let (mut work, mut open) = (vec![from], self.0.clone());
            while let Some(at) = work.pop() {
                if follows(at, to) && at != from {
                    return true;
                }
                let next: Vec<Lock> = open.extract_if(.., |relay| follows(at, *relay)).collect();
                work.extend(next);
            }
            false
        };
        !self.0.is_empty() && (leads(one, other) || leads(other, one))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, LockRole, Relays};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The bytes that a lock may lie at.
    fn bytes(lock: Lock) -> BTreeSet<u64> {
        let within = |at: &u64| match lock.stride {
            0 => *at - lock.lo < u64::from(lock.width),
            stride => (*at - lock.lo) % u64::from(stride) < u64::from(lock.width),
        };
        (lock.lo..lock.end()).filter(within).collect()
    }

    fn some_lock() -> impl Strategy<Value = (Lock, BTreeSet<u64>)> {
        let dims = prop::collection::vec((1..40_u64, 1..5_u64), 0..3);
        (100..160_u64, 1..9_u64, dims).prop_map(|(lo, width, dims)| {
            let mut starts = BTreeSet::from([lo]);
            for (stride, count) in &dims {
                starts = starts.iter().flat_map(|at| (0..*count).map(move |k| at + k * stride)).collect();
            }
            let all: BTreeSet<u64> = starts.iter().flat_map(|at| *at..at + width).collect();
            let hi = all.last().expect("a byte") + 1;
            (Lock::words(lo, hi, width, dims.iter().filter(|d| d.1 > 1).map(|d| d.0)), all)
        })
    }

    #[test]
    fn words_of_a_structure_are_told_apart() {
        let member = |at: u64| Lock::words(at, at + 100, 4, [8].into_iter());
        let word = |at: u64| Lock::words(at, at + 4, 4, [].into_iter());
        assert!(!member(0).may_be(member(4)) && member(0).may_be(member(16)) && !member(4).may_be(word(24)));
        assert!(!word(0).may_be(word(4)) && word(0).may_be(word(0)) && Lock::ANY.may_be(word(4)));
        assert!(!word(0).or(word(8)).may_be(word(4)) && word(0).or(word(8)).may_be(word(8)));
    }

    #[test]
    fn relays_link_the_ends_of_a_chain() {
        let flags = |role, all: &[u64]| {
            let word = |at: &u64| Lock::words(*at, *at + 4, 4, [].into_iter());
            let whole = all.iter().map(word).reduce(Lock::or).expect("a flag");
            whole.with_role(role)
        };
        let (first, last) = (flags(LockRole::Gives, &[0]), flags(LockRole::Awaits, &[64]));
        let chain = [[0, 16], [16, 32], [32, 48], [48, 64]].map(|both| flags(LockRole::Passes, &both));
        for without in 0..=chain.len() {
            let mut relays = Relays::default();
            chain.iter().enumerate().filter(|(k, _)| *k != without).for_each(|(_, relay)| relays.note(*relay));
            // All four are needed.
            let whole = without == chain.len();
            assert_eq!((relays.link(first, last), relays.link(last, first)), (whole, whole), "{without}");
            assert!(!relays.link(first, first) && !relays.link(last, last));
            let other = flags(LockRole::Awaits, &[80]);
            assert!(!relays.link(first, other) && !relays.link(other, last));
            assert!(!relays.link(first, Lock::ANY.with_role(LockRole::Awaits)));
            let section = |lock: Lock| lock.with_role(LockRole::Section);
            assert!(!relays.link(section(first), last) && !relays.link(first, section(last)));
        }
    }

    proptest! {
        #[test]
        fn a_lock_holds_all_its_words((a, words) in some_lock(), (b, others) in some_lock()) {
            prop_assert!(words.is_subset(&bytes(a)));
            let both: BTreeSet<u64> = words.union(&others).copied().collect();
            prop_assert!(both.is_subset(&bytes(a.or(b))), "{:?}", a.or(b));
            prop_assert_eq!(a.may_be(b), b.may_be(a));
            prop_assert!(a.may_be(b) || words.is_disjoint(&others));
            prop_assert!(!a.holds(b) || bytes(b).is_subset(&bytes(a)));
            prop_assert!(Lock::ANY.holds(a) && Lock::ANY.may_be(a));
        }
    }
}
