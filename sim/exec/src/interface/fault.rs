//! What can go wrong in a kernel, and how a driver says it.
//!
//! Owns the kinds of faults and their texts. The interpreter finds them; what becomes of the
//! context is the driver's matter.

use super::{AccessKind, CompileError};
use std::fmt;

/// What went wrong in a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every live allocation, or a write to read-only memory.
    OutOfBounds {
        /// The address, in the space named.
        address: u64,
        /// Bytes.
        size: u32,
        /// What it tried.
        access: AccessKind,
        /// `global`, `shared`, `local` or `param`.
        space: &'static str,
    },
    /// An address that is no multiple of the access's size.
    Misaligned {
        /// The address.
        address: u64,
        /// Bytes.
        size: u32,
        /// What it tried.
        access: AccessKind,
    },
    /// `trap`, or `brkpt` without a debugger.
    Trap,
    /// A failed `assert`, already printed.
    Assert,
    /// A call through a pointer that is no function.
    BadCall(u64),
    /// The kernel or a function that it called could not be compiled.
    Unsupported(Box<CompileError>),
    /// Calls nested deeper than the stack allows.
    StackOverflow,
    /// Threads wait at barriers that no thread can complete: which, and where.
    Deadlock(String),
    /// All threads wait, and the barrier object (`mbarrier`) that they poll never ends its phase.
    Phase {
        /// Where in the block's shared memory it is.
        offset: u32,
        /// Arrivals that are missing, and those that a phase takes.
        arrivals: [u64; 2],
        /// Bytes that are missing; negative: that came without being expected.
        bytes: i64,
    },
    /// A misuse of `setmaxnreg`, or registers that nobody releases.
    Registers(String),
    /// A copy of a tile that the hardware does not carry out.
    Tile(&'static str),
    /// A copy by a tensor map that lies where the hardware reads none.
    MapPlace(&'static str),
    /// The device said no to a texture or surface operation.
    Texture(String),
    /// [`Device::cancelled`] became true.
    Cancelled,
    /// The launch itself is impossible: a dimension of zero, too many threads, too much shared
    /// memory.
    BadLaunch(&'static str),
}

/// A kernel that could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the kernel.
    pub kernel: String,
    /// The block.
    pub(crate) block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// What went wrong.
    pub kind: FaultKind,
    /// PTX line, 0 when there is none; of machine code the instruction's offset in its section, in
    /// bytes.
    pub(crate) line: u32,
    /// The kernel runs as machine code.
    pub(crate) machine: bool,
    /// Source file and line from `.loc` or the line table.
    pub(crate) source: Option<(String, u32)>,
}

// By hand: thiserror takes a field called `source` for the cause.
impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |access: AccessKind| match access {
            AccessKind::Read | AccessKind::AtomicRead => "read",
            AccessKind::Write | AccessKind::AtomicWrite => "write",
            AccessKind::Atomic => "atomic operation",
        };
        match &self.kind {
            FaultKind::OutOfBounds { address, size, access, space } => {
                write!(f, "out-of-bounds {space} {} of {size} bytes at 0x{address:x}", verb(*access))?;
            }
            FaultKind::Misaligned { address, size, access } => {
                write!(f, "misaligned {} of {size} bytes at 0x{address:x}", verb(*access))?;
            }
            FaultKind::Trap => f.write_str("trap")?,
            FaultKind::Assert => f.write_str("assertion failed")?,
            FaultKind::BadCall(target) => write!(f, "call of 0x{target:x}, which is no function")?,
            FaultKind::Unsupported(error) => write!(f, "{error}")?,
            FaultKind::StackOverflow => f.write_str("stack overflow")?,
            FaultKind::Deadlock(waits) => {
                write!(f, "deadlock: threads wait at a barrier that the others never reach: {waits};")?;
            }
            FaultKind::Phase { offset, arrivals: [missing, all], bytes } => {
                write!(
                    f,
                    "deadlock: the barrier object (mbarrier) at byte {offset} of shared memory never ends its phase"
                )?;
                let mut lacks = Vec::new();
                if *missing != 0 {
                    lacks.push(format!("{missing} of {all} arrivals are missing"));
                }
                if *bytes > 0 {
                    lacks.push(format!("{bytes} bytes that are expected do not come"));
                }
                if *bytes < 0 {
                    lacks.push(format!("{} more bytes came than were expected", -bytes));
                }
                if lacks.is_empty() {
                    lacks.push("it waits for another phase than its threads".to_owned());
                }
                write!(f, ": {}", lacks.join(", and "))?;
            }
            FaultKind::Registers(why) => write!(f, "setmaxnreg: {why};")?,
            FaultKind::Tile(why) => write!(f, "illegal instruction: {why}")?,
            FaultKind::MapPlace(why) => write!(f, "illegal address: {why}")?,
            FaultKind::Texture(why) => write!(f, "texture or surface access: {why}")?,
            FaultKind::Cancelled => f.write_str("cancelled")?,
            FaultKind::BadLaunch(why) => write!(f, "impossible launch: {why}")?,
        }
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, " in kernel `{}`, block ({bx},{by},{bz}), thread ({tx},{ty},{tz})", self.kernel)?;
        if let Some((file, line)) = &self.source {
            write!(f, ", {file}:{line}")?;
        } else if self.machine {
            write!(f, ", machine code at {:#x}", self.line)?;
        } else if self.line != 0 {
            write!(f, ", PTX line {}", self.line)?;
        }
        Ok(())
    }
}
