//! How sure a race is to be an error: the one place that says so.
//!
//! The model knows races and nothing else. Programs have races that do no harm with the compilers
//! and devices at hand, and their authors know. Such ones are graded, not hidden.

/// How sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// Both orders leave the same value.
    Benign,
    /// Something that the model does not promise may order the two, or nothing depends on it.
    Possible,
    /// Nothing orders the two, but one side is written as a flag between blocks would be.
    Likely,
    /// Nothing orders the two.
    Certain,
}

/// How two asynchronous copies (`cp.async`) of one thread to the same bytes go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refill {
    /// They are in one group.
    InGroup,
    /// The later one is in a later group.
    NextGroup,
}

/// What is known of a pair of accesses beside that it races.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Evidence {
    /// A write of the pair leaves the value that was there, or the reader has written it itself.
    pub(crate) same_value: bool,
    /// Both are of one warp, by different instructions.
    pub(crate) same_warp: bool,
    /// Lanes of a warp that execute together come to both instructions, one behind the other.
    pub(crate) lockstep: bool,
    /// One of the accesses is volatile.
    pub(crate) is_volatile: bool,
    /// The accesses are of different blocks.
    pub(crate) blocks_differ: bool,
    /// Both are strong, but not of the same bytes.
    pub(crate) mixed_size: bool,
    /// One stands for accesses of more threads than there were.
    pub(crate) widened: bool,
    /// Both are strong and reach each other, so that the model has no race, but one is volatile.
    pub(crate) flag_like: bool,
    /// A compare-and-swap leaves the bytes as they are, and checks that they are what it takes them
    /// for.
    pub(crate) kept: bool,
    /// Both write, and nothing is missing but a fence between the proxies.
    pub(crate) proxies_write: bool,
    /// Both are asynchronous copies of one thread.
    pub(crate) refill: Option<Refill>,
    /// Nothing is missing but that a wait at a barrier object acquires for the cluster.
    pub(crate) narrow_wait: bool,
    /// One has read shared memory before a product of its warp group that was waited for.
    pub(crate) before_product: bool,
}

/// The grade of a race of an atomic operation with a plain read that an atomic operation of the
/// same thread follows, or of a plain write with a read of a word that a swap changes in part only.
/// A compare-and-swap (`checked`) checks what was read. Others do not: `if (x > *p) atomicMax(p,
/// x);` is right whatever is read, `if (*n < 8) atomicAdd(n, 1);` is not, and the compiler may read
/// twice.
pub(crate) fn of_guess(grade: Grade, checked: bool) -> Grade {
    grade.min(if checked { Grade::Possible } else { Grade::Likely })
}

impl Evidence {
    pub(crate) fn grade(self) -> Grade {
        if self.same_value {
            // Threads that all raise one flag.
            Grade::Benign
        } else if self.lockstep
            || self.mixed_size
            || self.kept
            || self.widened
            || self.flag_like
            || self.proxies_write
            || self.before_product
            || self.refill == Some(Refill::NextGroup)
            || self.is_volatile && !self.blocks_differ
        {
            // Warp-synchronous code of before independent thread scheduling; `volatile` in place of
            // a barrier of the warp; halves of a value that is written as a whole, which devices
            // split at no place that a program can see; neighbours of a byte that is updated by
            // swaps of its word, which fail if a neighbour has changed; data that is volatile where
            // it ought to be ordered, which the model takes for relaxed accesses (PTX ISA,
            // "volatile Operation"); a buffer that is written through one proxy, then the other,
            // which libraries do without a fence; reads that a warp group's product comes behind,
            // for which one of its threads waits and speaks for all; copies of one thread in groups
            // that end one after the other.
            Grade::Possible
        } else if self.is_volatile || self.narrow_wait || self.refill.is_some() {
            // A flag of before `cuda::atomic`, or data that is read past a missing fence: what the
            // other block has written plainly may come at any time. Or a wait of the scope that it
            // has where none is written, which libraries use between blocks. Or copies of one
            // thread and group, which PTX leaves undefined and devices mostly make in turn.
            Grade::Likely
        } else {
            Grade::Certain
        }
    }
}
