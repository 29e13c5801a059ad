//! How the stand-ins call the driver.

/// Calls a function of the driver by the name of its row in the table of `cuda-sys`; the answer is
/// a `Result`.
macro_rules! cu {
    ($name:ident ($($arg:expr),* $(,)?)) => {{
        static SLOT: sim_driver_link::Slot = sim_driver_link::Slot::new();
        // As of CUDA 12.0; stream 0 is the legacy default stream.
        match SLOT.get(cuda_sys::id::$name.info().family, 12000, false) {
            // SAFETY: the driver's function of this name has the table's signature; the arguments
            // are ours, or the program's, which vouches for them as it does towards NVIDIA's.
            Some(address) => match unsafe {
                let function: cuda_sys::pfn::$name = std::mem::transmute::<*mut std::ffi::c_void, _>(address);
                function($($arg),*)
            } {
                cuda_sys::CUresult::SUCCESS => Ok(()),
                error => Err(error),
            },
            None => Err(cuda_sys::CUresult::ERROR_NOT_INITIALIZED),
        }
    }};
}

/// Defines functions with a handle, for libraries other than cuBLAS. Each one calls the body with
/// the call, its type of elements (if one is named), and its arguments. `in MODULE` names where
/// handles and `handle::enter` are. Arguments are `I` (an integer or an enumeration), `L`
/// (an integer of 64 bits), `B` (a number of bytes), `C` (a letter) and `P` (a pointer, handed on
/// as an address).
macro_rules! handled {
    (in $library:ident; $body:path; $args:tt $($name:ident $(= $kind:ident)?),* $(,)?) => {
        $( handled! { @function $library, $body, $name, ($($kind)?), $args } )*
    };
    (
        @function $library:ident, $body:path, $name:ident, ($($kind:ident)?),
        ($($arg:ident: $ty:ident),* $(,)?)
    ) => {
        const _: () = {
            // SAFETY: the name of a function of the library, with its signature.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                handle: *mut handled!(@handle $library), $($arg: handled!(@type $ty)),*
            ) -> i32 {
                // SAFETY: a program passes a handle that it got from the library, or null.
                let handle = unsafe { handle.as_mut() };
                $crate::$library::handle::enter(handle, stringify!($name), |call| {
                    $body(call, $($crate::numerics::number::Type::$kind,)? $(handled!(@value $ty $arg)),*)
                })
            }
        };
    };
    (@handle cusolver) => { $crate::cusolver::handle::SolverHandle };
    (@handle cusparse) => { $crate::cusparse::handle::SparseHandle };
    (@type I) => { std::ffi::c_int };
    (@type L) => { i64 };
    (@type B) => { usize };
    (@type C) => { std::ffi::c_char };
    (@type P) => { *const std::ffi::c_void };
    (@value I $arg:ident) => { i64::from($arg) };
    (@value L $arg:ident) => { $arg };
    (@value B $arg:ident) => { $arg as u64 };
    (@value C $arg:ident) => { $arg as u8 };
    (@value P $arg:ident) => { $arg as u64 };
}
