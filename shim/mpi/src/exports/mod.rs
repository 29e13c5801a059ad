//! The functions of MPI that are observed: one row each, with its names in C, in C with large
//! counts, and in Fortran (`mpif.h`, `use mpi`; `use mpi_f08` of Open MPI).
//!
//! Owns their exports, which the dynamic linker finds before the library's. Every argument is one
//! word and is passed on as it came: handles are integers in one library and pointers in another.
//! Functions with strings have no name in Fortran here: the strings' lengths are further arguments,
//! behind the error.

use std::ffi::CStr;

/// Defines the wrappers of rows: the name in reports, the symbols with their language and
/// arguments, what the function does.
macro_rules! wrappers {
    ($($routine:literal [$($symbol:ident $language:ident ($($arg:ident)*),)+] $meaning:expr;)*) => {$($(
        #[doc = concat!("`", $routine, "`.")]
        ///
        /// # Safety
        /// As for MPI's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "MPI's name and signature")]
        pub unsafe extern "C-unwind" fn $symbol($($arg: usize),*) -> std::ffi::c_int {
            use $crate::arguments::Language;
            use $crate::{abi, calls};
            static REAL: abi::MpiFunction = abi::MpiFunction::new(super::c_name(concat!(stringify!($symbol), "\0")));
            let words: &[usize] = &[$($arg),*];
            let Some(real) = REAL.find($symbol as *const () as usize) else {
                return calls::absent(Language::$language, words);
            };
            type Real = unsafe extern "C-unwind" fn($(word!($arg)),*) -> std::ffi::c_int;
            // SAFETY: the signature is MPI's, with one word for each argument.
            let real: Real = unsafe { std::mem::transmute::<usize, Real>(real) };
            const ID: $crate::names::CallNumber = $crate::names::number($routine);
            // SAFETY: arguments are the program's, passed on as they came.
            unsafe { calls::run(ID, Language::$language, words, &$meaning, &mut || real($($arg),*)) }
        }
    )+)*};
}

/// The type of an argument.
macro_rules! word {
    ($arg:ident) => {
        usize
    };
}

/// A name for the loader.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

pub mod collectives;
pub mod completion;
pub mod files;
pub mod neighbours;
pub mod one_sided;
pub mod partitioned;
pub mod point_to_point;
pub mod progress;
