//! Virtual memory that programs put together themselves: reserve addresses, create memory, map it,
//! set access.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cuda_sys::CUresult;

use super::arena::Arena;
use super::backing_file::BackingFile;
use super::{AllocationKind, Memory, lock};
use crate::memory::address_space::{AddressSpace, GRANULE, Page};
use crate::sched::ContextId;

/// Smallest unit of mappings, as the device announces it.
pub(crate) const STEP: u64 = 2 << 20;

/// Memory made by `cuMemCreate`, or by that of another process.
#[derive(Clone)]
pub(crate) struct Physical {
    /// Where it lies in the simulator's memory, or in what was imported.
    pub(crate) offset: u64,
    /// Of imported memory: its part of the file of the process that made it.
    pub(super) file: Option<Arc<BackingFile>>,
    /// Bytes.
    pub(crate) size: u64,
    /// The device it is on; `None` for the host.
    pub(crate) device: Option<u32>,
    /// Handle types that it can be exported as.
    pub(crate) handle_types: u32,
    /// Whether other processes may have it too: its bytes are not given out again, because who
    /// still has them is not known.
    is_out: bool,
    handles: u32,
    maps: u32,
}

/// What is mapped where.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    size: u64,
    handle: u64,
}

/// All reservations, physical memory and mappings.
pub(crate) struct Reserved {
    addresses: Arena,
    ranges: BTreeMap<u64, u64>,
    physical: HashMap<u64, Physical>,
    space_left: Arena,
    maps: BTreeMap<u64, Mapping>,
    next: u64,
}

impl Reserved {
    /// A handle for memory.
    fn add(&mut self, physical: Physical) -> u64 {
        let handle = self.next;
        self.next += 1;
        self.physical.insert(handle, physical);
        handle
    }

    pub(super) fn new(space: &AddressSpace) -> Reserved {
        let (start, end) = space.reserve_range();
        Reserved {
            addresses: Arena::new(start, end, STEP),
            ranges: BTreeMap::new(),
            physical: HashMap::new(),
            space_left: Arena::new(0, space.phys_size(), STEP),
            maps: BTreeMap::new(),
            next: 1,
        }
    }
}

const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;

impl Memory {
    /// Reserves addresses.
    pub(crate) fn reserve(&self, size: u64, align: u64, wish: u64) -> Result<u64, CUresult> {
        if size == 0 || !size.is_multiple_of(STEP) || (align != 0 && !align.is_power_of_two()) {
            return Err(INVALID);
        }
        let mut r = lock(&self.reserved);
        let at = if wish != 0 && r.addresses.take_at(wish, size) {
            wish
        } else {
            r.addresses.take(size, align.max(STEP)).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?
        };
        r.ranges.insert(at, size);
        Ok(at)
    }

    /// Gives reserved addresses back; nothing may be mapped there.
    pub(crate) fn unreserve(&self, at: u64, size: u64) -> Result<(), CUresult> {
        let mut r = lock(&self.reserved);
        if r.ranges.get(&at) != Some(&size) || r.maps.range(at..at + size).next().is_some() {
            return Err(INVALID);
        }
        r.ranges.remove(&at);
        r.addresses.give(at, size);
        Ok(())
    }

    /// Makes physical memory.
    pub(crate) fn create_physical(&self, size: u64, device: Option<u32>, handle_types: u32) -> Result<u64, CUresult> {
        if size == 0 || !size.is_multiple_of(STEP) {
            return Err(INVALID);
        }
        if let Some(device) = device {
            self.charge(device, size)?;
        }
        let mut r = lock(&self.reserved);
        let Some(offset) = r.space_left.take(size, STEP) else {
            if let Some(device) = device {
                self.discharge(device, size);
            }
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        };
        Ok(r.add(Physical { offset, file: None, size, device, handle_types, is_out: false, handles: 1, maps: 0 }))
    }

    /// A handle for memory that a process has exported, this one or another.
    pub(super) fn adopt_physical(&self, part: BackingFile, size: u64, device: Option<u32>, handle_types: u32) -> u64 {
        let file = Some(Arc::new(part));
        let physical = Physical { offset: 0, file, size, device, handle_types, is_out: true, handles: 1, maps: 0 };
        lock(&self.reserved).add(physical)
    }

    /// Other processes may have the memory from now on. What it is.
    pub(super) fn goes_out(&self, handle: u64) -> Result<Physical, CUresult> {
        let mut r = lock(&self.reserved);
        let physical = r.physical.get_mut(&handle).filter(|p| p.handles > 0).ok_or(INVALID)?;
        physical.is_out = true;
        Ok(physical.clone())
    }

    /// What a handle stands for.
    pub(crate) fn physical(&self, handle: u64) -> Result<Physical, CUresult> {
        lock(&self.reserved).physical.get(&handle).filter(|p| p.handles > 0).cloned().ok_or(INVALID)
    }

    /// Gives one hold on a handle back; the memory goes when nothing maps it any more.
    pub(crate) fn release_physical(&self, handle: u64) -> Result<(), CUresult> {
        let mut r = lock(&self.reserved);
        let physical = r.physical.get_mut(&handle).filter(|p| p.handles > 0).ok_or(INVALID)?;
        physical.handles -= 1;
        self.collect(&mut r, handle);
        Ok(())
    }

    fn collect(&self, r: &mut Reserved, handle: u64) {
        if r.physical.get(&handle).is_none_or(|p| p.handles > 0 || p.maps > 0) {
            return;
        }
        let Some(p) = r.physical.remove(&handle) else { return };
        if !p.is_out {
            r.space_left.give(p.offset, p.size);
            self.space.drop_phys(p.offset, p.size);
        }
        if let Some(device) = p.device.filter(|_| p.file.is_none()) {
            self.discharge(device, p.size);
        }
    }

    /// The handle of the memory mapped at an address, held once more.
    pub(crate) fn retain_physical(&self, at: u64) -> Result<u64, CUresult> {
        let mut r = lock(&self.reserved);
        let (&start, map) = r.maps.range(..=at).next_back().ok_or(INVALID)?;
        let map = *map;
        if at >= start + map.size {
            return Err(INVALID);
        }
        r.physical.get_mut(&map.handle).ok_or(INVALID)?.handles += 1;
        Ok(map.handle)
    }

    /// Maps memory at reserved addresses; no access is allowed until it is set.
    pub(crate) fn map(&self, ctx: ContextId, at: u64, size: u64, offset: u64, handle: u64) -> Result<(), CUresult> {
        let mut r = lock(&self.reserved);
        let (&range, &len) = r.ranges.range(..=at).next_back().ok_or(INVALID)?;
        let p = r.physical.get(&handle).filter(|p| p.handles > 0).cloned().ok_or(INVALID)?;
        let inside = at.checked_add(size).is_some_and(|end| end <= range + len);
        let held = offset.checked_add(size).is_some_and(|end| end <= p.size);
        if !inside || !held || size == 0 || !(at | size | offset).is_multiple_of(STEP) {
            return Err(INVALID);
        }
        let taken = r.maps.range(..at + size).next_back().is_some_and(|(&other, map)| other + map.size > at);
        let (file, cpu) = (p.file.as_deref(), p.device.is_none());
        if taken || !self.space.map_phys(at, size, file, p.offset + offset, cpu) {
            return Err(if taken { INVALID } else { CUresult::ERROR_OUT_OF_MEMORY });
        }
        r.maps.insert(at, Mapping { size, handle });
        if let Some(p) = r.physical.get_mut(&handle) {
            p.maps += 1;
        }
        drop(r);
        self.insert(at, size, AllocationKind::Mapped, ctx, p.device.unwrap_or(0));
        Ok(())
    }

    /// Unmaps whole mappings. The caller has waited for the work that may use them.
    pub(crate) fn unmap(&self, at: u64, size: u64) -> Result<(), CUresult> {
        let mut r = lock(&self.reserved);
        let end = at.checked_add(size).ok_or(INVALID)?;
        let inside: Vec<(u64, Mapping)> = r.maps.range(at..end).map(|(&at, &map)| (at, map)).collect();
        let covered: u64 = inside.iter().map(|(_, map)| map.size).sum();
        if size == 0 || covered != size {
            return Err(INVALID);
        }
        for (at, map) in inside {
            r.maps.remove(&at);
            self.remove(at, |kind| kind == AllocationKind::Mapped);
            self.space.unmap_phys(at, map.size);
            if let Some(p) = r.physical.get_mut(&map.handle) {
                p.maps -= 1;
            }
            self.collect(&mut r, map.handle);
        }
        Ok(())
    }

    /// Says what the device may do with mapped memory.
    pub(crate) fn set_access(&self, at: u64, size: u64, page: Page) -> Result<(), CUresult> {
        let r = lock(&self.reserved);
        let end = at.checked_add(size).ok_or(INVALID)?;
        let covered: u64 = r.maps.range(at..end).map(|(_, map)| map.size).sum();
        if size == 0 || covered != size || !(at | size).is_multiple_of(GRANULE) {
            return Err(INVALID);
        }
        self.space.protect(at, size, page);
        Ok(())
    }
}
