//! The boundary between the interpreter and its caller: launches, the device behind it, faults,
//! observations.

pub use crate::bulk_work::BulkTiming;
use crate::grid_dependence::Overlap;
use crate::observed_order::{AccessOrder, OrderEvent};
use crate::program::MakeNative;
use std::fmt;

use device_code::ptx::Space;
use sim_races::MemoryEvents;
use thiserror::Error;

/// The addresses of symbols that a module does not lay out itself.
pub trait Linker {
    /// Device address of a `.global` or `.const` variable of the module being compiled (or of
    /// another one, when the module only declares it). `None` makes the compilation fail with
    /// [`CompileError::UnknownSymbol`].
    fn symbol(&self, name: &str, space: Space) -> Option<u64>;
}

/// Why a module could not be compiled for the interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// An instruction or form of it that the interpreter does not execute.
    #[error("Unsupported({instruction}) in `{function}`, PTX line {line}")]
    Unsupported {
        /// Opcode with its modifiers, and what about it when the opcode alone is known.
        instruction: String,
        /// The function it stands in.
        function: String,
        /// Line of the PTX text.
        line: u32,
    },
    /// A machine instruction that the interpreter does not execute.
    #[error("Unsupported({instruction}) in `{function}`, machine code at {offset:#x}")]
    UnsupportedMachine {
        /// As a disassembler writes it, as far as it is decoded.
        instruction: String,
        /// The function it stands in.
        function: String,
        /// Byte offset in its code section.
        offset: u32,
    },
    /// Machine code that cannot be loaded.
    #[error("machine code of `{function}`: {what}")]
    Machine {
        /// The kernel or function.
        function: String,
        /// What is wrong with it.
        what: String,
    },
    /// A variable or function that is defined nowhere.
    #[error("symbol `{name}` used by `{function}` is defined nowhere")]
    UnknownSymbol {
        /// The symbol.
        name: String,
        /// Who uses it.
        function: String,
    },
    /// Operands that do not fit the instruction.
    #[error("PTX line {line}: operands do not fit `{instruction}` in `{function}`")]
    Operands {
        /// Opcode with its modifiers.
        instruction: String,
        /// The function it stands in.
        function: String,
        /// Line of the PTX text.
        line: u32,
    },
    /// More registers, constants or memory than the interpreter provides for.
    #[error("`{function}` is too large: {what}")]
    TooLarge {
        /// The function.
        function: String,
        /// Which limit.
        what: &'static str,
    },
}

/// One parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamInfo {
    /// Bytes from the start of the parameter block.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Bytes.
    pub(crate) align: u32,
}

/// One launch of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; at most 1024 together.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; 0 or 1 for none.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory for each block.
    pub dynamic_shared: u32,
    /// What a block's shared memory is a multiple of: bytes up to there can be accessed, which
    /// [`Device::overrun`] is told. 0 for as many as were asked for.
    pub shared_unit: u32,
    /// The parameter block, laid out as [`super::Kernel::params`] says. Missing bytes at its end
    /// read as zero.
    pub params: Vec<u8>,
    /// All blocks are resident at once and take turns, so that a grid-wide barrier works.
    pub cooperative: bool,
    /// Bytes of stack for each thread, used when calls nest without a known bound. 0 for the
    /// default (64 KiB).
    pub stack: u32,
    /// What `%gridid` reads.
    pub grid_id: u64,
    /// In which order blocks begin and warps take turns: 0 for one after the other, other numbers
    /// for other orders.
    pub schedule: u64,
    /// When bulk operations are carried out.
    pub bulk: BulkTiming,
    /// Whether it runs as native code.
    pub compile: Compile,
    /// Makes native code; None: it is interpreted.
    pub native: Option<MakeNative>,
}

/// When kernels are compiled to native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compile {
    /// Never.
    #[default]
    Off,
    /// What is executed often.
    On,
    /// All that can be, at once: for tests.
    Always,
}

/// Multiprocessors that kernels are told of.
pub(crate) const SMS: u64 = 132;

/// A live allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte; device addresses are host addresses.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// False for memory that kernels may only read.
    pub writable: bool,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AccessKind {
    Read,
    Write,
    Atomic,
    /// A load that is atomic towards other kernels.
    AtomicRead,
    /// A store that is.
    AtomicWrite,
}

/// The accesses of one warp instruction to global memory (generic ones included, shared and local
/// ones not).
#[derive(Debug)]
pub struct Accesses<'a> {
    /// What they do.
    pub kind: AccessKind,
    /// Bytes from each address on.
    pub size: u32,
    /// One address for each active lane, with its linear thread index in the block.
    pub lanes: &'a [(u64, u32)],
    /// The block.
    pub block: [u32; 3],
    /// PTX line of the instruction; of machine code its offset in the section, in bytes.
    pub line: u32,
    /// Its source file and line from `.loc`.
    pub source: Option<(&'a str, u32)>,
    /// What it orders.
    pub order: AccessOrder,
}

/// A texture or surface operation, see [`Device::texture`].
#[derive(Debug, Clone, PartialEq)]
pub struct TextureRequest<'a> {
    /// Opcode with its modifiers: `tex.1d.v4.f32.s32`, `suld.b.2d.b32.trap`.
    pub opcode: &'a str,
    /// The texture or surface object.
    pub object: u64,
    /// Coordinates (then level or gradients) as raw bits, in the order of the operands.
    pub coordinates: &'a [u32],
    /// What a store writes, as raw bits.
    pub values: &'a [u64],
}

/// Lanes of a warp.
pub const WARP_LANES: usize = 32;

/// A texture or surface operation of lanes of a warp, see [`Device::textures`].
#[derive(Debug)]
pub struct WarpTexture<'a> {
    /// As in a [`TextureRequest`].
    pub opcode: &'a str,
    /// The lanes.
    pub lanes: u32,
    /// Each lane's object.
    pub(crate) objects: &'a [u64; WARP_LANES],
    /// Each lane's coordinates (then level or gradients): one row for each operand.
    pub coordinates: &'a [&'a [u64; WARP_LANES]],
    /// What each lane stores.
    pub(crate) values: &'a [&'a [u64; WARP_LANES]],
    /// What each lane gets. Other lanes' may be anything.
    pub results: &'a mut [[u64; WARP_LANES]; 4],
}

impl WarpTexture<'_> {
    /// The object, if all lanes name the same.
    pub fn one_object(&self) -> Option<u64> {
        let first = *self.objects.get(self.lanes.trailing_zeros() as usize)?;
        let same = |lane: usize| self.lanes >> lane & 1 == 0 || self.objects[lane] == first;
        (0..WARP_LANES).all(same).then_some(first)
    }

    /// Asks for one lane after the other.
    ///
    /// # Errors
    /// The first lane that `serve` says no to, with its reason.
    pub fn lane_by_lane(
        &mut self,
        serve: impl Fn(&TextureRequest<'_>) -> Result<[u64; 4], String>,
    ) -> Result<(), (u32, String)> {
        for lane in (0..WARP_LANES).filter(|lane| self.lanes >> lane & 1 != 0) {
            let mut coordinates = [0u32; 16];
            for (to, row) in coordinates.iter_mut().zip(self.coordinates) {
                *to = row[lane] as u32;
            }
            let mut values = [0u64; 8];
            for (to, row) in values.iter_mut().zip(self.values) {
                *to = row[lane];
            }
            let request = TextureRequest {
                opcode: self.opcode,
                object: self.objects[lane],
                coordinates: &coordinates[..self.coordinates.len()],
                values: &values[..self.values.len()],
            };
            let found = serve(&request).map_err(|why| (lane as u32, why))?;
            for (row, value) in self.results.iter_mut().zip(found) {
                row[lane] = value;
            }
        }
        Ok(())
    }
}

/// Work that a thread of a kernel asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceWork {
    /// A launch of the kernel that a function pointer is of.
    Kernel {
        /// The pointer.
        function: u64,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// Bytes of dynamic shared memory for each block.
        shared: u32,
        /// The parameter block.
        params: Vec<u8>,
    },
    /// Copies bytes.
    #[allow(missing_docs, reason = "the names say it")]
    Copy { to: u64, from: u64, bytes: u64 },
    /// Sets bytes.
    #[allow(missing_docs, reason = "the names say it")]
    Fill { to: u64, value: u8, bytes: u64 },
}

/// Which stream such work is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceStream {
    /// An ordinary one.
    Ordered,
    /// `cudaStreamTailLaunch`: behind the grid and all that it launched otherwise.
    Tail,
    /// `cudaStreamFireAndForget`: ordered with nothing but the end of the grid that launched it.
    Detached,
}

/// What the interpreter needs from the driver around it. Memory is host memory at the same
/// addresses.
///
/// An allocation that a running kernel may touch must stay mapped until the launch has ended, for
/// addresses are checked against [`Extent`]s that are remembered for a while.
pub trait Device: Sync {
    /// The live allocation that holds `address`.
    fn allocation(&self, address: u64) -> Option<Extent>;
    /// Where the interpreter itself reads and writes the byte at a device address inside a live
    /// allocation; the same distance for all bytes of one allocation. Not the address itself where
    /// the CPU may not touch that: device memory that must fault when a host program dereferences
    /// it, or pinned memory that a tool has protected.
    fn host_address(&self, address: u64) -> u64 {
        address
    }
    /// Output of device-side `printf`, formatted.
    fn print(&self, text: &[u8]);
    /// What a failed assertion of a kernel says, for standard error.
    fn complain(&self, text: &[u8]) {
        self.print(text);
    }
    /// Device-side `malloc`; 0 when there is none left.
    fn malloc(&self, size: u64) -> u64 {
        let _ = size;
        0
    }
    /// Device-side `free`.
    fn free(&self, address: u64) {
        let _ = address;
    }
    /// Bytes of parameters of the kernel that a function pointer is of; `None` for other pointers.
    fn parameters(&self, function: u64) -> Option<u32> {
        let _ = function;
        None
    }
    /// Work that a thread asks for; it begins when the grid has ended. A status of the runtime.
    fn enqueue(&self, work: DeviceWork, stream: DeviceStream) -> u32 {
        let _ = (work, stream);
        801
    }
    /// `cudaDeviceGetLimit`; `None` when there is no such limit.
    fn limit(&self, limit: u32) -> Option<u64> {
        let _ = limit;
        None
    }
    /// Description of a status of the runtime, or its name.
    fn error_text(&self, status: u32, name: bool) -> String {
        let _ = name;
        status.to_string()
    }
    /// `cudaGraphSetConditional`: the value of a graph's condition.
    fn set_conditional(&self, handle: u64, value: u32) {
        let _ = (handle, value);
    }
    /// Textures and surfaces: raw bits of up to four elements, or the reason why not.
    fn texture(&self, request: &TextureRequest<'_>) -> Result<[u64; 4], String> {
        Err(format!("{} is not supported by this device", request.opcode))
    }
    /// The same for lanes of a warp. An error comes with the first lane that it is of.
    fn textures(&self, warp: &mut WarpTexture<'_>) -> Result<(), (u32, String)> {
        warp.lane_by_lane(|request| self.texture(request))
    }
    /// True when [`Device::observe`] wants to be called.
    fn observing(&self) -> bool {
        false
    }
    /// Every access to global memory, when [`Device::observing`] is true. Called from several
    /// threads.
    fn observe(&self, accesses: &Accesses<'_>) {
        let _ = accesses;
    }
    /// What a warp of a block does to the order of its accesses, when [`Device::observing`] is
    /// true. Called from several threads, for each block in order.
    fn observe_order(&self, block: [u32; 3], warp: u32, event: OrderEvent) {
        let _ = (block, warp, event);
    }
    /// Who is to be told of accesses to global and shared memory and of what orders them. Such a
    /// launch is interpreted, on one thread.
    fn memory_events(&self) -> Option<&dyn MemoryEvents> {
        None
    }
    /// What launches it overlaps, or overlap it.
    fn overlap(&self) -> Option<&dyn Overlap> {
        None
    }
    /// The first access of a launch to shared memory that was not asked for, but is there. Nothing
    /// faults.
    fn overrun(&self, access: &Fault) {
        let _ = access;
    }
    /// A block has ended.
    fn progress(&self) {}
    /// True when running kernels should stop (the process ends); asked now and then.
    fn cancelled(&self) -> bool {
        false
    }
}

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
