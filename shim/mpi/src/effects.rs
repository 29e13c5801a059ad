//! What point-to-point and one-sided functions and those of files touch: MPI 4.1, chapters 3, 4,
//! 12 and 14.
//!
//! Owns one function for each order of arguments. The buffers of a one-sided call are those of the
//! caller; the target's memory is not looked at.

use super::abi::HandleKind;
use super::arguments::Arguments;
use super::datatypes;
use super::transfers::Transfers;
use mpi_interface::Transfer;

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
    pack_from(a, to, 0);
}

/// `datarep, inbuf, incount, datatype, outbuf, outsize, position`.
pub fn pack_external(a: &Arguments<'_>, to: &mut Transfers) {
    pack_from(a, to, 1);
}

fn pack_from(a: &Arguments<'_>, to: &mut Transfers, at: usize) {
    to.touch(a, at, a.count(at + 1), at + 2, false);
    packed(a, to, at + 3, at + 5, (at + 1, at + 2), true);
}

/// `inbuf, insize, position, outbuf, outcount, datatype, comm`.
pub fn unpack(a: &Arguments<'_>, to: &mut Transfers) {
    unpack_from(a, to, 0);
}

/// `datarep, inbuf, insize, position, outbuf, outcount, datatype`.
pub fn unpack_external(a: &Arguments<'_>, to: &mut Transfers) {
    unpack_from(a, to, 1);
}

fn unpack_from(a: &Arguments<'_>, to: &mut Transfers, at: usize) {
    packed(a, to, at, at + 2, (at + 4, at + 5), false);
    to.touch(a, at + 3, a.count(at + 4), at + 5, true);
}

/// The packed bytes: the elements' own, one behind the other, as libraries pack them where all
/// processes represent data alike.
fn packed(a: &Arguments<'_>, to: &mut Transfers, buffer: usize, position: usize, of: (usize, usize), writes: bool) {
    let size = datatypes::size(a.handle(of.1, HandleKind::Type)).unwrap_or(0);
    let address = (a.word(buffer) as u64).wrapping_add_signed(a.position(position)) as usize;
    to.add_bytes(address, a.count(of.0).saturating_mul(size), writes);
}

/// `file, buf, count, datatype, ...`: read from memory.
pub fn file_write(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 1, a.count(2), 3, false);
}

/// `file, buf, count, datatype, ...`: written to memory.
pub fn file_read(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 1, a.count(2), 3, true);
}

/// `file, offset, buf, count, datatype, ...`: read from memory.
pub fn file_write_at(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 2, a.count(3), 4, false);
}

/// `file, offset, buf, count, datatype, ...`: written to memory.
pub fn file_read_at(a: &Arguments<'_>, to: &mut Transfers) {
    to.touch(a, 2, a.count(3), 4, true);
}

/// `buf, partitions, count, datatype, partner, ...`: what each partition touches. None: nobody is
/// at the other end, or the memory is none of CUDA's.
pub fn partitions(a: &Arguments<'_>, writes: bool) -> Vec<Vec<Transfer>> {
    let (number, count) = (a.int(1).max(0), u64::try_from(a.long(2)).unwrap_or(0));
    let datatype = a.handle(3, HandleKind::Type);
    let Some((_, apart)) = datatypes::extent(datatype).filter(|_| a.int(4) != a.abi.proc_null) else {
        return Vec::new();
    };
    let each = apart.wrapping_mul(count as i64);
    let all: Vec<Vec<Transfer>> = (0..i64::from(number))
        .map(|partition| {
            let mut to = Transfers::default();
            let offset = partition.wrapping_mul(each);
            to.add(a, a.buffer(0).wrapping_add_signed(offset as isize), count, datatype, writes);
            to.all
        })
        .collect();
    if all.iter().all(Vec::is_empty) { Vec::new() } else { all }
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
        to.add(a, a.buffer(0), 1, datatype, false);
        to.add(a, a.buffer(1), 1, datatype, false);
        to.add(a, a.buffer(2), 1, datatype, true);
    }
}
