//! What the runtime's table says about each symbol, as data. Generated from
//! [`runtime_api!`](crate::runtime_api!).

use crate::driver_functions::{Stream0, family};
use crate::runtime_types::*;
use crate::types::*;

/// One symbol that some `libcudart.so` exports.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeFunctionInfo {
    /// The symbol's name.
    pub name: &'static str,
    /// Whether its name is noted around the real call (`name` rows).
    pub noted: bool,
    /// What stream 0 means through it.
    pub stream0: Stream0,
    /// The name of its row.
    pub row: &'static str,
    /// The name without version and suffix: what the user wrote.
    pub family: &'static str,
    /// Its place in [`RUNTIME_FUNCTIONS`].
    pub index: u16,
}

/// The number of a runtime symbol: its index in [`RUNTIME_FUNCTIONS`]. Not stable between versions
/// of this crate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuntimeFnId(pub u16);

impl RuntimeFnId {
    /// How many there are.
    pub const COUNT: usize = RUNTIME_FUNCTIONS.len();

    /// What the table says about it.
    pub const fn info(self) -> &'static RuntimeFunctionInfo {
        &RUNTIME_FUNCTIONS[self.0 as usize]
    }

    /// The symbol's name.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// For arrays with a slot for each symbol.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

macro_rules! noted {
    (name) => {
        true
    };
    (skip) => {
        false
    };
}

macro_rules! function_list {
    ($($note:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?) -> $result:ty)?
       [$($zero:ident $symbol:ident),+ $(,)?];)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $($($symbol,)+)* }

        /// Every runtime symbol of the table, in the table's order.
        pub static RUNTIME_FUNCTIONS: &[RuntimeFunctionInfo] = &[$($(RuntimeFunctionInfo {
            name: stringify!($symbol),
            noted: noted!($note),
            stream0: stream0!($zero),
            row: stringify!($name),
            family: family(stringify!($symbol)),
            index: Number::$symbol as u16,
        },)+)*];

        /// The number of each runtime symbol, under its own name.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod runtime_id {
            use super::{Number, RuntimeFnId};
            $($(pub const $symbol: RuntimeFnId = RuntimeFnId(Number::$symbol as u16);)+)*
        }

        /// The function type of each row that has a signature, under the row's name.
        #[allow(non_camel_case_types, missing_docs)]
        pub mod runtime_pfn {
            use super::*;
            $($(pub type $name = unsafe extern "C" fn($($arg: $ty),*) -> $result;)?)*
        }
    };
}
crate::runtime_api!(function_list);
