//! From an op to its accesses: which bytes copies, fills, kernels, allocations and frees touch.
//!
//! Owns the memory semantics of each op: those of calls here, those of launches in `kernels` and
//! `contents`. Does not know the order, which it gets as a [`View`], and does not count races,
//! which it only collects. Here bytes meet allocations, so these files also decide how precise each
//! access is: [`crate::confidence`] lists the cases.

mod contents;
mod kernels;

use crate::coverage::Unplaced;
use crate::memory::allocations::{Home, Location};
use crate::memory::{Access, AccessKind, AllocationId, Allocations, Cause, Dim, Exclusion, Extent, Precision, Site};
use crate::race::Race;
use crate::recording::ReplayRecorder;
use crate::state::happens_before::View;
use std::num::NonZeroU32;
use trace::{Region, Space};

/// Maximum number of allocations that one access is split over. A longer access is cut short.
const MAX_PIECES: usize = 1 << 14;

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
    pub(crate) memory: &'a mut Allocations,
    /// The order as seen from the op.
    pub(crate) view: View<'v>,
    /// The same from a kernel that has not waited for the work it depends on, if that differs.
    before_wait: Option<View<'v>>,
    /// Where the op comes from.
    pub site: Site,
    /// What may keep the threads of the current access from those of another.
    exclusion: Exclusion,
    /// Of a kernel, where several devices may reach the memory: its device, and whether none of its
    /// atomic stores has a scope beyond that.
    scope: Option<(NonZeroU32, bool)>,
    /// Races found are appended here.
    pub(crate) races: &'a mut Vec<Race>,
    /// Whether to compare accesses of unknown extent at different addresses.
    pub(crate) pedantic: bool,
    /// Accesses of kernels at addresses in no allocation.
    pub unplaced: Unplaced,
    /// The last parameter word that was one of several candidates for an address, and whether there
    /// was another.
    candidates: (Option<u32>, bool),
    unfollowed: bool,
    maps_lost: bool,
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
    #[inline]
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
            before_wait: None,
            site,
            exclusion: Exclusion::NONE,
            scope: None,
            races,
            pedantic,
            unplaced: Unplaced::default(),
            candidates: (None, false),
            unfollowed: false,
            maps_lost: false,
            supposed: None,
            predicting: false,
            recording: None,
        }
    }

    /// Of a kernel that may begin before the work it depends on has ended: the order as seen from
    /// before its wait.
    #[must_use]
    pub fn overlapping(self, before_wait: Option<View<'v>>) -> Self {
        Self { before_wait, ..self }
    }

    /// Of a kernel, where several devices may reach the memory: its device, and whether none of its
    /// atomic stores has a scope beyond that.
    #[must_use]
    pub fn with_scope(self, scope: Option<(NonZeroU32, bool)>) -> Self {
        Self { scope, ..self }
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
    #[inline]
    pub fn suppose(mut self, races: Option<&'a mut Vec<Race>>) -> Self {
        self.supposed = races;
        self
    }

    /// Applies the predicted accesses of a measured launch: they raise supposed races only.
    pub fn predicted(&mut self, run: impl FnOnce(&mut Self)) {
        if self.supposed.is_none() {
            return;
        }
        let before = (self.site, self.unplaced, self.candidates, self.unfollowed, self.maps_lost);
        (self.predicting, self.site.measured) = (true, true);
        run(self);
        self.predicting = false;
        (self.site, self.unplaced, self.candidates, self.unfollowed, self.maps_lost) = before;
    }

    /// Whether the address of some access was computed from several words, more than one of which
    /// points into an allocation.
    pub fn several(&self) -> bool {
        self.candidates.1
    }

    /// A copy. `staged`: the source (pageable memory) has been read when the call returns, so
    /// nothing later can race with the read.
    pub fn copy(&mut self, dst: &Region, src: &Region, spaces: (Space, Space), staged: bool) {
        self.source(src, spaces.1, staged);
        self.target(dst, spaces.0);
    }

    /// The source of a copy; see [`Work::copy`].
    pub fn source(&mut self, src: &Region, space: Space, staged: bool) {
        self.site.cause = Cause::Copy;
        self.region(src, AccessKind::Read, space, !staged);
    }

    /// The target of a copy.
    pub fn target(&mut self, dst: &Region, space: Space) {
        self.site.cause = Cause::Copy;
        self.region(dst, AccessKind::Write, space, true);
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
                        self.put(Home::Pageable, AllocationId::NONE, kind, extent.clone().clip(at, end), keep);
                    }
                    Outside::Counted(base) if at == extent.start => self.unplaced.count(base),
                    Outside::Counted(_) => self.unplaced.count(0),
                }
                at = end;
                continue;
            };
            let end = at.saturating_add(place.end.saturating_sub(place.address).max(1)).min(extent.end);
            if (at, end) == (extent.start, extent.end) {
                let all = extent.moved(place.address.wrapping_sub(at));
                return self.put(place.home, place.allocation, kind, all, keep);
            }
            let piece = extent.clone().clip(at, end).moved(place.address.wrapping_sub(at));
            self.put(place.home, place.allocation, kind, piece, keep);
            at = end;
        }
    }

    fn add(&mut self, home: Home, allocation: AllocationId, kind: AccessKind, extent: Extent) {
        self.put(home, allocation, kind, extent, true);
    }

    /// Compares an access with the remembered ones and keeps it, unless it has already finished.
    fn put(&mut self, home: Home, allocation: AllocationId, kind: AccessKind, extent: Extent, keep: bool) {
        let (epoch, site, exclusion) = (self.view.epoch, self.site, self.exclusion);
        let access = Access { epoch, kind, extent, allocation, site, exclusion };
        if self.predicting {
            return self.put_supposed(home, &access);
        }
        if let Some(recording) = &mut self.recording {
            recording.step(self.memory, home, &access);
        }
        if kind.writes() && !self.memory.contents.is_empty() && matches!(home, Home::Root(_)) {
            self.memory.overwritten(&access.extent);
        }
        if kind.writes() && access.extent.precision == Precision::Unknown {
            self.memory.strays.inside(allocation);
        }
        if matches!(home, Home::Root(_)) {
            self.memory.escaped(|| access.clone());
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
