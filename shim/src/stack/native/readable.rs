//! Which bytes of a stack may be read without a fault.
//!
//! Owns the bounds of the calling thread's stack and the probe for a readable page. The thread
//! library is not asked (`pthread_getattr_np` allocates, and for the main thread parses a file). A
//! stack is what is contiguously readable from the stack pointer up to the thread's control block,
//! which the thread library puts at the top of every thread's stack, or, for the main thread, up to
//! the strings that the kernel put at the top. Guard pages below every stack make sure that nothing
//! else is contiguous with it. A range proven once stays valid while its thread lives.
//!
//! A stack pointer anywhere else (coroutines, `sigaltstack`, Go) is a foreign stack: its pages are
//! probed anew in every capture, a page at a time, because it may be unmapped between two captures.

use core::cell::Cell;

pub(crate) use crate::arch::thread_pointer;
pub(crate) use signal_free::calls::is_readable;

const PAGE: u64 = 4096;
/// Most bytes of a thread's own stack that are looked at: 64 MiB.
const MOST_OWN: u64 = 64 << 20;
/// Most bytes of a foreign stack that are looked at in one capture: 1 MiB.
const MOST_FOREIGN: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct Range {
    lo: u64,
    hi: u64,
}

impl Range {
    fn holds(self, address: u64) -> bool {
        self.lo <= address && address < self.hi
    }
}

/// What is known of one thread's stacks. All zeros: nothing.
#[repr(C)]
struct StackBounds {
    /// The part of this thread's own stack known to be readable.
    own: Cell<Range>,
    /// A range found not to lead up to the thread's control block.
    foreign: Cell<Range>,
}

// Laid out at start, as what the shim keeps of a thread: `thread_local!` calls the loader for its
// address, at each capture, which touches five lines of its own. No destructor: valid until the
// thread's very end.
core::arch::global_asm!(
    ".pushsection .tbss.streamsan_stack_bounds,\"awT\",@nobits",
    ".p2align 5",
    ".globl streamsan_stack_bounds",
    ".hidden streamsan_stack_bounds",
    ".type streamsan_stack_bounds,@object",
    ".size streamsan_stack_bounds,{size}",
    "streamsan_stack_bounds:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<StackBounds>(),
);

impl StackBounds {
    /// The calling thread's.
    #[inline(always)]
    fn with<R>(work: impl FnOnce(&Self) -> R) -> R {
        let bounds = crate::arch::stack_bounds().cast::<Self>();
        // SAFETY: as large and as aligned as this type, of which zeros are valid; it lives as long
        // as its thread, which alone refers to it.
        work(unsafe { &*bounds })
    }

    fn own() -> Range {
        Self::with(|bounds| bounds.own.get())
    }

    fn set_own(range: Range) {
        Self::with(|bounds| bounds.own.set(range));
    }

    fn foreign() -> Range {
        Self::with(|bounds| bounds.foreign.get())
    }

    fn set_foreign(range: Range) {
        Self::with(|bounds| bounds.foreign.set(range));
    }
}

/// Readable bytes around one stack pointer.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    lo: u64,
    hi: u64,
    /// How far `hi` may grow, by probing.
    limit: u64,
}

impl Window {
    /// What can be read around `sp`.
    #[inline]
    pub(crate) fn around(sp: u64) -> Self {
        let own = StackBounds::own();
        if own.holds(sp) { Self { lo: own.lo, hi: own.hi, limit: own.hi } } else { Self::look(sp) }
    }

    #[cold]
    #[inline(never)]
    fn look(sp: u64) -> Self {
        let page = sp & !(PAGE - 1);
        let own = StackBounds::own();
        if own.hi == 0 {
            if !StackBounds::foreign().holds(sp) {
                for top in [thread_pointer(), kernel_strings()] {
                    if top <= sp || top - page > MOST_OWN {
                        continue;
                    }
                    let readable = readable_from(page, top);
                    if readable >= top {
                        StackBounds::set_own(Range { lo: page, hi: top });
                        return Self { lo: page, hi: top, limit: top };
                    }
                    StackBounds::set_foreign(Range { lo: page, hi: readable });
                }
            }
        } else if sp < own.lo && own.lo - page <= MOST_OWN && !StackBounds::foreign().holds(sp) {
            let readable = readable_from(page, own.lo);
            if readable >= own.lo {
                StackBounds::set_own(Range { lo: page, hi: own.hi });
                return Self { lo: page, hi: own.hi, limit: own.hi };
            }
            StackBounds::set_foreign(Range { lo: page, hi: readable });
        }
        Self { lo: page, hi: page, limit: page.saturating_add(MOST_FOREIGN) }
    }

    /// Whether `address` is in the part known to be readable.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.lo <= address && address < self.hi
    }

    /// Whether `address` may turn out to be readable.
    pub(crate) fn reaches(&self, address: u64) -> bool {
        self.lo <= address && address < self.limit
    }

    /// How many words from `address` on are known to be readable: as [`Window::read`] would read
    /// them, aligned, for as long as this capture lasts.
    #[inline]
    pub(crate) fn words_from(&self, address: u64) -> u64 {
        let is_known = self.holds(address) && address & 7 == 0;
        if is_known { (self.hi - address) / 8 } else { 0 }
    }

    /// The word at `address`, if it can be read.
    #[inline]
    pub(crate) fn read(&mut self, address: u64) -> Option<u64> {
        if address < self.lo || address.wrapping_add(8) > self.hi || address & 7 != 0 {
            self.grow(address)?;
        }
        // SAFETY: aligned, and within pages of a live stack that were found readable: the calling
        // thread's own, whose frames up to here are not going away, or pages of a foreign stack
        // probed during this very capture.
        Some(unsafe { (address as *const u64).read() })
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, address: u64) -> Option<()> {
        if address & 7 != 0 || !self.reaches(address) {
            return None;
        }
        let end = (address & !(PAGE - 1)) + PAGE;
        self.hi = self.hi.max(readable_from(self.hi, end.min(self.limit)));
        (address + 8 <= self.hi).then_some(())
    }
}

/// The first address from page `lo` on, and not above `hi`, that is not readable (or `hi`, or the
/// page end above it).
fn readable_from(lo: u64, hi: u64) -> u64 {
    let mut page = lo;
    while page < hi && is_readable(page) {
        page += PAGE;
    }
    page
}

/// Whether every byte from `start` to `end` can be read.
pub fn is_readable_range(start: u64, end: u64) -> bool {
    let first = start & !(PAGE - 1);
    end > start && readable_from(first, end) >= end
}

/// Where the kernel put the name of the executable: at the top of the main thread's stack. 0 when
/// it does not say.
fn kernel_strings() -> u64 {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_EXECFN) & !7 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_or_not() {
        let local = 5_u64;
        assert!(is_readable(&raw const local as u64));
        assert!(!is_readable(0));
        assert!(!is_readable(8));
        assert!(!is_readable(u64::MAX));
        assert!(!is_readable(0x0000_8000_0000_0000));
        // SAFETY: a fresh mapping of two pages, the second without access.
        unsafe {
            let two = libc::mmap(
                core::ptr::null_mut(),
                2 * PAGE as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(two, libc::MAP_FAILED);
            let at = two as u64;
            assert_eq!(libc::mprotect((at + PAGE) as *mut _, PAGE as usize, libc::PROT_NONE), 0);
            assert!(is_readable(at + PAGE - 8));
            assert!(!is_readable(at + PAGE));
            let mut window = Window::around(at + 16);
            assert_eq!(window.read(at + 16), Some(0));
            assert_eq!(window.read(at + PAGE - 8), Some(0));
            assert_eq!(window.read(at + PAGE - 4), None, "unaligned");
            assert_eq!(window.read(at + PAGE), None);
            // To the end of the page, and none of what is not aligned or not readable.
            assert_eq!(window.words_from(at + 16), (PAGE - 16) / 8);
            for none in [at + 20, at + PAGE, at - 8] {
                assert_eq!(window.words_from(none), 0);
            }
            libc::munmap(two, 2 * PAGE as usize);
        }
    }

    #[test]
    fn own_stack_is_found_in_every_thread() {
        fn check() {
            let local = 7_u64;
            let at = &raw const local as u64;
            let window = Window::around(at);
            assert!(window.holds(at) && window.hi == window.limit, "own stack, not a foreign one");
        }
        check();
        std::thread::Builder::new().stack_size(64 << 10).spawn(check).expect("spawn").join().expect("join");
    }

    #[test]
    fn signal_mask_and_errno_stay() {
        // SAFETY: plain calls with valid pointers.
        unsafe {
            let mut before: libc::sigset_t = core::mem::zeroed();
            let mut after: libc::sigset_t = core::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &mut before);
            *libc::__errno_location() = 77;
            is_readable(&raw const before as u64);
            is_readable(3);
            assert_eq!(*libc::__errno_location(), 77);
            libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &mut after);
            for signal in 1..32 {
                assert_eq!(libc::sigismember(&before, signal), libc::sigismember(&after, signal));
            }
        }
    }
}
