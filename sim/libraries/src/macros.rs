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
