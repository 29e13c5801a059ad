//! What collective functions touch on this process: MPI 4.1, chapters 6 and 8.
//!
//! Owns one function for each order of arguments; the non-blocking and persistent variants share
//! them. In place, what is sent is the receive buffer's.

use std::ffi::c_int;
use std::ops::Range;

use super::abi::{HandleKind, ask};
use super::arguments::Arguments;
use super::datatypes;
use super::transfers::Transfers;

/// The group that a process exchanges with.
struct Group {
    comm: usize,
    /// This process's rank.
    rank: c_int,
    /// Whether the call is between two groups.
    inter: bool,
}

impl Group {
    fn of(a: &Arguments<'_>, at: usize) -> Self {
        let comm = a.handle(at, HandleKind::Comm);
        let (mut rank, mut inter): (c_int, c_int) = (-1, 0);
        ask!(c"MPI_Comm_rank"(comm => usize, &raw mut rank => *mut c_int));
        ask!(c"MPI_Comm_test_inter"(comm => usize, &raw mut inter => *mut c_int));
        Self { comm, rank, inter: inter != 0 }
    }

    /// How many processes this one sends to and receives from.
    fn peers(&self) -> usize {
        let mut size: c_int = 0;
        if self.inter {
            ask!(c"MPI_Comm_remote_size"(self.comm => usize, &raw mut size => *mut c_int));
        } else {
            ask!(c"MPI_Comm_size"(self.comm => usize, &raw mut size => *mut c_int));
        }
        usize::try_from(size).unwrap_or(0)
    }

    /// This process's number, where its own block stays in place.
    fn own_if(&self, in_place: bool) -> Option<usize> {
        usize::try_from(self.rank).ok().filter(|_| in_place)
    }

    /// Whether this process is the root of a call.
    fn is_root(&self, a: &Arguments<'_>, root: usize) -> bool {
        let root = a.int(root);
        if self.inter { root == a.abi.root } else { root == self.rank }
    }

    /// Whether it has a part of the data: all of one group have; of two groups, those that the root
    /// is not in.
    fn has_part(&self, a: &Arguments<'_>, root: usize) -> bool {
        !self.inter || ![a.abi.root, a.abi.proc_null].contains(&a.int(root))
    }

    /// Whether it takes no part at all: of two groups, those beside the root.
    fn is_left_out(&self, a: &Arguments<'_>, root: usize) -> bool {
        self.inter && a.int(root) == a.abi.proc_null
    }
}

/// As [`each`], without the block of one process: in place, it stays where it is.
fn each_but(a: &Arguments<'_>, to: &mut Transfers, at: usize, peers: usize, own: c_int, writes: bool) {
    let datatype = a.handle(at + 2, HandleKind::Type);
    let (Ok(own), Some((_, apart))) = (usize::try_from(own), datatypes::extent(datatype)) else { return };
    let count = a.count(at + 1);
    to.touch(a, at, count.saturating_mul(own as u64), at + 2, writes);
    let behind = (apart.wrapping_mul(count as i64)).wrapping_mul(own as i64 + 1);
    let rest = count.saturating_mul(peers.saturating_sub(own + 1) as u64);
    to.add(a, a.buffer(at).wrapping_add_signed(behind as isize), rest, datatype, writes);
}

/// The block of one process.
fn one_of(a: &Arguments<'_>, to: &mut Transfers, at: usize, own: c_int, writes: bool) {
    let datatype = a.handle(at + 2, HandleKind::Type);
    let Some((_, apart)) = datatypes::extent(datatype) else { return };
    let offset = (apart.wrapping_mul(a.count(at + 1) as i64)).wrapping_mul(i64::from(own));
    to.add(a, a.buffer(at).wrapping_add_signed(offset as isize), a.count(at + 1), datatype, writes);
}

/// Blocks of one size, one for each of so many processes.
fn each(a: &Arguments<'_>, to: &mut Transfers, at: usize, peers: usize, writes: bool) {
    to.touch(a, at, a.count(at + 1).saturating_mul(peers as u64), at + 2, writes);
}

/// Blocks of their own sizes and places: buffer, counts, displacements, datatype from `at` on.
fn varied(a: &Arguments<'_>, to: &mut Transfers, at: usize, peers: usize, writes: bool) {
    varied_of(a, to, at, 0..peers, None, writes);
}

/// The blocks of these processes, but one.
fn varied_of(a: &Arguments<'_>, to: &mut Transfers, at: usize, peers: Range<usize>, but: Option<usize>, writes: bool) {
    let buffer = a.buffer(at);
    if a.is_in_place(at) || buffer == 0 {
        return;
    }
    let datatype = a.handle(at + 3, HandleKind::Type);
    for peer in peers {
        let count = a.count_in(at + 1, peer);
        if count == 0 || but == Some(peer) {
            continue;
        }
        let Some((_, apart)) = datatypes::extent(datatype) else { return };
        let offset = a.displacement_in(at + 2, peer).wrapping_mul(apart);
        to.add(a, buffer.wrapping_add_signed(offset as isize), count, datatype, writes);
    }
}

/// Blocks with datatypes of their own: buffer, counts, displacements in bytes, datatypes.
fn typed(a: &Arguments<'_>, to: &mut Transfers, at: usize, peers: usize, addresses: bool, writes: bool) {
    let buffer = a.buffer(at);
    if a.is_in_place(at) {
        return;
    }
    for peer in 0..peers {
        let count = a.count_in(at + 1, peer);
        if count > 0 {
            let offset = if addresses { a.address_in(at + 2, peer) } else { a.displacement_in(at + 2, peer) };
            let datatype = a.handle_in(at + 3, peer, HandleKind::Type);
            to.add(a, buffer.wrapping_add_signed(offset as isize), count, datatype, writes);
        }
    }
}

/// `buffer, count, datatype, root, comm`.
pub fn broadcast(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 4);
    if !group.is_left_out(a, 3) {
        to.touch(a, 0, a.count(1), 2, !group.is_root(a, 3));
    }
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm`.
pub fn gather(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 7);
    let root = group.is_root(a, 6);
    if group.has_part(a, 6) {
        to.touch(a, 0, a.count(1), 2, false);
    }
    if root && a.is_in_place(0) {
        each_but(a, to, 3, group.peers(), group.rank, true);
    } else if root {
        each(a, to, 3, group.peers(), true);
    }
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm`.
pub fn gather_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 8);
    let root = group.is_root(a, 7);
    if group.has_part(a, 7) {
        to.touch(a, 0, a.count(1), 2, false);
    }
    if root {
        varied_of(a, to, 3, 0..group.peers(), group.own_if(a.is_in_place(0)), true);
    }
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm`.
pub fn scatter(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 7);
    let root = group.is_root(a, 6);
    if root && a.is_in_place(3) {
        each_but(a, to, 0, group.peers(), group.rank, false);
    } else if root {
        each(a, to, 0, group.peers(), false);
    }
    if group.has_part(a, 6) {
        to.touch(a, 3, a.count(4), 5, true);
    }
}

/// `sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm`.
pub fn scatter_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 8);
    let root = group.is_root(a, 7);
    if root {
        varied_of(a, to, 0, 0..group.peers(), group.own_if(a.is_in_place(4)), false);
    }
    if group.has_part(a, 7) {
        to.touch(a, 4, a.count(5), 6, true);
    }
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm`.
pub fn gather_all(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 6);
    if a.is_in_place(0) {
        one_of(a, to, 3, group.rank, false);
        return each_but(a, to, 3, group.peers(), group.rank, true);
    }
    to.touch(a, 0, a.count(1), 2, false);
    each(a, to, 3, group.peers(), true);
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm`.
pub fn gather_all_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 7);
    let own = group.own_if(a.is_in_place(0));
    match own {
        Some(own) => varied_of(a, to, 3, own..own + 1, None, false),
        None => to.touch(a, 0, a.count(1), 2, false),
    }
    varied_of(a, to, 3, 0..group.peers(), own, true);
}

/// `sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm`.
pub fn all_to_all(a: &Arguments<'_>, to: &mut Transfers) {
    let peers = Group::of(a, 6).peers();
    each(a, to, if a.is_in_place(0) { 3 } else { 0 }, peers, false);
    each(a, to, 3, peers, true);
}

/// `sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm`.
pub fn all_to_all_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let peers = Group::of(a, 8).peers();
    varied(a, to, if a.is_in_place(0) { 4 } else { 0 }, peers, false);
    varied(a, to, 4, peers, true);
}

/// `sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm`.
pub fn all_to_all_typed(a: &Arguments<'_>, to: &mut Transfers) {
    let peers = Group::of(a, 8).peers();
    typed(a, to, if a.is_in_place(0) { 4 } else { 0 }, peers, false, false);
    typed(a, to, 4, peers, false, true);
}

/// `sendbuf, recvbuf, count, datatype, op, root, comm`.
pub fn reduce(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 6);
    let root = group.is_root(a, 5);
    if group.has_part(a, 5) {
        let from = if a.is_in_place(0) { 1 } else { 0 };
        to.touch(a, from, a.count(2), 3, false);
    }
    if root {
        to.touch(a, 1, a.count(2), 3, true);
    }
}

/// `sendbuf, recvbuf, count, datatype, op, comm`: all reductions to all, and scans.
pub fn reduce_all(a: &Arguments<'_>, to: &mut Transfers) {
    let from = if a.is_in_place(0) { 1 } else { 0 };
    to.touch(a, from, a.count(2), 3, false);
    to.touch(a, 1, a.count(2), 3, true);
}

/// `sendbuf, recvbuf, recvcounts, datatype, op, comm`.
pub fn reduce_scatter(a: &Arguments<'_>, to: &mut Transfers) {
    let group = Group::of(a, 5);
    let mut size: c_int = 0;
    ask!(c"MPI_Comm_size"(group.comm => usize, &raw mut size => *mut c_int));
    let counts: Vec<u64> = (0..usize::try_from(size).unwrap_or(0)).map(|at| a.count_in(2, at)).collect();
    let from = if a.is_in_place(0) { 1 } else { 0 };
    to.touch(a, from, counts.iter().sum(), 3, false);
    let own = usize::try_from(group.rank).ok().and_then(|rank| counts.get(rank));
    to.touch(a, 1, own.copied().unwrap_or(0), 3, true);
}

/// `sendbuf, recvbuf, recvcount, datatype, op, comm`.
pub fn reduce_scatter_block(a: &Arguments<'_>, to: &mut Transfers) {
    let peers = Group::of(a, 5).peers() as u64;
    let from = if a.is_in_place(0) { 1 } else { 0 };
    to.touch(a, from, a.count(2).saturating_mul(peers), 3, false);
    to.touch(a, 1, a.count(2), 3, true);
}

/// The neighbours of a process: how many send to it, how many it sends to, and whether each of them
/// is there (at the edge of a grid some are not).
fn neighbours(a: &Arguments<'_>, at: usize) -> (usize, usize, bool) {
    let Group { comm, rank, .. } = Group::of(a, at);
    let (mut topology, mut number): (c_int, c_int) = (a.abi.undefined, 0);
    ask!(c"MPI_Topo_test"(comm => usize, &raw mut topology => *mut c_int));
    let (mut from, mut to, mut weighted): (c_int, c_int, c_int) = (0, 0, 0);
    if topology == a.abi.cart {
        ask!(c"MPI_Cartdim_get"(comm => usize, &raw mut number => *mut c_int));
        (from, to) = (2 * number, 2 * number);
    } else if topology == a.abi.dist_graph {
        ask!(c"MPI_Dist_graph_neighbors_count"(
            comm => usize,
            &raw mut from => *mut c_int,
            &raw mut to => *mut c_int,
            &raw mut weighted => *mut c_int,
        ));
    } else if topology != a.abi.undefined {
        ask!(c"MPI_Graph_neighbors_count"(comm => usize, rank => c_int, &raw mut number => *mut c_int));
        (from, to) = (number, number);
    }
    let count = |n| usize::try_from(n).unwrap_or(0);
    (count(from), count(to), topology != a.abi.cart)
}

/// As [`gather_all`], among neighbours.
pub fn neighbour_gather(a: &Arguments<'_>, to: &mut Transfers) {
    let (from, _, all) = neighbours(a, 6);
    to.touch(a, 0, a.count(1), 2, false);
    let before = to.all.len();
    each(a, to, 3, from, true);
    to.weaken(if all { usize::MAX } else { before });
}

/// As [`gather_all_varied`], among neighbours.
pub fn neighbour_gather_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let (from, _, all) = neighbours(a, 7);
    to.touch(a, 0, a.count(1), 2, false);
    let before = to.all.len();
    varied(a, to, 3, from, true);
    to.weaken(if all { usize::MAX } else { before });
}

/// As [`all_to_all`], among neighbours.
pub fn neighbour_exchange(a: &Arguments<'_>, to: &mut Transfers) {
    let (from, onto, all) = neighbours(a, 6);
    each(a, to, 0, onto, false);
    each(a, to, 3, from, true);
    to.weaken(if all { usize::MAX } else { 0 });
}

/// As [`all_to_all_varied`], among neighbours.
pub fn neighbour_exchange_varied(a: &Arguments<'_>, to: &mut Transfers) {
    let (from, onto, all) = neighbours(a, 8);
    varied(a, to, 0, onto, false);
    varied(a, to, 4, from, true);
    to.weaken(if all { usize::MAX } else { 0 });
}

/// As [`all_to_all_typed`], among neighbours; displacements are addresses.
pub fn neighbour_exchange_typed(a: &Arguments<'_>, to: &mut Transfers) {
    let (from, onto, all) = neighbours(a, 8);
    typed(a, to, 0, onto, true, false);
    typed(a, to, 4, from, true, true);
    to.weaken(if all { usize::MAX } else { 0 });
}
