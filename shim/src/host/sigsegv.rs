//! The handler of `SIGSEGV` that makes protected pages accessible again, in front of the program's
//! own.
//!
//! Owns the handler and the program's view of it. From the first protected page on, `sigaction` and
//! `signal` answer and store the program's handler here, and that handler is called for every fault
//! that is not ours, as it would have been. Does not know what is protected: see
//! [`super::page_protection`].

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::held_touches;
use super::page_protection::{self, TouchOutcome};
use crate::arch;
use crate::real::{driver_mapping, elf};
use crate::runtime::options;
use crate::stack::native::is_readable_range;

type Sigaction = unsafe extern "C" fn(i32, *const libc::sigaction, *mut libc::sigaction) -> i32;
type Signal = unsafe extern "C" fn(i32, libc::sighandler_t) -> libc::sighandler_t;

/// What the program has set for `SIGSEGV`.
struct Theirs(UnsafeCell<[Option<libc::sigaction>; 2]>);

// SAFETY: used with LOCKED held.
unsafe impl Sync for Theirs {}

static THEIRS: Theirs = Theirs(UnsafeCell::new([None; 2]));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// By signal, as `THEIRS` is.
static INSTALLED: [AtomicU32; 2] = [const { AtomicU32::new(NO) }; 2];
const NO: u32 = 0;
const YES: u32 = 1;
const GIVEN_UP: u32 = 2;

thread_local! {
    /// The last address that faulted again, and how often.
    static AGAIN: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// The number of a signal that may have a handler of ours: `SIGSEGV`, and `SIGTRAP` for single
/// steps.
fn number_of(signal: i32) -> Option<usize> {
    [libc::SIGSEGV, libc::SIGTRAP].iter().position(|known| *known == signal)
}

fn is_ours(signal: i32) -> Option<usize> {
    number_of(signal).filter(|number| INSTALLED[*number].load(Ordering::Acquire) == YES)
}

fn with_theirs<T>(number: usize, run: impl FnOnce(&mut Option<libc::sigaction>) -> T) -> T {
    let mut before = 0;
    page_protection::mask(libc::SIG_SETMASK, Some(!0), Some(&mut before));
    while LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let result = run(unsafe { &mut (*THEIRS.0.get())[number] });
    LOCKED.store(false, Ordering::Release);
    page_protection::mask(libc::SIG_SETMASK, Some(before), None);
    result
}

fn real(name: &std::ffi::CStr, known: &AtomicUsize) -> usize {
    let address = known.load(Ordering::Relaxed);
    if address != 0 {
        return address;
    }
    let found = elf::next_function(name);
    known.store(found, Ordering::Relaxed);
    found
}

fn real_sigaction(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let address = real(c"sigaction", &KNOWN);
    if address == 0 {
        return -1;
    }
    // SAFETY: the C library's function of this name.
    let call: Sigaction = unsafe { std::mem::transmute(address) };
    // SAFETY: forwarded from the caller.
    unsafe { call(signal, new, old) }
}

fn zeroed() -> libc::sigaction {
    // SAFETY: all-zero is a valid value: the default action.
    unsafe { std::mem::zeroed() }
}

/// Sees to it that faults come here. False: they do not, so nothing may be protected.
pub fn install() -> bool {
    install_for(libc::SIGSEGV, handler as *const () as usize)
}

/// Sees to it that a signal, `SIGSEGV` or `SIGTRAP`, comes to this handler. False: it does not.
pub(super) fn install_for(signal: i32, handler: usize) -> bool {
    let Some(number) = number_of(signal) else { return false };
    let installed = &INSTALLED[number];
    match installed.load(Ordering::Acquire) {
        GIVEN_UP => return false,
        YES => {
            let mut now = zeroed();
            let ours = real_sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == handler;
            if !ours {
                // Code that bypasses the C library has set a handler: it must have its way.
                installed.store(GIVEN_UP, Ordering::Release);
            }
            return ours;
        }
        _ => {}
    }
    with_theirs(number, |theirs| {
        if installed.load(Ordering::Acquire) != NO {
            return installed.load(Ordering::Acquire) == YES;
        }
        let (mut ours, mut before) = (zeroed(), zeroed());
        ours.sa_sigaction = handler;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: a valid set.
        unsafe { libc::sigfillset(&mut ours.sa_mask) };
        if real_sigaction(signal, &ours, &mut before) != 0 {
            installed.store(GIVEN_UP, Ordering::Release);
            return false;
        }
        *theirs = Some(before);
        installed.store(YES, Ordering::Release);
        true
    })
}

unsafe extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    const ACCESS_DENIED: i32 = 2;
    // SAFETY: errno of this thread always exists; the kernel passes valid structures.
    let (errno, code, address) = unsafe { (*libc::__errno_location(), (*info).si_code, (*info).si_addr() as u64) };
    if code == ACCESS_DENIED {
        // SAFETY: as above.
        let interrupted = unsafe { &*context.cast::<libc::ucontext_t>() };
        let (writes, at) = (arch::is_store(interrupted, is_readable_range), arch::pc(interrupted));
        let is_api = |frames: &crate::stack::frames::Frames| {
            driver_mapping::holds(at) || frames.native().iter().take(4).any(|frame| driver_mapping::holds(*frame))
        };
        let mut outcome = page_protection::touched(address, address + 1, writes, true, is_api);
        if outcome == TouchOutcome::Foreign {
            // SAFETY: this is the handler.
            outcome = unsafe { held_touches::fault(address, writes, context) };
        }
        let mended = match outcome {
            TouchOutcome::Mended => true,
            TouchOutcome::Again => {
                AGAIN.try_with(|again| {
                    let (last, count) = again.get();
                    let count = if last == address { count + 1 } else { 0 };
                    again.set((address, count));
                    count < 3
                }) == Ok(true)
            }
            TouchOutcome::Foreign => false,
        };
        if mended {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    // SAFETY: as above.
    unsafe { theirs(signal, info, context, code) };
}

/// What would have happened without us.
///
/// # Safety
/// All but the signal's code is what the kernel passed to the handler, and so is that.
pub(super) unsafe fn theirs(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void, code: i32) {
    let Some(number) = number_of(signal) else { return };
    let action = with_theirs(number, |theirs| {
        let action = theirs.unwrap_or_else(zeroed);
        if action.sa_flags & libc::SA_RESETHAND != 0 {
            *theirs = Some(zeroed());
        }
        action
    });
    let sent = code <= 0;
    match action.sa_sigaction {
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            real_sigaction(signal, &zeroed(), std::ptr::null_mut());
            INSTALLED[number].store(GIVEN_UP, Ordering::Release);
            // A trap does not happen again by itself, a fault does.
            let sent = sent || signal == libc::SIGTRAP;
            // A fault happens again when we return; a signal that was sent is sent again.
            if sent {
                // SAFETY: plain system calls.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal) };
            }
        }
        function => {
            // SAFETY: a signal set begins with the 64 bits that the kernel knows, and the kernel
            // passes a valid context.
            let (own, interrupted) = unsafe {
                let interrupted = &(*context.cast::<libc::ucontext_t>()).uc_sigmask;
                ((&raw const action.sa_mask).cast::<u64>().read(), std::ptr::from_ref(interrupted).cast::<u64>().read())
            };
            let this = if action.sa_flags & libc::SA_NODEFER != 0 { 0 } else { 1 << (signal - 1) };
            page_protection::mask(libc::SIG_SETMASK, Some(own | interrupted | this), None);
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the program's handler of this kind.
                let call: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(function) };
                // SAFETY: called as the kernel would.
                unsafe { call(signal, info, context) };
            } else {
                // SAFETY: as above.
                let call: unsafe extern "C" fn(i32) = unsafe { std::mem::transmute(function) };
                // SAFETY: as above.
                unsafe { call(signal) };
            }
        }
    }
}

/// Whether pages may become protected in this process, so that `SIGSEGV` must stay
/// deliverable.
pub(super) fn is_wanted() -> bool {
    static WANTED: AtomicU32 = AtomicU32::new(0);
    match WANTED.load(Ordering::Relaxed) {
        0 => {
            let wanted = options::is_on(::options::Id::HostAccesses);
            WANTED.store(1 + u32::from(wanted), Ordering::Relaxed);
            wanted
        }
        known => known == 2,
    }
}

const SEGV: u64 = 1 << (libc::SIGSEGV - 1);

/// The program's `sigaction`.
///
/// # Safety
/// As for `sigaction`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: i32, new: *const libc::sigaction, old: *mut libc::sigaction) -> i32 {
    if !is_wanted() {
        return real_sigaction(signal, new, old);
    }
    let Some(number) = is_ours(signal) else {
        // A handler during which SIGSEGV is blocked could not touch a protected page.
        // SAFETY: new is null or valid; the set begins with the kernel's 64 bits.
        let open = unsafe { new.as_ref() }.map(|new| {
            let mut open = *new;
            let set = (&raw mut open.sa_mask).cast::<u64>();
            // SAFETY: as above.
            unsafe { *set &= !SEGV };
            open
        });
        return real_sigaction(signal, open.as_ref().map_or(std::ptr::null(), std::ptr::from_ref), old);
    };
    with_theirs(number, |theirs| {
        let before = theirs.unwrap_or_else(zeroed);
        // SAFETY: sigaction's contract: each is null or valid.
        unsafe {
            if !new.is_null() {
                *theirs = Some(*new);
            }
            if !old.is_null() {
                *old = before;
            }
        }
    });
    0
}

/// The program's `signal`.
///
/// # Safety
/// As for `signal`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn signal(number: i32, handler: libc::sighandler_t) -> libc::sighandler_t {
    if is_ours(number).is_none() {
        static KNOWN: AtomicUsize = AtomicUsize::new(0);
        let address = real(c"signal", &KNOWN);
        if address == 0 {
            return libc::SIG_ERR;
        }
        // SAFETY: the C library's function of this name.
        let call: Signal = unsafe { std::mem::transmute(address) };
        // SAFETY: forwarded from the caller.
        return unsafe { call(number, handler) };
    }
    let (mut new, mut old) = (zeroed(), zeroed());
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: both are valid.
    if unsafe { sigaction(number, &new, &mut old) } == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// As the C library's function, but `SIGSEGV` stays deliverable when pages may be protected.
unsafe fn change_mask(
    name: &std::ffi::CStr,
    known: &AtomicUsize,
    how: i32,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> i32 {
    type Mask = unsafe extern "C" fn(i32, *const libc::sigset_t, *mut libc::sigset_t) -> i32;
    let address = real(name, known);
    if address == 0 {
        return libc::ENOSYS;
    }
    // SAFETY: the C library's function of this name.
    let call: Mask = unsafe { std::mem::transmute(address) };
    if !is_wanted() {
        // SAFETY: forwarded from the caller.
        return unsafe { call(how, set, old) };
    }
    // The kernel may not write to a protected page: the old mask gets there by a store of ours.
    // SAFETY: all-zero is a valid value; the set begins with the kernel's 64 bits.
    let (mut open, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: set is null or valid.
    let new = unsafe { set.as_ref() }.map_or(std::ptr::null(), |set| {
        open = *set;
        if how != libc::SIG_UNBLOCK {
            // SAFETY: as above.
            unsafe { *(&raw mut open).cast::<u64>() &= !SEGV };
        }
        &raw const open
    });
    // SAFETY: as the caller has it, with sets of ours.
    let result = unsafe { call(how, new, &mut before) };
    if result == 0 && !old.is_null() {
        // SAFETY: old is valid; as above.
        unsafe { old.cast::<u64>().write_unaligned((&raw const before).cast::<u64>().read()) };
    }
    result
}

/// The program's `pthread_sigmask`.
///
/// # Safety
/// As for `pthread_sigmask`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_sigmask(how: i32, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: forwarded from the caller.
    unsafe { change_mask(c"pthread_sigmask", &KNOWN, how, set, old) }
}

/// The program's `sigprocmask`.
///
/// # Safety
/// As for `sigprocmask`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sigprocmask(how: i32, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> i32 {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: forwarded from the caller.
    unsafe { change_mask(c"sigprocmask", &KNOWN, how, set, old) }
}
