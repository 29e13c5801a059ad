//! The driver's functions, found as a program finds them: a preloaded tool sees each call.

use std::ffi::{CString, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_sys::{CUresult, SimTable, pfn};

/// A place that remembers one function's address.
pub struct Slot(AtomicPtr<c_void>);

impl Slot {
    #[allow(clippy::new_without_default, reason = "for statics only")]
    pub const fn new() -> Slot {
        Slot(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The function of that base name, as of CUDA 12.0; stream 0 is the legacy default stream.
    pub fn get(&self, family: &str) -> Option<*mut c_void> {
        let known = self.0.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        let found = proc_address(family)?;
        self.0.store(found, Ordering::Release);
        Some(found)
    }
}

/// Calls a function of the driver by the name of its row in the table of `cuda-sys`; the answer is
/// a `Result`.
macro_rules! cu {
    ($name:ident ($($arg:expr),* $(,)?)) => {{
        static SLOT: $crate::driver_link::Slot = $crate::driver_link::Slot::new();
        match SLOT.get(cuda_sys::id::$name.info().family) {
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

/// `cuGetProcAddress` itself, from the driver library.
fn door() -> Option<pfn::cuGetProcAddress_v2> {
    static DOOR: OnceLock<Option<usize>> = OnceLock::new();
    let found = *DOOR.get_or_init(|| {
        // SAFETY: valid C strings; the library is never closed.
        unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() {
                return None;
            }
            let door = libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr());
            (!door.is_null()).then_some(door as usize)
        }
    });
    // SAFETY: the driver's function of this name has this type.
    found.map(|door| unsafe { std::mem::transmute::<usize, pfn::cuGetProcAddress_v2>(door) })
}

fn proc_address(name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    let mut found = std::ptr::null_mut();
    let mut status = cuda_sys::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    // SAFETY: valid pointers, and a name that ends with a zero.
    let result = unsafe { door()?(name.as_ptr(), &mut found, 12000, 1, &mut status) };
    (result == CUresult::SUCCESS && !found.is_null()).then_some(found)
}

/// Takes note that something was refused: the driver says it, and `streamsan --sim` hears of it.
pub fn refused(why: &str) {
    let Ok(text) = CString::new(why) else { return };
    match private() {
        // SAFETY: the simulated driver's function, and a C string.
        Some(table) => unsafe { (table.refused)(text.as_ptr()) },
        None => eprintln!("streamsan-sim: {why}"),
    }
}

/// The private table of the simulated driver. `None` under any other driver.
pub fn private() -> Option<&'static SimTable> {
    static TABLE: OnceLock<Option<usize>> = OnceLock::new();
    let found = *TABLE.get_or_init(|| {
        let mut table = std::ptr::null();
        cu!(cuGetExportTable(&mut table, cuda_sys::SIM_TABLE.as_ptr().cast())).ok()?;
        (!table.is_null()).then_some(table as usize)
    });
    // SAFETY: the simulated driver answers its own id with a static table of this type.
    found.map(|table| unsafe { &*(table as *const SimTable) })
}
