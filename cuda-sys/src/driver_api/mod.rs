//! THE TABLE: every function of the driver API that CUDA 11.8 to 13.5 has, one row each.
//!
//! `cuda.h` has 485 families of functions, here in 547 rows with 685 symbols: 17 rows `before`, 252
//! `after`, 93 `both`, 185 `skip`. Three more are those of `cudaProfiler.h`, and 35 symbols those
//! of GL, EGL and VDPAU ([`FnId::is_interop`](crate::FnId::is_interop)).
//!
//! A row is
//!
//! ```text
//! both   fn cuStreamSynchronize(stream: CUstream)
//!            [legacy cuStreamSynchronize, per_thread cuStreamSynchronize_ptsz];
//! skip   fn cuDeviceGet [plain cuDeviceGet];
//! after  fn cuGraphCreate(graph: *mut CUgraph, flags: c_uint) [plain cuGraphCreate] no_effect;
//! ```
//!
//! - The first word says when the op is recorded, relative to the real call. `before`: what is
//!   forgotten about a handle that goes away, with no effect on order or memory. `after`: what
//!   needs the result or the success of the call: allocations, creations, launches, records, waits,
//!   loads. `both`: what may block the host, hand completion to the host, or call back into the
//!   host: it covers what was enqueued before the call began, and takes effect when the call
//!   returns. Also frees and destroys: what they end is looked up before the call (when it returns,
//!   another thread may own the address or the handle), and ends if the call succeeds. `skip`: no
//!   effect on order or memory; such rows have no signature, they are forwarded by a jump. (The
//!   type of such a function is in [`pfn`](crate::pfn), from
//!   [`driver_signatures!`](crate::driver_signatures!).)
//! - The name of the row is that of the newest function with this signature and meaning. Versions
//!   that differ in either are rows of their own (`cuMemAlloc` and `cuMemAlloc_v2`). The result is
//!   a [`CUresult`](crate::CUresult), always.
//! - The brackets hold every symbol that has this row's signature and meaning, and what stream 0
//!   means through it: `legacy`, `per_thread`, or `plain` where a function has no such notion.
//! - The last column says how much is modelled, unless all is: `no_effect` (none that matters, or
//!   one that another row covers), `partly "what is missing"`, or `not_modelled`. See
//!   [`Effect`](crate::model_coverage::Effect).
//!
//! To use the table, name a macro: `driver_api!(my_macro)` calls `my_macro! { rows }`, and
//! `driver_api!(my_macro, x)` calls `my_macro! { x rows }`. The types must be in scope (`use
//! cuda_sys::*`). The chain is a dozen calls deep and a callback adds three, far from the default
//! recursion limit. A callback that turns each row into a function which calls `ops::<row name>`
//! makes a row without that function fail to compile:
//!
//! ```
//! use cuda_sys::*;
//! # macro_rules! ops {
//! #     ($(
//! #         $when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
//! #             [$($aliases:tt)*] $($effect:ident $($missing:literal)?)?;
//! #     )*) => {
//! #         #[allow(non_snake_case, unused_variables)]
//! #         mod ops {
//! #             use cuda_sys::*;
//! #             $( ops!(@op $name $(($($arg: $ty),*))?); )*
//! #         }
//! #     };
//! #     (@op $name:ident) => {};
//! #     (@op $name:ident ($($arg:ident: $ty:ty),*)) => {
//! #         pub fn $name(per_thread: Option<bool>, $($arg: $ty),*) -> CUresult {
//! #             CUresult::SUCCESS
//! #         }
//! #     };
//! # }
//! # driver_api!(ops); // in the shim: one function in a file per class
//!
//! macro_rules! wrappers {
//!     ($(
//!         $when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
//!             [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;
//!     )*) => {
//!         $( wrappers! { @row $name $(($($arg: $ty),*))? [$($zero $symbol),+] } )*
//!     };
//!     (@row $name:ident [$($aliases:tt)*]) => {}; // skip: no signature
//!     (@row $name:ident $args:tt [$($zero:ident $symbol:ident),+]) => {
//!         $( wrappers! { @symbol $name $args $zero $symbol } )+
//!     };
//!     (@symbol $name:ident ($($arg:ident: $ty:ty),*) $zero:ident $symbol:ident) => {
//!         pub unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
//!             ops::$name(wrappers!(@zero $zero), $($arg),*)
//!         }
//!     };
//!     (@zero plain) => { None };
//!     (@zero legacy) => { Some(false) };
//!     (@zero per_thread) => { Some(true) };
//! }
//! #[allow(non_snake_case)]
//! mod exported {
//!     use super::ops;
//!     use cuda_sys::*;
//!     driver_api!(wrappers);
//! }
//! fn main() {
//!     let symbol: pfn::cuStreamSynchronize = exported::cuStreamSynchronize_ptsz;
//!     assert_eq!(unsafe { symbol(CUstream::NULL) }, CUresult::SUCCESS);
//! }
//! ```
//!
//! The same with one function missing from `ops`:
//!
//! ```compile_fail,E0425
//! use cuda_sys::*;
//! # macro_rules! ops {
//! #     ($(
//! #         $when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
//! #             [$($aliases:tt)*] $($effect:ident $($missing:literal)?)?;
//! #     )*) => {
//! #         #[allow(non_snake_case, unused_variables)]
//! #         mod ops {
//! #             use cuda_sys::*;
//! #             $( ops!(@op $name $(($($arg: $ty),*))?); )*
//! #         }
//! #     };
//! #     (@op $name:ident) => {};
//! #     (@op cuMemFree_v2 $args:tt) => {};
//! #     (@op $name:ident ($($arg:ident: $ty:ty),*)) => {
//! #         pub fn $name(per_thread: Option<bool>, $($arg: $ty),*) -> CUresult {
//! #             CUresult::SUCCESS
//! #         }
//! #     };
//! # }
//! # driver_api!(ops); // in the shim: one function in a file per class
//! # macro_rules! wrappers {
//! #     ($(
//! #         $when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
//! #             [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;
//! #     )*) => {
//! #         $( wrappers! { @row $name $(($($arg: $ty),*))? [$($zero $symbol),+] } )*
//! #     };
//! #     (@row $name:ident [$($aliases:tt)*]) => {}; // skip: no signature
//! #     (@row $name:ident $args:tt [$($zero:ident $symbol:ident),+]) => {
//! #         $( wrappers! { @symbol $name $args $zero $symbol } )+
//! #     };
//! #     (@symbol $name:ident ($($arg:ident: $ty:ty),*) $zero:ident $symbol:ident) => {
//! #         pub unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
//! #             ops::$name(wrappers!(@zero $zero), $($arg),*)
//! #         }
//! #     };
//! #     (@zero plain) => { None };
//! #     (@zero legacy) => { Some(false) };
//! #     (@zero per_thread) => { Some(true) };
//! # }
//! # #[allow(non_snake_case)]
//! # mod exported {
//! #     use super::ops;
//! #     use cuda_sys::*;
//! #     driver_api!(wrappers);
//! # }
//! # fn main() {
//! #     let symbol: pfn::cuStreamSynchronize = exported::cuStreamSynchronize_ptsz;
//! #     assert_eq!(unsafe { symbol(CUstream::NULL) }, CUresult::SUCCESS);
//! # }
//! // error[E0425]: cannot find function `cuMemFree_v2` in module `ops`
//! ```
//!
//! # Adding a function
//!
//! The tests compare the table with `cuda.h` (`cargo xtask cuda-headers` fetches the newest) and
//! print a row for each function that has none. Paste it into the file of its class, fill in the
//! first word, the names, the meaning of stream 0, and write `ops::<row name>`. Versions and
//! `_ptsz`/`_ptds` twins with the same parameters join the brackets.
//!
//! A callback that wants only some rows forwards each row to a helper macro, as above. The macros
//! of the files below are links of one chain; they are not meant to be called.

mod arrays;
mod code;
mod contexts;
mod copies;
mod graphs;
mod interop;
mod launches;
mod memory;
mod neutral;
mod sets;
mod signatures;
mod streams;
mod virtual_memory;

/// Calls the macro `$callback` with all rows of the driver API (after the extra tokens, if any):
/// see [the module](mod@crate::driver_api).
#[macro_export]
macro_rules! driver_api {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $crate::__driver_api_streams! { {$callback {$($($extra)*)?}} {} }
    };
}
