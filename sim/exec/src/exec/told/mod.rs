//! What those are told who observe a launch: accesses of global memory, for the order between
//! kernels ([`Device::observe`]), and all accesses with what orders them, for the order inside a
//! kernel ([`MemoryEvents`]). Executes nothing.
//!
//! [`Device::observe`]: crate::interface::Device::observe
//! [`MemoryEvents`]: sim_races::MemoryEvents

pub(crate) mod strength;

use sim_races::{Kind, Lanes, Memory, ObjectPlace, WarpAccess};

use crate::cluster::RANK_SHIFT;
use crate::exec::cluster_memory::OFFSET;
use crate::exec::load_store::{FRAME, GENERIC, GLOBAL, LOCAL, PARAM, SHARED};
use crate::exec::per_lane::each;
use crate::exec::told::strength::{COPY, MAP, PLAIN, is_of_copies, is_of_object, is_swap, meaning};
use crate::interface::AccessKind;
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::operations::operands::Location;
use crate::program::{LANES, Next};
use crate::warp::Warp;

/// What lanes store, and where the CPU finds what is there yet.
struct Written<'a> {
    words: &'a [[u64; 4]; LANES],
    hosts: &'a [u64; LANES],
}

impl Written<'_> {
    /// Whether a lane writes what is there.
    fn changes_nothing(&self, lane: usize, size: u32) -> bool {
        let (words, at) = (&self.words[lane], self.hosts[lane]);
        // SAFETY: the addresses were checked, and one thread runs all blocks of such a launch.
        // Accesses may be in no order of theirs.
        unsafe {
            match size {
                1 => (at as *const u8).read() == words[0] as u8,
                2 => (at as *const u16).read_unaligned() == words[0] as u16,
                4 => (at as *const u32).read_unaligned() == words[0] as u32,
                8 => (at as *const u64).read_unaligned() == words[0],
                _ => {
                    let old = std::slice::from_raw_parts(at as *const u8, size as usize);
                    let new = words.iter().flat_map(|word| word.to_le_bytes());
                    old.len() <= 32 && old.iter().copied().eq(new.take(old.len()))
                }
            }
        }
    }
}

/// The kind of access that a detector sees.
fn kind_of(kind: AccessKind, strength: u32) -> Kind {
    match kind {
        // What changes a barrier object does so as one operation.
        _ if is_of_object(strength) && kind != AccessKind::Read => Kind::Atomic,
        AccessKind::Read | AccessKind::AtomicRead => Kind::Read,
        AccessKind::Write | AccessKind::AtomicWrite => Kind::Write,
        AccessKind::Atomic => Kind::Atomic,
    }
}

/// Of lanes that compare a word of 4 bytes with `old` and swap it for `new`, those that leave each
/// byte as it is.
pub(crate) fn keeping(mask: u32, words: impl Fn(usize) -> [u32; 2]) -> [u32; 4] {
    let mut keeps = [0; 4];
    each(mask, |l| {
        let [old, new] = words(l);
        for (byte, lanes) in keeps.iter_mut().enumerate() {
            *lanes |= u32::from((old ^ new) >> (8 * byte) & 0xff == 0) << l;
        }
    });
    keeps
}

/// As [`Warp::silent_addresses`], and tells of the access.
#[cold]
pub(crate) fn addresses(
    w: &mut Warp<'_>,
    location: Location,
    mask: u32,
    size: u32,
    kind: AccessKind,
    out: &mut [u64; LANES],
) -> Result<(), Next> {
    let (stored, keeps) = (w.storing.take(), std::mem::take(&mut w.keeping));
    w.silent_addresses(location, mask, size, kind, out)?;
    let Location { row, offset, space, strength } = location;
    let narrow = if space == SHARED { 0xffff_ffff } else { u64::MAX };
    let (mut asked, row) = ([0; LANES], w.row(row));
    // SAFETY: a live row; nothing writes it meanwhile.
    each(mask, |l| asked[l] = unsafe { (*row).0[l] }.wrapping_add(offset) & narrow);
    if matches!(space, GLOBAL | GENERIC) && w.env.device.observing() {
        let mut device = 0;
        each(mask, |l| device |= u32::from(w.extent(asked[l]).is_some()) << l);
        w.observe(strength, device, size, kind, &asked);
    }
    if w.env.events.is_some() && !matches!(space, LOCAL | FRAME | PARAM) {
        let written = stored.as_ref().map(|words| Written { words, hosts: out });
        let bulk = w.bulk;
        tell(w, space, strength, mask, size, kind, &asked, (written, keeps), bulk);
    }
    w.last_stored = stored;
    Ok(())
}

/// Tells of the access of one lane, to its address and so many bytes.
pub(crate) fn lane(
    w: &mut Warp<'_>,
    space: u32,
    strength: u32,
    (address, size): (u64, u32),
    kind: AccessKind,
    lane: usize,
) {
    if w.env.events.is_some() {
        tell(w, space, strength, 1 << lane, size, kind, &[address; LANES], (None, [0; 4]), None);
    }
}

/// Tells of a part of a bulk operation that a lane has issued, piece by piece.
pub(crate) fn bulk(
    w: &mut Warp<'_>,
    space: u32,
    strength: u32,
    (address, size): (u64, u32),
    kind: AccessKind,
    lane: usize,
    number: u64,
) {
    if w.env.events.is_none() {
        return;
    }
    let (mut at, end) = (address, address + u64::from(size));
    while at < end {
        let left = 1 << (end - at).ilog2();
        let piece = (1u64 << at.trailing_zeros().min(4)).min(left);
        tell(w, space, strength, 1 << lane, piece as u32, kind, &[at; LANES], (None, [0; 4]), Some(number));
        at += piece;
    }
}

/// The barrier object of a lane, if somebody listens.
pub(crate) fn object(w: &mut Warp<'_>, location: Location, lane: usize) -> Option<ObjectPlace> {
    w.env.events?;
    let narrow = if location.space == SHARED { 0xffff_ffff } else { u64::MAX };
    let address = w.get(location.row, lane).wrapping_add(location.offset) & narrow;
    memory_of(w, location.space, address)
}

/// The memory that an address of a space is in, and where. `None` for a thread's own.
pub(crate) fn memory_of(w: &mut Warp<'_>, space: u32, address: u64) -> Option<(Memory, u64)> {
    match space {
        GLOBAL => Some((Memory::Global, address)),
        // Machine code reaches the block's own memory by these instructions, with its rank or none:
        // matrix descriptors have no room for it.
        SHARED if w.env.program.machine.is_some() => Some((Memory::Shared(w.block().linear as u32), address & OFFSET)),
        SHARED => in_cluster(w, ((address >> RANK_SHIFT) as usize).checked_sub(1), address & OFFSET),
        GENERIC if address >= SHARED_WINDOW => {
            let within = address & 0xffff_ffff;
            let rank = (within >> RANK_SHIFT) as usize;
            match (address - within, w.env.program.machine.is_some()) {
                (LOCAL_WINDOW, _) => None,
                (_, true) => in_cluster(w, Some(rank), within & OFFSET),
                (_, false) => in_cluster(w, rank.checked_sub(1), within & OFFSET),
            }
        }
        GENERIC => {
            if w.extent(address).is_some() {
                return Some((Memory::Global, address));
            }
            if let Some((rank, offset)) = w.shared_owner(address) {
                return Some((Memory::Shared(w.block().members.linear(rank)? as u32), offset));
            }
            // What cooperative groups keep for the grid.
            let (start, end) = w.env.workspace();
            (start <= address && address < end).then_some((Memory::Global, address))
        }
        _ => None,
    }
}

/// A place in the shared memory of the block of a rank, or of the block itself.
fn in_cluster(w: &mut Warp<'_>, rank: Option<usize>, offset: u64) -> Option<(Memory, u64)> {
    let alone = w.env.cluster == [1; 3];
    let linear = match rank {
        Some(rank) if !alone => w.block().members.linear(rank)?,
        _ => w.block().linear,
    };
    Some((Memory::Shared(linear as u32), offset))
}

/// The memory that the addresses of all lanes are in as they stand, if it is seen at a glance.
fn one_memory(w: &mut Warp<'_>, space: u32, mask: u32, asked: &[u64; LANES]) -> Option<Memory> {
    let (mut low, mut high) = (u64::MAX, 0);
    each(mask, |l| {
        low = low.min(asked[l]);
        high = high.max(asked[l]);
    });
    match space {
        GLOBAL => Some(Memory::Global),
        SHARED if high <= OFFSET && w.env.cluster == [1; 3] => Some(Memory::Shared(w.block().linear as u32)),
        GENERIC if w.extents.iter().any(|extent| extent.start <= low && high < extent.end) => Some(Memory::Global),
        _ => None,
    }
}

/// Whether the addresses of lanes go upwards, so that no two are the same.
fn apart(mask: u32, addresses: &[u64; LANES]) -> bool {
    let (mut last, mut upwards) = (None, true);
    each(mask, |l| {
        upwards &= last < Some(addresses[l]);
        last = Some(addresses[l]);
    });
    upwards
}

#[allow(clippy::too_many_arguments, reason = "what an access is")]
fn tell(
    w: &mut Warp<'_>,
    space: u32,
    strength: u32,
    mask: u32,
    size: u32,
    kind: AccessKind,
    asked: &[u64; LANES],
    (written, keeps): (Option<Written<'_>>, [u32; 4]),
    bulk: Option<u64>,
) {
    let Some(events) = w.env.events else { return };
    let (mut unchanged, mut alike) = (0, false);
    if let Some(written) = written.filter(|_| strength == PLAIN) {
        each(mask, |l| unchanged |= u32::from(written.changes_nothing(l, size)) << l);
        alike = apart(mask, asked)
            || (0..LANES).filter(|l| mask >> l & 1 != 0).all(|l| {
                let before = (0..l).filter(|other| mask >> other & 1 != 0);
                before.into_iter().all(|other| asked[other] != asked[l] || written.words[other] == written.words[l])
            });
    }
    // Predicates part no lanes.
    let executing = w.active | mask;
    let (block, warp, site) = (w.block().linear as u32, w.index, w.pc);
    let access = WarpAccess {
        block,
        warp,
        lanes: mask,
        executing,
        site,
        memory: Memory::Global,
        addresses: asked,
        size,
        kind: kind_of(kind, strength),
        strength: meaning(strength),
        unchanged,
        alike,
        asynchronous: strength == COPY,
        object: is_of_object(strength),
        compares: is_swap(strength),
        keeps,
        bulk,
        map: strength == MAP,
    };
    if let Some(memory) = one_memory(w, space, mask, asked)
        && !is_of_copies(strength)
    {
        events.access(&WarpAccess { memory, ..access });
        return;
    }
    let mut places = [(Memory::Global, 0); LANES];
    let mut left = 0u32;
    each(mask, |l| {
        if let Some(place) = memory_of(w, space, asked[l]) {
            places[l] = place;
            left |= 1 << l;
        }
    });
    while left != 0 {
        let memory = places[left.trailing_zeros() as usize].0;
        let (mut lanes, mut addresses) = (0, [0; LANES]);
        each(left, |l| {
            if places[l].0 == memory {
                lanes |= 1 << l;
                addresses[l] = places[l].1;
            }
        });
        left &= !lanes;
        if is_of_copies(strength) {
            events.copies_arrive(Lanes { block, warp, mask: lanes }, memory, &addresses);
        }
        let (unchanged, keeps) = (unchanged & lanes, keeps.map(|of| of & lanes));
        events.access(&WarpAccess { lanes, memory, addresses: &addresses, unchanged, keeps, ..access });
    }
}
