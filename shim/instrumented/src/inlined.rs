//! What code that asks in line knows: the bytes of the granules and the gate.
//!
//! `include/streamsan_inline.s` puts the question into instrumented code, in place of the call.
//! Owns the room for the bytes, which must be there before the first such code runs, with the shim
//! or without it. What is in it is the shim's.
//!
//! Code finds both by symbols of indirect functions: the loader calls the function once for each
//! object, and what it answers is in the object's global offset table from then on. So the question
//! needs one load to find the bytes. `STT_GNU_IFUNC`: System V ABI, x86-64 supplement, 4.4.1. Such
//! a function may run before its library is relocated, so both are machine code.

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::arch;
use crate::gate::GATE;

/// Bytes of the room: one for each granule of 64 KiB.
const ROOM: usize = 1 << (arch::ADDRESSES - 16);

/// Makes the room, if there is none. Without it the shim makes its own.
pub(crate) fn make_room() {
    if !GATE.room.load(Ordering::Acquire).is_null() {
        return;
    }
    // The shim makes writable what it needs: `mlockall` gives memory to all that is.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, zeros; errno is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let at = libc::mmap(null_mut(), ROOM, libc::PROT_READ, flags, -1, 0);
        if at != libc::MAP_FAILED {
            libc::madvise(at, ROOM, libc::MADV_DONTDUMP);
            let old = GATE.room.compare_exchange(null_mut(), at.cast(), Ordering::AcqRel, Ordering::Acquire);
            if old.is_err() {
                libc::munmap(at, ROOM);
            }
        }
        *libc::__errno_location() = errno;
    }
}

arch::inline_symbols!(GATE, ROOM);
