//! Calls of the C library that hand a buffer to the kernel, which would answer `EFAULT` where the CPU has no access.
//!
//! Each wrapper makes the buffer's pages accessible first, when any page is protected at all, and jumps to the real function: nothing of
//! ours is on the stack when the call blocks or its thread is cancelled. What goes past the C library (`io_uring`, raw system calls) is
//! not helped.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pages::{self, PROTECTED};
use crate::intercept::elf;

/// Where a call's bytes are told, and whether the kernel writes them (the CPU then does).
#[derive(Clone, Copy)]
enum Buffer {
    /// Second argument, third: how many.
    Plain,
    /// First argument; second times third: how many.
    Items,
    /// Second argument: a vector; third: of how many.
    Vector,
    /// Second argument: a message with a vector.
    Message,
}

fn touch(start: *const c_void, len: usize, writes: bool) {
    let start = start as u64;
    if len > 0 {
        pages::touched(start, start.saturating_add(len as u64), writes, false, |_| false);
    }
}

#[cold]
fn make_accessible(kind: Buffer, writes: bool, args: [usize; 3]) {
    /// More than the kernel takes.
    const MOST: usize = 1024;
    // What is passed may be wrong, and then the kernel says so: it is read only where it can be.
    let readable = |at: usize, len: usize| crate::stack::native::is_readable_range(at as u64, (at + len) as u64);
    let vector = |at: usize, count: usize| {
        if count == 0 || count > MOST || !readable(at, count * size_of::<libc::iovec>()) {
            return;
        }
        // SAFETY: just found readable.
        let pieces = unsafe { std::slice::from_raw_parts(at as *const libc::iovec, count) };
        pieces.iter().for_each(|piece| touch(piece.iov_base, piece.iov_len, writes));
    };
    match kind {
        Buffer::Plain => touch(args[1] as *const c_void, args[2], writes),
        Buffer::Items => touch(args[0] as *const c_void, args[1].saturating_mul(args[2]), writes),
        Buffer::Vector => vector(args[1], args[2]),
        Buffer::Message => {
            if args[1].is_multiple_of(8) && readable(args[1], size_of::<libc::msghdr>()) {
                // SAFETY: just found readable, and aligned.
                let message = unsafe { &*(args[1] as *const libc::msghdr) };
                vector(message.msg_iov as usize, message.msg_iovlen);
            }
        }
    }
}

/// Makes the buffer accessible when need be; answers where the real function is.
fn prepare(name: &CStr, known: &AtomicUsize, kind: Buffer, writes: bool, args: [usize; 3]) -> usize {
    extern "C" fn missing() -> isize {
        // SAFETY: errno of this thread always exists.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        -1
    }
    if PROTECTED.load(Ordering::Acquire) != 0 {
        make_accessible(kind, writes, args);
    }
    match known.load(Ordering::Relaxed) {
        0 => {
            let found = match elf::next_function(name) {
                0 => missing as *const () as usize,
                found => found,
            };
            known.store(found, Ordering::Relaxed);
            found
        }
        found => found,
    }
}

macro_rules! calls {
    ($($name:ident $text:literal $kind:ident $writes:literal;)*) => {$(
        /// The program's function of this name.
        ///
        /// # Safety
        /// As for that function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn before(a: usize, b: usize, c: usize) -> usize {
                static KNOWN: AtomicUsize = AtomicUsize::new(0);
                prepare($text, &KNOWN, Buffer::$kind, $writes, [a, b, c])
            }
            // The stack of a touch begins at this frame's caller: where that is, the directives say.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                ".cfi_def_cfa_offset 64",
                "call {before}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_def_cfa_offset 8",
                "jmp rax",
                ".cfi_endproc",
                before = sym before,
            )
        }
    )*};
}

calls! {
    read c"read" Plain true;
    pread c"pread" Plain true;
    pread64 c"pread64" Plain true;
    recv c"recv" Plain true;
    recvfrom c"recvfrom" Plain true;
    write c"write" Plain false;
    pwrite c"pwrite" Plain false;
    pwrite64 c"pwrite64" Plain false;
    send c"send" Plain false;
    sendto c"sendto" Plain false;
    readv c"readv" Vector true;
    preadv c"preadv" Vector true;
    writev c"writev" Vector false;
    pwritev c"pwritev" Vector false;
    recvmsg c"recvmsg" Message true;
    sendmsg c"sendmsg" Message false;
    fread c"fread" Items true;
    fwrite c"fwrite" Items false;
}
