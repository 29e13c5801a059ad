//! The table of the runtime API: every function that `libcudart.so` 11, 12 or 13 exports.
//!
//! Order and memory are modelled at the driver's functions, which the runtime calls: nothing here
//! is needed for correctness. What the driver level does not know is the name the user wrote, so a
//! row says only
//!
//! ```text
//! // note the name around the real call
//! name   fn cudaFree(ptr: *mut c_void) -> cudaError_t [plain cudaFree];
//! // nothing worth noting
//! skip   fn cudaGetDevice [plain cudaGetDevice];
//! ```
//!
//! with the aliases as in [`driver_api`](mod@crate::driver_api), and the result always given. A
//! function whose parameters changed between major versions of the runtime has one row in its
//! longest form. That is enough to pass a call on whichever version is loaded (all words travel in
//! the same places), and not enough to interpret it.
//!
//! `runtime_api!(callback, extra)` works as `driver_api!` does.

mod copies;
mod memory;
mod neutral;
mod streams;

/// Calls the macro `$callback` with all rows of the runtime API (after the extra tokens, if any):
/// see [the module](mod@crate::runtime_api).
#[macro_export]
macro_rules! runtime_api {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $crate::__runtime_api_memory! { {$callback {$($($extra)*)?}} {} }
    };
}
