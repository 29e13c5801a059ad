//! Functions of the C library for queues of messages, semaphores of System V, and reads and writes
//! in the background.
//!
//! Owns their table, and what they pass to the kernel.

use super::opening::{let_go, readable};
use super::pieces::{PAGE, beyond, items, of, opens, path, sized};
use super::{calls, passing};

/// A message of System V begins with its type.
const TYPE: usize = of::<libc::c_long>();

passing! {
    msgsnd c"msgsnd" [beyond(1, 2, TYPE)];
    msgrcv c"msgrcv" [beyond(1, 2, TYPE)];
    msgctl c"msgctl" [opens(2, PAGE)];
    semop c"semop" [items(1, 2, of::<libc::sembuf>())];
    semtimedop c"semtimedop" [items(1, 2, of::<libc::sembuf>()), opens(3, of::<libc::timespec>())];
    shmctl c"shmctl" [opens(2, PAGE)];
    mq_unlink c"mq_unlink" [path(0)];
    mq_send c"mq_send" [sized(1, 2)];
    mq_timedsend c"mq_timedsend" [sized(1, 2), opens(4, of::<libc::timespec>())];
    mq_receive c"mq_receive" [sized(1, 2), opens(3, of::<u32>())];
    mq_timedreceive c"mq_timedreceive" [sized(1, 2), opens(3, of::<u32>()), opens(4, of::<libc::timespec>())];
    mq_getattr c"mq_getattr" [opens(1, of::<libc::mq_attr>())];
    mq_setattr c"mq_setattr" [opens(1, of::<libc::mq_attr>()), opens(2, of::<libc::mq_attr>())];
    mq_notify c"mq_notify" [opens(1, of::<libc::sigevent>())];
    eventfd_read c"eventfd_read" [opens(1, of::<u64>())];
    aio_suspend c"aio_suspend" [opens(2, of::<libc::timespec>())];
    aio_suspend64 c"aio_suspend64" [opens(2, of::<libc::timespec>())];
}

/// What is read or written in the background, some time after the call: it belongs to the program
/// from then on.
fn request(at: usize) {
    if at != 0 && readable(at, of::<libc::aiocb>()) {
        // SAFETY: just found readable; the program says that it is such a structure.
        let (buffer, len) = unsafe {
            let request = at as *const libc::aiocb;
            ((&raw const (*request).aio_buf).read_unaligned(), (&raw const (*request).aio_nbytes).read_unaligned())
        };
        let_go(buffer as u64, (buffer as u64).saturating_add(len as u64));
        let_go(at as u64, (at + of::<libc::aiocb>()) as u64);
    }
}

fn one(args: [usize; 6]) {
    request(args[0]);
}

fn list(args: [usize; 6]) {
    /// More than anybody asks for at once.
    const MOST: usize = 1024;
    let (at, count) = (args[1], args[2].min(MOST));
    if at.is_multiple_of(of::<usize>()) && count > 0 && readable(at, count * of::<usize>()) {
        // SAFETY: just found readable; aligned.
        unsafe { std::slice::from_raw_parts(at as *const usize, count) }.iter().for_each(|at| request(*at));
    }
}

calls! {
    aio_read c"aio_read" Taken(one) true;
    aio_read64 c"aio_read64" Taken(one) true;
    aio_write c"aio_write" Taken(one) true;
    aio_write64 c"aio_write64" Taken(one) true;
    lio_listio c"lio_listio" Taken(list) true;
    lio_listio64 c"lio_listio64" Taken(list) true;
}
