//! Which allocation an address belongs to, through all lifetimes.
//!
//! Owns roots (memory from CUDA) with their access maps, blocks (what an allocator of the program
//! carved out of a root), aliases, arrays, texture and surface objects, and the descriptions of
//! allocations that have ended. Does not decide what races.
//!
//! `lookup` is the look-up by address. `variables` handles `__device__` variables, `sharing` memory
//! that other processes have too, `host_side` memory that the host uses unseen, `openness` messages
//! of kernels to the host, and `leftovers` values that may still be there. All of them know this
//! file only, and work on [`Allocations`].
//!
//! # Lifetimes
//!
//! A root that is freed takes its access map along. The same address later is other memory, so
//! nothing stale is ever reported. Stream-ordered memory stays as a *ghost* after its free, with
//! that free as its only access, until its addresses are allocated again: work that uses it without
//! being ordered before or after the free races with the free.
//!
//! Blocks have lifetimes and stacks of their own, but share the access map of their root: an
//! allocator inside the program gives no guarantee when it hands out freed bytes again, so an
//! unordered use of the old and of the new block is a race.
//!
//! Memory that is no allocation at all (pageable host memory) shares one bounded map.

mod early_values;
pub(crate) mod host_side;
pub(crate) mod leftovers;
mod lookup;
mod openness;
mod sharing;
mod variables;

pub use early_values::{sole_writer, untold_pairs, writers};
pub use lookup::{Home, Location};
pub use openness::{flags_in, may_be_flag, speaks_openly};

use super::access_map::AccessMap;
use super::allocation::InOrder;
use super::contents::Contents;
use super::roots::{Root, Roots};
use super::{Allocation, AllocationId, Escapes, Object, Relays, Strays, TensorMaps};
use crate::memory::generations::{Number, Spot, Stamps};
use crate::memory::interval_map::{At, Span, Spans};
use rustc_hash::FxHashMap;
use sharing::Shared;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use trace::{ArrayId, ContextId, ImageId, MemoryKind, StackId};

/// Maximum number of ghosts and of descriptions of ended allocations.
const MAX_GHOSTS: usize = 1024;
const MAX_DEAD: usize = 1 << 16;
/// Maximum number of allocation names, so that a program that names every lifetime differently does
/// not use ever more memory.
const MAX_NAMES: usize = 1024;

/// A live block.
#[derive(Clone, Copy, Debug)]
struct Block {
    id: AllocationId,
    number: Number,
}

/// All memory of one process.
#[derive(Debug, Default)]
pub struct Allocations {
    last: u32,
    /// Lifetimes begin and are forgotten almost in the order of their ids, so neighbours lie side
    /// by side.
    infos: HashMap<AllocationId, Allocation, BuildHasherDefault<InOrder>>,
    dead: VecDeque<AllocationId>,
    roots: Roots,
    ghosts: VecDeque<(u64, AllocationId)>,
    blocks: Spans<Block>,
    stamps: Stamps,
    /// Number of changes that no generation covers: aliases, objects, addresses of variables.
    others: u64,
    /// Blocks of zero bytes, which occupy no address.
    hollow: FxHashMap<u64, AllocationId>,
    aliases: BTreeMap<u64, (u64, u64)>,
    arrays: FxHashMap<ArrayId, Root>,
    /// Where arrays lie on a simulated GPU: by their first address, with one past the last.
    array_places: BTreeMap<u64, (u64, ArrayId)>,
    objects: FxHashMap<u64, Object>,
    pageable: AccessMap,
    /// The contents of pointer tables, by address after aliases were followed.
    pub contents: Contents,
    /// Tensor maps that were seen being made.
    pub tensor_maps: TensorMaps,
    /// Writes to places that are not known.
    pub strays: Strays,
    /// Work that escaped captures.
    pub escapes: Escapes,
    /// Kernels that hand on what is handed to them.
    pub relays: Relays,
    /// `__device__` variables, by the image that defines them.
    globals: FxHashMap<(ImageId, Box<str>), variables::Variable>,
    /// The program's names for its allocations: each name once, counted from 1.
    names: Vec<Box<str>>,
    /// Where the levels of mipmapped arrays end: each list once, counted from 1.
    levels: Vec<Box<[u64]>>,
    forgotten: u64,
    shared: Shared,
    unwatched: host_side::Unwatched,
}

impl Allocations {
    /// Begins a lifetime, and ends the earlier ones at these addresses. The id in `info` is set
    /// here.
    pub fn alloc(&mut self, mut info: Allocation) -> AllocationId {
        self.last += 1;
        info.id = AllocationId(self.last);
        if info.kind == Some(MemoryKind::Block) {
            info.ptr = self.followed(info.ptr).0;
        }
        let end = info.end();
        if info.kind == Some(MemoryKind::Block) && self.roots.around(info.ptr).is_some() {
            let at = self.end_blocks(info.ptr, end, None);
            if info.ptr < end {
                let number = match self.carved(info.ptr, end) {
                    Some(spot) => self.stamps.begin_block(info.id, spot),
                    None => self.stamps.begin(info.id),
                };
                self.blocks.insert(at, Span { start: info.ptr, end, value: Block { id: info.id, number } });
            } else {
                self.hollow.insert(info.ptr, info.id);
            }
        } else {
            self.end_roots(info.ptr, end);
            self.end_aliases_of(info.ptr, end);
            let number = self.stamps.begin(info.id);
            let host_side = self.host_side(info.kind);
            self.roots.insert(info.ptr, Root { host_side, ..Root::new(end, info.id, number) });
        }
        self.infos.insert(info.id, info);
        info.id
    }

    /// Begins the lifetime of an opaque array. The id in `info` is set here.
    pub fn array(&mut self, array: ArrayId, mut info: Allocation) {
        self.last += 1;
        info.id = AllocationId(self.last);
        self.infos.insert(info.id, info);
        self.arrays.insert(array, Root::new(info.size, info.id, Number::default()));
    }

    /// The description of an opaque array that lives.
    pub fn array_info(&self, array: ArrayId) -> Option<&Allocation> {
        self.infos.get(&self.arrays.get(&array)?.id)
    }

    /// The bytes of an opaque array lie there.
    pub fn array_at(&mut self, array: ArrayId, address: u64) {
        if let Some(root) = self.arrays.get(&array) {
            self.array_places.insert(address, (address.saturating_add(root.end), array));
        }
    }

    /// The opaque array is a mipmapped one, whose levels end there.
    pub fn array_levels(&mut self, array: ArrayId, ends: Vec<u64>) {
        let Some(info) = self.arrays.get(&array).and_then(|root| self.infos.get_mut(&root.id)) else { return };
        let known = self.levels.iter().position(|known| **known == *ends);
        info.levels = 1 + known.unwrap_or_else(|| {
            self.levels.push(ends.into());
            self.levels.len() - 1
        }) as u32;
    }

    /// Where the levels of mipmapped arrays end: [`Allocation::levels`] counts from 1.
    pub fn levels(&self) -> &[Box<[u64]>] {
        &self.levels
    }

    /// Ends the lifetime of an opaque array.
    pub fn destroy_array(&mut self, array: ArrayId) {
        self.array_places.retain(|_, place| place.1 != array);
        if let Some(root) = self.arrays.remove(&array) {
            self.bury(root.id, &root.map);
        }
    }

    /// The live block (or root) that begins at this address, and its access map.
    pub fn block(&self, ptr: u64) -> Option<(Allocation, Home)> {
        let place = self.locate(ptr).filter(|place| place.start == ptr)?;
        Some((*self.info(place.allocation)?, place.home))
    }

    /// Names the innermost allocation that begins here.
    pub fn name(&mut self, ptr: u64, name: &str) {
        let place = self.locate(ptr).filter(|place| place.start == ptr);
        let Some(info) = place.and_then(|place| self.infos.get_mut(&place.allocation)) else { return };
        let known = self.names.iter().rposition(|known| **known == *name);
        if known.is_none() && self.names.len() >= MAX_NAMES {
            return;
        }
        info.name = 1 + known.unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        }) as u32;
    }

    /// The names of allocations: [`Allocation::name`] counts from 1.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns a block to the allocator that carved it out. False: it was not known.
    pub fn free_block(&mut self, ptr: u64, stack: StackId) -> bool {
        let ptr = self.followed(ptr).0;
        let at = self.blocks.seek(ptr);
        let id = match self.blocks.get(at) {
            Some(block) if block.start == ptr => self.remove_block(at).0,
            _ => match self.hollow.remove(&ptr) {
                Some(id) => id,
                // A block outside every root was made a root of its own. Memory from CUDA that
                // begins here is something else: there the block was carved up further, and so had
                // ended before.
                None => {
                    let is_block = self.root(ptr).is_some_and(|info| info.kind == Some(MemoryKind::Block));
                    return is_block && self.free_root(ptr, stack, false);
                }
            },
        };
        self.mark_freed(id, stack);
        self.remember_dead(id);
        true
    }

    /// Ends the root at this address. As a ghost it stays until its addresses are allocated again.
    /// False: there is none.
    pub fn free_root(&mut self, ptr: u64, stack: StackId, ghost: bool) -> bool {
        let Some(root) = self.roots.get_mut(ptr) else { return self.unalias(ptr) };
        let (id, end) = (root.id, root.end);
        if root.ghost {
            return false;
        }
        root.ghost = ghost;
        self.mark_freed(id, stack);
        self.end_blocks(ptr, end, Some(stack));
        self.end_aliases_of(ptr, end);
        if ghost {
            self.ghosts.push_back((ptr, id));
            if self.ghosts.len() > MAX_GHOSTS {
                let oldest = self.ghosts.pop_front();
                if let Some((ptr, id)) = oldest {
                    self.drop_ghost(ptr, id);
                }
            }
        } else {
            self.remove_root(ptr);
        }
        true
    }

    /// `size` bytes from `ptr` are the same memory as those from `target`.
    pub fn alias(&mut self, ptr: u64, target: u64, size: u64) {
        if ptr != target {
            self.others += 1;
            self.aliases.insert(ptr, (ptr.saturating_add(size), target));
        }
    }

    /// An alias goes away. False: there is none.
    pub fn unalias(&mut self, ptr: u64) -> bool {
        let known = self.aliases.remove(&ptr).is_some();
        self.others += u64::from(known);
        known
    }

    /// Adds a texture or surface object.
    pub fn object(&mut self, handle: u64, object: Object) {
        self.others += 1;
        self.objects.insert(handle, object);
    }

    /// Removes a texture or surface object.
    pub fn destroy_object(&mut self, handle: u64) {
        self.others += 1;
        self.objects.remove(&handle);
    }

    /// The object behind a handle.
    pub(crate) fn object_of(&self, handle: u64) -> Option<Object> {
        if self.objects.is_empty() { None } else { self.objects.get(&handle).copied() }
    }

    /// The description of an allocation, live or ended.
    pub fn info(&self, id: AllocationId) -> Option<&Allocation> {
        self.infos.get(&id)
    }

    /// The live root that begins at this address.
    pub fn root(&self, ptr: u64) -> Option<&Allocation> {
        self.roots.get(ptr).filter(|r| !r.ghost).and_then(|r| self.infos.get(&r.id))
    }

    /// The lifetime that began last. Earlier ones have lower numbers.
    pub fn youngest(&self) -> AllocationId {
        AllocationId(self.last)
    }

    /// Ends every allocation of a context.
    pub fn destroy_context(&mut self, context: ContextId, stack: StackId) {
        let gone: Vec<u64> = self
            .roots
            .iter()
            .filter(|(_, r)| self.infos.get(&r.id).is_some_and(|i| i.context == context && !context.is_none()))
            .map(|(ptr, _)| ptr)
            .collect();
        for ptr in gone {
            self.free_root(ptr, stack, false);
        }
    }

    /// Ends everything: what lives now is not known.
    pub fn end_all(&mut self) {
        self.aliases.clear();
        self.objects.clear();
        self.globals.clear();
        self.others += 1;
        self.end_roots(0, u64::MAX);
        for (_, root) in std::mem::take(&mut self.arrays) {
            self.bury(root.id, &root.map);
        }
        self.ghosts.clear();
        self.pageable = AccessMap::default();
        self.contents.forget_all();
        self.strays.anywhere();
        self.escapes = Escapes::default();
    }

    /// Accesses that were dropped although they could still have raced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten + self.roots.values().chain(self.arrays.values()).map(|r| r.map.forgotten()).sum::<u64>()
    }

    /// Live roots, live blocks and entries of all maps: the memory use of the analysis.
    pub fn footprint(&self) -> (usize, usize, usize) {
        let maps = self.roots.values().chain(self.arrays.values()).map(|r| &r.map);
        (
            self.roots.len(),
            self.blocks.len() + self.hollow.len(),
            maps.chain([&self.pageable]).map(AccessMap::entries).sum(),
        )
    }

    /// Aliases of memory that is gone.
    fn end_aliases_of(&mut self, start: u64, end: u64) {
        if !self.aliases.is_empty() {
            self.aliases.retain(|_, (_, target)| *target < start || *target >= end);
            self.others += 1;
        }
    }

    fn end_roots(&mut self, start: u64, end: u64) {
        for ptr in self.roots.within(start, end) {
            if let Some(root) = self.roots.get(ptr) {
                self.end_blocks(ptr, root.end, None);
                self.remove_root(ptr);
            }
        }
    }

    /// Ends the blocks that overlap these addresses. Returns the position of the first block after
    /// them.
    fn end_blocks(&mut self, start: u64, end: u64, stack: Option<StackId>) -> At {
        let mut at = self.blocks.seek(start);
        while self.blocks.get(at).is_some_and(|block| block.start < end) {
            let (id, next) = self.remove_block(at);
            self.block_gone(id, stack);
            at = next;
        }
        if !self.hollow.is_empty() {
            let gone: Vec<u64> = self.hollow.keys().copied().filter(|ptr| (start..end).contains(ptr)).collect();
            for id in gone.iter().filter_map(|ptr| self.hollow.remove(ptr)).collect::<Vec<_>>() {
                self.block_gone(id, stack);
            }
        }
        at
    }

    /// Removes a block. Returns its lifetime and the position of the block after it.
    fn remove_block(&mut self, at: At) -> (AllocationId, At) {
        let bounds = self.blocks.get(at).map_or((0, 0), |block| (block.start, block.end));
        let (block, next) = self.blocks.remove(at);
        match self.carved(bounds.0, bounds.1) {
            Some(spot) => self.stamps.end_block(block.number, spot),
            None => self.stamps.end(block.number),
        }
        (block.id, next)
    }

    /// These addresses became a block, or ceased to be one. Returns the identity of their place,
    /// when they lie in one root.
    fn carved(&mut self, start: u64, end: u64) -> Option<Spot> {
        let (_, root) = self.roots.around(start)?;
        self.stamps.renew(root.number);
        if end <= root.end {
            return Some((root.id, start, end));
        }
        // A block over several mappings.
        for root in self.roots.within(start, end).iter().filter_map(|ptr| self.roots.get(*ptr)) {
            self.stamps.renew(root.number);
        }
        None
    }

    fn remove_root(&mut self, ptr: u64) {
        if let Some(root) = self.roots.remove(ptr) {
            self.stamps.end(root.number);
            self.host_side_ended(root.host_side);
            self.bury(root.id, &root.map);
        }
    }

    fn block_gone(&mut self, id: AllocationId, freed: Option<StackId>) {
        if let Some(stack) = freed {
            self.mark_freed(id, stack);
        }
        self.remember_dead(id);
    }

    fn drop_ghost(&mut self, ptr: u64, id: AllocationId) {
        if self.roots.get(ptr).is_some_and(|r| r.ghost && r.id == id) {
            self.remove_root(ptr);
        }
    }

    fn bury(&mut self, id: AllocationId, map: &AccessMap) {
        self.forgotten += map.forgotten();
        if self.shared.ever.contains(&id) {
            self.shared.ended.push(id);
        }
        self.remember_dead(id);
    }

    fn mark_freed(&mut self, id: AllocationId, stack: StackId) {
        if let Some(info) = self.infos.get_mut(&id) {
            info.freed = Some(stack);
        }
    }

    /// Entries of a root's map may still name a block that has ended, so its description is kept
    /// for a while.
    fn remember_dead(&mut self, id: AllocationId) {
        self.dead.push_back(id);
        if self.dead.len() > MAX_DEAD
            && let Some(oldest) = self.dead.pop_front()
        {
            self.infos.remove(&oldest);
        }
    }
}
