//! Touches of held pages: what the CPU loaded and stored, from where in the program.
//!
//! Owns the queue from the signal handler to the log. It lives in static memory without allocation.
//! A loop that runs over an array is one entry: touches of one instruction, in one frame of the
//! stack, become runs of addresses. How many bytes the instruction touches is read from its code
//! when the touches are logged.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trace::{HostFuncId, Op, Region};

use super::holds;
use super::page_protection::{LOST, TouchOutcome, WAITING, mask};
use super::{in_place, page_protection, single_step};
use crate::arch::{self, page_size};
use crate::real::{driver_mapping, elf};
use crate::runtime::lock::tid;
use crate::runtime::{guard, lifecycle, thread_state};
use crate::stack::frames::{self, Depth, Frames};
use crate::stack::native::is_readable_range;

const ENTRIES: usize = 96;
const RUNS: usize = 12;

/// Addresses at one distance from each other.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    stride: i64,
    count: u32,
    /// When the first and the last of them were touched.
    first: u64,
    last: u64,
}

impl Run {
    fn new(address: u64) -> Self {
        let now = next_moment();
        Self { start: address, stride: 0, count: 1, first: now, last: now }
    }

    /// Takes one more address in, if it fits.
    fn take(&mut self, address: u64) -> bool {
        let fits = self.fits(address);
        if fits {
            self.last = next_moment();
        }
        fits
    }

    fn fits(&mut self, address: u64) -> bool {
        let distance = address.wrapping_sub(self.start) as i64;
        if self.count == 1 {
            let near = distance.unsigned_abs() <= page_size();
            if near && distance != 0 {
                (self.stride, self.count) = (distance, 2);
            }
            return near;
        }
        if distance % self.stride != 0 {
            return false;
        }
        let index = distance / self.stride;
        if index == i64::from(self.count) {
            self.count += 1;
        }
        (0..i64::from(self.count)).contains(&index)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The instruction; 0: a call that hands so many bytes to the kernel.
    instruction: u64,
    stack: u64,
    thread: u32,
    func: u32,
    writes: bool,
    /// Bytes that are touched from each address on; 0: as the instruction says.
    bytes: u64,
    /// The watch of a copy out of these bytes which nothing held back any more; 0: none.
    met: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Busy,
    Full,
}

struct Entry {
    state: State,
    place: Place,
    runs: [Run; RUNS],
    used: usize,
    frames: Frames,
}

struct Queue {
    entries: UnsafeCell<[Entry; ENTRIES]>,
    locked: AtomicBool,
}

// SAFETY: states and runs are used with the lock held only; frames by who has made an entry busy.
unsafe impl Sync for Queue {}

static QUEUE: Queue = Queue {
    entries: UnsafeCell::new(
        [const {
            Entry {
                state: State::Empty,
                place: Place { instruction: 0, stack: 0, thread: 0, func: 0, writes: false, bytes: 0, met: 0 },
                runs: [Run { start: 0, stride: 0, count: 0, first: 0, last: 0 }; RUNS],
                used: 0,
                frames: Frames::new(),
            }
        }; ENTRIES],
    ),
    locked: AtomicBool::new(false),
};

/// Touches are numbered as they come.
static MOMENT: AtomicU64 = AtomicU64::new(0);

fn next_moment() -> u64 {
    MOMENT.fetch_add(1, Ordering::Relaxed)
}

/// Work may use memory that is not held, though it should be: what the host touches there is not
/// seen.
pub fn lose_sight() {
    BLIND.store(true, Ordering::Relaxed);
}

static BLIND: AtomicBool = AtomicBool::new(false);

/// Where the C library is.
static LIBRARY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Finds out what the handler cannot. Not for signal handlers.
pub fn prepare() {
    if LIBRARY[1].load(Ordering::Relaxed) == 0 {
        let library = elf::object_of(libc::getpid as *const () as usize);
        LIBRARY[0].store(library.start as u64, Ordering::Relaxed);
        LIBRARY[1].store(library.end as u64, Ordering::Relaxed);
    }
}

fn with_entries<T>(run: impl FnOnce(*mut Entry) -> T) -> T {
    let mut before = 0_u64;
    mask(libc::SIG_SETMASK, Some(!0), Some(&mut before));
    while QUEUE.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    let result = run(QUEUE.entries.get().cast::<Entry>());
    QUEUE.locked.store(false, Ordering::Release);
    mask(libc::SIG_SETMASK, Some(before), None);
    result
}

/// An entry by its number.
fn entry(entries: *mut Entry, index: usize) -> *mut Entry {
    // SAFETY: there are ENTRIES of them.
    unsafe { entries.add(index) }
}

/// A place that touched before takes one more address in.
fn join(place: &Place, address: u64) -> bool {
    with_entries(|entries| {
        for index in 0..ENTRIES {
            // SAFETY: the lock is held; frames are not looked at.
            let (state, known, runs, used) = unsafe {
                let at = entry(entries, index);
                ((*at).state, (*at).place, &mut (*at).runs, &mut (*at).used)
            };
            if state != State::Full || known != *place {
                continue;
            }
            if runs[..*used].iter_mut().any(|run| run.take(address)) {
                return true;
            }
            if *used < RUNS {
                runs[*used] = Run::new(address);
                *used += 1;
                return true;
            }
        }
        false
    })
}

/// Notes a touch. False: it is not the program's.
fn note(place: Place, address: u64, in_handler: bool) -> bool {
    if join(&place, address) {
        return true;
    }
    let free = with_entries(|entries| {
        // SAFETY: the lock is held.
        let index = (0..ENTRIES).find(|index| unsafe { (*entry(entries, *index)).state == State::Empty })?;
        let at = entry(entries, index);
        // SAFETY: as above.
        unsafe { (*at).state = State::Busy };
        Some(at)
    });
    let Some(at) = free else {
        LOST.fetch_add(1, Ordering::Relaxed);
        return true;
    };
    // SAFETY: the entry is busy, so it is ours.
    let frames = unsafe { &mut (*at).frames };
    frames.clear();
    frames::capture(frames, Depth::Full);
    // In a handler the innermost frame is the C library's way back from it.
    if in_handler {
        frames.skip_one();
    }
    let foreign = is_of_driver(&place, frames);
    // One `memmove` touches from many of its instructions: the program's line is what they share.
    let library = LIBRARY[0].load(Ordering::Relaxed)..LIBRARY[1].load(Ordering::Relaxed);
    if library.contains(&place.instruction) {
        frames.skip_one();
    }
    with_entries(|_| {
        // SAFETY: the lock is held, and the entry is ours.
        unsafe {
            (*at).place = place;
            (*at).runs[0] = Run::new(address);
            (*at).used = 1;
            (*at).state = if foreign { State::Empty } else { State::Full };
        }
    });
    if !foreign {
        WAITING.fetch_add(1, Ordering::AcqRel);
    }
    !foreign
}

/// Whether the driver did it on behalf of a call, or calls the program at a place in the order that
/// is not known (a host function of a graph).
fn is_of_driver(place: &Place, frames: &Frames) -> bool {
    driver_mapping::holds(place.instruction)
        || (place.func == 0 && frames.native().iter().any(|frame| driver_mapping::holds(*frame)))
}

/// A fault at an address: opens its page and notes the touch, if the page is held.
///
/// # Safety
/// `context` is what the kernel passed to the handler of `SIGSEGV`.
pub unsafe fn fault(address: u64, writes: bool, context: *mut c_void) -> TouchOutcome {
    let Some(level) = holds::level(address) else { return TouchOutcome::Foreign };
    if !level.forbids(writes) {
        return TouchOutcome::Again;
    }
    // SAFETY: the caller's promise.
    let interrupted = unsafe { &*context.cast::<libc::ucontext_t>() };
    let instruction = arch::pc(interrupted);
    if lifecycle::is_forked() || guard::is_inside() || thread_state::inside_transport() {
        holds::open(address, false);
        return TouchOutcome::Mended;
    }
    let bytes = arch::repeated(interrupted, address);
    let place = Place {
        instruction,
        stack: arch::sp(interrupted),
        thread: guard::thread_number(),
        func: thread_state::with(|thread| thread.host_function.get()),
        writes,
        bytes: bytes.unwrap_or(0),
        met: if writes { page_protection::met_at(address, address + 1) } else { 0 },
    };
    let ours = note(place, address, true);
    // An atomic operation of the C library is one of its locks, condition variables, semaphores or
    // barriers, whose word it may pass to `futex` next: `EFAULT` there would abort the program.
    let library = LIBRARY[0].load(Ordering::Relaxed)..LIBRARY[1].load(Ordering::Relaxed);
    if library.contains(&instruction) && arch::is_atomic(instruction, is_readable_range) {
        let page = address & !(page_size() - 1);
        holds::let_go(page, page + page_size());
        return TouchOutcome::Mended;
    }
    // Each round of a repeated instruction would be a step.
    let step = ours && bytes.is_none() && single_step::is_available();
    if holds::open(address, step) {
        let page = address & !(page_size() - 1);
        // SAFETY: the caller's promise.
        if !unsafe { single_step::begin(page, context) } {
            holds::stepped(page);
            holds::open(address, false);
        }
    }
    TouchOutcome::Mended
}

/// A call hands these bytes to the kernel.
pub fn given(start: u64, end: u64, writes: bool) {
    if !in_place::may_hold(start, end) {
        return;
    }
    let held = holds::holds(start, end, writes);
    holds::give(start, end, tid());
    if held && !lifecycle::is_forked() && !guard::is_inside() && !thread_state::inside_transport() {
        let (thread, func) = (guard::thread_number(), thread_state::with(|thread| thread.host_function.get()));
        let met = if writes { page_protection::met_at(start, end) } else { 0 };
        let place = Place { instruction: 0, stack: start, thread, func, writes, bytes: end - start, met };
        note(place, start, false);
    }
}

/// Hands out the touches so far as ops, with their thread and stack.
///
/// Loads of one instruction are one run, whatever was touched in between. A run may hold a message
/// from its first touch on, and what it touches may have followed a message until its last one. So
/// it is told twice where other touches lie in between: first as a look, last as a touch.
pub fn drain(mut each: impl FnMut(&Op<'_>, u32, &Frames)) {
    static UNKNOWN: Frames = Frames::new();
    let mut look = |start: u64, end: u64, thread: u32| each(&Op::HostLook { start, end }, thread, &UNKNOWN);
    if BLIND.load(Ordering::Relaxed) || holds::ended() > 0 || LOST.load(Ordering::Relaxed) > 0 {
        look(0, u64::MAX, 0);
    }
    let thread = (WAITING.load(Ordering::Acquire) == 0).then(tid);
    holds::each_open(thread, |start, end| look(start, end, 0));
    let mut taken: Vec<usize> = Vec::new();
    with_entries(|entries| {
        for index in 0..ENTRIES {
            let at = entry(entries, index);
            // SAFETY: the lock is held.
            unsafe {
                if (*at).state == State::Full {
                    (*at).state = State::Busy;
                    taken.push(index);
                }
            }
        }
    });
    let mut moments: Vec<(u64, usize, usize, bool)> = Vec::new();
    let of = |index: usize| {
        // SAFETY: the entry is busy, so it is ours.
        unsafe { &*entry(QUEUE.entries.get().cast::<Entry>(), index) }
    };
    for index in &taken {
        for (number, run) in of(*index).runs[..of(*index).used].iter().enumerate() {
            moments.extend([(run.first, *index, number, false), (run.last, *index, number, true)]);
        }
    }
    moments.sort_unstable();
    for (place, &(_, index, number, touches)) in moments.iter().enumerate() {
        let run = &of(index).runs[number];
        let same = moments.get(place + 1).is_some_and(|next| (next.1, next.2) == (index, number));
        if touches || !same {
            tell(&of(index).place, run, touches, &of(index).frames, &mut each);
        }
    }
    for index in taken {
        WAITING.fetch_sub(1, Ordering::AcqRel);
        with_entries(|entries| {
            // SAFETY: the lock is held.
            unsafe { (*entry(entries, index)).state = State::Empty };
        });
    }
}

/// Hands out one run: as touches, or as a look at all of it.
fn tell(place: &Place, run: &Run, touches: bool, frames: &Frames, each: &mut impl FnMut(&Op<'_>, u32, &Frames)) {
    let (width, atomic) = match *place {
        Place { bytes: 0, instruction, .. } => {
            let access = arch::operand(instruction, is_readable_range);
            (access.bytes, access.atomic)
        }
        Place { bytes, .. } => (bytes, false),
    };
    let (func, writes) = (HostFuncId(place.func), place.writes);
    let at = |index: u32| run.start.wrapping_add_signed(run.stride * i64::from(index));
    let (first, last) = (at(0), at(run.count - 1));
    let (lowest, highest) = (first.min(last), first.max(last).saturating_add(width));
    if !touches {
        return each(&Op::HostLook { start: lowest, end: highest }, place.thread, frames);
    }
    if place.met != 0 {
        each(&Op::WaitsMet { watch: place.met }, place.thread, frames);
    }
    let region = match run.stride.unsigned_abs() {
        stride if run.count == 1 || stride <= width => Region::linear(lowest, highest - lowest),
        stride => Region::pitched(lowest, width, run.count, stride),
    };
    each(&Op::HostTouch { region, writes, atomic, polled: false, func }, place.thread, frames);
}
