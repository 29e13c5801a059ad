//! Atomic operations: real atomics of the CPU, because blocks run on several threads.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exec::per_lane::each;
use crate::exec::told::{keeping, strength::is_swap};
use crate::interface::{AccessKind, CompileError, FaultKind};
use crate::operations::operands;
use crate::program::{Inst, InstFn, LANES, Next, WideAccess};
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

/// `atom` and `red`: operands are `b` and `c`; the old value goes to `d`.
pub(crate) fn atom<T: Word, F: Fn(T, T, T) -> T + Copy>(_: F) -> InstFn {
    fn run<T: Word, F: Fn(T, T, T) -> T + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: `F` has no bytes, and a value of it existed: `atom` took one.
        let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
        let i = operands::Atomic::of(i);
        let mut at = [0; LANES];
        if T::SIZE == 4 && w.env.events.is_some() && is_swap(i.location().strength) {
            w.keeping = keeping(mask, |l| [w.get(i.b(), l) as u32, w.get(i.c(), l) as u32]);
        }
        if let Err(next) = w.addresses(i.location(), mask, T::SIZE, AccessKind::Atomic, &mut at) {
            return next;
        }
        each(mask, |l| {
            let (b, c) = (T::of(w.get(i.b(), l)), T::of(w.get(i.c(), l)));
            // SAFETY: `addresses` vouches for the memory.
            let old = unsafe { T::update(at[l], |old| f(old, b, c)) };
            w.set(i.d(), l, old.bits());
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
        let (count, location) = if VECTOR {
            let i = operands::AtomicVector::of(i);
            (i.count() as usize, i.location())
        } else {
            (1, operands::Atomic::of(i).location())
        };
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(location, mask, T::SIZE * count as u32, AccessKind::Atomic, &mut at) {
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
            each_element(w, operands::AtomicVector::of(i), mask, &at, update);
        } else {
            let i = operands::Atomic::of(i);
            each(mask, |l| {
                let old = update(at[l], T::of(w.get(i.b(), l)));
                w.set(i.d(), l, old.bits());
            });
        }
        Next::Step
    }
    run::<T, G, S, VECTOR>
}

/// `atom` on vectors: each element is updated by itself.
pub(crate) fn atom_vector<T: Word, F: Fn(T, T, T) -> T + Copy>(_: F) -> InstFn {
    fn run<T: Word, F: Fn(T, T, T) -> T + Copy>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: as in `atom`.
        let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
        let i = operands::AtomicVector::of(i);
        let count = i.count() as usize;
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i.location(), mask, T::SIZE * count as u32, AccessKind::Atomic, &mut at) {
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
const LOAD: u32 = WideAccess::Load as u32;
const STORE: u32 = WideAccess::Store as u32;
const EXCHANGE: u32 = WideAccess::Exchange as u32;
const COMPARE_AND_SWAP: u32 = WideAccess::CompareAndSwap as u32;

/// Holds off other operations on the same 16 bytes: Rust has no atomics of that size. Which other
/// operations are as wide, and so atomic towards them, is all that is defined (PTX ISA, memory
/// consistency model, "Mixed-size data-races").
fn held(at: u64) -> MutexGuard<'static, ()> {
    static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
    LOCKS[(at >> 4) as usize % LOCKS.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// `ld`, `st`, `atom.exch` and `atom.cas` on 16 bytes, each one atomic towards the others.
pub(crate) fn wide(access: WideAccess) -> InstFn {
    fn run<const OPERATION: u32>(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
        let kind = match OPERATION {
            LOAD => AccessKind::Read,
            STORE => AccessKind::Write,
            _ => AccessKind::Atomic,
        };
        let i = operands::Wide::of(i);
        let mut at = [0; LANES];
        if let Err(next) = w.addresses(i.location(), mask, 16, kind, &mut at) {
            return next;
        }
        let program = w.env.program;
        let (result, value, other) = (i.old(program), i.value(program), i.other(program));
        each(mask, |l| {
            let [operand, other] = [value, other].map(|slots| [w.get(slots[0], l), w.get(slots[1], l)]);
            let words = at[l] as *mut [u64; 2];
            let held = held(at[l]);
            // SAFETY: `addresses` vouches for the memory, and for its alignment.
            let old = if OPERATION == STORE { [0; 2] } else { unsafe { words.read_volatile() } };
            let new = match OPERATION {
                STORE | EXCHANGE => Some(operand),
                COMPARE_AND_SWAP if old == operand => Some(other),
                _ => None,
            };
            if let Some(new) = new {
                // SAFETY: as above.
                unsafe { words.write_volatile(new) };
            }
            drop(held);
            if OPERATION != STORE {
                w.set(result[0], l, old[0]);
                w.set(result[1], l, old[1]);
            }
        });
        Next::Step
    }
    match access {
        WideAccess::Load => run::<LOAD>,
        WideAccess::Store => run::<STORE>,
        WideAccess::Exchange => run::<EXCHANGE>,
        WideAccess::CompareAndSwap => run::<COMPARE_AND_SWAP>,
    }
}

/// The most elements of a vector (PTX ISA, `atom`: `.v8` of halves).
const ELEMENTS: usize = 8;

/// Updates the elements of vectors, one by one. A destination may be an operand of another element.
fn each_element<T: Word>(
    w: &mut Warp<'_>,
    i: operands::AtomicVector<'_>,
    mask: u32,
    at: &[u64; LANES],
    update: impl Fn(u64, T) -> T,
) {
    let (program, count) = (w.env.program, i.count() as usize);
    let (to, from) = (i.d(program), i.b(program));
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
