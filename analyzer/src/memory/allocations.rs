//! Which allocation an address belongs to, through all its lives.
//!
//! Owns: roots (memory from CUDA) with their access maps, blocks (what an allocator of the program carved out of a root),
//! aliases, arrays, texture and surface objects, and what is known of allocations that are gone. Does not decide what
//! races.
//!
//! # Lives
//!
//! A root that is freed takes its access map along: the same address later is other memory, so nothing stale is ever
//! reported. Stream-ordered memory stays as a *ghost* after its free, with that free as only access, until its addresses
//! are given out again: work that uses it without being ordered before or after the free races with the free.
//!
//! Blocks have lives and stacks of their own, but share the access map of their root: an allocator inside the program
//! gives no guarantee when it hands out freed bytes again, so an unordered use of the old and of the new block is a race.
//!
//! Memory that is no allocation at all (pageable host memory) shares one bounded map.

use super::access::{Access, Cause};
use super::access_map::AccessMap;
use super::allocation::InOrder;
use super::contents::Contents;
use super::roots::{Root, Roots};
use super::spans::{At, Span, Spans};
use super::tickets::{Number, Spot, Stamps};
use super::{Allocation, AllocationId, Extent, Object, Precision, Slot, Ticket};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::ops::Bound;
use trace::{ArrayId, ContextId, ImageId, MemoryKind, StackId};

/// Ghosts and descriptions of dead allocations that are kept at most.
const MAX_GHOSTS: usize = 1024;
const MAX_DEAD: usize = 1 << 16;
/// Names of allocations that are kept at most: a program that gives each life a name of its own shall not cost more and more.
const MAX_NAMES: usize = 1024;

/// Where variables lie whose address nobody knows: no canonical address of x86-64 or AArch64 begins like this.
const NOWHERE: u64 = 0xffee_0000_0000_0000;

/// Which access map bytes belong to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// The root at this address.
    Root(u64),
    /// An opaque array; addresses are offsets.
    Array(ArrayId),
    /// No allocation.
    Pageable,
}

/// Where an address lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The access map.
    pub home: Home,
    /// The address after aliases were followed.
    pub address: u64,
    /// One past the last address that the same answer holds for.
    pub end: u64,
    /// The innermost allocation.
    pub allocation: AllocationId,
    /// First address of the innermost allocation.
    pub start: u64,
}

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
    /// Lives are begun and forgotten in the order of their ids, nearly: neighbours lie side by side.
    infos: HashMap<AllocationId, Allocation, BuildHasherDefault<InOrder>>,
    dead: VecDeque<AllocationId>,
    roots: Roots,
    ghosts: VecDeque<(u64, AllocationId)>,
    blocks: Spans<Block>,
    stamps: Stamps,
    /// How often something has changed that tickets do not tell of: aliases, objects, addresses of variables.
    others: u64,
    /// Blocks of no byte, which lie nowhere.
    hollow: FxHashMap<u64, AllocationId>,
    aliases: BTreeMap<u64, (u64, u64)>,
    arrays: FxHashMap<ArrayId, Root>,
    objects: FxHashMap<u64, Object>,
    pageable: AccessMap,
    /// What tables of pointers hold, by address after aliases were followed.
    pub contents: Contents,
    /// Addresses of `__device__` variables, by the image that defines them.
    globals: FxHashMap<(ImageId, Box<str>), u64>,
    /// What the program calls its allocations: each name once, counted from 1.
    names: Vec<Box<str>>,
    forgotten: u64,
    shared: Shared,
}

/// What is told of memory that other processes know.
#[derive(Debug, Default)]
struct Shared {
    ever: Vec<AllocationId>,
    touched: Vec<(AllocationId, Access)>,
    ended: Vec<AllocationId>,
}

impl Allocations {
    /// A new life begins. Whatever the addresses were before is over. The id in `info` is set here.
    pub fn alloc(&mut self, mut info: Allocation) -> AllocationId {
        self.last += 1;
        info.id = AllocationId(self.last);
        let end = info.end();
        if info.kind == Some(MemoryKind::Block) && self.roots.around(info.ptr).is_some() {
            self.end_blocks(info.ptr, end, None);
            if info.ptr < end {
                let at = self.blocks.seek(info.ptr);
                let spot = self.carved(info.ptr, end);
                let number = self.stamps.begin_block(info.id, spot);
                self.blocks.insert(at, Span { start: info.ptr, end, value: Block { id: info.id, number } });
            } else {
                self.hollow.insert(info.ptr, info.id);
            }
        } else {
            self.end_roots(info.ptr, end);
            let number = self.stamps.begin(info.id);
            self.roots.insert(info.ptr, Root::new(end, info.id, number));
        }
        self.infos.insert(info.id, info);
        info.id
    }

    /// An opaque array is made. The id in `info` is set here.
    pub fn array(&mut self, array: ArrayId, mut info: Allocation) {
        self.last += 1;
        info.id = AllocationId(self.last);
        self.infos.insert(info.id, info);
        self.arrays.insert(array, Root::new(info.size, info.id, Number::default()));
    }

    /// An opaque array is destroyed.
    pub fn destroy_array(&mut self, array: ArrayId) {
        if let Some(root) = self.arrays.remove(&array) {
            self.bury(root.id, &root.map);
        }
    }

    /// The live block (or root) that begins at this address, and its access map.
    pub fn block(&self, ptr: u64) -> Option<(Allocation, Home)> {
        let place = self.locate(ptr).filter(|place| place.start == ptr)?;
        Some((*self.info(place.allocation)?, place.home))
    }

    /// The program has a name for the innermost allocation that begins here.
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

    /// The names that allocations were given: [`Allocation::name`] counts from 1.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// A block goes back to the allocator that carved it out. False: it was not known.
    pub fn free_block(&mut self, ptr: u64, stack: StackId) -> bool {
        let at = self.blocks.seek(ptr);
        let id = match self.blocks.get(at) {
            Some(block) if block.start == ptr => self.remove_block(at).0,
            _ => match self.hollow.remove(&ptr) {
                Some(id) => id,
                // A block outside every root was made a root of its own. Memory from CUDA that begins here is something else: the block
                // was carved up further, and so ended before.
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

    /// The root at this address goes away; as a ghost it stays until its addresses are given out again. False: there is
    /// none.
    pub fn free_root(&mut self, ptr: u64, stack: StackId, ghost: bool) -> bool {
        if self.aliases.remove(&ptr).is_some() {
            self.others += 1;
            return true;
        }
        let Some(root) = self.roots.get_mut(ptr) else { return false };
        let (id, end) = (root.id, root.end);
        if root.ghost {
            return false;
        }
        root.ghost = ghost;
        self.mark_freed(id, stack);
        self.end_blocks(ptr, end, Some(stack));
        if !self.aliases.is_empty() {
            self.aliases.retain(|_, (_, target)| *target < ptr || *target >= end);
            self.others += 1;
        }
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

    /// A texture or surface object is made.
    pub fn object(&mut self, handle: u64, object: Object) {
        self.others += 1;
        self.objects.insert(handle, object);
    }

    /// A texture or surface object is destroyed.
    pub fn destroy_object(&mut self, handle: u64) {
        self.others += 1;
        self.objects.remove(&handle);
    }

    /// The object behind a handle.
    pub fn object_of(&self, handle: u64) -> Option<Object> {
        if self.objects.is_empty() { None } else { self.objects.get(&handle).copied() }
    }

    /// Where an address lies; `None` when it is in no allocation.
    pub fn locate(&self, address: u64) -> Option<Place> {
        let mut limit = u64::MAX;
        let mut address = address;
        if !self.aliases.is_empty()
            && let Some((from, (end, target))) = self.aliases.range(..=address).next_back()
            && address < *end
        {
            limit = target.saturating_add(end - from);
            address = target.saturating_add(address - from);
        }
        let (ptr, root) = self.roots.around(address)?;
        let mut place =
            Place { home: Home::Root(ptr), address, end: root.end.min(limit), allocation: root.id, start: ptr };
        match self.blocks.get(self.blocks.seek(address)) {
            Some(block) if block.start <= address => {
                (place.allocation, place.start) = (block.value.id, block.start);
                place.end = place.end.min(block.end);
            }
            // Between blocks: the answer changes where the next block begins.
            Some(next) => place.end = place.end.min(next.start),
            None => {}
        }
        Some(place)
    }

    /// The kind of the root that an address lies in.
    pub fn root_kind(&self, address: u64) -> Option<MemoryKind> {
        let (_, root) = self.roots.around(address)?;
        self.infos.get(&root.id)?.kind
    }

    /// First and last address (exclusive) of the innermost allocation of a place.
    pub fn bounds(&self, place: &Place) -> (u64, u64) {
        let end = self.infos.get(&place.allocation).map_or(place.end, Allocation::end);
        (place.start, end.max(place.address.saturating_add(1)))
    }

    /// The first address after this one that an allocation or an alias begins at.
    pub fn next_known(&self, address: u64) -> u64 {
        let after = (Bound::Excluded(address), Bound::Unbounded);
        let root = self.roots.next_after(address).unwrap_or(u64::MAX);
        let alias = self.aliases.range(after).next().map_or(u64::MAX, |(ptr, _)| *ptr);
        root.min(alias)
    }

    /// Whether the real address of a variable is known.
    pub fn has_address(&self, image: ImageId, name: &str) -> bool {
        self.globals.get(&(image, Box::from(name))).is_some_and(|ptr| *ptr < NOWHERE)
    }

    /// Address and size of a `__device__` variable of an image. One whose address nobody has asked for yet gets a place of
    /// its own where no memory can be, so that kernels that share it are compared.
    pub fn global(&mut self, image: ImageId, name: &str) -> Option<(u64, u64)> {
        /// Variables lie far enough apart for any size.
        const APART: u64 = 1 << 34;
        let key = (image, Box::from(name));
        if let Some(ptr) = self.globals.get(&key) {
            return self.root(*ptr).map(|info| (info.ptr, info.size));
        }
        let ptr = NOWHERE + self.globals.len() as u64 % (1 << 12) * APART;
        self.globals.insert(key, ptr);
        self.alloc(Allocation::variable(ptr, APART / 2));
        Some((ptr, APART / 2))
    }

    /// The address of a `__device__` variable is known now.
    pub fn name_global(&mut self, image: ImageId, name: &str, info: Allocation) {
        let key = (image, Box::from(name));
        match self.globals.get(&key) {
            Some(known) if *known == info.ptr => {}
            // Kernels that ran before are remembered under the stand-in: the address becomes a second name of that.
            Some(stand_in) => self.alias(info.ptr, *stand_in, info.size),
            None => {
                self.globals.insert(key, info.ptr);
                self.alloc(info);
            }
        }
    }

    /// Where an offset in an array lies.
    pub fn locate_array(&self, array: ArrayId, offset: u64) -> Option<Place> {
        let root = self.arrays.get(&array)?;
        let home = Home::Array(array);
        Some(Place {
            home,
            address: offset,
            end: root.end.max(offset.saturating_add(1)),
            allocation: root.id,
            start: 0,
        })
    }

    /// The access map of a place. `None` when the root has gone since.
    pub fn map(&mut self, home: Home) -> Option<&mut AccessMap> {
        match home {
            Home::Root(ptr) => self.roots.get_mut(ptr).map(|r| &mut r.map),
            Home::Array(array) => self.arrays.get_mut(&array).map(|r| &mut r.map),
            Home::Pageable => Some(&mut self.pageable),
        }
    }

    /// The predicted accesses of measured launches at a place.
    pub fn supposed(&mut self, home: Home) -> Option<&mut AccessMap> {
        match home {
            Home::Root(ptr) => self.roots.get_mut(ptr).map(|r| &mut r.supposed),
            Home::Array(array) => self.arrays.get_mut(&array).map(|r| &mut r.supposed),
            Home::Pageable => None,
        }
    }

    /// The accesses that are remembered at a place.
    pub fn accesses(&self, home: Home) -> impl Iterator<Item = &Access> {
        let map = match home {
            Home::Root(ptr) => self.roots.get(ptr).map(|r| &r.map),
            Home::Array(array) => self.arrays.get(&array).map(|r| &r.map),
            Home::Pageable => Some(&self.pageable),
        };
        map.into_iter().flat_map(AccessMap::iter)
    }

    /// The accesses that are remembered in roots of these sorts.
    pub fn accesses_in(&self, kinds: &[MemoryKind]) -> impl Iterator<Item = &Access> {
        let is_one = |root: &&Root| self.infos.get(&root.id).and_then(|i| i.kind).is_some_and(|k| kinds.contains(&k));
        self.roots.values().filter(is_one).flat_map(|r| r.map.iter())
    }

    /// The root around this address is known to other processes from now on. Answers it, its first address, and whether it is another
    /// process's.
    pub fn share(&mut self, address: u64) -> Option<(AllocationId, u64, bool)> {
        let Home::Root(start) = self.locate(address)?.home else { return None };
        let root = self.roots.get_mut(start).filter(|root| !root.ghost)?;
        if !root.shared {
            root.shared = true;
            self.shared.ever.push(root.id);
        }
        let kind = self.infos.get(&root.id).and_then(|info| info.kind);
        Some((root.id, start, kind == Some(MemoryKind::Imported)))
    }

    /// An access was made to this place: other processes that know it will be told.
    #[inline]
    pub fn touched(&mut self, home: Home, access: &Access) {
        if !self.shared.ever.is_empty() {
            self.touched_shared(home, access);
        }
    }

    #[cold]
    fn touched_shared(&mut self, home: Home, access: &Access) {
        let Home::Root(start) = home else { return };
        let Some(root) = self.roots.get(start).filter(|root| root.shared) else { return };
        // To let go of another process's memory is no access to it.
        let kind = self.infos.get(&root.id).and_then(|info| info.kind);
        if access.site.cause != Cause::Free || kind != Some(MemoryKind::Imported) {
            self.shared.touched.push((root.id, *access));
        }
    }

    /// The accesses to shared memory since the last time.
    pub fn take_shared(&mut self) -> Option<Vec<(AllocationId, Access)>> {
        (!self.shared.touched.is_empty()).then(|| std::mem::take(&mut self.shared.touched))
    }

    /// The shared memory that has gone since the last time.
    pub fn take_shared_ends(&mut self) -> Vec<AllocationId> {
        std::mem::take(&mut self.shared.ended)
    }

    /// All memory that was shared.
    pub fn ever_shared(&self) -> impl Iterator<Item = AllocationId> {
        self.shared.ever.iter().copied()
    }

    /// What is known of an allocation, dead or alive.
    pub fn info(&self, id: AllocationId) -> Option<&Allocation> {
        self.infos.get(&id)
    }

    /// The live root that begins at this address.
    pub fn root(&self, ptr: u64) -> Option<&Allocation> {
        self.roots.get(ptr).filter(|r| !r.ghost).and_then(|r| self.infos.get(&r.id))
    }

    /// Every allocation of a context goes away.
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

    /// Accesses that were dropped although they could still have raced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten + self.roots.values().chain(self.arrays.values()).map(|r| r.map.forgotten()).sum::<u64>()
    }

    /// Live roots, live blocks and entries of all maps: what the memory of the analysis is made of.
    pub fn footprint(&self) -> (usize, usize, usize) {
        let maps = self.roots.values().chain(self.arrays.values()).map(|r| &r.map);
        (
            self.roots.len(),
            self.blocks.len() + self.hollow.len(),
            maps.chain([&self.pageable]).map(AccessMap::entries).sum(),
        )
    }

    /// A ticket for a place in a root: while [`Allocations::holds`] says so, every address that the answer was given for lies there. What
    /// lies in no allocation, or under an alias, is another matter: see [`Allocations::layout`].
    pub fn ticket(&self, place: &Place) -> Option<Ticket> {
        let Home::Root(ptr) = place.home else { return None };
        let root = self.roots.get(ptr)?;
        let block = self.blocks.get(self.blocks.seek(place.address)).filter(|block| block.start <= place.address);
        Some(self.stamps.ticket(block.map_or(root.number, |block| block.value.number)))
    }

    /// Whether a ticket is still good.
    #[inline]
    pub fn holds(&self, ticket: Ticket) -> bool {
        self.stamps.holds(ticket)
    }

    /// Tables of pointers in these bytes of a root are not known any more.
    pub fn overwritten(&mut self, extent: &Extent) {
        let (mut start, mut end) = (extent.start, extent.end);
        if extent.precision == Precision::Unknown
            && let Some(place) = self.locate(extent.anchor)
        {
            (start, end) = self.bounds(&place);
        }
        self.contents.forget(start, end);
    }

    /// The allocation that a good ticket is for.
    #[inline]
    pub fn of_ticket(&self, ticket: Ticket) -> AllocationId {
        self.stamps.id(ticket)
    }

    /// Where the access map of a root stands, as long as it lives.
    pub fn slot(&self, home: Home) -> Option<Slot> {
        let Home::Root(ptr) = home else { return None };
        self.roots.slot(ptr)
    }

    /// The access map of a root that lives.
    #[inline]
    pub fn map_at(&mut self, slot: Slot) -> &mut AccessMap {
        &mut self.roots.at_mut(slot).map
    }

    /// What no ticket tells of: how often a root has come or gone (which decides what lies in no allocation), and how often aliases,
    /// objects or addresses of variables have changed.
    #[inline]
    pub fn layout(&self) -> (u64, u64) {
        (self.roots.changes(), self.others)
    }

    fn end_roots(&mut self, start: u64, end: u64) {
        for ptr in self.roots.within(start, end) {
            if let Some(root) = self.roots.get(ptr) {
                self.end_blocks(ptr, root.end, None);
                self.remove_root(ptr);
            }
        }
    }

    fn end_blocks(&mut self, start: u64, end: u64, stack: Option<StackId>) {
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
    }

    /// Takes a block away; answers its life and the position of what came after it.
    fn remove_block(&mut self, at: At) -> (AllocationId, At) {
        let bounds = self.blocks.get(at).map_or((0, 0), |block| (block.start, block.end));
        let (block, next) = self.blocks.remove(at);
        let spot = self.carved(bounds.0, bounds.1);
        self.stamps.end_block(block.number, spot);
        (block.id, next)
    }

    /// These addresses became a block, or are none any more. Answers what tells their place from all others.
    fn carved(&mut self, start: u64, end: u64) -> Spot {
        let Some((_, root)) = self.roots.around(start) else { return (AllocationId::NONE, start, end) };
        self.stamps.renew(root.number);
        // A block over the end of its root: nobody does that.
        self.others += u64::from(root.end < end);
        (root.id, start, end)
    }

    fn remove_root(&mut self, ptr: u64) {
        if let Some(root) = self.roots.remove(ptr) {
            self.stamps.end(root.number);
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

    /// Entries of a root's map may still name a block that is gone, so its description outlives it for a while.
    fn remember_dead(&mut self, id: AllocationId) {
        self.dead.push_back(id);
        if self.dead.len() > MAX_DEAD
            && let Some(oldest) = self.dead.pop_front()
        {
            self.infos.remove(&oldest);
        }
    }
}
