//! What the table says about each symbol of the driver, as data: a fixed order, names to numbers,
//! function types.
//!
//! Generated from [`driver_api!`](crate::driver_api!) at compile time. It neither allocates nor
//! locks, so it can be used inside `dlsym`.

use crate::model_coverage::Effect;
use crate::types::*;

/// When the op of a call is recorded, relative to the real call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Before it: frees and destroys.
    Before,
    /// After it: what needs its result.
    After,
    /// Begun before, finished after: what may wait, or call the host back.
    Both,
    /// Never: no effect on order or memory (or not modelled: see [`FnId::is_interop`]).
    Skip,
}

/// What stream 0 means when a function is called through a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream0 {
    /// The function has no notion of a default stream.
    Plain,
    /// The legacy default stream.
    Legacy,
    /// The calling thread's default stream.
    PerThread,
}

/// One symbol that `libcuda.so.1` exports.
#[derive(Clone, Copy, Debug)]
pub struct FunctionInfo {
    /// The symbol's name.
    pub name: &'static str,
    /// When its op is recorded.
    pub when: When,
    /// What stream 0 means through it.
    pub stream0: Stream0,
    /// The name of its row: symbols of one row have one signature and one meaning.
    pub row: &'static str,
    /// The name without version and suffix: how CUDA's documentation calls it.
    pub family: &'static str,
    /// Its place in [`DRIVER_FUNCTIONS`].
    pub index: u16,
}

/// The number of a driver symbol: its index in [`DRIVER_FUNCTIONS`]. Not stable between versions of
/// this crate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FnId(pub u16);

impl FnId {
    /// How many there are: the length of an array with a slot for each.
    pub const COUNT: usize = DRIVER_FUNCTIONS.len();

    /// What the table says about it.
    pub const fn info(self) -> &'static FunctionInfo {
        &DRIVER_FUNCTIONS[self.0 as usize]
    }

    /// The symbol's name.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// For arrays with a slot for each symbol.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether it belongs to the GL, EGL and VDPAU functions, which are forwarded although they
    /// have effects: a call of one is to be named as not modelled.
    pub const fn is_interop(self) -> bool {
        self.0 >= id::cuGraphicsGLRegisterBuffer.0
    }
}

macro_rules! when {
    (before) => {
        When::Before
    };
    (after) => {
        When::After
    };
    (both) => {
        When::Both
    };
    (skip) => {
        When::Skip
    };
}

macro_rules! stream0 {
    (plain) => {
        Stream0::Plain
    };
    (legacy) => {
        Stream0::Legacy
    };
    (per_thread) => {
        Stream0::PerThread
    };
}

macro_rules! effect {
    (skip) => {
        Effect::None
    };
    ($when:ident) => {
        Effect::Modelled
    };
    ($when:ident no_effect) => {
        Effect::None
    };
    ($when:ident partly $missing:literal) => {
        Effect::Partly($missing)
    };
    ($when:ident not_modelled) => {
        Effect::NotModelled
    };
}

macro_rules! function_types {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(pub type $name = unsafe extern "C" fn($($arg: $ty),*) -> CUresult;)*
    };
}

macro_rules! function_list {
    ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
       [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $($($symbol,)+)* }

        /// Every driver symbol of the table, in the table's order (a row's symbols are neighbours).
        pub static DRIVER_FUNCTIONS: &[FunctionInfo] = &[$($(FunctionInfo {
            name: stringify!($symbol),
            when: when!($when),
            stream0: stream0!($zero),
            row: stringify!($name),
            family: family(stringify!($symbol)),
            index: Number::$symbol as u16,
        },)+)*];

        /// What the last column says of each row, in the table's order.
        pub(crate) static EFFECTS: &[(&str, Effect)] =
            &[$((stringify!($name), effect!($when $($effect $($missing)?)?)),)*];

        /// The number of each driver symbol, under its own name.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod id {
            use super::{FnId, Number};
            $($(pub const $symbol: FnId = FnId(Number::$symbol as u16);)+)*
        }

        /// The function type of each row, under the row's name; of skipped functions, one for each
        /// version.
        #[allow(non_camel_case_types, missing_docs)]
        pub mod pfn {
            use super::*;
            $($(pub type $name = unsafe extern "C" fn($($arg: $ty),*) -> CUresult;)?)*
            crate::driver_signatures!(function_types);
        }
    };
}
crate::driver_api!(function_list);

/// `cuMemcpyHtoDAsync_v2_ptsz` -> `cuMemcpyHtoDAsync`.
pub(crate) const fn family(symbol: &'static str) -> &'static str {
    let bytes = symbol.as_bytes();
    let mut end = bytes.len();
    if end > 5 && bytes[end - 5] == b'_' && bytes[end - 4] == b'p' && bytes[end - 3] == b't' {
        end -= 5;
    }
    let mut digits = end;
    while bytes[digits - 1].is_ascii_digit() {
        digits -= 1;
    }
    if digits < end && bytes[digits - 1] == b'v' && bytes[digits - 2] == b'_' {
        end = digits - 2;
    }
    symbol.split_at(end).0
}

/// Slots of the hash table: a power of two, three times as many as symbols, so that probes stay
/// short.
const SLOTS: usize = 2048;
const EMPTY: u16 = u16::MAX;

/// FNV-1a, because it is short and can run at compile time.
const fn hash(name: &[u8]) -> usize {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    (hash ^ (hash >> 29)) as usize % SLOTS
}

static BY_NAME: [u16; SLOTS] = {
    let mut slots = [EMPTY; SLOTS];
    let mut i = 0;
    while i < DRIVER_FUNCTIONS.len() {
        let mut slot = hash(DRIVER_FUNCTIONS[i].name.as_bytes());
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = i as u16;
        i += 1;
    }
    slots
};

/// The driver symbol of exactly this name (no terminating zero). Neither allocates nor locks.
pub fn lookup(name: &[u8]) -> Option<FnId> {
    if !name.starts_with(b"cu") {
        return None;
    }
    let mut slot = hash(name);
    while BY_NAME[slot] != EMPTY {
        let index = BY_NAME[slot];
        if DRIVER_FUNCTIONS[index as usize].name.as_bytes() == name {
            return Some(FnId(index));
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}
