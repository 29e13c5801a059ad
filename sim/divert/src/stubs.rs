//! What a diverted function jumps to: a piece of code and a slot for each, as in a procedure
//! linkage table. The slot leads to `loading` at first, and to the simulator's function from the
//! first call on.
//!
//! A function that the simulator's runtime has not got leads to a refusal with its name.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::loading;
use crate::system::{self, EXECUTABLE, Memory, PAGE, READ};
use crate::version::Version;

/// Bytes of code for each function.
const PIECE: usize = 48;
/// Where in it the first call goes, and where a refusal.
const FIRST_CALL: usize = 6;
const REFUSAL: usize = 24;

/// What the pieces of one runtime share. The code reaches the first two fields.
#[repr(C)]
pub struct Header {
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
pub struct Stubs {
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
    pub fn new(version: Version, count: usize, names: usize) -> Option<Stubs> {
        let code_len = (count * PIECE).next_multiple_of(PAGE);
        let slots = size_of::<Header>().next_multiple_of(16);
        let starts = slots + 8 * count;
        let texts = starts + 4 * count;
        let memory = Memory::new(code_len + texts + names)?;
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
    pub fn add(&mut self, name: &[u8]) -> Option<usize> {
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
            write_piece(piece, slot as usize, self.header as usize, index as u32, text as usize);
            self.used += name.len() + 1;
            self.made += 1;
            Some(piece)
        }
    }

    /// Makes the code executable. The memory is to be kept as long as the functions can be called.
    pub fn seal(self) -> Memory {
        // SAFETY: the pages of code, which nobody writes to any more.
        unsafe { system::protect((*self.header).code, (self.count * PIECE).next_multiple_of(PAGE), READ | EXECUTABLE) };
        self.memory
    }
}

/// Writes the piece of one function.
///
/// # Safety
/// `at` has room for a piece, and everything lies within two gigabytes.
unsafe fn write_piece(at: usize, slot: usize, header: usize, index: u32, name: usize) {
    let mut code = [0xcc_u8; PIECE];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        for byte in bytes {
            if let Some(place) = code.get_mut(len) {
                *place = *byte;
            }
            len += 1;
        }
    };
    // The distance from the end of an instruction whose operand comes last.
    let to = |target: usize, end: usize| (target.wrapping_sub(at + end) as u32).to_le_bytes();
    put(&[0xff, 0x25]); // jmp *slot
    put(&to(slot, FIRST_CALL));
    put(&[0x4c, 0x8d, 0x1d]); // lea header, %r11
    put(&to(header, 13));
    put(&[0x68]); // push index
    put(&index.to_le_bytes());
    put(&[0xff, 0x25]); // jmp *resolver
    put(&to(header, REFUSAL));
    put(&[0x48, 0x8d, 0x3d]); // lea name, %rdi
    put(&to(name, 31));
    put(&[0xff, 0x25]); // jmp *refuse
    put(&to(header + 8, 37));
    // SAFETY: the caller's promise.
    unsafe { (at as *mut [u8; PIECE]).write(code) };
}

/// Finds the function that is called, and goes there with all arguments as they were. `%r11` is the
/// header, the function's number lies on the stack.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    naked_asm!(
        "push rax", "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
        "sub rsp, 136",
        "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "mov rsi, [rsp + 192]",
        "call {find}",
        "mov r11, rax",
        "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
        "add rsp, 136",
        "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi", "pop rax",
        "add rsp, 8",
        "jmp r11",
        find = sym find,
    )
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
