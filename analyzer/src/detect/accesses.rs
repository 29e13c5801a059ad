//! From an op to its accesses: which bytes copies, fills, kernels, allocations and frees touch.
//!
//! Owns the memory semantics of each op. Does not know the order, which it gets as a [`View`], and
//! does not count races, which it only collects. Here effects meet allocations, so this file also
//! decides how precise each access is: [`crate::detect::confidence`] lists the cases.

use crate::detect::coverage::Unplaced;
use crate::detect::race::Race;
use crate::detect::recording::ReplayRecorder;
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated};
use crate::memory::allocations::{Home, Location};
use crate::memory::{Access, AccessKind, AllocationId, Allocations, Cause, Dim, Extent, Precision, Site};
use crate::state::happens_before::View;
use trace::{ImageId, MemoryKind, Region, Space};

/// Maximum number of allocations that one access is split over. A longer access is cut short.
const MAX_PIECES: usize = 1 << 14;

/// Maximum number of words of a pointer table that are looked up for one access.
const MAX_TABLE: u64 = 1024;

/// How bytes in no allocation are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    /// They are pageable host memory, which has one map.
    Pageable,
    /// They are unknown, and counted. Holds the pointer that the access starts from.
    Counted(u64),
}

/// One op, or one node of a graph launch, while it is applied to memory.
pub struct Work<'a, 'v> {
    /// All memory.
    pub memory: &'a mut Allocations,
    /// The order as seen from the op.
    pub view: View<'v>,
    /// Where the op comes from.
    pub site: Site,
    /// Races found are appended here.
    pub races: &'a mut Vec<Race>,
    /// Whether to compare accesses of unknown extent at different addresses.
    pub pedantic: bool,
    /// Accesses of kernels at addresses in no allocation.
    pub unplaced: Unplaced,
    /// The last parameter word that was one of several candidates for an address, and whether there
    /// was another.
    candidates: (Option<u32>, bool),
    unfollowed: bool,
    /// Collects the races that the predictions of measured launches would make, when findings are
    /// being confirmed.
    supposed: Option<&'a mut Vec<Race>>,
    /// The current accesses are such predictions.
    predicting: bool,
    /// The recording of the current launch, when one is wanted.
    pub(crate) recording: Option<ReplayRecorder>,
}

impl<'a, 'v> Work<'a, 'v> {
    /// An op from `site`, in the order that `view` shows.
    pub fn new(
        memory: &'a mut Allocations,
        view: View<'v>,
        site: Site,
        races: &'a mut Vec<Race>,
        pedantic: bool,
    ) -> Self {
        Self {
            memory,
            view,
            site,
            races,
            pedantic,
            unplaced: Unplaced::default(),
            candidates: (None, false),
            unfollowed: false,
            supposed: None,
            predicting: false,
            recording: None,
        }
    }

    /// Remembers where the accesses go; see [`crate::launch_memory::replay`].
    pub fn record(&mut self) {
        self.recording = Some(ReplayRecorder::default());
    }

    /// Looks an address up.
    fn locate(&mut self, address: u64) -> Option<Location> {
        let place = self.memory.locate(address);
        if let Some(recording) = &mut self.recording {
            recording.located(self.memory, place.as_ref());
        }
        place
    }

    /// The launch does something that can not be replayed.
    fn spoil(&mut self) {
        self.recording.iter_mut().for_each(ReplayRecorder::spoil);
    }

    /// Also compares with the predicted accesses of measured launches; see
    /// [`crate::exact::confirm`].
    #[must_use]
    pub fn suppose(mut self, races: Option<&'a mut Vec<Race>>) -> Self {
        self.supposed = races;
        self
    }

    /// Applies the predicted accesses of a measured launch: they raise supposed races only.
    pub fn predicted(&mut self, run: impl FnOnce(&mut Self)) {
        if self.supposed.is_none() {
            return;
        }
        let before = (self.site, self.unplaced, self.candidates, self.unfollowed);
        (self.predicting, self.site.measured) = (true, true);
        run(self);
        self.predicting = false;
        (self.site, self.unplaced, self.candidates, self.unfollowed) = before;
    }

    /// Whether the address of some access was computed from several words, more than one of which
    /// points into an allocation.
    pub fn several(&self) -> bool {
        self.candidates.1
    }

    /// A copy. `staged`: the source (pageable memory) has been read when the call returns, so
    /// nothing later can race with the read.
    pub fn copy(&mut self, dst: &Region, src: &Region, spaces: (Space, Space), staged: bool) {
        self.site.cause = Cause::Copy;
        self.region(src, AccessKind::Read, spaces.1, !staged);
        self.region(dst, AccessKind::Write, spaces.0, true);
    }

    /// Bytes of a copy or a fill. `keep`: whether the access outlasts the call.
    pub fn region(&mut self, region: &Region, kind: AccessKind, space: Space, keep: bool) {
        if region.is_empty() {
            return;
        }
        let dims = [
            Dim { stride: region.pitch, count: u64::from(region.height) },
            Dim { stride: region.slice_pitch, count: u64::from(region.depth) },
        ];
        let extent = Extent::pattern(region.start, region.width, &dims, region.start, Precision::Exact);
        if space == Space::Array || !region.array.is_none() {
            if let Some(place) = self.memory.locate_array(region.array, region.start) {
                self.add(place.home, place.allocation, kind, extent);
            }
            return;
        }
        self.spread(extent, kind, Outside::Pageable, keep);
    }

    /// A library reads or writes bytes for the host. `exact`: all of them. `keep`: beyond the call.
    pub fn transfer(&mut self, region: &Region, kind: AccessKind, exact: bool, keep: bool) {
        self.site.cause = Cause::Message;
        if exact {
            self.region(region, kind, Space::Unified, keep);
        } else {
            self.spread(Extent::bound(region.start, region.end(), region.start), kind, Outside::Pageable, keep);
        }
    }

    /// A whole allocation: a stream-ordered allocation and any free count as writes of every byte.
    pub fn whole(&mut self, ptr: u64, size: u64, id: AllocationId, cause: Cause) {
        self.site.cause = cause;
        self.add(Home::Root(ptr), id, AccessKind::Write, Extent::exact(ptr, ptr.saturating_add(size)));
    }

    /// A whole opaque array.
    pub fn whole_array(&mut self, array: trace::ArrayId) {
        self.site.cause = Cause::Free;
        if let Some(place) = self.memory.locate_array(array, 0) {
            self.add(place.home, place.allocation, AccessKind::Write, Extent::exact(0, place.end));
        }
    }

    /// A stream writes a value.
    pub fn value(&mut self, address: u64, width: u8) {
        self.site.cause = Cause::Value;
        // The flag exists to be polled: plain loads that poll it are the other half of the
        // protocol, but a copy or a fill of it is not. An atomic access models this, provided that
        // the polling kernels use volatile loads.
        self.spread(
            Extent::exact(address, address.saturating_add(u64::from(width))),
            AccessKind::Atomic,
            Outside::Pageable,
            true,
        );
    }

    /// A launch whose code is known. Reads come first, so that the op's own writes stand for them
    /// afterwards.
    pub fn effects(&mut self, evaluated: &Evaluated, image: ImageId) {
        self.site.cause = Cause::Kernel;
        // Tables are looked up first: a write of the launch itself is not part of what it reads
        // from them.
        let tables: Vec<(&Effect, Vec<u64>)> =
            match evaluated.effects.iter().any(|e| matches!(e.base, EffectBase::PointerTable(_))) {
                true => {
                    self.spoil();
                    self.tables(&evaluated.effects)
                }
                false => Vec::new(),
            };
        for write in [false, true] {
            for effect in evaluated.effects.iter().filter(|e| e.kind.writes() == write) {
                match effect.base {
                    EffectBase::PointerTable(table) => {
                        let found = tables.iter().find(|t| std::ptr::eq(t.0, effect));
                        self.site.at = effect.at;
                        for pointer in found.map_or(&[][..], |t| &t.1) {
                            self.site.param = Some(table.param);
                            self.kernel_bytes(*pointer, *pointer, &effect.bytes, effect.kind);
                        }
                        self.unfollowed |= found.is_none();
                    }
                    _ => self.effect(effect, image),
                }
            }
        }
        let lost = |e: &Effect| match e.base {
            EffectBase::Unknown => true,
            EffectBase::PointerTable(_) => !tables.iter().any(|t| std::ptr::eq(t.0, e)),
            _ => false,
        };
        let writes_anywhere = |e: &Effect| e.kind.writes() && lost(e);
        if !self.predicting && !self.memory.contents.is_empty() && evaluated.effects.iter().any(writes_anywhere) {
            self.memory.contents.forget_all();
        }
    }

    /// The contents of a launch's pointer tables: only tables whose words are all known and point
    /// into allocations, and which the launch itself does not change.
    fn tables<'e>(&self, effects: &'e [Effect]) -> Vec<(&'e Effect, Vec<u64>)> {
        let unknown_writes = effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown);
        if self.memory.contents.is_empty() || unknown_writes {
            return Vec::new();
        }
        let home = |address: u64| self.memory.locate(address).map(|p| p.home);
        let written = |home: Option<Home>| {
            effects.iter().any(|e| match e.base {
                EffectBase::Param(_, value) | EffectBase::Maybe(_, value) | EffectBase::Absolute(value)
                    if e.kind.writes() =>
                {
                    self.memory.locate(value).map(|p| p.home) == home
                }
                _ => false,
            })
        };
        let mut found = Vec::new();
        for effect in effects {
            let EffectBase::PointerTable(table) = effect.base else { continue };
            if table.count > MAX_TABLE || written(home(table.value)) {
                continue;
            }
            let pointers: Option<Vec<u64>> = (0..table.count)
                .map(|i| {
                    let place = self.memory.locate(table.first.wrapping_add(i.wrapping_mul(table.stride)))?;
                    let word = self.memory.contents.word(place.address)?;
                    self.memory.locate(word).filter(|p| p.home != place.home).map(|_| word)
                })
                .collect();
            if let Some(mut pointers) = pointers {
                pointers.sort_unstable();
                pointers.dedup();
                found.push((effect, pointers));
            }
        }
        found
    }

    /// Whether accesses through a table of pointers could not be followed.
    pub fn unfollowed(&self) -> bool {
        self.unfollowed
    }

    /// Learns the words that the last copy stored, when its source is certain: pageable memory,
    /// which has been read by now. Or those of pinned memory, for the next launch.
    pub fn learn(memory: &mut Allocations, bytes: &[u8], ptr: u64) {
        let kinds = [MemoryKind::Device, MemoryKind::Pool, MemoryKind::Mapped];
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let Some(place) = memory.locate(ptr.wrapping_add(8 * i as u64)) else { return };
            let kind = memory.root_kind(place.address);
            if !place.address.is_multiple_of(8) || memory.locate(word).is_none() {
                continue;
            }
            if kind.is_some_and(|k| kinds.contains(&k)) {
                memory.contents.put(place.address, word);
            } else if matches!(kind, Some(MemoryKind::PinnedHost | MemoryKind::RegisteredHost)) {
                memory.contents.put_fleeting(place.address, word);
            }
        }
    }

    fn effect(&mut self, effect: &Effect, image: ImageId) {
        self.site.param = None;
        self.site.at = effect.at;
        match (&effect.base, &effect.bytes) {
            (EffectBase::Tensor(_, value), EffectExtent::Bounded { .. }) if self.locate(*value).is_none() => {
                self.unplaced.count(*value);
            }
            (EffectBase::Maybe(_, value) | EffectBase::Tensor(_, value), _) if self.locate(*value).is_none() => {}
            (
                EffectBase::Param(offset, value) | EffectBase::Maybe(offset, value) | EffectBase::Tensor(offset, value),
                bytes,
            ) => {
                self.site.param = Some(*offset);
                let guessed = matches!(bytes, EffectExtent::Unknown | EffectExtent::Scattered);
                if matches!(effect.base, EffectBase::Maybe(..))
                    || (guessed && matches!(effect.base, EffectBase::Tensor(..)))
                {
                    let another = self.candidates.0.is_some_and(|o| o != *offset);
                    self.candidates = (Some(*offset), self.candidates.1 || another);
                }
                self.kernel_bytes(*value, 0, bytes, effect.kind);
            }
            (EffectBase::Absolute(value), bytes) => self.kernel_bytes(*value, 0, bytes, effect.kind),
            (EffectBase::Global(name), bytes) => match self.memory.global(image, name) {
                Some((ptr, size)) => self.global_bytes(ptr, size, bytes, effect.kind),
                None => {
                    self.spoil();
                    self.unplaced.count(0);
                }
            },
            (EffectBase::Handle(offset, handle), _) => {
                self.spoil();
                match self.memory.object_of(*handle) {
                    Some(object) => {
                        self.site.param = Some(*offset);
                        self.shown(&object.region, effect.kind);
                    }
                    None => self.unplaced.count(0),
                }
            }
            (EffectBase::SomeHandle(words), _) => {
                self.spoil();
                let mut found = false;
                for (offset, handle) in words {
                    if let Some(object) = self.memory.object_of(*handle) {
                        found = true;
                        self.site.param = Some(*offset);
                        self.shown(&object.region, effect.kind);
                    }
                }
                self.unplaced.accesses += u64::from(!found);
            }
            (EffectBase::Object, _) => self.unplaced.count(0),
            // Counted as indirect, not guessed.
            (EffectBase::Unknown | EffectBase::PointerTable(_), _) => {}
        }
    }

    /// An access to a variable: offsets become addresses, and an unknown extent is at most the
    /// whole variable.
    fn global_bytes(&mut self, ptr: u64, size: u64, bytes: &EffectExtent, kind: AccessKind) {
        match bytes {
            EffectExtent::Bounded { .. } | EffectExtent::Among { .. } => self.kernel_bytes(ptr, ptr, bytes, kind),
            EffectExtent::Unknown | EffectExtent::Scattered => {
                self.spread(Extent::bound(ptr, ptr.saturating_add(size), ptr), kind, Outside::Counted(ptr), true)
            }
        }
    }

    /// The bytes that a kernel touches from a base address on.
    fn kernel_bytes(&mut self, base: u64, shift: u64, bytes: &EffectExtent, kind: AccessKind) {
        match bytes {
            EffectExtent::Bounded { lo, hi, width, dims, exact } => {
                let (lo, hi) = (lo.wrapping_add(shift), hi.wrapping_add(shift));
                if lo >= hi {
                    return;
                }
                if *exact {
                    self.spread(
                        Extent::pattern(lo, *width, dims, lo, Precision::Exact),
                        kind,
                        Outside::Counted(base),
                        true,
                    );
                    return;
                }
                // An upper bound says nothing about allocations other than the one that the pointer
                // points into.
                let Some(place) = self.locate(base).or_else(|| self.locate(lo)) else {
                    self.unplaced.count(base);
                    return;
                };
                let (start, end) = self.memory.bounds(&place);
                let moved = place.address.wrapping_sub(base);
                let mut extent = Extent::pattern(lo.wrapping_add(moved), *width, dims, lo, Precision::Bound);
                if dims.is_empty() {
                    extent = Extent::bound(extent.start, hi.wrapping_add(moved), extent.start);
                }
                extent = extent.clip(start, end);
                // Where the bound begins below the pointer that the program passed, that pointer is
                // what the program meant.
                let passed = base.wrapping_add(moved);
                let inside = extent.start < passed && passed < extent.end;
                extent.anchor = if inside { passed } else { extent.start };
                if moved == 0 && extent.end > self.memory.root_end(&place) {
                    // A block over several mappings: each keeps the part in it.
                    self.spread(extent, kind, Outside::Counted(base), true);
                } else {
                    self.add(place.home, place.allocation, kind, extent);
                }
            }
            EffectExtent::Among { lo, hi } => {
                let (lo, hi) = (lo.wrapping_add(shift), hi.wrapping_add(shift));
                self.spread(Extent::bound(lo, hi, lo).by_data(), kind, Outside::Counted(base), true);
            }
            EffectExtent::Unknown => self.pointer(base, kind, false),
            EffectExtent::Scattered => self.pointer(base, kind, true),
        }
    }

    /// An access of unknown extent through a pointer. False: it points into no allocation.
    fn pointer(&mut self, value: u64, kind: AccessKind, scattered: bool) {
        let Some(place) = self.locate(value) else {
            self.unplaced.count(value);
            return;
        };
        self.unknown_extent(&place, kind, scattered);
    }

    /// An access of unknown extent at a place. By default it is compared by its start only, so the
    /// map holds one byte of it.
    fn unknown_extent(&mut self, place: &Location, kind: AccessKind, scattered: bool) {
        let at = place.address;
        let (start, end) = if self.pedantic { self.memory.bounds(place) } else { (at, at.saturating_add(1)) };
        let extent = Extent::unknown(at, start, end);
        self.add(place.home, place.allocation, kind, if scattered { extent.by_data() } else { extent });
    }

    fn shown(&mut self, region: &Region, kind: AccessKind) {
        let end = region.end();
        if !region.array.is_none() {
            if let Some(place) = self.memory.locate_array(region.array, region.start) {
                // An object of an array reaches all of it, whatever its layers and faces.
                let end = end.min(place.end);
                self.add(place.home, place.allocation, kind, Extent::bound(region.start, end, region.start));
            }
            return;
        }
        self.spread(Extent::bound(region.start, end, region.start), kind, Outside::Counted(0), true);
    }

    /// A launch without known accesses: the memory behind every word that points into an allocation
    /// counts as read and written. Neither is known, which weakens what rests on it
    /// ([`crate::detect::confidence`]).
    pub fn pointers(&mut self, params: impl Iterator<Item = (u32, u64)>) {
        self.site.cause = Cause::Kernel;
        if !self.predicting {
            self.memory.contents.forget_all();
        }
        for (offset, value) in params {
            self.site.param = Some(offset);
            if let Some(object) = self.memory.object_of(value) {
                // A texture can only be read.
                self.site.guessed = object.writable;
                self.shown(&object.region, AccessKind::Read);
                if object.writable {
                    self.shown(&object.region, AccessKind::Write);
                }
            } else if let Some(place) = self.memory.locate(value) {
                self.site.guessed = true;
                self.unknown_extent(&place, AccessKind::Read, false);
                self.unknown_extent(&place, AccessKind::Write, false);
            }
        }
        self.site.guessed = false;
    }

    /// Adds an access at addresses to every allocation that it reaches into.
    fn spread(&mut self, extent: Extent, kind: AccessKind, outside: Outside, keep: bool) {
        let mut at = extent.start;
        for _ in 0..MAX_PIECES {
            if at >= extent.end {
                return;
            }
            let Some(place) = self.locate(at) else {
                let end = self.memory.next_known(at).min(extent.end);
                match outside {
                    Outside::Pageable => {
                        self.put(Home::Pageable, AllocationId::NONE, kind, extent.clip(at, end), keep);
                    }
                    Outside::Counted(base) if at == extent.start => self.unplaced.count(base),
                    Outside::Counted(_) => self.unplaced.count(0),
                }
                at = end;
                continue;
            };
            let end = at.saturating_add(place.end.saturating_sub(place.address).max(1)).min(extent.end);
            let piece = extent.clip(at, end).moved(place.address.wrapping_sub(at));
            self.put(place.home, place.allocation, kind, piece, keep);
            at = end;
        }
    }

    fn add(&mut self, home: Home, allocation: AllocationId, kind: AccessKind, extent: Extent) {
        self.put(home, allocation, kind, extent, true);
    }

    /// Compares an access with the remembered ones and keeps it, unless it has already finished.
    fn put(&mut self, home: Home, allocation: AllocationId, kind: AccessKind, extent: Extent, keep: bool) {
        let access = Access { epoch: self.view.epoch, kind, extent, allocation, site: self.site };
        if self.predicting {
            return self.put_supposed(home, &access);
        }
        if let Some(recording) = &mut self.recording {
            recording.step(self.memory, home, &access);
        }
        if kind.writes() && !self.memory.contents.is_empty() && matches!(home, Home::Root(_)) {
            self.memory.overwritten(&extent);
        }
        self.memory.touched(home, &access);
        self.memory.used(home, &access);
        let races = &mut *self.races;
        let mut race = |e: &Access, latent| races.extend(Race::judge(e, &access, latent));
        match self.memory.map(home) {
            Some(map) if keep => map.add(&access, &self.view, &mut race),
            Some(map) => map.check(&access, &self.view, &mut race),
            None => {}
        }
        // A measured launch adds its predicted accesses itself.
        if !access.site.measured
            && let Some(supposed) = self.supposed.as_deref_mut()
            && let Some(map) = self.memory.supposed(home)
        {
            map.check(&access, &self.view, &mut |e: &Access, latent| supposed.extend(Race::judge(e, &access, latent)));
        }
    }

    /// Compares a predicted access of a measured launch with all accesses, and keeps it apart.
    fn put_supposed(&mut self, home: Home, access: &Access) {
        let Some(supposed) = self.supposed.as_deref_mut() else { return };
        let mut race = |e: &Access, latent| supposed.extend(Race::judge(e, access, latent));
        if let Some(map) = self.memory.map(home) {
            map.check(access, &self.view, &mut race);
        }
        if let Some(map) = self.memory.supposed(home) {
            map.add(access, &self.view, &mut race);
        }
    }
}
