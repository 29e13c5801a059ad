//! Our exports of NVSHMEM's functions: one macro, whose callers say what a function does.
//!
//! Owns looking for the real function and calling it. What is observed about it is the business of
//! the function that is handed the call (`around`).

/// A function of NVSHMEM: its name in parts, its parameters, what it answers (and what ours does
/// where NVSHMEM is not behind us, which cannot be), and who calls it, with what.
macro_rules! export {
    (
        [$($name:expr),+] ($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty, $absent:expr)?,
        $around:ident($($more:expr),* $(,)?)
    ) => {
        const _: () = {
            static REAL: $crate::real::library::LibraryFunction = $crate::real::library::LibraryFunction::new(
                $crate::libraries::nvshmem::SONAME,
                match std::ffi::CStr::from_bytes_with_nul(concat!($($name,)+ "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            );
            const ID: cuda_sys::FnId = $crate::log::nvshmem_names::nvshmem_call(concat!($($name),+));
            /// # Safety
            /// As for NVSHMEM's function.
            #[unsafe(export_name = concat!($($name),+))]
            #[allow(clippy::too_many_arguments, reason = "NVSHMEM's signature")]
            unsafe extern "C" fn export($($arg: $ty),*) $(-> $out)? {
                type Real = unsafe extern "C" fn($($ty),*) $(-> $out)?;
                let Some(real) = REAL.find(export as *const () as usize) else { return $($absent)? };
                // SAFETY: NVSHMEM's function of this name has had this signature since it exists.
                let real = unsafe { std::mem::transmute::<usize, Real>(real) };
                // SAFETY: arguments are passed on as they came.
                $around(ID, || unsafe { real($($arg),*) }, $($more),*)
            }
        };
    };
}

pub(super) use export;
