//! The macro in which the functions of cuBLAS are written.

/// Defines functions of handles. Each one calls the body with the call, its type of elements (if
/// one is named), and its arguments. Arguments are `I` (an integer, of 64 bits in the second name),
/// `L` (always of 64 bits), `E` (an enumeration) and `P` (a pointer, handed on as an address).
macro_rules! api {
    ($body:path; $args:tt $($name:ident $(/ $name64:ident)? $(= $kind:ident)?),* $(,)?) => {
        $( api! { @names $body, $name $(/ $name64)?, ($($kind)?), $args } )*
    };
    (@names $body:path, $name:ident / $name64:ident, $kind:tt, $args:tt) => {
        api! { @function $body, $name, $kind, narrow $args }
        api! { @function $body, $name64, $kind, wide $args }
    };
    (@names $body:path, $name:ident, $kind:tt, $args:tt) => { api! { @function $body, $name, $kind, narrow $args } };
    (@function $body:path, $name:ident, ($($kind:ident)?), $width:ident ($($arg:ident: $ty:ident),* $(,)?)) => {
        const _: () = {
            // SAFETY: the name of a function of cuBLAS, with its signature.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                handle: *mut $crate::cublas::handle::Handle, $($arg: api!(@type $width $ty)),*
            ) -> i32 {
                // SAFETY: a program passes a handle that it got from `cublasCreate`, or null.
                let handle = unsafe { handle.as_mut() };
                $crate::cublas::handle::enter(handle, stringify!($name), |call| {
                    $body(call, $($crate::numerics::number::Type::$kind,)? $(api!(@value $ty $arg)),*)
                })
            }
        };
    };
    (@type narrow I) => { std::ffi::c_int };
    (@type wide I) => { i64 };
    (@type $width:ident L) => { i64 };
    (@type $width:ident E) => { std::ffi::c_int };
    (@type $width:ident P) => { *const std::ffi::c_void };
    (@value I $arg:ident) => { $arg as i64 };
    (@value L $arg:ident) => { $arg };
    (@value E $arg:ident) => { $arg };
    (@value P $arg:ident) => { $arg as u64 };
}
