//! The processor's time in each part of an observed call, for measuring: builds with the feature
//! `cycles` only. In every other build the functions here are the work that they are given.
//!
//! Owns the counters and the file that they are written to. On a machine without performance
//! counters this says where an operation's time goes in a real program: caches, pages and locks
//! are as cold and as contended there as they are.
//!
//! Two threads that count at once may lose a count: a locked instruction for each would be a large
//! part of what is measured. Reading the clock twice takes some twenty nanoseconds, which are in
//! the part around; the file states how many.

/// A part of a call. Some lie inside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "cycles"), allow(dead_code, reason = "a name for what is measured elsewhere"))]
pub enum Part {
    /// The driver's own function.
    Real,
    /// All of the shim, before or after that: a call that is observed twice counts twice.
    Shim,
    /// Finding the stream, and whether it is captured.
    Stream,
    /// Finding the kernel.
    Kernel,
    /// The driver was asked for the current context.
    Context,
    /// Taking the stack.
    Stack,
    /// Taking the lock of the log.
    Lock,
    /// What happens under that lock.
    Log,
    /// The place in the order, which is part of that.
    Order,
    /// Giving the lock back.
    Unlock,
}

/// Does the work, which is this part of a call.
#[cfg(not(feature = "cycles"))]
#[inline(always)]
pub fn of<R>(_part: Part, work: impl FnOnce() -> R) -> R {
    work()
}

/// Does the work, which is what the shim does for this call.
#[cfg(not(feature = "cycles"))]
#[inline(always)]
pub fn of_call<R>(_call: cuda_sys::FnId, work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(feature = "cycles")]
pub use counted::{of, of_call, write};

#[cfg(feature = "cycles")]
mod counted {
    use std::fmt::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Instant;

    use cuda_sys::FnId;

    use super::Part;
    use crate::arch;
    use crate::runtime::options::os_variable;

    const PARTS: [(Part, &str); 10] = [
        (Part::Real, "the driver's function"),
        (Part::Shim, "the shim"),
        (Part::Stream, "- finding the stream"),
        (Part::Kernel, "- finding the kernel"),
        (Part::Context, "- asking the driver for the context"),
        (Part::Stack, "- the stack"),
        (Part::Lock, "- taking the lock"),
        (Part::Log, "- order and ring"),
        (Part::Order, "  - order"),
        (Part::Unlock, "- giving the lock back"),
    ];
    /// By powers of two of cycles.
    const CLASSES: usize = 40;
    /// Calls that are told one by one, those of libraries behind the driver's.
    const CALLS: usize = FnId::COUNT + 64;

    /// How often, and how many cycles.
    struct Count([AtomicU64; 2]);

    impl Count {
        const fn new() -> Self {
            Self([const { AtomicU64::new(0) }; 2])
        }

        fn add(&self, cycles: u64) {
            for (count, more) in self.0.iter().zip([1, cycles]) {
                count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
            }
        }

        fn get(&self) -> [u64; 2] {
            [self.0[0].load(Relaxed), self.0[1].load(Relaxed)]
        }
    }

    static OF_PARTS: [[Count; CLASSES]; PARTS.len()] = [const { [const { Count::new() }; CLASSES] }; PARTS.len()];
    static OF_CALLS: [Count; CALLS] = [const { Count::new() }; CALLS];
    static BEGAN: OnceLock<(Instant, u64)> = OnceLock::new();

    /// Does the work, which is this part of a call, and counts its cycles.
    #[inline(always)]
    pub fn of<R>(part: Part, work: impl FnOnce() -> R) -> R {
        let began = arch::cycles();
        let result = work();
        count(part, arch::cycles().wrapping_sub(began));
        result
    }

    fn count(part: Part, cycles: u64) {
        let class = (u64::BITS - cycles.leading_zeros()) as usize;
        OF_PARTS[part as usize][class.min(CLASSES - 1)].add(cycles);
    }

    /// Does the work, which is what the shim does for this call, and counts its cycles.
    #[inline(always)]
    pub fn of_call<R>(call: FnId, work: impl FnOnce() -> R) -> R {
        BEGAN.get_or_init(|| (Instant::now(), arch::cycles()));
        let began = arch::cycles();
        let result = work();
        let cycles = arch::cycles().wrapping_sub(began);
        count(Part::Shim, cycles);
        if let Some(of_call) = OF_CALLS.get(usize::from(call.0)) {
            of_call.add(cycles);
        }
        result
    }

    /// Writes the counts to the file that `STREAMSAN_CYCLES` names, if it names one. What took
    /// longer than 16,384 cycles is told by itself: the first call of each kind, pages that were
    /// touched for the first time, and what the system did meanwhile.
    pub fn write(name_of: impl Fn(FnId) -> &'static str) {
        const LONG: usize = 15;
        let Some(path) = os_variable(c"STREAMSAN_CYCLES").filter(|path| !path.is_empty()) else { return };
        let Some((instant, cycles)) = BEGAN.get() else { return };
        let per_ns = arch::cycles().wrapping_sub(*cycles) as f64 / instant.elapsed().as_nanos().max(1) as f64;
        let ns = |[count, cycles]: [u64; 2]| cycles as f64 / per_ns / count.max(1) as f64;
        let mut text = format!("{:38} {:>9} {:>8} {:>9} {:>12}\n", "part", "times", "ns", "longer", "these, us");
        for ((_, name), classes) in PARTS.iter().zip(&OF_PARTS) {
            let sum = |classes: &[Count]| {
                classes.iter().map(Count::get).fold([0, 0], |[a, b], [count, cycles]| [a + count, b + cycles])
            };
            let (usual, long) = (sum(&classes[..LONG]), sum(&classes[LONG..]));
            let long_us = long[1] as f64 / per_ns / 1e3;
            let _ = writeln!(text, "{name:38} {:9} {:8.1} {:9} {long_us:12.1}", usual[0], ns(usual), long[0]);
        }
        let (mut own, rounds) = (u64::MAX, 1000);
        for _ in 0..rounds {
            let began = arch::cycles();
            own = own.min(arch::cycles().wrapping_sub(began));
        }
        let _ = writeln!(text, "{:38} {:9} {:8.1}\n", "reading the clock", rounds, ns([1, own]));
        let mut calls: Vec<_> = OF_CALLS.iter().map(Count::get).enumerate().filter(|(_, of)| of[0] > 0).collect();
        calls.sort_by_key(|(_, of)| std::cmp::Reverse(of[1]));
        for (index, of) in calls {
            let _ = writeln!(text, "{:38} {:9} {:8.1}", name_of(FnId(index as u16)), of[0], ns(of));
        }
        let _ = std::fs::write(path, text);
    }
}
