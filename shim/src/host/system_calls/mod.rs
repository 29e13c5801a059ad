//! Calls of the C library that hand a buffer to the kernel, which would answer `EFAULT` where the
//! CPU has no access.
//!
//! Owns the wrappers of functions with buffers. Each makes the buffer's pages accessible first,
//! when any page is protected or may be before the call is over, and jumps to the real function:
//! nothing of ours is on the stack when the call blocks or its thread is cancelled. Does not cover
//! what bypasses the C library (`io_uring`, raw system calls).
//!
//! [`structures`], [`paths`], [`queues`] and [`settings`] have the functions that pass structures,
//! paths and lists, [`choices`] those with commands, [`mappings`] those after which pages belong to
//! the program for good: it changes their mapping, has a stack there, or the C library keeps its
//! own state there.

pub mod choices;
pub mod mappings;
pub mod opening;
pub mod paths;
pub mod pieces;
pub mod queues;
pub mod settings;
pub mod structures;

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::opening::{open_pages, readable, touch};
use self::pieces::Piece;
use super::page_protection::PROTECTED;
use super::{in_place, pinned_bounds, sigsegv};
use crate::real::elf;

/// Which arguments of a call name its bytes.
#[derive(Clone, Copy)]
enum Buffer {
    /// Second argument, third: how many.
    Plain,
    /// First argument, second: how many.
    First,
    /// First argument; second times third: how many.
    Items,
    /// First argument; third times fourth: how many. (The second says how large the compiler knows
    /// the buffer to be.)
    CheckedItems,
    /// Second argument: a vector; third: of how many.
    Vector,
    /// As [`Buffer::Vector`]; fourth argument: a vector in the process that the first one names;
    /// fifth: of how many.
    Vectors,
    /// Second argument: a message with a vector.
    Message,
    /// Second argument: messages; third: how many; fifth: until when, if `true`.
    Messages,
    /// First argument: the number of a system call; what it means decides about the others.
    Number,
    /// What some arguments point to.
    Pieces(&'static [Piece]),
    /// What the arguments point to that there are, as one of them decides.
    Chosen(fn(&[usize; 6]) -> &'static [Piece]),
    /// As [`Buffer::Plain`], and what more arguments point to.
    PlainAnd(&'static [Piece]),
    /// Which pages the program takes for itself.
    Taken(fn([usize; 6])),
}

/// Opens the pages of bytes that a library is about to use for the program, which has said so by
/// an op of its own: the calling thread counts as inside of that library.
pub fn open_for_transport(start: u64, end: u64) {
    if PROTECTED.load(Ordering::Acquire) != 0 {
        touch(start as *const std::ffi::c_void, end.saturating_sub(start) as usize, true);
    }
}

#[cold]
fn make_accessible(kind: Buffer, writes: bool, args: [usize; 6]) {
    /// More than the kernel takes.
    const MOST: usize = 1024;
    // What is passed may be wrong, and then the kernel says so: it is read only where it can be.
    let readable = |at: usize, len: usize| at.is_multiple_of(8) && readable(at, len);
    let vector_of = |at: usize, count: usize, writes: bool| {
        if count == 0 || count > MOST || !readable(at, count * size_of::<libc::iovec>()) {
            return;
        }
        // SAFETY: just found readable and aligned.
        let pieces = unsafe { std::slice::from_raw_parts(at as *const libc::iovec, count) };
        pieces.iter().for_each(|piece| touch(piece.iov_base, piece.iov_len, writes));
    };
    let vector = |at: usize, count: usize| vector_of(at, count, writes);
    let message = |at: usize| {
        if readable(at, size_of::<libc::msghdr>()) {
            // SAFETY: just found readable and aligned.
            let message = unsafe { &*(at as *const libc::msghdr) };
            open_pages(message.msg_name as u64, message.msg_namelen.into());
            open_pages(message.msg_control as u64, message.msg_controllen as u64);
            vector(message.msg_iov as usize, message.msg_iovlen);
        }
    };
    match kind {
        Buffer::Plain => touch(args[1] as *const std::ffi::c_void, args[2], writes),
        Buffer::First => touch(args[0] as *const std::ffi::c_void, args[1], writes),
        Buffer::Items => touch(args[0] as *const std::ffi::c_void, args[1].saturating_mul(args[2]), writes),
        Buffer::CheckedItems => touch(args[0] as *const std::ffi::c_void, args[2].saturating_mul(args[3]), writes),
        Buffer::Vector => vector(args[1], args[2]),
        Buffer::Vectors => {
            vector(args[1], args[2]);
            open_pages(args[3] as u64, args[4].min(MOST) as u64 * size_of::<libc::iovec>() as u64);
            if args[0] == std::process::id() as usize {
                // What is written here is read there.
                vector_of(args[3], args[4], !writes);
            }
        }
        Buffer::Message => message(args[1]),
        Buffer::Messages => {
            if writes {
                open_pages(args[4] as u64, size_of::<libc::timespec>() as u64);
            }
            (0..args[2].min(MOST)).for_each(|i| message(args[1].saturating_add(i * size_of::<libc::mmsghdr>())));
        }
        Buffer::Number => {
            let rest = [args[1], args[2], args[3], args[4], args[5], 0];
            let (kind, writes) = match args[0] as i64 {
                libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => (Buffer::Plain, true),
                libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => (Buffer::Plain, false),
                libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => (Buffer::Vector, true),
                libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => (Buffer::Vector, false),
                libc::SYS_recvmsg => (Buffer::Message, true),
                libc::SYS_sendmsg => (Buffer::Message, false),
                libc::SYS_getrandom => (Buffer::First, true),
                number => (Buffer::Pieces(choices::by_number(number, &rest)), true),
            };
            make_accessible(kind, writes, rest);
        }
        Buffer::Pieces(pieces) => pieces.iter().for_each(|piece| piece.open(&args)),
        Buffer::Chosen(choose) => choose(&args).iter().for_each(|piece| piece.open(&args)),
        Buffer::PlainAnd(pieces) => {
            make_accessible(Buffer::Plain, writes, args);
            make_accessible(Buffer::Pieces(pieces), writes, args);
        }
        Buffer::Taken(take) => take(args),
    }
}

/// Makes the buffer accessible when need be; answers where the real function is.
fn prepare(name: &CStr, known: &AtomicUsize, kind: Buffer, writes: bool, args: [usize; 6]) -> usize {
    extern "C" fn missing() -> isize {
        // SAFETY: errno of this thread always exists.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        -1
    }
    // What is taken now is not protected later either.
    let later = || matches!(kind, Buffer::Taken(_)) && !pinned_bounds::are_empty() && sigsegv::is_wanted();
    if PROTECTED.load(Ordering::Acquire) != 0 || in_place::exists() || later() {
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
    ($($name:ident $text:literal $kind:ident $(($of:expr))? $writes:literal;)*) => {$(
        /// The program's function of this name.
        ///
        /// # Safety
        /// As for that function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn before(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {
                static KNOWN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
                let kind = $crate::host::system_calls::Buffer::$kind $(($of))?;
                $crate::host::system_calls::prepare($text, &KNOWN, kind, $writes, [a, b, c, d, e, f])
            }
            $crate::arch::tell_then_jump!(before)
        }
    )*};
}
use calls;

macro_rules! passing {
    ($($name:ident $text:literal [$($piece:expr),* $(,)?];)*) => {
        calls! { $($name $text Pieces(const { &[$($piece),*] }) true;)* }
    };
}
use passing;

// With `_FORTIFY_SOURCE`, as Ubuntu's compilers have it by default, programs call the names that
// end in `_chk`.
calls! {
    read c"read" Plain true;
    __read c"__read" Plain true;
    __read_chk c"__read_chk" Plain true;
    pread c"pread" Plain true;
    __pread_chk c"__pread_chk" Plain true;
    pread64 c"pread64" Plain true;
    __pread64 c"__pread64" Plain true;
    __pread64_chk c"__pread64_chk" Plain true;
    recv c"recv" Plain true;
    __recv_chk c"__recv_chk" Plain true;
    recvfrom c"recvfrom" PlainAnd(pieces::PEER) true;
    __recvfrom_chk c"__recvfrom_chk" Plain true;
    write c"write" Plain false;
    __write c"__write" Plain false;
    pwrite c"pwrite" Plain false;
    pwrite64 c"pwrite64" Plain false;
    __pwrite64 c"__pwrite64" Plain false;
    send c"send" Plain false;
    __send c"__send" Plain false;
    sendto c"sendto" PlainAnd(pieces::DESTINATION) false;
    readv c"readv" Vector true;
    preadv c"preadv" Vector true;
    preadv64 c"preadv64" Vector true;
    preadv2 c"preadv2" Vector true;
    preadv64v2 c"preadv64v2" Vector true;
    process_vm_readv c"process_vm_readv" Vectors true;
    vmsplice c"vmsplice" Vector false;
    writev c"writev" Vector false;
    pwritev c"pwritev" Vector false;
    pwritev64 c"pwritev64" Vector false;
    pwritev2 c"pwritev2" Vector false;
    pwritev64v2 c"pwritev64v2" Vector false;
    process_vm_writev c"process_vm_writev" Vectors false;
    recvmsg c"recvmsg" Message true;
    recvmmsg c"recvmmsg" Messages true;
    sendmsg c"sendmsg" Message false;
    sendmmsg c"sendmmsg" Messages false;
    fread c"fread" Items true;
    fread_unlocked c"fread_unlocked" Items true;
    __fread_chk c"__fread_chk" CheckedItems true;
    __fread_unlocked_chk c"__fread_unlocked_chk" CheckedItems true;
    fwrite c"fwrite" Items false;
    fwrite_unlocked c"fwrite_unlocked" Items false;
    getrandom c"getrandom" First true;
    syscall c"syscall" Number false;
}
