//! What a diverted function jumps to: a piece of code and a slot for each, as in a procedure
//! linkage table. The slot leads to `loading` at first, and to the simulator's function from the
//! first call on.
//!
//! A function that the simulator's runtime has not got leads to a refusal with its name.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::{self, FIRST_CALL, PIECE, PieceTargets, REFUSAL};
use crate::loading;
use crate::system::{self, EXECUTABLE, Memory, READ};
use crate::version::Version;

/// What the pieces of one runtime share. The code reaches the first two fields.
#[repr(C)]
pub(crate) struct Header {
    /// [`first_call`].
    resolver: usize,
    /// The simulator's function that refuses a call by its name.
    refuse: AtomicUsize,
    version: Version,
    code: usize,
    slots: *const AtomicUsize,
    names: *const u8,
    /// Offsets in `names`.
    starts: *const u32,
}

/// The pieces of one runtime, while they are made.
pub(crate) struct Stubs {
    memory: Memory,
    header: *mut Header,
    count: usize,
    room: usize,
    made: usize,
    used: usize,
}

const _: () = assert!(core::mem::offset_of!(Header, resolver) == 0 && core::mem::offset_of!(Header, refuse) == 8);

impl Stubs {
    /// Room for a number of functions whose names, each with a zero behind it, take so many bytes.
    /// They are jumped to from code at these addresses.
    pub(crate) fn new(version: Version, count: usize, names: usize, from: Range<usize>) -> Option<Stubs> {
        let code_len = (count * PIECE).next_multiple_of(arch::page());
        let slots = size_of::<Header>().next_multiple_of(16);
        let starts = slots + 8 * count;
        let texts = starts + 4 * count;
        let memory = Memory::near(code_len + texts + names, from, arch::REACH)?;
        let code = memory.at;
        let data = code + code_len;
        let header = Header {
            resolver: first_call as *const () as usize,
            refuse: AtomicUsize::new(0),
            version,
            code,
            slots: (data + slots) as *const AtomicUsize,
            names: (data + texts) as *const u8,
            starts: (data + starts) as *const u32,
        };
        // SAFETY: new memory, large enough, at a page's start.
        unsafe { (data as *mut Header).write(header) };
        Some(Stubs { memory, header: data as *mut Header, count, room: names, made: 0, used: 0 })
    }

    /// Makes the piece of one more function. Returns its address.
    pub(crate) fn add(&mut self, name: &[u8]) -> Option<usize> {
        if self.made == self.count || self.used + name.len() >= self.room {
            return None;
        }
        let index = self.made;
        // SAFETY: the header is ours and lives for ever; there is room for this function, as was
        // looked at above.
        unsafe {
            let header = &*self.header;
            let text = header.names.add(self.used).cast_mut();
            text.copy_from_nonoverlapping(name.as_ptr(), name.len());
            header.starts.cast_mut().add(index).write(u32::try_from(self.used).ok()?);
            let piece = header.code + index * PIECE;
            let slot = header.slots.add(index);
            (*slot).store(piece + FIRST_CALL, Ordering::Relaxed);
            let targets = PieceTargets {
                slot: slot as usize,
                header: self.header as usize,
                index: index as u32,
                name: text as usize,
            };
            (piece as *mut [u8; PIECE]).write(arch::piece(piece, &targets)?);
            self.used += name.len() + 1;
            self.made += 1;
            Some(piece)
        }
    }

    /// Makes the code executable. The memory is to be kept as long as the functions can be called.
    pub(crate) fn seal(self) -> Memory {
        // SAFETY: the pages of code, which nobody writes to any more.
        unsafe {
            let (code, len) = ((*self.header).code, self.count * PIECE);
            arch::written(code, len);
            system::protect(code, len.next_multiple_of(arch::page()), READ | EXECUTABLE);
        }
        self.memory
    }
}

/// Where a piece goes at the first call.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    arch::find_then_jump!(find)
}

/// Where a function leads from now on.
extern "C" fn find(header: &'static Header, index: usize) -> usize {
    // SAFETY: the piece of code passes its own number, below the count; names end with a zero.
    let (slot, name) = unsafe {
        let start = *header.starts.add(index) as usize;
        (&*header.slots.add(index), core::ffi::CStr::from_ptr(header.names.add(start).cast()))
    };
    let runtime = loading::runtime(header.version);
    let target = runtime.function(name.to_bytes()).unwrap_or_else(|| {
        header.refuse.store(loading::refusal(runtime), Ordering::Relaxed);
        header.code + index * PIECE + REFUSAL
    });
    slot.store(target, Ordering::Release);
    target
}
