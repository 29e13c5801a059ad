//! Fences, barriers, and the order of one access.

/// Whom a fence or a strong access reaches (PTX ISA, "Scope").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Threads of the block, or of the cluster.
    Near,
    /// All threads of the device.
    Device,
    /// The host and other devices, too.
    System,
}

/// What an access orders besides itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct AccessOrder {
    /// Whom it is strong towards; `None`: it is weak.
    pub strong: Option<Reach>,
    /// Later accesses of the thread come after the release that it reads from.
    pub acquire: bool,
    /// Earlier accesses of the thread come before the acquire that reads from it.
    pub release: bool,
}

/// What a warp, or its block, does to the order of its accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderEvent {
    /// The block begins. `system`: the program can order memory for the host. Of blocks that do not
    /// say that they begin nothing else is told: they order nothing for other kernels, or are in a
    /// cluster.
    Begins {
        /// See above.
        system: bool,
    },
    /// A fence in both directions.
    Fence(Reach),
    /// The caches are invalidated, which ends an acquire of machine code.
    Acquire,
    /// Threads of the block have met at a barrier.
    BlockMeets,
    /// The warp has come to a barrier of the grid, or goes on behind it.
    GridMeets,
    /// All threads of the block have ended.
    Ends,
}
