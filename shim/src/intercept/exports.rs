//! The exported wrappers: one for each symbol of the table, generated from it.
//!
//! A row that takes part calls the real function and, around it, the function of the same name in
//! [`crate::ops`]; a row without that function does not compile. A `skip` row jumps to the real
//! function with every register as it was. No lock is held across a real call.
//!
//! Owns the addresses of the wrappers. How programs get at them other than by linking is in
//! [`super::symbol_hooks`].

use std::ffi::c_void;

use cuda_sys::*;

use super::symbol_hooks;
use crate::arch;
use crate::observe::{Phase, observe};
use crate::ops;
use crate::real::driver;
use crate::runtime::cycles::{self, Part};

macro_rules! exports {
    ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
       [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
        $( exports! { @row $when $name $(($($arg: $ty),*))? [$($symbol),+] } )*

        /// Our wrappers, by table number.
        static WRAPPERS: &[Wrapper] = &[$($(Wrapper($symbol as *const c_void),)+)*];
    };
    (@row skip $name:ident $(($($arg:ident: $ty:ty),*))? [$($symbol:ident),+]) => { $( exports! { @jump $symbol } )+ };
    // Rows whose arguments are replaced on the way.
    (@row both cuLaunchHostFunc $args:tt [$($symbol:ident),+]) => {
        $( exports! { @host $symbol cuLaunchHostFunc (callback: CUhostFn) wrap_function run_function () } )+
    };
    (@row both cuLaunchHostFunc_v2 $args:tt [$($symbol:ident),+]) => {
        $( exports! {
            @host $symbol cuLaunchHostFunc_v2 (callback: CUhostFn) wrap_function run_function (sync_mode: c_uint)
        } )+
    };
    (@row both cuStreamAddCallback $args:tt [$($symbol:ident),+]) => {
        $( exports! {
            @host $symbol cuStreamAddCallback (callback: CUstreamCallback) wrap_callback run_callback (flags: c_uint)
        } )+
    };
    // Rows whose answer is replaced.
    (@row after cuGetProcAddress $args:tt [$($symbol:ident),+]) => {
        $( exports! { @look_up $symbol cuGetProcAddress () } )+
    };
    (@row after cuGetProcAddress_v2 $args:tt [$($symbol:ident),+]) => {
        $( exports! {
            @look_up $symbol cuGetProcAddress_v2 (symbol_status: *mut CUdriverProcAddressQueryResult)
        } )+
    };
    // Rows of the usual path: their wrappers lie with the code behind them.
    (@row after cuLaunchKernel $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuLaunchKernel $args $symbol } )+ };
    (@row after cuLaunchKernelEx $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuLaunchKernelEx $args $symbol } )+ };
    (@row after cuEventCreate $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuEventCreate $args $symbol } )+ };
    (@row after cuEventRecord $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuEventRecord $args $symbol } )+ };
    (@row after cuEventRecordWithFlags $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuEventRecordWithFlags $args $symbol } )+ };
    (@row after cuStreamWaitEvent $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuStreamWaitEvent $args $symbol } )+ };
    (@row both cuEventDestroy_v2 $args:tt [$($symbol:ident),+]) => { $( exports! { @hot both cuEventDestroy_v2 $args $symbol } )+ };
    (@row after cuMemsetD8Async $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuMemsetD8Async $args $symbol } )+ };
    (@row after cuMemsetD32Async $args:tt [$($symbol:ident),+]) => { $( exports! { @hot after cuMemsetD32Async $args $symbol } )+ };
    (@row $when:ident $name:ident $args:tt [$($symbol:ident),+]) => { $( exports! { @call $when $name $args $symbol } )+ };
    (@hot $when:ident $name:ident $args:tt $symbol:ident) => {
        exports! { @call $when $name $args $symbol #[unsafe(link_section = "streamsan_hot")] }
    };

    (@call before $name:ident ($($arg:ident: $ty:ty),*) $symbol:ident $(#[$place:meta])?) => {
        $(#[$place])?
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
            let Some(real) = driver::function(id::$symbol) else { return CUresult::ERROR_NOT_FOUND };
            // SAFETY: the slot holds the driver's function of this name; the table states its
            // signature.
            let real: pfn::$name = unsafe { std::mem::transmute(real) };
            // SAFETY: arguments are the program's, valid as the function's contract says.
            observe(id::$symbol, 0, Phase::Before, |cx| unsafe { ops::$name(cx, $($arg),*) });
            // SAFETY: arguments are passed on as they came.
            unsafe { real($($arg),*) }
        }
    };
    (@call after $name:ident ($($arg:ident: $ty:ty),*) $symbol:ident $(#[$place:meta])?) => {
        $(#[$place])?
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
            let Some(real) = driver::function(id::$symbol) else { return CUresult::ERROR_NOT_FOUND };
            // SAFETY: the slot holds the driver's function of this name; the table states its
            // signature.
            let real: pfn::$name = unsafe { std::mem::transmute(real) };
            // SAFETY: arguments are passed on as they came.
            let result = cycles::of(Part::Real, || unsafe { real($($arg),*) });
            // SAFETY: arguments are the program's, valid as the function's contract says; the call
            // has filled its out-pointers.
            observe(id::$symbol, 0, Phase::After(result), |cx| unsafe { ops::$name(cx, $($arg),*) });
            result
        }
    };
    (@call both $name:ident ($($arg:ident: $ty:ty),*) $symbol:ident $(#[$place:meta])?) => {
        $(#[$place])?
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
            let Some(real) = driver::function(id::$symbol) else { return CUresult::ERROR_NOT_FOUND };
            // SAFETY: the slot holds the driver's function of this name; the table states its
            // signature.
            let real: pfn::$name = unsafe { std::mem::transmute(real) };
            // SAFETY: arguments are the program's, valid as the function's contract says.
            let token = observe(id::$symbol, 0, Phase::Before, |cx| unsafe { ops::$name(cx, $($arg),*) });
            // SAFETY: arguments are passed on as they came.
            let result = cycles::of(Part::Real, || unsafe { real($($arg),*) });
            // SAFETY: as above; the call has filled its out-pointers.
            observe(id::$symbol, token, Phase::After(result), |cx| unsafe { ops::$name(cx, $($arg),*) });
            result
        }
    };
    (@host $symbol:ident $name:ident ($callback:ident: $ty:ty) $wrap:ident $run:ident ($($more:ident: $more_ty:ty)?)) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $symbol(
            stream: CUstream, $callback: $ty, user_data: *mut c_void $(, $more: $more_ty)?
        ) -> CUresult {
            let Some(real) = driver::function(id::$symbol) else { return CUresult::ERROR_NOT_FOUND };
            // SAFETY: the slot holds the driver's function of this name; the table states its
            // signature.
            let real: pfn::$name = unsafe { std::mem::transmute(real) };
            let mut wrapped = None;
            observe(id::$symbol, 0, Phase::Before, |cx| wrapped = ops::$wrap(cx, stream, $callback, user_data));
            let Some(wrapped) = wrapped else {
                // SAFETY: arguments are passed on as they came.
                return unsafe { real(stream, $callback, user_data $(, $more)?) };
            };
            let data = Box::into_raw(wrapped);
            // SAFETY: the driver calls our function once with this data.
            let result = unsafe { real(stream, Some(ops::$run), data.cast() $(, $more)?) };
            if result != CUresult::SUCCESS {
                // SAFETY: a call that failed never runs the function, so the box is still ours.
                drop(unsafe { Box::from_raw(data) });
            }
            result
        }
    };
    (@look_up $symbol:ident $name:ident ($($more:ident: $more_ty:ty)?)) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $symbol(
            symbol: *const c_char, entry_point: *mut *mut c_void, cuda_version: c_int, flags: u64 $(, $more: $more_ty)?
        ) -> CUresult {
            let Some(real) = driver::function(id::$symbol) else { return CUresult::ERROR_NOT_FOUND };
            // SAFETY: the slot holds the driver's function of this name; the table states its
            // signature.
            let real: pfn::$name = unsafe { std::mem::transmute(real) };
            // SAFETY: arguments are passed on as they came.
            let result = unsafe { real(symbol, entry_point, cuda_version, flags $(, $more)?) };
            // SAFETY: the call has just filled the out-pointer.
            observe(id::$symbol, 0, Phase::After(result), |_| unsafe { symbol_hooks::substitute(entry_point) });
            result
        }
    };
    (@jump $symbol:ident) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $symbol() {
            arch::jump_to_slot!(driver::SLOTS, id::$symbol.0, find_then_jump)
        }
    };
}

/// Finds the real function, whose number is in a register, then jumps to it with every argument
/// register as it was.
#[unsafe(naked)]
unsafe extern "C" fn find_then_jump() {
    arch::find_and_jump!(driver::find_or_fail)
}

struct Wrapper(*const c_void);

// SAFETY: addresses of functions, never written through.
unsafe impl Sync for Wrapper {}

driver_api!(exports);

/// Our wrapper of a function of the table.
pub(super) fn wrapper(function: FnId) -> *mut c_void {
    WRAPPERS[function.index()].0.cast_mut()
}

/// Whose wrapper an address is.
pub(super) fn index_of(address: *mut c_void) -> Option<FnId> {
    let index = WRAPPERS.iter().position(|wrapper| std::ptr::eq(wrapper.0, address))?;
    Some(FnId(index as u16))
}
