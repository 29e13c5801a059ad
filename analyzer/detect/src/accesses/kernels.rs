//! The accesses of a launch: where the effects of its code meet allocations.
//!
//! Owns what each effect touches, and what a launch of unknown code may touch. Which effects a
//! launch has is evaluated in [`crate::launches`]; what it finds in memory of known content, in
//! `contents`.

use super::{Outside, Work};
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, HeldLock};
use crate::memory::allocations::{Home, Location};
use crate::memory::{AccessKind, AtomicReach, Cause, Dim, Exclusion, Extent, Lock, Overlap, Pieces, Precision};
use kernels::{Early, LockRole};
use trace::{ImageId, Region};

impl Work<'_, '_> {
    /// A launch whose code is known. Reads come first, so that the op's own writes stand for them
    /// afterwards.
    pub fn effects(&mut self, evaluated: &Evaluated, image: ImageId) {
        self.site.cause = Cause::Kernel;
        // Tables are looked up first: a write of the launch itself is not part of what it reads
        // from them.
        let tables: Vec<(&Effect, Vec<u64>)> = match evaluated.effects.iter().any(Effect::is_through_table) {
            true => {
                self.spoil();
                self.tables(&evaluated.effects, image)
            }
            false => Vec::new(),
        };
        let tensors = match evaluated.effects.iter().any(|e| matches!(e.base, EffectBase::MapInMemory(_))) {
            true => {
                self.spoil();
                self.tensors(&evaluated.effects, image)
            }
            false => Vec::new(),
        };
        let (view, overlap, in_doubt) = (self.view, self.site.overlap, self.site.overlap_in_doubt);
        // What comes before the wait is first: an access behind it, which is ordered, would take
        // the place of others at its bytes, with which those in front of it are not ordered.
        for (early, write) in [(true, false), (true, true), (false, false), (false, true)] {
            let parts = self.before_wait.is_some();
            let of_turn = |e: &&Effect| e.kind.writes() == write && (parts && e.early.is()) == early;
            for effect in evaluated.effects.iter().filter(of_turn) {
                if let Some(before_wait) = self.before_wait.filter(|_| early) {
                    (self.view, self.site.overlap) = (before_wait, Overlap::BeforeWait);
                    self.site.overlap_in_doubt = in_doubt || effect.early == Early::Perhaps;
                } else {
                    (self.view, self.site.overlap, self.site.overlap_in_doubt) = (view, overlap, in_doubt);
                }
                match &effect.base {
                    EffectBase::PointerTable(_) | EffectBase::VariableTable(_) => {
                        let found = tables.iter().find(|t| std::ptr::eq(t.0, effect));
                        self.site.at = effect.at;
                        for pointer in found.map_or(&[][..], |t| &t.1) {
                            self.site.param = match effect.base {
                                EffectBase::PointerTable(table) => Some(table.param),
                                _ => None,
                            };
                            self.kernel_bytes(*pointer, *pointer, effect);
                        }
                        self.unfollowed |= found.is_none();
                    }
                    EffectBase::MapInMemory(_) => match tensors.iter().find(|t| std::ptr::eq(t.0, effect)) {
                        Some((_, tiles)) => {
                            self.maps_lost |= tiles.iter().any(|tile| tile.bytes == EffectExtent::Unknown);
                            tiles.iter().for_each(|tile| self.effect(tile, image));
                        }
                        None => {
                            self.maps_lost = true;
                            self.effect(effect, image);
                        }
                    },
                    _ => {
                        self.site.guessed = effect.guessed();
                        let lock = effect.lock.as_ref().map(|lock| self.lock(lock, image));
                        lock.into_iter().for_each(|lock| self.memory.relays.note(lock));
                        let &Effect { selection, untold, narrow, .. } = effect;
                        let is_atomic = effect.kind.is_atomic();
                        let scope = self.scope.filter(|_| is_atomic || lock.is_some());
                        let is_narrow =
                            |alone| if is_atomic { effect.kind.writes() && (narrow || alone) } else { alone };
                        let reach = scope.map(|(device, alone)| AtomicReach { device, is_narrow: is_narrow(alone) });
                        self.exclusion = Exclusion { lock, selection, untold, narrow, reach };
                        self.effect(effect, image);
                        (self.site.guessed, self.exclusion) = (false, Exclusion::NONE);
                    }
                }
            }
        }
        (self.view, self.site.overlap, self.site.overlap_in_doubt) = (view, overlap, in_doubt);
        let lost = |e: &Effect| match e.base {
            EffectBase::Unknown => true,
            _ => e.is_through_table() && !tables.iter().any(|t| std::ptr::eq(t.0, e)),
        };
        let writes_anywhere = |e: &Effect| e.kind.writes() && lost(e);
        if !self.predicting && evaluated.effects.iter().any(writes_anywhere) {
            self.memory.contents.forget_all();
            self.memory.strays.anywhere();
        }
    }

    /// Where a lock lies. A word that is not known, or lies in no allocation, may be any.
    fn lock(&mut self, HeldLock(words, role): &HeldLock, image: ImageId) -> Lock {
        let mut whole: Option<Lock> = None;
        for (base, bytes) in words {
            let word = match (self.lock_word(base, bytes, image), role) {
                (None, LockRole::Claims) => self.words_behind(base, image),
                (word, _) => word,
            };
            let word = word.unwrap_or(Lock::ANY);
            whole = Some(whole.map_or(word, |lock| lock.or(word)));
        }
        whole.unwrap_or(Lock::ANY).with_role(*role)
    }

    fn lock_word(&mut self, base: &EffectBase, bytes: &EffectExtent, image: ImageId) -> Option<Lock> {
        let EffectExtent::Bounded { lo, hi, width, dims, .. } = bytes else { return None };
        let shift = match base {
            EffectBase::Param(..) | EffectBase::Absolute(_) => 0,
            EffectBase::Global(name) => match self.memory.global(image, name) {
                Some((ptr, _)) => ptr,
                None => {
                    self.spoil();
                    return None;
                }
            },
            _ => return None,
        };
        let length = hi.checked_sub(*lo)?;
        // The address of the place is the same for all mappings of the memory.
        let place = self.locate(lo.wrapping_add(shift))?;
        let within = matches!(place.home, Home::Root(_)) && length <= place.end.saturating_sub(place.address);
        let strides = dims.iter().filter(|dim| dim.count > 1).map(|dim| dim.stride);
        within.then(|| Lock::words(place.address, place.address + length, *width, strides))
    }

    /// The words that an address of unknown extent may be: those of the allocation, or of the
    /// variable. Elsewhere it is no element of the table that the program claims words of.
    fn words_behind(&mut self, base: &EffectBase, image: ImageId) -> Option<Lock> {
        let place = match base {
            EffectBase::Param(_, value) => self.locate(*value)?,
            EffectBase::Global(name) => {
                let Some((ptr, size)) = self.memory.global(image, name) else {
                    self.spoil();
                    return None;
                };
                let place = self.locate(ptr)?;
                let within = matches!(place.home, Home::Root(_)) && size <= place.end.saturating_sub(place.address);
                return within.then(|| Lock::between(place.address, place.address + size));
            }
            _ => return None,
        };
        let (start, end) = self.memory.bounds(&place);
        matches!(place.home, Home::Root(_)).then(|| Lock::between(start, end))
    }

    /// Whether the content of a tensor map in memory is not known.
    pub fn maps_lost(&self) -> bool {
        self.maps_lost
    }

    /// Whether accesses through a table of pointers could not be followed.
    pub fn unfollowed(&self) -> bool {
        self.unfollowed
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
                self.kernel_bytes(*value, 0, effect);
            }
            (EffectBase::Absolute(value), _) => self.kernel_bytes(*value, 0, effect),
            (EffectBase::Global(name), _) => match self.memory.global(image, name) {
                Some((ptr, size)) => self.global_bytes(ptr, size, effect),
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
            (EffectBase::Object | EffectBase::MapInMemory(_), _) => self.unplaced.count(0),
            // Counted as indirect, not guessed.
            (EffectBase::Unknown | EffectBase::PointerTable(_) | EffectBase::VariableTable(_), _) => {}
        }
    }

    /// An access to a variable: offsets become addresses, and an unknown extent is at most the
    /// whole variable.
    fn global_bytes(&mut self, ptr: u64, size: u64, effect: &Effect) {
        match effect.bytes {
            EffectExtent::Bounded { .. } | EffectExtent::Among { .. } | EffectExtent::Pieces { .. } => {
                self.kernel_bytes(ptr, ptr, effect);
            }
            EffectExtent::Unknown | EffectExtent::Scattered => {
                let whole = Extent::bound(ptr, ptr.saturating_add(size), ptr);
                self.spread(whole, effect.kind, Outside::Counted(ptr), true)
            }
        }
    }

    /// The bytes that a kernel touches from a base address on.
    fn kernel_bytes(&mut self, base: u64, shift: u64, effect: &Effect) {
        let kind = effect.kind;
        match &effect.bytes {
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
                (extent.scattered, extent.looked_up) = (effect.voted, effect.looked_up);
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
            EffectExtent::Pieces { origin, pieces, exact } => {
                self.irregular(base, origin.wrapping_add(shift), pieces, *exact, kind);
            }
            EffectExtent::Among { lo, hi } => {
                let (lo, hi) = (lo.wrapping_add(shift), hi.wrapping_add(shift));
                self.spread(Extent::bound(lo, hi, lo).by_data(), kind, Outside::Counted(base), true);
            }
            EffectExtent::Unknown => self.pointer(base, kind, false),
            EffectExtent::Scattered => self.pointer(base, kind, true),
        }
    }

    /// Irregular pieces: one access to each allocation that holds some of them.
    fn irregular(&mut self, base: u64, origin: u64, pieces: &Pieces, exact: bool, kind: AccessKind) {
        let whole = match exact {
            true => Extent::irregular(origin, pieces.clone(), Precision::Exact),
            false => Extent::irregular(origin, pieces.clone(), Precision::Bound).by_data(),
        };
        let spans = pieces.spans();
        let (mut next, mut at) = (0, whole.start);
        while let Some(span) = spans.get(next) {
            at = at.max(span.0.wrapping_add(origin));
            let Some(place) = self.locate(at) else {
                self.unplaced.count(base);
                let known = self.memory.next_known(at);
                next += spans[next..].partition_point(|s| s.1.wrapping_add(origin) <= known);
                at = known;
                continue;
            };
            let end = at.saturating_add(place.end.saturating_sub(place.address).max(1));
            let last = spans[next..].partition_point(|s| s.0.wrapping_add(origin) < end) + next;
            let upto = spans.get(last.wrapping_sub(1)).map_or(at, |s| s.1.wrapping_add(origin)).min(end);
            let mut part = whole.clone().clip(at, upto).moved(place.address.wrapping_sub(at));
            part.anchor = part.start;
            self.add(place.home, place.allocation, kind, part);
            at = end;
            next += spans[next..].partition_point(|s| s.1.wrapping_add(origin) <= end);
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

    /// What an object shows. Coordinates pick the texels, and where they lie is not predicted.
    fn shown(&mut self, region: &Region, kind: AccessKind) {
        let end = region.end();
        self.site.texels = true;
        if region.array.is_none() {
            // Rows: what lies between them is no texel.
            let dims = [
                Dim { stride: region.pitch, count: u64::from(region.height) },
                Dim { stride: region.slice_pitch, count: u64::from(region.depth) },
            ];
            let all = Extent::pattern(region.start, region.width, &dims, region.start, Precision::Bound).by_data();
            self.spread(all, kind, Outside::Counted(0), true);
        } else {
            if let Some(place) = self.memory.locate_array(region.array, region.start) {
                // An object of an array reaches all of it, whatever its layers and faces.
                let end = end.min(place.end);
                let all = Extent::bound(region.start, end, region.start).by_data();
                self.add(place.home, place.allocation, kind, all);
            }
        }
        self.site.texels = false;
    }

    /// A launch without known accesses: the memory behind every word that points into an allocation
    /// counts as read and written. Neither is known, which weakens what rests on it
    /// ([`crate::confidence`]).
    pub fn pointers(&mut self, params: impl Iterator<Item = (u32, u64)>) {
        self.site.cause = Cause::Kernel;
        if !self.predicting {
            self.memory.contents.forget_all();
            self.memory.strays.anywhere();
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
}
