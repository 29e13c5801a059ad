//! Confidence: why a finding is `certain`, `likely` or `possible`.
//!
//! Owns the rule that grades a pair of extents. It does not know the order: only conflicting pairs
//! arrive here, from [`super::race::Race::judge`], and the order has been decided before.
//! Confidence answers one question: do the two accesses share a byte? A `possible` finding is as
//! unordered as a `certain` one.
//!
//! # The rule
//!
//! Each side has an [`Extent`] with a [`Precision`]: `Exact` (exactly these bytes), `Bound` (no
//! byte outside, but not every byte inside need be touched) or `Unknown` (only the start, the
//! *anchor*).
//!
//! | sides | finding |
//! |---|---|
//! | both `Exact`, a common byte | certain |
//! | both `Exact` or `Bound`, no common byte | none |
//! | both `Exact`, too irregular to compare ([`Meet::Maybe`]) | likely |
//! | otherwise, same anchor | likely |
//! | otherwise, the `Exact` or `Bound` bytes of one side hold the anchor of the other | likely |
//! | otherwise | possible |
//!
//! Some pairs are graded down to possible, and the report counts them ([`Weakness`]). Two because
//! the bytes are selected by data ([`Extent::scattered`]): where the code loads the indices of both
//! sides, which usually divide a table among themselves, and a bound around pieces, which proves
//! absence only. Such a bound lies around measured pieces, around texels that coordinates pick, and
//! around what ranks in a ballot select. Unless it is measured, it is more where the other side
//! surely touches all of the bound.
//!
//! Four more are, because programs are written so on purpose, and the bytes are not known well
//! enough to tell (all were false alarms in NVIDIA's libraries, `docs/measurements/hunt.md`):
//!
//! - *Siblings.* One kernel, launched from one place on several streams, starts from one address,
//!   and of one launch it is not known how many bytes it touches. The launches divide the memory
//!   among themselves.
//! - *Calls.* One kernel gives its pointer to a call that is not followed, and of neither launch it
//!   is known how many bytes it touches: a recursion into parts of a tree starts at its root.
//! - *Rims.* An upper bound is rounded up to what a block of threads covers, and that reaches the
//!   first bytes of what lies behind: another piece of a pool that the program divides by itself.
//! - *Behind the pointer's back.* An upper bound begins below the pointer that the program passed,
//!   since the kernel rounds addresses down, and the other side ends before that pointer: another
//!   piece of a workspace.
//!
//! So are two critical sections: both kernels touch the bytes while they hold a lock
//! ([`crate::memory::Site::lock`]), and the addresses of the two locks do not show that they are
//! two. If it is one lock, the two exclude each other, and only their order is open; what it
//! protects, the code does not say. Different locks excuse nothing.
//!
//! So are two claims: both kernels touch the bytes where a compare-and-swap has claimed a word for
//! the thread, and that may be one word (`kernels`, `ranges/claims.rs`). No two threads claim one.
//! Whether the word belongs to the element, and whether it was emptied in between, is not known.
//!
//! Selections are more than that: where the same words in memory select the threads of both sides,
//! by values that exclude each other, no byte is touched by both (`kernels`,
//! `ranges/selections.rs`), and there is no finding.
//!
//! So is a handover: one kernel stores to a word atomically behind its access, and an atomic load
//! of what may be that word decides the access of the other, with a release and an acquire between
//! (`kernels`, `ranges/handovers.rs`). Whether the load saw the store, the code does not say. Nor
//! does it where further kernels lie between the two, each of which awaits a word of the one before
//! it and gives one to the next ([`is_handed_on`]): causality order is transitive.
//!
//! So is a pair of which one side comes after a kernel that polls a flag, if the other side may be
//! what that kernel has waited for ([`crate::state::polls`]).
//!
//! So is a pair of which one side, or both, is in a body of a conditional node: the value of a
//! condition decides at each launch whether the body runs ([`crate::memory::Site::conditional`]).
//! That both are in one body makes no difference, since neither runs where the body does not. A
//! launch that was measured is known to have run, or not.
//!
//! Of two kernels of one stream, or two nodes of one graph, of which the later one may begin before
//! the earlier one has ended (programmatic dependent launch), it must also be known that it does so
//! in this launch ([`overlaps_in_doubt`]). Otherwise the pair is likely at most:
//!
//! | the later access is made | the earlier kernel lets it begin | finding |
//! |---|---|---|
//! | behind a wait, or what hands one on | | none |
//! | | in no block of this launch | none |
//! | by threads that surely have not waited | in all blocks of this launch | by the bytes |
//! | where something may have handed a wait on | | likely at most |
//! | | in some blocks, or it is not known | likely at most |
//!
//! "Some blocks" includes those that end without a trigger, though the later kernel begins behind
//! their end: the PTX ISA (`griddepcontrol`, note) demands a wait behind any grid that triggers.
//!
//! What hands a wait on is a matter of the code (`kernels`, `ir/grid_wait/handing.rs`). Which
//! blocks trigger is evaluated for each launch (`ir/grid_wait/triggers.rs`). Whether a branch leads
//! around the wait is a condition of the access like any other: where the launch does not decide
//! it, the bytes are not exact.
//!
//! A synchronous copy from pageable memory *may* still be on its way to the device when it returns
//! ([`is_staged_copy`]), and many programs rely on its being over: what is not ordered after it is
//! likely at most.
//!
//! Races inside a kernel come with a grade, by the rule in `sim/races/src/grade.rs`: `benign` and
//! `possible` ones are possible here, too ([`Weakness::SameValue`], [`Weakness::Unpromised`]).
//! Reads of unwritten memory come from there with the rule of `sim/races/src/unwritten/mod.rs`
//! ([`Weakness::PartlyWritten`]).
//!
//! A graph that names memory which has ended is graded by a rule of its own
//! ([`crate::stale_graphs::judge`]).
//!
//! A finding that rests on a guessed direction is possible, too. Of a kernel without readable code
//! it is not known whether it reads or writes, so it counts as doing both
//! ([`crate::memory::Site::guessed`]). Where the other side surely writes, the two conflict either
//! way. Where it does not, there is a race only if the guess is right.
//!
//! A finding keeps the highest confidence of all its occurrences ([`super::race::merge`],
//! [`super::findings`]).
//!
//! # Where the precision of a side comes from
//!
//! - *Calls.* Copies, fills, allocations and frees are exact: their bytes are arguments of the call
//!   ([`super::accesses::Work::region`]).
//! - *Code.* A kernel's effects come from the analysis of its code ([`crate::launches::effects`],
//!   [`crate::launches::image_reader`]). A range that is exact for this launch stays `Exact`, even
//!   if it has gaps, unless the pattern has more gaps than [`Extent::pattern`] can hold. An upper
//!   bound is cut at the allocation and becomes `Bound`. So do a
//!   texture or surface, which is `scattered`, and a
//!   `__device__` variable of unknown extent. Any other unknown extent becomes `Unknown`. If the
//!   kernel loads the index, it is `scattered` too.
//! - *No code.* If the code can not be read, or its analysis fails, the memory behind every
//!   parameter word that points into an allocation counts as read and written, with `Unknown`
//!   extent and a guessed direction ([`super::accesses::Work::pointers`]).
//! - *Measurement.* Exact mode, and the simulated GPU by itself where code does not decide, replace
//!   predicted bytes with measured ones, which are `Exact` ([`crate::exact::measured`]), also where
//!   they are a list of many pieces ([`crate::memory::Pieces`]). Too many to keep apart become a
//!   scattered `Bound`, and so do reads of asynchronous copies, because the API reports their whole
//!   size. Accesses that are not reported keep their prediction. Ranges learned in an earlier run
//!   count as measured ([`crate::exact::learned`]).
//! - *The host.* An access of the host is certain, also where only changed bytes were seen: some of
//!   them were written (`analysis/host_access.rs`).
//! - *Other processes.* Pairs of two processes are graded alike, but are possible if one of them
//!   runs kernels that may signal the other (`ipc`).
//!
//! # Why a given finding is not certain
//!
//! 1. The report says it: `established=` in the key-value block says how the bytes are known
//!    (`call`, `code`, `exact`), and each side has its precision: `exact`, `bound` or `unknown`.
//! 2. For a side with `bound` or `unknown`, the coverage of the kernel in the JSON report (`gaps`)
//!    names the reason and the instruction of the first unknown range, and `streamsan explain`
//!    prints what each pointer of the kernel reads and writes.
//! 3. The reason is a `kernels::Reason`: its variant names the construct at which the analysis gave
//!    up. `kernels/src/ranges/` owns the way from an instruction to its range.
//! 4. If the range in `explain` is exact but the finding is not, the loss is on this side: in
//!    `launches/image_reader.rs` (translation), in `launches/coalesce.rs` (only bounds), in
//!    `detect/accesses/kernels.rs` (`kernel_bytes`, `unknown_extent`) or in [`Extent::pattern`].
//! 5. If both sides are `exact`, [`Extent::meet`] has given up on irregular patterns.
//! 6. `--exact`, or `--confirm` for the kernels in question, measures the bytes and makes the
//!    finding certain or withdraws it. The simulated GPU has measured them, unless the coverage
//!    says that launches were left unmeasured.

use serde::{Deserialize, Serialize};

use trace::{KernelId, StackId};

use crate::memory::{Access, AccessKind, Cause, Extent, Meet, Overlap, Precision, Relays};

/// How certain it is that the two accesses share a byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Confidence {
    /// Anything weaker than the other two, for example two unknown extents in one allocation.
    Possible,
    /// An extent is not exact, but both start at one address, or one side's bytes hold the other's
    /// start.
    Likely,
    /// Both extents are exact, and they share a byte.
    Certain,
}

/// Why a pair is possible only, by rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weakness {
    /// The work comes after a host function that had not returned when the host touched the bytes,
    /// and that may wait for the thread which did.
    HostFunction,
    /// The work was behind a wait of its stream for a value in memory that nobody had been seen to
    /// write, when the host touched the bytes: the host may write it.
    OpenWait,
    /// The host and the work may exchange messages through memory: the kernel loads a word that the
    /// host stores, or the host may have learned that the work was over, from a flag that a kernel
    /// or a stream writes, or from a host function of a graph.
    Message,
    /// A condition decides whether one of the two runs: it is in a body of a conditional node.
    Condition,
    /// Both kernels touch the bytes while they hold a lock, which may be one.
    Locks,
    /// Both kernels touch the bytes only where a compare-and-swap has claimed a word for the
    /// thread, which may be one.
    Claims,
    /// One kernel stores to a word atomically behind its access, and the other one has loaded such
    /// a word before.
    Handover,
    /// A kernel that polls a flag lies before one of the two, and may have waited for the other.
    Flag,
    /// Loaded indices select the bytes on both sides.
    Indices,
    /// Only the rim of an upper bound meets the other side.
    Rim,
    /// A texture or a surface shows more texels than the kernel touches, and these are not known.
    Texels,
    /// A bound around pieces that data selected.
    Pieces,
    /// The direction of one side is a guess.
    Guess,
    /// Launches of one kernel that gives the pointer to a call which is not followed, as recursion
    /// does.
    Calls,
    /// Launches of one kernel that divide the memory among themselves.
    Siblings,
    /// Inside a kernel: both orders of the two threads leave the same value.
    SameValue,
    /// Inside a kernel: something that the memory model does not promise may order the threads.
    Unpromised,
    /// Inside a kernel: of the bytes that an instruction reads some are written, or it copies them.
    PartlyWritten,
    /// Of a graph that names memory which has ended: memory of the same bounds was allocated in its
    /// place, by the same line of the program.
    SameBounds,
    /// Of a graph that names a block which is back in its pool: nobody else has its bytes.
    NotHandedOut,
}

impl Weakness {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::HostFunction,
        Self::OpenWait,
        Self::Message,
        Self::Condition,
        Self::Locks,
        Self::Claims,
        Self::Handover,
        Self::Flag,
        Self::Indices,
        Self::Rim,
        Self::Texels,
        Self::Pieces,
        Self::Guess,
        Self::Calls,
        Self::Siblings,
        Self::SameValue,
        Self::Unpromised,
        Self::PartlyWritten,
        Self::SameBounds,
        Self::NotHandedOut,
    ];

    /// The name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostFunction => "host-function",
            Self::OpenWait => "open-wait",
            Self::Message => "message",
            Self::Condition => "condition",
            Self::Locks => "locks",
            Self::Claims => "claims",
            Self::Handover => "handover",
            Self::Flag => "flag",
            Self::Indices => "indices",
            Self::Rim => "rim",
            Self::Texels => "texels",
            Self::Pieces => "pieces",
            Self::Guess => "guess",
            Self::Calls => "calls",
            Self::Siblings => "siblings",
            Self::SameValue => "same-value",
            Self::Unpromised => "unpromised",
            Self::PartlyWritten => "partly-written",
            Self::SameBounds => "same-bounds",
            Self::NotHandedOut => "not-handed-out",
        }
    }
}

impl Confidence {
    /// The name that reports and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }

    /// The confidence of a pair that conflicts, and why it is not more than possible; `None` when
    /// the two share no byte.
    pub(crate) fn of_pair(previous: &Access, access: &Access) -> Option<(Self, Option<Weakness>)> {
        let selections = previous.exclusion.selection.zip(access.exclusion.selection);
        if selections.is_some_and(|(one, other)| one.excludes(other)) {
            return None;
        }
        let confidence = Self::of(&previous.extent, &access.extent)?;
        let confidence = if overlaps_in_doubt(previous, access) { confidence.min(Self::Likely) } else { confidence };
        let weakness = weakness(previous, access);
        Some((if weakness.is_some() { confidence.min(Self::Possible) } else { confidence }, weakness))
    }

    /// The confidence that two extents share a byte, whether or not data selected them; `None` when
    /// they do not.
    pub(crate) fn of(a: &Extent, b: &Extent) -> Option<Self> {
        use Precision::{Bound, Exact, Unknown};
        let meet = a.meet(b);
        match (a.precision, b.precision) {
            // Exact extents and upper bounds that do not meet prove that there is no race.
            (Exact | Bound, Exact | Bound) if meet == Meet::No => None,
            (Exact, Exact) if meet == Meet::Yes => Some(Self::Certain),
            (Exact, Exact) => Some(Self::Likely),
            _ if a.anchor == b.anchor => Some(Self::Likely),
            (Unknown, Unknown) => Some(Self::Possible),
            (Unknown, _) => Some(if b.holds(a.anchor) { Self::Likely } else { Self::Possible }),
            (_, Unknown) => Some(if a.holds(b.anchor) { Self::Likely } else { Self::Possible }),
            _ => Some(if a.holds(b.anchor) || b.holds(a.anchor) { Self::Likely } else { Self::Possible }),
        }
    }
}

/// Whether only programmatic dependent launch makes the two unordered, and it is not known that the
/// later one runs beside the earlier one in this launch. On one stream nothing else does.
pub fn overlaps_in_doubt(previous: &Access, access: &Access) -> bool {
    let site = &access.site;
    site.overlap != Overlap::No && site.overlap_in_doubt && site.stream == previous.site.stream
}

/// Whether this is the device's side of a synchronous copy from host memory: such copies are
/// unordered only where the memory is pageable and the driver stages it. `call`: the function.
pub fn is_staged_copy(call: &str, access: &Access) -> bool {
    access.site.cause == Cause::Copy
        && access.kind == AccessKind::Write
        && access.site.node == 0
        && call.starts_with("cuMemcpyHtoD")
        && !call.contains("Async")
}

/// Why a pair is possible only, whatever its extents say.
fn weakness(previous: &Access, access: &Access) -> Option<Weakness> {
    let (a, b) = (&previous.extent, &access.extent);
    // Only a run shows whether two selections meet.
    let indices = a.scattered && b.scattered;
    // A bound around pieces that data selected proves absence only.
    let loose = |one: &Access, other: &Access| {
        let picked = one.extent.scattered && one.extent.precision == Precision::Bound;
        picked && (one.site.measured || !takes_in(&other.extent, &one.extent))
    };
    let (first, second) = (loose(previous, access), loose(access, previous));
    let texels = first && previous.site.texels || second && access.site.texels;
    let handover = hands_over(previous, access);
    let one_lock =
        previous.exclusion.lock.is_some_and(|lock| access.exclusion.lock.is_some_and(|other| lock.may_be(other)));
    let holds = [
        (rests_on_guess(previous, access) || rests_on_guess(access, previous), Weakness::Guess),
        (previous.site.conditional || access.site.conditional, Weakness::Condition),
        (one_lock, Weakness::Locks),
        (claims(previous, access), Weakness::Claims),
        (handover, Weakness::Handover),
        (texels, Weakness::Texels),
        (first || second, Weakness::Pieces),
        (indices, Weakness::Indices),
        (siblings(previous, access), Weakness::Siblings),
        (calls(previous, access), Weakness::Calls),
        (at_rim(a, b), Weakness::Rim),
    ];
    holds.into_iter().find(|rule| rule.0).map(|rule| rule.1)
}

/// Whether each side has claimed a word before, which one thread only can. Two that were measured
/// at common bytes have both succeeded.
fn claims(a: &Access, b: &Access) -> bool {
    let (Some(one), Some(other)) = (a.exclusion.lock, b.exclusion.lock) else { return false };
    one.may_be_claimed(other) && !(a.site.measured && b.site.measured)
}

/// Whether one of two accesses may tell the other one by an atomic store that it is over. Two
/// launches of one kernel that await and give the same words do the same twice: neither waits for
/// the other.
fn hands_over(a: &Access, b: &Access) -> bool {
    let (Some(lock), Some(other)) = (a.exclusion.lock, b.exclusion.lock) else { return false };
    let reach = (a.exclusion.reach.is_some_and(|to| to.is_narrow), b.exclusion.reach.is_some_and(|to| to.is_narrow));
    let devices = a.exclusion.reach.zip(b.exclusion.reach).is_some_and(|(one, other)| one.device != other.device);
    lock.may_hand_over(other)
        && (lock != other || a.site.kernel != b.site.kernel)
        && (!devices || lock.may_reach(other, reach))
}

/// Whether other kernels may have handed the bytes on from one of two accesses to the other.
pub fn is_handed_on(relays: &Relays, a: &Access, b: &Access) -> bool {
    let (Some(lock), Some(other)) = (a.exclusion.lock, b.exclusion.lock) else { return false };
    (lock != other || a.site.kernel != b.site.kernel) && relays.link(lock, other)
}

/// Whether all bytes that a bound may touch are surely touched by the other side: whichever it is,
/// the two meet.
fn takes_in(exact: &Extent, bound: &Extent) -> bool {
    exact.precision == Precision::Exact && exact.takes_in(bound)
}

/// Whether two accesses conflict only if the guess about the first one's direction is right: the
/// other side may not write, or updates atomically, as the first may do.
fn rests_on_guess(guess: &Access, other: &Access) -> bool {
    guess.site.guessed && (other.kind != AccessKind::Write || other.site.guessed)
}

/// Whether two launches of one kernel come from one place, and the bytes of one are not known.
fn siblings(a: &Access, b: &Access) -> bool {
    let unknown = |access: &Access| access.extent.precision == Precision::Unknown;
    a.site.kernel == b.site.kernel
        && a.site.kernel != KernelId::NONE
        && a.site.stack == b.site.stack
        && a.site.stack != StackId::NONE
        && a.site.stream != b.site.stream
        && (unknown(a) || unknown(b))
}

/// Whether two launches of one kernel meet only where it gives the pointer to a call that is not
/// followed. Recursion into a part of the memory starts from the pointer to all of it.
fn calls(a: &Access, b: &Access) -> bool {
    let unknown = |access: &Access| access.extent.precision == Precision::Unknown;
    a.site.kernel == b.site.kernel
        && a.site.kernel != KernelId::NONE
        && (a.site.guessed || b.site.guessed)
        && unknown(a)
        && unknown(b)
}

/// Whether two extents meet in no more than the rim of an upper bound: in its last eighth, or below
/// the pointer that the program passed.
fn at_rim(a: &Extent, b: &Extent) -> bool {
    let rim = |bound, other| reaches_rim(bound, other) || only_below_pointer(bound, other);
    rim(a, b) || rim(b, a)
}

/// Whether only the last eighth of an upper bound, or less, reaches into the other side, which
/// begins there and goes on behind it. A kernel that works in tiles and whose guard is not
/// understood is bounded by whole tiles. The range of a loaded value is rounded up by none.
fn reaches_rim(bound: &Extent, other: &Extent) -> bool {
    bound.precision == Precision::Bound
        && !bound.looked_up
        && other.precision != Precision::Unknown
        && bound.start < other.start
        && bound.end < other.end
        && (bound.end.saturating_sub(other.start)).saturating_mul(8) <= bound.end - bound.start
}

/// Whether an upper bound meets the other side only below the pointer that the program passed. A
/// kernel that rounds addresses down for wide loads and stores is bounded from there.
fn only_below_pointer(bound: &Extent, other: &Extent) -> bool {
    bound.precision == Precision::Bound
        && other.precision != Precision::Unknown
        && bound.start < bound.anchor
        && other.end <= bound.anchor
}

#[cfg(test)]
mod tests;
