//! When files are looked at: once all files of the program are mapped and before any of its code
//! runs, and again whenever `dlopen` has mapped more.
//!
//! The first moment is an indirect function (`STT_GNU_IFUNC`) of this library. The dynamic linker
//! asks it for its address while it relocates, which is after mapping and before all constructors.
//! A constructor would be too late: nothing says that a preloaded library's comes first.
//!
//! For the others there is the function that the dynamic linker calls for debuggers
//! (`r_debug.r_brk` of link.h): it does nothing, and is called between mapping and relocating. It
//! gets a jump to here. Where it does not look as expected it is left alone, and libraries that are
//! loaded later are not diverted: the simulated driver then says that their runtime cannot run.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch;
use crate::objects::loaded::{self, LinkMap};
use crate::system::{self, EXECUTABLE, Memory, READ, WRITABLE};

/// Files that are remembered. More are looked at again each time, to no harm.
const MOST: usize = 4096;

/// A file that was looked at.
#[derive(Clone, Copy)]
struct Seen {
    map: *const LinkMap,
    address: usize,
    /// What its jumps need.
    memory: Memory,
}

/// The files of the last time, in the dynamic linker's order. It adds new ones at the end.
struct Files {
    seen: [Seen; MOST],
    count: usize,
}

/// Used under the dynamic linker's lock, or before there are threads.
static mut FILES: Files =
    Files { seen: [const { Seen { map: core::ptr::null(), address: 0, memory: Memory::NONE } }; MOST], count: 0 };

/// The first moment.
#[cfg(freestanding)]
mod first {
    core::arch::global_asm!(
        ".text",
        ".globl streamsan_divert_first_moment",
        ".hidden streamsan_divert_first_moment",
        ".type streamsan_divert_first_moment, %gnu_indirect_function",
        "streamsan_divert_first_moment:",
        crate::arch::jump_to!(),
        begin = sym begin,
    );

    unsafe extern "C" {
        fn streamsan_divert_first_moment();
    }

    /// What has to be relocated: the dynamic linker fills it with the answer of [`begin`].
    // SAFETY: a name of our own.
    #[unsafe(no_mangle)]
    pub static streamsan_divert: unsafe extern "C" fn() = streamsan_divert_first_moment;

    extern "C" fn begin() -> usize {
        super::look();
        super::watch();
        super::changed as *const () as usize
    }
}

/// Called by the dynamic linker whenever its list has changed.
extern "C" fn changed() {
    if loaded::debug().is_consistent() {
        look();
    }
}

impl Seen {
    fn is(&self, map: &LinkMap) -> bool {
        core::ptr::eq(self.map, map) && self.address == map.address()
    }
}

/// Diverts what is new, and forgets what is gone.
fn look() {
    let files = &raw mut FILES;
    // SAFETY: one at a time, see above.
    let files = unsafe { &mut *files };
    let (mut kept, mut next) = (0, 0);
    for map in loaded::all() {
        let mut known = None;
        while known.is_none() && next < files.count {
            let Some(old) = files.seen.get(next).copied() else { break };
            next += 1;
            if old.is(map) {
                known = Some(old);
            } else if !loaded::all().any(|map| old.is(map)) {
                // SAFETY: the file is gone, so nobody calls its functions.
                unsafe { old.memory.free() };
            }
        }
        let look_at =
            || Seen { map, address: map.address(), memory: crate::jumps::divert(map).unwrap_or(Memory::NONE) };
        if let Some(place) = files.seen.get_mut(kept) {
            *place = known.unwrap_or_else(look_at);
            kept += 1;
        }
    }
    // Behind the last one there is nothing left but what is gone.
    for old in files.seen.get(next..files.count).unwrap_or_default() {
        // SAFETY: as above.
        unsafe { old.memory.free() };
    }
    files.count = kept;
}

/// Has the dynamic linker call [`changed`].
fn watch() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let function = loaded::debug().breakpoint;
    if DONE.swap(true, Ordering::Relaxed) || function == 0 {
        return;
    }
    // SAFETY: the dynamic linker's own function.
    let Some((from, jump)) = (unsafe { arch::redirection(function, changed as *const () as usize) }) else { return };
    let page = from - from % arch::page();
    // SAFETY: the page of that function. This is the only thread, and it is not in that page: the
    // dynamic linker has called this library through another function, so it must stay executable.
    unsafe {
        if system::protect(page, arch::page(), READ | WRITABLE | EXECUTABLE) {
            core::ptr::copy_nonoverlapping(jump.as_ptr(), from as *mut u8, jump.len());
            arch::written(from, jump.len());
            system::protect(page, arch::page(), READ | EXECUTABLE);
        }
    }
}
