//! Address resolution: from addresses of PTX's state spaces to checked host addresses, and the
//! observer that is told of them. Owns no instruction.

use std::sync::atomic::Ordering;

use crate::cluster::RANK_SHIFT;
use crate::exec::cluster_memory::OFFSET;
use crate::exec::load_store::{Cell, FRAME, GENERIC, GLOBAL, LOCAL, PARAM, SHARED};
use crate::exec::per_lane::each;
use crate::exec::told;
use crate::exec::told::strength::{self as strengths, reaches_kernels};
use crate::interface::{AccessKind, Accesses, Extent, FaultKind};
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::operations::operands::Location;
use crate::program::{LANES, Next};
use crate::warp::Warp;

/// What an access is towards other kernels (see `kernels::AccessKind`).
fn towards_others(kind: AccessKind, strength: u32) -> &'static [AccessKind] {
    let strong = reaches_kernels(strength);
    match kind {
        AccessKind::Read if strong => &[AccessKind::AtomicRead],
        AccessKind::Write if strong => &[AccessKind::AtomicWrite],
        AccessKind::Atomic if !strong => &[AccessKind::Read, AccessKind::Write],
        AccessKind::Read => &[AccessKind::Read],
        AccessKind::Write => &[AccessKind::Write],
        AccessKind::Atomic => &[AccessKind::Atomic],
        AccessKind::AtomicRead => &[AccessKind::AtomicRead],
        AccessKind::AtomicWrite => &[AccessKind::AtomicWrite],
    }
}

impl Warp<'_> {
    /// First byte of the local memory of lane 0; the others follow.
    pub fn local(&mut self) -> *mut u8 {
        if self.local.is_empty() {
            self.local = vec![0; (self.env.lane_local as usize * LANES / 8).max(1)];
        }
        self.local.as_mut_ptr().cast()
    }

    /// Whether a generic address lies in the local memory of the warp's threads.
    pub(crate) fn is_local(&mut self, address: u64) -> bool {
        let size = u64::from(self.env.lane_local) * LANES as u64;
        address & !0xffff_ffff == LOCAL_WINDOW || size > 0 && address.wrapping_sub(self.local() as u64) < size
    }

    /// Whether it lies in shared memory, of any block of the cluster.
    pub(crate) fn is_shared(&mut self, address: u64) -> bool {
        address & !0xffff_ffff == SHARED_WINDOW || self.shared_owner(address).is_some()
    }

    /// The live allocation that holds an address, remembered from last time.
    pub(crate) fn extent(&mut self, address: u64) -> Option<Extent> {
        if let Some(found) = self.extents.iter().find(|e| e.start <= address && address < e.end) {
            return Some(*found);
        }
        let found = self.env.device.allocation(address)?;
        self.extents[self.next_extent] = found;
        self.next_extent = (self.next_extent + 1) % self.extents.len();
        Some(found)
    }

    /// Where shared memory begins as a generic address.
    pub fn shared_base(&mut self) -> u64 {
        self.block().shared() as u64
    }

    /// Whether an offset in shared memory is in what the system keeps there.
    fn is_reserved(&self, offset: u64, size: u32) -> bool {
        let reserved = &self.env.reserved_shared;
        u64::from(reserved.start) <= offset && offset + u64::from(size) <= u64::from(reserved.end)
    }

    /// A lane accesses memory of the system's, where cooperative groups keep barriers.
    #[cold]
    pub(crate) fn meets_system(&mut self, kind: AccessKind, lane: usize) {
        match kind {
            AccessKind::Read | AccessKind::AtomicRead => self.polls_system(1 << lane),
            _ => self.env.system_changes.add(),
        }
    }

    /// Lanes look whether such a barrier is over.
    pub(crate) fn polls_system(&mut self, lanes: u32) {
        let changes = self.env.system_changes.so_far();
        self.polls.add(lanes, self.pc, changes);
    }

    /// Tells the device, once in a launch, of an access to shared memory that is there only because
    /// the device hands it out in steps.
    #[cold]
    fn overrun(&mut self, lane: usize, access: FaultKind) {
        if !self.env.overrun.swap(true, Ordering::Relaxed) {
            let block = self.block().index;
            self.env.device.overrun(&self.fault_at(block, lane, access));
        }
    }

    /// The host address of `size` bytes at an address of a space, for one lane.
    pub fn resolve(
        &mut self,
        space: u32,
        address: u64,
        size: u32,
        kind: AccessKind,
        lane: usize,
    ) -> Result<u64, FaultKind> {
        let end = address.wrapping_add(u64::from(size));
        let out = |space| FaultKind::OutOfBounds { address, size, access: kind, space };
        // Sizes are powers of two, and to divide takes long.
        debug_assert!(size.is_power_of_two());
        if address & (u64::from(size) - 1) != 0 && !matches!(space, PARAM | FRAME) {
            return Err(FaultKind::Misaligned { address, size, access: kind });
        }
        match space {
            SHARED => {
                let limit = u64::from(self.block().shared_limit);
                let offset = address & OFFSET;
                let reserved = self.is_reserved(offset, size);
                if address >> (RANK_SHIFT + 8) != 0 || offset + u64::from(size) > limit && !reserved {
                    return Err(out("shared"));
                }
                if reserved {
                    self.meets_system(kind, lane);
                } else if offset + u64::from(size) > u64::from(self.block().shared_size) {
                    self.overrun(lane, out("shared"));
                }
                // All blocks of a cluster have as much.
                let machine = self.env.program.machine.is_some();
                let place = if machine { self.in_own_window(address) } else { self.in_window(address) };
                place.ok_or(out("shared"))
            }
            LOCAL | FRAME => {
                let each = u64::from(self.env.lane_local);
                if end > each || end < address {
                    return Err(out("local"));
                }
                Ok(self.local() as u64 + each * lane as u64 + address)
            }
            PARAM => {
                let start = self.env.params.as_ptr() as u64;
                let limit = start + self.env.params.len() as u64 * 8;
                if address < start || end > limit || kind != AccessKind::Read { Err(out("param")) } else { Ok(address) }
            }
            GENERIC if address >= SHARED_WINDOW => {
                // Machine code makes these addresses: a window's high word before an offset.
                let within = address & 0xffff_ffff;
                match address - within {
                    SHARED_WINDOW => {
                        // Also checks the offset.
                        self.resolve(SHARED, within & OFFSET, size, kind, lane)?;
                        self.in_window(within).ok_or(out("shared"))
                    }
                    LOCAL_WINDOW => self.resolve(LOCAL, within, size, kind, lane),
                    _ => Err(out("global")),
                }
            }
            _ => {
                // First what costs little to ask: no allocation lies where the block's memory does.
                let (base, own) = (self.shared_base(), u64::from(self.block().shared_size));
                if space == GENERIC && base <= address && end <= base + own {
                    return Ok(address);
                }
                if let Some(extent) = self.extent(address)
                    && end <= extent.end
                    && end > address
                    && (extent.writable || kind == AccessKind::Read)
                {
                    return Ok(self.env.device.host_address(address));
                }
                let (start, limit) = self.env.workspace();
                let within = start <= address && end <= limit;
                if within {
                    self.meets_system(kind, lane);
                }
                if within || self.env.device_work.holds(address, end) {
                    return Ok(address);
                }
                if space == GENERIC {
                    if base <= address && end <= base + u64::from(self.block().shared_limit) {
                        self.overrun(lane, out("shared"));
                        return Ok(address);
                    }
                    if let Some((_, offset)) = self.shared_owner(address)
                        && self.shared_owner(end - 1).is_some()
                    {
                        if self.is_reserved(offset, size) {
                            self.meets_system(kind, lane);
                        }
                        return Ok(address);
                    }
                    let each = u64::from(self.env.lane_local);
                    let start = self.local() as u64;
                    if each > 0 && start <= address && end <= start + each * LANES as u64 {
                        return Ok(address);
                    }
                    if self.resolve(PARAM, address, size, kind, lane).is_ok() {
                        return Ok(address);
                    }
                }
                Err(out("global"))
            }
        }
    }

    /// The host addresses of all lanes of a mask, or the fault that one of them met. Those who
    /// observe are told of the access.
    #[inline]
    pub(crate) fn addresses(
        &mut self,
        location: Location,
        mask: u32,
        size: u32,
        kind: AccessKind,
        out: &mut [u64; LANES],
    ) -> Result<(), Next> {
        if self.env.observing {
            return told::addresses(self, location, mask, size, kind, out);
        }
        self.silent_addresses(location, mask, size, kind, out)
    }

    /// The same, and nobody is told.
    #[inline]
    pub(crate) fn silent_addresses(
        &mut self,
        location: Location,
        mask: u32,
        size: u32,
        kind: AccessKind,
        out: &mut [u64; LANES],
    ) -> Result<(), Next> {
        let Location { row, offset, space, .. } = location;
        let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
        let narrow = if matches!(space, SHARED | LOCAL | FRAME) { 0xffff_ffff } else { u64::MAX };
        let frame = if space == FRAME { u64::from(self.lbase) } else { 0 };
        let row = self.row(row);
        each(mask, |l| {
            // SAFETY: a live row; nothing writes it meanwhile.
            let address = (unsafe { (*row).0[l] }.wrapping_add(offset) & narrow) + frame;
            out[l] = address;
            low = low.min(address);
            high = high.max(address);
            bits |= address;
        });
        let end = high.wrapping_add(u64::from(size));
        let aligned = bits & (u64::from(size) - 1) == 0;
        if aligned && end > high {
            match space {
                SHARED if end <= u64::from(self.block().shared_size) => {
                    let base = self.shared_base();
                    each(mask, |l| out[l] += base);
                    return Ok(());
                }
                LOCAL | FRAME if end <= u64::from(self.env.lane_local) => {
                    let (base, stride) = (self.local() as u64, u64::from(self.env.lane_local));
                    each(mask, |l| out[l] += base + stride * l as u64);
                    return Ok(());
                }
                GLOBAL | GENERIC => {
                    if let Some(extent) = self.extents.iter().find(|e| e.start <= low && end <= e.end)
                        && (extent.writable || kind == AccessKind::Read)
                    {
                        let bias = self.env.device.host_address(low).wrapping_sub(low);
                        each(mask, |l| out[l] = out[l].wrapping_add(bias));
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let mut fault = None;
        each(mask, |l| match self.resolve(space, out[l], size, kind, l) {
            Ok(address) => out[l] = address,
            Err(kind) if fault.is_none() => fault = Some((kind, l)),
            Err(_) => {}
        });
        if let Some((kind, lane)) = fault {
            return Err(self.fail(kind, 1 << lane));
        }
        Ok(())
    }

    /// Tells the device of an access of the lanes of a mask. `strength` is as a [`Location`] has
    /// it.
    #[cold]
    pub(crate) fn observe(&mut self, strength: u32, mask: u32, size: u32, kind: AccessKind, addresses: &[u64; LANES]) {
        if mask == 0 {
            return;
        }
        let mut lanes = [(0, 0); LANES];
        let mut count = 0;
        let first = self.index * LANES as u32;
        each(mask, |l| {
            lanes[count] = (addresses[l], first + l as u32);
            count += 1;
        });
        let block = self.block().index;
        let source = self.env.program.source(self.pc).map(|(file, line)| (file.as_str(), *line));
        let (line, order) = (self.env.program.line(self.pc), strengths::order(strength));
        for &kind in towards_others(kind, strength) {
            self.env.device.observe(&Accesses { kind, size, lanes: &lanes[..count], block, line, source, order });
        }
    }

    /// Reads bytes that the device holds, for system calls. None when they are not there.
    pub(crate) fn read_bytes(&mut self, address: u64, size: u32, lane: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size as usize);
        for at in 0..u64::from(size) {
            let from = self.resolve(GENERIC, address.wrapping_add(at), 1, AccessKind::Read, lane).ok()?;
            // SAFETY: `resolve` vouches for the byte.
            bytes.push(unsafe { u8::read(from) } as u8);
        }
        Some(bytes)
    }

    /// Reads a string that ends with a zero byte.
    pub(crate) fn read_string(&mut self, address: u64, lane: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < 1 << 16 {
            match self.read_bytes(address.wrapping_add(bytes.len() as u64), 1, lane) {
                Some(byte) if byte[0] != 0 => bytes.push(byte[0]),
                _ => break,
            }
        }
        bytes
    }
}
