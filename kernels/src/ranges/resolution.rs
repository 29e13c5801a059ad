//! The bytes of a launch as accesses: with the numbers that the launch gives.
//!
//! Owns how a symbolic base becomes a base, and what an access is told beside its bytes: its lock,
//! its selection, whether other threads or loaded values chose the address. Which bytes it reaches
//! is found in `analysis`.

use crate::effects::{Base, Early, Extent, KernelAccess, LaunchArgs, Lock, SymbolRef};
use crate::ir::{AccessKind, Reason};
use crate::ranges::analysis::Analysis;
use crate::ranges::domain::tape::LaunchInput;
use crate::ranges::extent::reached::{EvaluatedAccesses, ReachedBytes, SymbolicBase, TableRoot};
use crate::ranges::graph::node::Access;
use crate::ranges::graph::provenance::Provenance;
use crate::ranges::held_locks::HeldLocks;
use crate::ranges::memo::kept_locks::KeptLocks;
use crate::ranges::selections::Selections;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::OnceLock;
/// The 8-byte word at a parameter offset (bytes beyond the end are zero).
fn word64(launch: &LaunchArgs<'_>, off: u16) -> u64 {
    LaunchInput::Bytes(off, 8).read(launch)
}

impl Analysis {
    /// Appends accesses with the numbers of the launch. Returns the parameter bytes that say more
    /// about them.
    pub(super) fn resolve_all(
        &self,
        found: &EvaluatedAccesses<Extent>,
        (kept, kept_if_fenced): (&OnceLock<KeptLocks>, &OnceLock<KeptLocks>),
        launch: &LaunchArgs<'_>,
        out: &mut Vec<KernelAccess>,
    ) -> Vec<Range<usize>> {
        let locks = HeldLocks::of(self, &self.locks, launch, kept);
        let if_fenced = HeldLocks::of(self, &self.if_fenced, launch, kept_if_fenced);
        let selections = Selections::of(self, launch);
        let mut done = Vec::new();
        for (kind, r, at) in found {
            let selection = selections.as_ref().and_then(|all| all.during(*kind, r.base));
            let mut put = |r: &ReachedBytes<Extent>, lock: Option<Lock>| {
                let resolved = self.resolve(*kind, r, *at, launch).into_iter();
                let others = if_fenced.as_ref().filter(|_| lock.is_none() && !r.early.is());
                let if_fenced = others.and_then(|locks| locks.during(*kind, r.base));
                let locked =
                    |access| KernelAccess { lock: lock.clone(), if_fenced: if_fenced.clone(), selection, ..access };
                out.extend(resolved.map(locked));
            };
            // What a lock is worth before the wait is not asked.
            match locks.as_ref().filter(|_| !r.early.is()).map(|locks| (locks, locks.parts(*kind, r.base))) {
                None => put(r, None),
                Some((locks, None)) => put(r, locks.during(*kind, r.base)),
                Some(_) if done.contains(&(*kind, r.base)) => {}
                Some((_, Some(parts))) => {
                    done.push((*kind, r.base));
                    parts.iter().for_each(|(part, lock)| put(part, lock.clone()));
                }
            }
        }
        selections.map_or_else(Vec::new, |all| all.bytes().collect())
    }

    /// Whether some address of a kind through a base is made of what other threads answered.
    fn is_voted(&self, kind: AccessKind, base: SymbolicBase) -> bool {
        let through =
            |(access, from): (&Access, &Provenance)| from.voted && access.kind == kind && base.may_come_from(from);
        self.graph.accesses.iter().zip(&self.origins).any(through)
    }

    /// Whether loaded values alone select each address of a kind through a base.
    fn is_looked_up(&self, kind: AccessKind, base: SymbolicBase) -> bool {
        let mut through = (self.graph.accesses.iter().zip(&self.origins))
            .filter(|(access, from)| access.kind == kind && base.may_come_from(from))
            .peekable();
        through.peek().is_some() && through.all(|(_, from)| from.looked_up)
    }

    /// An access with the numbers of the launch: one, apart from those of several `__constant__`
    /// variables. Its lock and its selection are left out.
    pub(super) fn resolve(
        &self,
        kind: AccessKind,
        r: &ReachedBytes<Extent>,
        at: u32,
        launch: &LaunchArgs<'_>,
    ) -> SmallVec<[KernelAccess; 1]> {
        let is_bound = matches!(r.extent, Extent::Bounded { exact: false, .. });
        let voted = is_bound && (r.early == Early::Asked || self.is_voted(kind, r.base));
        // Rows that are no whole warps are divided in other places than the code has its branches.
        let [x, y, z] = launch.block;
        let early = match r.early {
            Early::Surely if !x.is_multiple_of(32) && (y > 1 || z > 1) => Early::Perhaps,
            early => early,
        };
        let looked_up = is_bound && self.is_looked_up(kind, r.base);
        let one = |base, extent| KernelAccess {
            base,
            kind,
            several: r.several,
            extent,
            tiles: r.tiles.clone(),
            by_map: r.by_map,
            voted,
            looked_up,
            lock: None,
            if_fenced: None,
            selection: None,
            early,
            at,
        };
        let bank = self.graph.constants.as_ref();
        let base = match r.base {
            SymbolicBase::Symbol(s) if let Some(bank) = bank.filter(|bank| bank.start.0 == s) => {
                let parts = bank.parts(&r.extent).into_iter();
                return parts.map(|(s, extent)| one(Base::Global(SymbolRef(s)), extent)).collect();
            }
            SymbolicBase::Word(offset) => Base::Word { offset, value: word64(launch, offset) },
            SymbolicBase::Symbol(s) => Base::Global(SymbolRef(s)),
            SymbolicBase::ParamAddress(offset) => Base::TensorMap { offset },
            SymbolicBase::Handle(offset, surface) => Base::Handle { offset, value: word64(launch, offset), surface },
            SymbolicBase::Absolute => {
                // The extent holds addresses: count from the lowest.
                let mut extent = r.extent.clone();
                let mut value = 0;
                if let Extent::Bounded { lo, hi, .. } = &mut extent {
                    value = *lo as u64;
                    *hi = hi.saturating_sub(*lo);
                    *lo = 0;
                }
                return smallvec![one(Base::Absolute { value }, extent)];
            }
            SymbolicBase::Table { root: TableRoot::Word(word), lo, stride, count } => {
                Base::Table { offset: word, value: word64(launch, word), lo, stride, count }
            }
            SymbolicBase::Table { root: TableRoot::Symbol(s), lo, stride, count } => {
                let last = lo.saturating_add_unsigned(stride.saturating_mul(count - 1)).saturating_add(8);
                let place = match bank.filter(|bank| bank.start.0 == s) {
                    Some(bank) => bank.holding(lo, last),
                    None => Some((s, lo)),
                };
                match place {
                    Some((s, lo)) => Base::VariableTable { symbol: SymbolRef(s), lo, stride, count },
                    None => return smallvec![one(Base::Unknown, Extent::Unknown { reason: Reason::Loaded })],
                }
            }
            SymbolicBase::Loaded | SymbolicBase::Unknown => Base::Unknown,
        };
        smallvec![one(base, r.extent.clone())]
    }
}
