//! Finds the driver's functions, the way NVIDIA's runtime does: what is preloaded sees each call.
//!
//! The runtime (`sim/cudart`) and the stand-ins for libraries (`sim/libraries`) call the driver
//! through it. It does not call any function of the driver but `cuGetProcAddress` and, for the
//! simulated driver's private table, `cuGetExportTable`.

#![warn(unreachable_pub)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_sys::{CUdriverProcAddressQueryResult, CUresult, pfn};

/// A place that remembers one function's address.
pub struct Slot(AtomicPtr<c_void>);

impl Slot {
    /// A place that knows no function yet.
    #[expect(clippy::new_without_default, reason = "for statics only")]
    pub const fn new() -> Slot {
        Slot(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The function of that base name for a version and a meaning of stream 0.
    pub fn get(&self, family: &str, version: c_int, per_thread: bool) -> Option<*mut c_void> {
        let known = self.0.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        let found = proc_address(family, version, if per_thread { 2 } else { 1 })?;
        self.0.store(found, Ordering::Release);
        Some(found)
    }
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

/// The address of a driver function, if the driver has it.
pub fn proc_address(name: &str, version: c_int, flags: u64) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    unsafe { entry_point(name.as_ptr(), version, flags) }.0
}

/// The same for a name as programs hand it over, with the reason when there is none.
///
/// # Safety
/// `name` must be what `cuGetProcAddress` accepts: a C string.
pub unsafe fn entry_point(
    name: *const c_char,
    version: c_int,
    flags: u64,
) -> (Option<*mut c_void>, CUdriverProcAddressQueryResult) {
    let mut found = std::ptr::null_mut();
    let mut status = cuda_sys::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    let Some(door) = door() else { return (None, status) };
    // SAFETY: valid pointers; the caller vouches for the name.
    let result = unsafe { door(name, &mut found, version, flags, &mut status) };
    ((result == CUresult::SUCCESS && !found.is_null()).then_some(found), status)
}

/// Whether there is a driver at all.
pub fn exists() -> bool {
    door().is_some()
}

/// Takes note that something was refused: the driver says it, and `streamsan --sim` hears of it.
pub fn refused(why: &str) {
    let Ok(text) = CString::new(why) else { return };
    match private() {
        // SAFETY: the simulated driver's function, and a C string.
        Some(table) => unsafe { (table.refused)(text.as_ptr()) },
        None => signal_free::say!("streamsan-sim: {why}"),
    }
}

/// The private table of the simulated driver, as NVIDIA's runtime has its own. `None` under any
/// other driver.
pub fn private() -> Option<&'static cuda_sys::SimTable> {
    static TABLE: OnceLock<Option<usize>> = OnceLock::new();
    let found = *TABLE.get_or_init(|| {
        let ask = proc_address("cuGetExportTable", 3000, 1)?;
        let mut table = std::ptr::null();
        // SAFETY: the driver's function of this name has this type; both pointers are valid, and an
        // id has 16 bytes.
        let answer = unsafe {
            let ask: pfn::cuGetExportTable = std::mem::transmute::<*mut c_void, _>(ask);
            ask(&mut table, cuda_sys::SIM_TABLE.as_ptr().cast())
        };
        (answer == CUresult::SUCCESS && !table.is_null()).then_some(table as usize)
    });
    // SAFETY: the simulated driver answers its own id with a static table of this type.
    found.map(|table| unsafe { &*(table as *const cuda_sys::SimTable) })
}
