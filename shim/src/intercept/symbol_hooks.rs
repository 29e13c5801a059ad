//! The symbol hooks: every way in which a program asks for a CUDA function by name.
//!
//! Owns our `dlsym`, `dlvsym` and `dlclose`, and what `cuGetProcAddress` in both forms answers.
//! Direct links need nothing here: we export the names. All look-ups follow one rule: the real
//! look-up first, then a substitution only when its answer is a function of the table. So names
//! that the driver does not have stay unknown, and foreign functions whose names begin with `cu`
//! are left alone. Where the real functions are is known in [`crate::real`].
//!
//! `dlsym` jumps to the real one instead of calling it: `RTLD_NEXT` means "after the caller", and
//! the C library finds the caller by the return address.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

use cuda_sys::FnId;

use super::exports;
use crate::arch;
use crate::real::{driver, driver_mapping};
use crate::stack::native::note_modules_changed;

/// Start-up: the constructor does nothing but find the real `dlsym`.
pub fn prepare() {
    driver::find_dlsym();
}

/// Whether an address is one of our wrappers.
fn is_ours(address: *mut c_void) -> bool {
    exports::index_of(address).is_some()
}

/// What to answer instead of jumping to the real `dlsym`; null to jump. `caller` is the return
/// address of the program's call.
extern "C" fn pick(handle: *mut c_void, name: *const c_char, caller: usize) -> *mut c_void {
    driver::find_dlsym();
    let Some(function) = table_function(name) else {
        // SAFETY: handle and name are the program's.
        return unsafe { library_function(handle, name) };
    };
    // SAFETY: name was checked to be a non-null C string; handle is the program's.
    let found = unsafe { driver::dlsym(handle, CStr::from_ptr(name)) };
    answer(function, found, caller)
}

/// As [`pick`], for `dlvsym`.
extern "C" fn pick_versioned(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> *mut c_void {
    driver::find_dlsym();
    let Some(function) = table_function(name) else { return std::ptr::null_mut() };
    // SAFETY: as in pick.
    let found = unsafe { driver::dlvsym(handle, name, version) };
    answer(function, found, caller)
}

fn table_function(name: *const c_char) -> Option<FnId> {
    if name.is_null() {
        return None;
    }
    // SAFETY: dlsym's contract: name is a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.len() < 4 || !name.starts_with(b"cu") { None } else { cuda_sys::lookup(name) }
}

/// Our function of a library that programs load by themselves, where the look-up finds that
/// library's; null for all others.
///
/// # Safety
/// As for `dlsym`.
unsafe fn library_function(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // `RTLD_NEXT` means after the caller, which only the jump says.
    if name.is_null() || handle == libc::RTLD_NEXT {
        return std::ptr::null_mut();
    }
    // SAFETY: dlsym's contract: name is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if !["cuFile", "ucp_", "nixl_capi_"].iter().any(|begin| name.to_bytes().starts_with(begin.as_bytes())) {
        return std::ptr::null_mut();
    }
    // SAFETY: handle is the program's.
    let found = unsafe { driver::dlsym(handle, name) };
    // Not found: the look-up is repeated by the jump, so that dlerror says what it always says.
    if found.is_null() { found } else { library_wrapper(name.to_bytes(), found) }
}

#[cfg(not(test))]
fn library_wrapper(name: &[u8], found: *mut c_void) -> *mut c_void {
    use crate::libraries::{cufile, engines};
    cufile::wrapper(name, found).or_else(|| engines::wrapper(name, found)).unwrap_or(std::ptr::null_mut())
}

#[cfg(test)]
fn library_wrapper(_: &[u8], _: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

fn answer(function: FnId, found: *mut c_void, caller: usize) -> *mut c_void {
    // Null: the real look-up is repeated by the jump, so that dlerror says what it always says.
    if found.is_null() || is_ours(found) || driver_mapping::is_within_driver(caller, found) {
        return found;
    }
    if !driver::learn(function, found) && !driver_mapping::holds(found as u64) {
        // A driver in a namespace of its own (`dlmopen`), or a library between the program and the
        // driver: our wrapper would lead past it.
        driver_mapping::OTHER_DRIVERS.fetch_add(1, Ordering::Relaxed);
        return found;
    }
    exports::wrapper(function)
}

/// Replaces what `cuGetProcAddress` answered by our wrapper of that function.
///
/// # Safety
/// `entry_point` is the program's out-pointer, which a real call has just filled with success.
pub(super) unsafe fn substitute(entry_point: *mut *mut c_void) {
    if entry_point.is_null() {
        return;
    }
    // SAFETY: forwarded from the caller.
    let found = unsafe { *entry_point };
    if found.is_null() || is_ours(found) {
        return;
    }
    if let Some(function) = driver::by_address(found) {
        // SAFETY: as above.
        unsafe { *entry_point = exports::wrapper(function) };
    }
}

/// The program's `dlsym`.
///
/// # Safety
/// As for `dlsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(_handle: *mut c_void, _name: *const c_char) -> *mut c_void {
    arch::pick_or_jump_2!(pick, driver::REAL_DLSYM)
}

/// The program's `dlvsym`.
///
/// # Safety
/// As for `dlvsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlvsym(_handle: *mut c_void, _name: *const c_char, _version: *const c_char) -> *mut c_void {
    arch::pick_or_jump_3!(pick_versioned, driver::REAL_DLVSYM)
}

/// The program's `dlclose`: what was learnt about addresses is forgotten, then the real one runs
/// (by a jump, as for `dlsym`).
///
/// # Safety
/// As for `dlclose`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlclose(_handle: *mut c_void) -> i32 {
    arch::note_then_jump!(note_close)
}

/// Answers where the real `dlclose` is.
extern "C" fn note_close() -> usize {
    note_modules_changed();
    driver::find_dlclose()
}
