//! Functions of the C library after which pages belong to the program: it changes their mapping or
//! protection, a stack lies there, or the C library keeps there what it passes to the kernel
//! unasked.
//!
//! Owns which bytes these are. Such pages are left to the program (`crate::host::unwatched`) before
//! the function is called; those of calls that only need the pages to be accessible are opened.

use super::calls;
use super::opening::{let_go, open_pages, readable};

fn take(start: usize, len: usize) {
    let_go(start as u64, (start as u64).saturating_add(len as u64));
}

fn first(args: [usize; 6]) {
    take(args[0], args[1]);
}

/// `mmap` puts a mapping in the place of what was there if it is told to.
fn map(args: [usize; 6]) {
    if args[3] as i32 & libc::MAP_FIXED != 0 {
        take(args[0], args[1]);
    }
}

fn remap(args: [usize; 6]) {
    take(args[0], args[1].max(args[2]));
    if args[3] as i32 & libc::MREMAP_FIXED != 0 {
        take(args[4], args[2]);
    }
}

/// `madvise`, `mlock` and their like work on pages that are accessible.
fn open_first(args: [usize; 6]) {
    open_pages(args[0] as u64, args[1] as u64);
}

/// `mincore` writes a byte for each page.
fn resident(args: [usize; 6]) {
    open_pages(args[2] as u64, args[1].div_ceil(crate::arch::page_size() as usize) as u64);
}

/// A signal stack: the kernel writes there before any handler runs.
fn signal_stack(args: [usize; 6]) {
    open_pages(args[1] as u64, size_of::<libc::stack_t>() as u64);
    if args[0] == 0 || !readable(args[0], size_of::<libc::stack_t>()) {
        return;
    }
    // SAFETY: just found readable; the program says that it is such a structure.
    let stack = unsafe { (args[0] as *const libc::stack_t).read_unaligned() };
    take(stack.ss_sp as usize, stack.ss_size);
}

/// A thread's stack. The kernel also writes to it for the C library when the thread runs and when
/// it ends.
fn thread_stack(args: [usize; 6]) {
    let (mut at, mut size) = (std::ptr::null_mut(), 0);
    let attributes = args[1] as *const libc::pthread_attr_t;
    // SAFETY: attributes are null or the program's; the others are valid.
    if !attributes.is_null() && unsafe { libc::pthread_attr_getstack(attributes, &mut at, &mut size) } == 0 {
        take(at as usize, size);
    }
}

fn context_stack(args: [usize; 6]) {
    // SAFETY: the program says that it is such a structure; a touch of it is as good as its own.
    let stack = unsafe { &raw const (*(args[0] as *const libc::ucontext_t)).uc_stack };
    if args[0] != 0 && readable(stack as usize, size_of::<libc::stack_t>()) {
        // SAFETY: just found readable.
        let stack = unsafe { stack.read() };
        take(stack.ss_sp as usize, stack.ss_size);
    }
}

/// The buffer of a stream: third argument, or fourth; without one the C library makes its own.
fn stream_buffer(args: [usize; 6]) {
    take(args[1], args[3]);
}

fn stream_buffer_sized(args: [usize; 6]) {
    take(args[1], args[2]);
}

fn stream_buffer_usual(args: [usize; 6]) {
    if args[1] != 0 {
        take(args[1], libc::BUFSIZ as usize);
    }
}

fn mutex(args: [usize; 6]) {
    take(args[0], size_of::<libc::pthread_mutex_t>());
}

fn condition(args: [usize; 6]) {
    take(args[0], size_of::<libc::pthread_cond_t>());
}

fn read_write_lock(args: [usize; 6]) {
    take(args[0], size_of::<libc::pthread_rwlock_t>());
}

fn barrier(args: [usize; 6]) {
    take(args[0], size_of::<libc::pthread_barrier_t>());
}

fn semaphore(args: [usize; 6]) {
    take(args[0], size_of::<libc::sem_t>());
}

calls! {
    mprotect c"mprotect" Taken(first) true;
    pkey_mprotect c"pkey_mprotect" Taken(first) true;
    munmap c"munmap" Taken(first) true;
    remap_file_pages c"remap_file_pages" Taken(first) true;
    mmap c"mmap" Taken(map) true;
    mmap64 c"mmap64" Taken(map) true;
    mremap c"mremap" Taken(remap) true;
    madvise c"madvise" Taken(open_first) true;
    posix_madvise c"posix_madvise" Taken(open_first) true;
    mlock c"mlock" Taken(open_first) true;
    mlock2 c"mlock2" Taken(open_first) true;
    mincore c"mincore" Taken(resident) true;
    sigaltstack c"sigaltstack" Taken(signal_stack) true;
    pthread_create c"pthread_create" Taken(thread_stack) true;
    makecontext c"makecontext" Taken(context_stack) true;
    setvbuf c"setvbuf" Taken(stream_buffer) true;
    setbuffer c"setbuffer" Taken(stream_buffer_sized) true;
    setbuf c"setbuf" Taken(stream_buffer_usual) true;
    pthread_mutex_init c"pthread_mutex_init" Taken(mutex) true;
    pthread_cond_init c"pthread_cond_init" Taken(condition) true;
    pthread_rwlock_init c"pthread_rwlock_init" Taken(read_write_lock) true;
    pthread_barrier_init c"pthread_barrier_init" Taken(barrier) true;
    sem_init c"sem_init" Taken(semaphore) true;
}
