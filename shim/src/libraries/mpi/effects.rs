//! What point-to-point and one-sided functions touch: MPI 4.1, chapters 3, 4 and 12.
//!
//! Owns one function for each order of arguments. The buffers of a one-sided call are those of the
//! caller; the target's memory is not looked at.

use super::abi::HandleKind;
use super::arguments::Arguments;
use super::transfers::Transfers;

/// Buffer, count, datatype from argument `at` on, unless the partner is nobody.
fn message(a: &Arguments<'_>, to: &mut Transfers, at: usize, partner: usize, writes: bool) {
    if a.int(partner) != a.abi.proc_null {
        to.touch(a, at, a.count(at + 1), at + 2, writes);
    }
}

/// `buf, count, datatype, dest, ...`.
pub fn send(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, false);
}

/// `buf, count, datatype, source, ...`.
pub fn receive(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, true);
}

/// `buf, count, datatype, message, ...`: whom it comes from is settled.
pub fn receive_matched(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 0, a.count(1), 2, true);
}

/// `sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, ...`.
pub fn exchange(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, false);
    message(a, to, 5, 8, true);
}

/// `buf, count, datatype, dest, sendtag, source, ...`.
pub fn replace(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, false);
    message(a, to, 0, 5, true);
}

/// `inbuf, incount, datatype, outbuf, outsize, position, comm`.
pub fn pack(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 0, a.count(1), 2, false);
}

/// `inbuf, insize, position, outbuf, outcount, datatype, comm`.
pub fn unpack(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 3, a.count(4), 5, true);
}

/// `inbuf, inoutbuf, count, datatype, op`.
pub fn reduce_local(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 0, a.count(2), 3, false);
    to.touch(a, 1, a.count(2), 3, false);
    to.touch(a, 1, a.count(2), 3, true);
}

/// `origin, count, datatype, target, ...`: read.
pub fn put(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, false);
}

/// `origin, count, datatype, target, ...`: written.
pub fn get(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 3, true);
}

/// `origin, count, datatype, result, count, datatype, target, ...`.
pub fn get_accumulate(a: &Arguments<'_>, to: &mut Transfers) {
    message(a, to, 0, 6, false);
    message(a, to, 3, 6, true);
}

/// `origin, result, datatype, target, ...`, one element each.
pub fn fetch_and_op(a: &Arguments<'_>, to: &mut Transfers) {
    if a.int(3) != a.abi.proc_null {
        to.touch(a, 0, 1, 2, false);
        to.touch(a, 1, 1, 2, true);
    }
}

/// `origin, compare, result, datatype, target, ...`, one element each.
pub fn compare_and_swap(a: &Arguments<'_>, to: &mut Transfers) {
    if a.int(4) != a.abi.proc_null {
        let datatype = a.handle(3, HandleKind::Type);
        to.add(a, a.word(0), 1, datatype, false);
        to.add(a, a.word(1), 1, datatype, false);
        to.add(a, a.word(2), 1, datatype, true);
    }
}
