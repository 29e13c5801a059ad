//! The macro `abi!`, in which the functions of this folder are written.

/// ```text
/// abi! {
///     call fn [cuStreamQuery legacy, cuStreamQuery_ptsz per_thread](zero, stream: CUstream) {
///         ...
///     }
/// }
/// ```
/// defines every symbol in the brackets. `zero` names the variable that says what stream 0 means;
/// the first word is the guard in `super` that the body runs under.
macro_rules! abi {
    (@function $guard:ident [$($symbol:ident $kind:ident),+ $(,)?] $args:tt $body:block) => {
        const _: () = {
            abi! { @body $args $body }
            $( abi! { @symbol $guard $symbol $kind $args } )+
        };
    };
    (@body ($zero:ident $(, $arg:ident: $ty:ty)* $(,)?) $body:block) => {
        #[allow(clippy::too_many_arguments, unused_variables)]
        fn body($zero: $crate::objects::stream::DefaultStream, $($arg: $ty),*) -> $crate::api::Res $body
    };
    (@symbol $guard:ident $symbol:ident $kind:ident ($zero:ident $(, $arg:ident: $ty:ty)* $(,)?)) => {
        // SAFETY: the table's name with the table's signature; nothing else in the process's own
        // code has it.
        #[cfg_attr(feature = "driver", unsafe(no_mangle))]
        #[allow(clippy::too_many_arguments, dead_code)]
        unsafe extern "C" fn $symbol($($arg: $ty),*) -> cuda_sys::CUresult {
            $crate::api::$guard(stringify!($symbol), || body(abi!(@zero $kind), $($arg),*))
        }
    };
    (@zero plain) => { $crate::objects::stream::DefaultStream::Legacy };
    (@zero legacy) => { $crate::objects::stream::DefaultStream::Legacy };
    (@zero per_thread) => { $crate::objects::stream::DefaultStream::PerThread };
    ($($guard:ident fn $symbols:tt $args:tt $body:block)*) => { $( abi! { @function $guard $symbols $args $body } )* };
}
