//! The macros in which the functions of this crate are written, and with which they call the
//! driver.

/// As `abi!` of the driver crate: every symbol in the brackets is defined, `pt` says whether stream
/// 0 is the calling thread's default stream; the first word is the guard in `state` that the body
/// runs under.
macro_rules! rt {
    (@function $guard:ident [$($symbol:ident $kind:ident),+ $(,)?] $args:tt $body:block) => {
        const _: () = {
            rt! { @body $args $body }
            $( rt! { @symbol $guard $symbol $kind $args } )+
        };
    };
    (@body ($pt:ident $(, $arg:ident: $ty:ty)* $(,)?) $body:block) => {
        #[allow(clippy::too_many_arguments, unused_variables)]
        fn body($pt: bool, $($arg: $ty),*) -> $crate::thread_state::Res $body
    };
    (@symbol $guard:ident $symbol:ident $kind:ident ($pt:ident $(, $arg:ident: $ty:ty)* $(,)?)) => {
        // SAFETY: the name of a function of the runtime API, with its signature.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $symbol($($arg: $ty),*) -> cuda_sys::cudaError_t {
            $crate::thread_state::$guard(|| body(rt!(@kind $kind), $($arg),*))
        }
    };
    (@kind plain) => { false };
    (@kind legacy) => { false };
    (@kind per_thread) => { true };
    ($($guard:ident fn $symbols:tt $args:tt $body:block)*) => { $( rt! { @function $guard $symbols $args $body } )* };
}

/// Calls a function of the driver: `cu!(cuMemAlloc_v2(&mut p, size))`, `cu!(cuStreamSynchronize,
/// pt; (stream))` with the meaning of stream 0, `cu!(cuCtxSynchronize @ 12000 ())` for an older
/// form than that of CUDA 13.0. The name is the row's in the table of `cuda-sys`.
macro_rules! cu {
    ($name:ident ($($arg:expr),* $(,)?)) => { cu!(@call $name, false, 13000, ($($arg),*)) };
    ($name:ident @ $version:literal ($($arg:expr),* $(,)?)) => { cu!(@call $name, false, $version, ($($arg),*)) };
    ($name:ident, $pt:expr; ($($arg:expr),* $(,)?)) => { cu!(@call $name, $pt, 13000, ($($arg),*)) };
    (@call $name:ident, $pt:expr, $version:literal, ($($arg:expr),*)) => {{
        static SLOTS: [sim_driver_link::Slot; 2] = [const { sim_driver_link::Slot::new() }; 2];
        let per_thread: bool = $pt;
        let family = cuda_sys::id::$name.info().family;
        match SLOTS[usize::from(per_thread)].get(family, $version, per_thread) {
            // SAFETY: the driver's function of this name and version has the table's signature;
            // arguments are passed on from the program, which vouches for them as it does towards
            // NVIDIA's runtime.
            Some(address) => unsafe {
                let function: cuda_sys::pfn::$name = std::mem::transmute::<*mut std::ffi::c_void, _>(address);
                $crate::thread_state::check(function($($arg),*))
            },
            None => Err(cuda_sys::cudaErrorInsufficientDriver),
        }
    }};
}
