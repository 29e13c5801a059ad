//! Atomic operations: real atomics of the CPU, because blocks run on several threads.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exec::per_lane::each;
use crate::interface::{AccessKind, CompileError, FaultKind};
use crate::program::{Inst, InstFn, LANES, Next};
use crate::warp::Warp;

/// A word that the CPU can update atomically.
pub trait Word: Copy {
    const SIZE: u32;
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
    /// Replaces the word by a function of it. Returns what it was.
    ///
    /// # Safety
    /// `at` is aligned and points to memory that stays mapped.
    unsafe fn update(at: u64, f: impl Fn(Self) -> Self) -> Self;
}

macro_rules! word {
    ($($ty:ident, $atomic:ident);*) => {$(
        impl Word for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;
            #[inline(always)]
            fn of(bits: u64) -> Self {
                bits as $ty
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            unsafe fn update(at: u64, f: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller's promise.
                let word = unsafe { &*(at as *const $atomic) };
                let mut old = word.load(Ordering::SeqCst);
                loop {
                    match word.compare_exchange_weak(old, f(old), Ordering::SeqCst, Ordering::SeqCst) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    )*};
}
word!(u16, AtomicU16; u32, AtomicU32; u64, AtomicU64);

/// `atom` and `red`: address `a` + `x` in the space of `z`, operands `b` and `c`; the old value
/// goes to `d`.
pub(crate) fn atom<T: Word, F: Fn(T, T, T) -> T + Copy>(_: F) -> InstFn {
    fn run<T: Word, F: Fn(T, T, T) -> T + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: `F` has no bytes, and a value of it existed: `atom` took one.
        let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i, mask, T::SIZE, AccessKind::Atomic, &mut at) {
            return next;
        }
        each(mask, |l| {
            let (b, c) = (T::of(w.get(i.b, l)), T::of(w.get(i.c, l)));
            // SAFETY: `addresses` vouches for the memory.
            let old = unsafe { T::update(at[l], |old| f(old, b, c)) };
            w.set(i.d, l, old.bits());
        });
        Next::Step
    }
    run::<T, F>
}

/// `atom` of what is another operation in a block's shared memory: `shared` there, `global`
/// elsewhere. With `VECTOR` as of [`atom_vector`], else as of [`atom`].
pub(crate) fn atom_by_place<T, G, S, const VECTOR: bool>(_global: G, _shared: S) -> InstFn
where
    T: Word,
    G: Fn(T, T) -> T + Copy,
    S: Fn(T, T) -> T + Copy,
{
    fn run<T: Word, G: Fn(T, T) -> T + Copy, S: Fn(T, T) -> T + Copy, const VECTOR: bool>(
        w: &mut Warp<'_>,
        i: &Inst,
        mask: u32,
    ) -> Next {
        const { assert!(size_of::<G>() == 0 && size_of::<S>() == 0) };
        // SAFETY: as in `atom`, of both.
        let (global, shared) =
            unsafe { (std::ptr::NonNull::<G>::dangling().read(), std::ptr::NonNull::<S>::dangling().read()) };
        let count = if VECTOR { (i.z >> 4) as usize } else { 1 };
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i, mask, T::SIZE * count as u32, AccessKind::Atomic, &mut at) {
            return next;
        }
        let (base, size) = (w.shared_base(), u64::from(w.block().shared_size));
        let update = |at: u64, operand: T| {
            let inside = at.wrapping_sub(base) < size;
            let update = |old| if inside { shared(old, operand) } else { global(old, operand) };
            // SAFETY: `addresses` vouches for the memory.
            unsafe { T::update(at, update) }
        };
        if VECTOR {
            each_element(w, i, mask, &at, update);
        } else {
            each(mask, |l| {
                let old = update(at[l], T::of(w.get(i.b, l)));
                w.set(i.d, l, old.bits());
            });
        }
        Next::Step
    }
    run::<T, G, S, VECTOR>
}

/// `atom` on vectors: each element is updated by itself. Bits 4 and up of `z` are their number;
/// destinations and then operands are in the slots from `y` on.
pub(crate) fn atom_vector<T: Word, F: Fn(T, T, T) -> T + Copy>(_: F) -> InstFn {
    fn run<T: Word, F: Fn(T, T, T) -> T + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: as in `atom`.
        let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
        let count = (i.z >> 4) as usize;
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i, mask, T::SIZE * count as u32, AccessKind::Atomic, &mut at) {
            return next;
        }
        // SAFETY: `addresses` vouches for the memory.
        each_element(w, i, mask, &at, |at, operand: T| unsafe { T::update(at, |old| f(old, operand, operand)) });
        Next::Step
    }
    run::<T, F>
}

/// A barrier of machine code (`compile_sass::memory::atomic`) when one more has arrived:
/// the last arrival begins the next phase.
pub(crate) fn after_arrival(barrier: u64) -> u64 {
    let (expected, missing) = (barrier as u32, (barrier >> 32) as u32);
    let mut missing = missing.wrapping_add(1);
    if missing << 1 == 0 {
        // The carry has changed the phase.
        let negative = (expected << 2) as i32 >> 2;
        missing |= negative as u32 & 0x7fff_ffff;
    }
    u64::from(expected) | u64::from(missing) << 32
}

/// An atomic operation that there is not for a type. None such is compiled.
pub(crate) fn refused(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let (instruction, function) = (format!("{:?}", i.op), w.env.kernel.name.clone());
    let error = CompileError::Unsupported { instruction, function, line: w.env.program.line(w.pc) };
    w.fail(FaultKind::Unsupported(Box::new(error)), mask)
}

/// What [`wide`] does with 16 bytes.
pub(crate) const WIDE_LOAD: u32 = 0;
pub(crate) const WIDE_STORE: u32 = 1;
pub(crate) const WIDE_EXCHANGE: u32 = 2;
pub(crate) const WIDE_COMPARE_AND_SWAP: u32 = 3;

/// Holds off other operations on the same 16 bytes: Rust has no atomics of that size. Which other
/// operations are as wide, and so atomic towards them, is all that is defined (PTX ISA, memory
/// consistency model, "Mixed-size data-races").
fn held(at: u64) -> MutexGuard<'static, ()> {
    static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
    LOCKS[(at >> 4) as usize % LOCKS.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// `ld`, `st`, `atom.exch` and `atom.cas` on 16 bytes, each one atomic towards the others: address
/// `a` + `x` in the space of `z`; in the slots from `y` on the two words of the result, the operand
/// and the other operand.
pub(crate) fn wide<const OPERATION: u32>() -> InstFn {
    fn run<const OPERATION: u32>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let kind = match OPERATION {
            WIDE_LOAD => AccessKind::Read,
            WIDE_STORE => AccessKind::Write,
            _ => AccessKind::Atomic,
        };
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i, mask, 16, kind, &mut at) {
            return next;
        }
        let program = w.env.program;
        let slots = &program.slots[i.y as usize..][..6];
        each(mask, |l| {
            let [operand, other] = [2, 4].map(|first| [w.get(slots[first], l), w.get(slots[first + 1], l)]);
            let words = at[l] as *mut [u64; 2];
            let held = held(at[l]);
            // SAFETY: `addresses` vouches for the memory, and for its alignment.
            let old = if OPERATION == WIDE_STORE { [0; 2] } else { unsafe { words.read_volatile() } };
            let new = match OPERATION {
                WIDE_STORE | WIDE_EXCHANGE => Some(operand),
                WIDE_COMPARE_AND_SWAP if old == operand => Some(other),
                _ => None,
            };
            if let Some(new) = new {
                // SAFETY: as above.
                unsafe { words.write_volatile(new) };
            }
            drop(held);
            if OPERATION != WIDE_STORE {
                w.set(slots[0], l, old[0]);
                w.set(slots[1], l, old[1]);
            }
        });
        Next::Step
    }
    run::<OPERATION>
}

/// The most elements of a vector (PTX ISA, `atom`: `.v8` of halves).
const ELEMENTS: usize = 8;

/// Updates the elements of vectors, one by one. A destination may be an operand of another element.
fn each_element<T: Word>(w: &mut Warp<'_>, i: &Inst, mask: u32, at: &[u64; LANES], update: impl Fn(u64, T) -> T) {
    let (count, first) = ((i.z >> 4) as usize, i.y as usize);
    let program = w.env.program;
    let (to, from) = program.slots[first..first + 2 * count].split_at(count);
    each(mask, |l| {
        let mut words = [T::of(0); ELEMENTS];
        for (word, slot) in words.iter_mut().zip(from) {
            *word = T::of(w.get(*slot, l));
        }
        for (element, word) in words[..count].iter_mut().enumerate() {
            *word = update(at[l] + element as u64 * u64::from(T::SIZE), *word);
        }
        for (word, slot) in words.iter().zip(to) {
            w.set(*slot, l, word.bits());
        }
    });
}
