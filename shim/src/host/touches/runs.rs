//! Runs: what one instruction of one thread has touched since the latest op of the program, as long
//! as its addresses lie at one distance from each other.
//!
//! Owns the table of each thread, and the rules of what continues a run. Most touches continue one,
//! and cost a look into the table. Does not write records: it hands what ends to its caller.
//!
//! # Who may do what
//!
//! A run begins and ends with the lock of the log held, by any thread. In between, only its own
//! thread moves the end of it on, without a lock. So an op of another thread finds runs as they are
//! at that moment. If the program orders the touch before that op, the end has been moved on before
//! the op takes the lock. A touch that the program does not order may be left out of the run that
//! the op ends; it is kept and written with the thread's next run.
//!
//! Each op that finds runs begins a new *age*; a run of an earlier age is not continued.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use trace::{HostFuncId, Region, StackId, ThreadId};

use crate::runtime::{lifecycle, lock, thread_state};

/// Runs that one instruction may have at a time: it may be in a function that several arrays are
/// passed to.
const WAYS: usize = 4;
/// One for each low byte of an instruction's address: calls of one short loop never share one.
const SETS: usize = 256;
const RUNS: usize = WAYS * SETS;

/// Where [`Touched::what`] lies in a key.
const KEY_SHIFT: u32 = 48;

/// Distances between touches beyond this begin a new run.
const FARTHEST: u64 = 1 << 24;

/// One touch.
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    /// First byte.
    pub address: u64,
    /// Bytes, times 8, plus: 1 for a store, 2 for an atomic operation (or of a `volatile` object).
    pub what: u64,
    /// The return address of the call that told of it, or what else is the same each time.
    pub pc: u64,
}

impl Touched {
    fn width(self) -> u64 {
        self.what >> 3
    }

    /// Where and what in one word, of an instruction; 0 for what is no instruction of its own.
    fn key(self) -> u64 {
        if self.pc >> KEY_SHIFT == 0 && self.what >> (64 - KEY_SHIFT) == 0 {
            self.pc | self.what << KEY_SHIFT
        } else {
            0
        }
    }
}

/// Ages of runs: see the head of this file.
#[unsafe(link_section = "streamsan_state")]
static AGE: AtomicU32 = AtomicU32::new(1);

/// What a run's own thread moves on without a lock. The first of each set is moved on by the
/// machine code of `shim/instrumented/src/arch/x86_64.rs`, which knows the first four fields and
/// the size.
#[repr(C, align(64))]
struct Run {
    /// See [`Touched::key`].
    key: AtomicU64,
    /// First byte of the touch that goes on.
    next: AtomicU64,
    /// From one touch to the next, wrapping.
    stride: AtomicU64,
    /// 0: there is no run.
    age: AtomicU32,
    /// Whether an address was touched twice in a row.
    repeated: AtomicU32,
    pc: AtomicU64,
    what: AtomicU64,
}

/// The rest of a run.
#[derive(Clone, Copy)]
#[repr(C)]
struct RunOrigin {
    start: u64,
    /// Up to where it has been written: first byte of that touch.
    written: u64,
    is_written: bool,
    /// Whether anything of this instruction was written in this age: `before`.
    is_known: bool,
    /// Start, last and stride of what was.
    before: [u64; 3],
    stack: StackId,
    func: HostFuncId,
}

/// What the lock of the log guards of a thread's table.
#[repr(C)]
struct Origins {
    of: [RunOrigin; RUNS],
    /// Runs of this age, in the order in which they began.
    begun: [u16; RUNS],
    count: usize,
    age: u32,
    victim: usize,
    thread: ThreadId,
    /// Kernel id of the thread.
    owner: i32,
    /// How many forks lie before this table.
    generation: u32,
}

/// What a thread has touched. All zeros: nothing.
#[repr(C)]
pub struct ThreadRuns {
    runs: [Run; RUNS],
    origins: UnsafeCell<Origins>,
    next: AtomicPtr<ThreadRuns>,
}

/// All threads' tables, the newest first. Tables are never unmapped.
static ALL: AtomicPtr<ThreadRuns> = AtomicPtr::new(std::ptr::null_mut());

/// Whether any run has begun in this age.
#[unsafe(link_section = "streamsan_state")]
static BEGUN: AtomicBool = AtomicBool::new(false);

/// A run, or the rest of one, that is to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Which bytes.
    pub region: Region,
    /// Whether it stores.
    pub writes: bool,
    /// Whether by atomic operations.
    pub atomic: bool,
    /// Whether an address was touched again and again.
    pub polled: bool,
    /// Where.
    pub stack: StackId,
    /// Inside which host function.
    pub func: HostFuncId,
    /// By which thread.
    pub thread: ThreadId,
}

#[inline(always)]
fn set_of(pc: u64) -> usize {
    (pc & 0xff) as usize * WAYS
}

/// The age of runs that go on.
pub fn age() -> u32 {
    AGE.load(Ordering::Relaxed)
}

/// Begins a new age; answers the one before.
fn begin_age() -> u32 {
    let age = AGE.fetch_add(1, Ordering::SeqCst);
    super::show_age(age.wrapping_add(1));
    age
}

/// Whether a touch goes on where a run of its instruction left off; that run is moved on then.
#[inline]
pub fn goes_on(touched: &Touched) -> bool {
    let table = thread_state::with(|l| l.touches.get()).cast::<ThreadRuns>();
    // SAFETY: tables are never unmapped.
    let Some(table) = (unsafe { table.as_ref() }) else { return false };
    let age = AGE.load(Ordering::Relaxed);
    let set = set_of(touched.pc);
    for run in &table.runs[set..set + WAYS] {
        if !run.is_of(touched, age) {
            continue;
        }
        let stride = run.stride.load(Ordering::Relaxed);
        let ahead = run.next.load(Ordering::Relaxed).wrapping_sub(touched.address);
        if ahead == 0 {
            run.next.store(touched.address.wrapping_add(stride), Ordering::Release);
            return true;
        }
        if ahead == stride {
            run.repeated.store(1, Ordering::Relaxed);
            return true;
        }
    }
    false
}

impl Run {
    /// First byte of the latest touch.
    #[inline]
    fn last(&self) -> u64 {
        self.next.load(Ordering::Acquire).wrapping_sub(self.stride.load(Ordering::Relaxed))
    }

    /// Exchanges two runs of the calling thread.
    fn swap(&self, other: &Self) {
        for (mine, theirs) in [
            (&self.key, &other.key),
            (&self.next, &other.next),
            (&self.stride, &other.stride),
            (&self.pc, &other.pc),
            (&self.what, &other.what),
        ] {
            mine.store(theirs.swap(mine.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Relaxed);
        }
        for (mine, theirs) in [(&self.age, &other.age), (&self.repeated, &other.repeated)] {
            mine.store(theirs.swap(mine.load(Ordering::Relaxed), Ordering::Relaxed), Ordering::Release);
        }
    }

    #[inline]
    fn is_of(&self, touched: &Touched, age: u32) -> bool {
        self.pc.load(Ordering::Relaxed) == touched.pc
            && self.age.load(Ordering::Relaxed) == age
            && self.what.load(Ordering::Relaxed) == touched.what
    }
}

/// A table whose runs may begin and end: the lock of the log is held.
struct Locked<'a> {
    runs: &'a [Run; RUNS],
    origins: &'a mut Origins,
}

impl ThreadRuns {
    /// # Safety
    /// The caller holds the lock of the log, and keeps one of these at a time.
    unsafe fn lock(&self) -> Locked<'_> {
        // SAFETY: the lock is held, so nobody else has a reference.
        Locked { runs: &self.runs, origins: unsafe { &mut *self.origins.get() } }
    }
}

/// Begins the run of a touch that goes on nowhere. `at`: by whom, and where. Hands to `write` what
/// ends by it.
///
/// # Safety
/// The caller holds the lock of the log; `table` is the calling thread's.
pub unsafe fn begin(
    table: &ThreadRuns,
    touched: &Touched,
    (thread, stack, func): (ThreadId, StackId, HostFuncId),
    mut write: impl FnMut(&Written),
) {
    // SAFETY: the caller's promise.
    let mut table = unsafe { table.lock() };
    let age = AGE.load(Ordering::Relaxed);
    if table.origins.age != age {
        // The rest of what was touched while another thread's op ended the runs.
        table.write_all(&mut write);
        (table.origins.age, table.origins.count) = (age, 0);
    }
    table.origins.thread = thread;
    if table.widen(touched, age, (stack, func)) {
        return;
    }
    // What was polled may have told the thread that it may touch this.
    table.write_polled(&mut write);
    let slot = table.place(touched, age, &mut write);
    let (run, origin) = (&table.runs[slot], &mut table.origins.of[slot]);
    origin.is_known &= run.age.load(Ordering::Relaxed) == age && run.pc.load(Ordering::Relaxed) == touched.pc;
    (origin.start, origin.is_written, origin.stack, origin.func) = (touched.address, false, stack, func);
    run.key.store(touched.key(), Ordering::Relaxed);
    run.pc.store(touched.pc, Ordering::Relaxed);
    run.what.store(touched.what, Ordering::Relaxed);
    run.stride.store(touched.width(), Ordering::Relaxed);
    run.next.store(touched.address.wrapping_add(touched.width()), Ordering::Relaxed);
    run.repeated.store(0, Ordering::Relaxed);
    run.age.store(age, Ordering::Release);
    BEGUN.store(true, Ordering::Relaxed);
}

impl Origins {
    /// A run of this age has begun here.
    fn list(&mut self, slot: usize) {
        if self.count < RUNS {
            self.begun[self.count] = slot as u16;
            self.count += 1;
        }
    }
}

impl Locked<'_> {
    /// The second touch of a run says how far apart its touches are.
    fn widen(&mut self, touched: &Touched, age: u32, at: (StackId, HostFuncId)) -> bool {
        let set = set_of(touched.pc);
        for slot in set..set + WAYS {
            let (run, origin) = (&self.runs[slot], &self.origins.of[slot]);
            let alone = run.last() == origin.start && !origin.is_written;
            if !run.is_of(touched, age) || !alone || (origin.stack, origin.func) != at {
                continue;
            }
            let step = touched.address.wrapping_sub(origin.start);
            let far = step.min(step.wrapping_neg());
            if (touched.width()..=FARTHEST).contains(&far) {
                run.stride.store(step, Ordering::Relaxed);
                run.next.store(touched.address.wrapping_add(step), Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Where a new run goes: to the first place of its set, for it will be asked for next. What was
    /// there moves to the place of the same run before, to a free one, or in turn. What is replaced
    /// is written.
    fn place(&mut self, touched: &Touched, age: u32, write: &mut impl FnMut(&Written)) -> usize {
        let first = set_of(touched.pc);
        let mut slots = first..first + WAYS;
        let lives = |slot: usize| self.runs[slot].age.load(Ordering::Relaxed) == age;
        let again = |slot: &usize| {
            let same = self.runs[*slot].pc.load(Ordering::Relaxed) == touched.pc;
            lives(*slot) && same && self.origins.of[*slot].start == touched.address
        };
        let to = slots.clone().find(again).or_else(|| slots.find(|slot| !lives(*slot))).unwrap_or_else(|| {
            self.origins.victim = (self.origins.victim + 1) % (WAYS - 1);
            first + 1 + self.origins.victim
        });
        if !lives(to) {
            self.origins.list(to);
        }
        self.write(to, write);
        if to != first {
            self.runs[to].swap(&self.runs[first]);
            self.origins.of.swap(to, first);
        }
        first
    }

    /// Writes what has not been written of a run.
    fn write(&mut self, slot: usize, write: &mut impl FnMut(&Written)) {
        let (run, origin) = (&self.runs[slot], &mut self.origins.of[slot]);
        let (last, stride) = (run.last(), run.stride.load(Ordering::Relaxed));
        let what = run.what.load(Ordering::Relaxed);
        if run.age.load(Ordering::Relaxed) == 0 || (origin.is_written && origin.written == last) {
            return;
        }
        let start = if origin.is_written { origin.written.wrapping_add(stride) } else { origin.start };
        (origin.written, origin.is_written) = (last, true);
        let this = [start, last, stride];
        if origin.is_known && origin.before == this {
            return;
        }
        (origin.before, origin.is_known) = (this, true);
        write(&Written {
            region: region(start, last, stride, what >> 3),
            writes: what & 1 != 0,
            atomic: what & 2 != 0,
            polled: run.repeated.load(Ordering::Relaxed) != 0 && what & 3 != 1,
            stack: origin.stack,
            func: origin.func,
            thread: self.origins.thread,
        });
    }

    fn write_polled(&mut self, write: &mut impl FnMut(&Written)) {
        for index in 0..self.origins.count {
            let slot = usize::from(self.origins.begun[index]);
            let run = &self.runs[slot];
            let listens = run.repeated.load(Ordering::Relaxed) != 0 || run.what.load(Ordering::Relaxed) & 3 == 2;
            if listens && !self.origins.of[slot].is_written {
                self.write(slot, write);
            }
        }
    }

    fn write_all(&mut self, write: &mut impl FnMut(&Written)) {
        for index in 0..self.origins.count {
            self.write(usize::from(self.origins.begun[index]), write);
        }
    }
}

/// The bytes of touches of `width` bytes each, at one distance from `start` to `last`.
fn region(start: u64, last: u64, stride: u64, width: u64) -> Region {
    let (lowest, pitch, span) = if last.wrapping_sub(start) as i64 >= 0 {
        (start, stride, last.wrapping_sub(start))
    } else {
        (last, stride.wrapping_neg(), start.wrapping_sub(last))
    };
    if span == 0 || pitch == width {
        return Region::linear(lowest, span + width);
    }
    let rows = u32::try_from(span / pitch + 1).unwrap_or(u32::MAX);
    Region::pitched(lowest, width, rows, pitch)
}

/// Whether an op that comes now ends any run.
#[inline]
pub fn any_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// An op of the program comes: all threads' runs end.
///
/// # Safety
/// The caller holds the lock of the log.
pub unsafe fn end_all(mut write: impl FnMut(&Written)) {
    BEGUN.store(false, Ordering::Relaxed);
    // First: a touch that another thread makes from now on belongs to the next age.
    let age = begin_age();
    let mut next = ALL.load(Ordering::Acquire);
    // SAFETY: tables are never unmapped.
    while let Some(table) = unsafe { next.as_ref() } {
        // SAFETY: the caller's promise.
        let mut locked = unsafe { table.lock() };
        if locked.origins.age == age {
            locked.write_all(&mut write);
        }
        next = table.next.load(Ordering::Relaxed);
    }
}

/// The table of the calling thread, made when it has none. `None`: there is no memory for it.
///
/// # Safety
/// The caller holds the lock of the log.
pub unsafe fn table<'a>() -> Option<&'a ThreadRuns> {
    let generation = lifecycle::generation();
    thread_state::with(|l| {
        // SAFETY: tables are never unmapped.
        let known = unsafe { l.touches.get().cast::<ThreadRuns>().as_ref() };
        // SAFETY: the caller's promise.
        if let Some(table) = known.filter(|table| unsafe { table.lock() }.origins.generation == generation) {
            return Some(table);
        }
        let table = adopt(generation).or_else(|| make(generation))?;
        l.touches.set((&raw const *table).cast_mut().cast());
        Some(table)
    })
}

/// The table of a thread that has ended.
fn adopt<'a>(generation: u32) -> Option<&'a ThreadRuns> {
    /// Tables to look at.
    const LOOKS: usize = 64;
    let age = AGE.load(Ordering::Relaxed);
    let mut next = ALL.load(Ordering::Acquire);
    for _ in 0..LOOKS {
        // SAFETY: tables are never unmapped.
        let table = unsafe { next.as_ref() }?;
        // SAFETY: the lock of the log is held, as `table` demands.
        let origins = unsafe { table.lock() }.origins;
        // SAFETY: signal 0 is none: it only asks whether the thread exists.
        let ended = || unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), origins.owner, 0) } != 0;
        if origins.generation == generation && origins.age != age && ended() {
            (origins.owner, origins.count) = (lock::tid(), 0);
            return Some(table);
        }
        next = table.next.load(Ordering::Relaxed);
    }
    None
}

fn make<'a>(generation: u32) -> Option<&'a ThreadRuns> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping; zeros are a valid table, which nobody knows yet.
    let table = unsafe {
        let at = libc::mmap(std::ptr::null_mut(), size_of::<ThreadRuns>(), rights, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let table = &*at.cast::<ThreadRuns>();
        let origins = &mut *table.origins.get();
        (origins.owner, origins.generation) = (lock::tid(), generation);
        table
    };
    table.next.store(ALL.load(Ordering::Relaxed), Ordering::Relaxed);
    ALL.store((&raw const *table).cast_mut(), Ordering::Release);
    Some(table)
}

/// A new log begins: what was touched before is no part of it.
pub fn forget_all() {
    begin_age();
}
