//! The real functions of the driver: one slot for each symbol of the table, filled from the driver
//! that the program itself uses.
//!
//! Owns finding `libcuda.so.1`, the macro `real!` by which the shim calls the driver, and the map
//! from real addresses back to table numbers, by which `cuGetProcAddress` is answered. (On drivers
//! 535, 550 and 580 every answer is exactly one exported symbol, none aliased.) Does not decide
//! what happens around a call.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use cuda_sys::{CUresult, DRIVER_FUNCTIONS, FnId};
use libloading::os::unix::Library;

use super::{driver_mapping, elf};
use crate::runtime::options;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// The C library's own `dlsym` and `dlvsym`. Plain words because naked code reads the first one.
pub(crate) static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);
pub(crate) static REAL_DLVSYM: AtomicUsize = AtomicUsize::new(0);
static REAL_DLCLOSE: AtomicUsize = AtomicUsize::new(0);

/// Real addresses, by table number. Read by naked code too.
pub(crate) static SLOTS: [AtomicPtr<c_void>; FnId::COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; FnId::COUNT];

/// 0: not looked for, 1: every name looked up, 2: there is no driver.
static STATE: AtomicU32 = AtomicU32::new(0);

/// Finds the C library's `dlsym` behind our own export of that name. Allocates nothing; idempotent.
pub(crate) fn find_dlsym() -> usize {
    // Who sees this one sees the other, too.
    let known = REAL_DLSYM.load(Ordering::Acquire);
    if known != 0 {
        return known;
    }
    REAL_DLVSYM.store(elf::next_function(c"dlvsym"), Ordering::Relaxed);
    let dlsym = elf::next_function(c"dlsym");
    REAL_DLSYM.store(dlsym, Ordering::Release);
    dlsym
}

/// Finds the C library's `dlclose`. Where there is none (it can not be), an address that only
/// returns.
pub(crate) fn find_dlclose() -> usize {
    extern "C" fn nothing(_handle: *mut c_void) -> i32 {
        0
    }
    let known = REAL_DLCLOSE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = match elf::next_function(c"dlclose") {
        0 => nothing as *const () as usize,
        found => found,
    };
    REAL_DLCLOSE.store(found, Ordering::Relaxed);
    found
}

/// Looks a name up with the C library's `dlsym`.
///
/// # Safety
/// `handle` is a handle of `dlopen` or one of its special values.
pub unsafe fn dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    let real = find_dlsym();
    if real == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: REAL_DLSYM holds the address of dlsym.
    let real: Dlsym = unsafe { transmute(real) };
    // SAFETY: forwarded from the caller.
    unsafe { real(handle, name.as_ptr()) }
}

/// Looks a versioned name up with the C library's `dlvsym`.
///
/// # Safety
/// As for `dlvsym`.
pub(crate) unsafe fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    find_dlsym();
    let real = REAL_DLVSYM.load(Ordering::Relaxed);
    if real == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: REAL_DLVSYM holds the address of dlvsym.
    let real: Dlvsym = unsafe { transmute(real) };
    // SAFETY: forwarded from the caller.
    unsafe { real(handle, name, version) }
}

/// Remembers a real address that a look-up of the program found. False: another one is known, so
/// this is another driver, or a library in front of the driver.
pub(crate) fn learn(function: FnId, address: *mut c_void) -> bool {
    let slot = &SLOTS[function.index()];
    match slot.compare_exchange(std::ptr::null_mut(), address, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => true,
        Err(known) => known == address,
    }
}

/// The real function, looked for when it is not known yet. `None` when this driver does not have
/// it.
#[inline]
pub fn function(function: FnId) -> Option<*mut c_void> {
    let address = SLOTS[function.index()].load(Ordering::Acquire);
    if address.is_null() { find(function) } else { Some(address) }
}

#[cold]
fn find(function: FnId) -> Option<*mut c_void> {
    resolve_all();
    let address = SLOTS[function.index()].load(Ordering::Acquire);
    (!address.is_null()).then_some(address)
}

/// For naked wrappers: the address to jump to, or that of a function that answers
/// `CUDA_ERROR_NOT_FOUND`.
pub(crate) extern "C" fn find_or_fail(index: u32) -> *mut c_void {
    extern "C" fn not_found() -> CUresult {
        CUresult::ERROR_NOT_FOUND
    }
    let id = FnId(index as u16);
    function(id).unwrap_or(not_found as *mut c_void)
}

/// Fills every slot from the driver. Idempotent, safe to run on two threads at once.
pub fn resolve_all() {
    if STATE.load(Ordering::Acquire) != 0 {
        return;
    }
    let handle = open_driver();
    if handle.is_null() {
        STATE.store(2, Ordering::Release);
        return;
    }
    // When the shim bears the driver's SONAME, what is found may be our own wrappers.
    let own = elf::object_of(resolve_all as *const () as usize);
    let mut name = [0_u8; 96];
    for (index, info) in DRIVER_FUNCTIONS.iter().enumerate() {
        let bytes = info.name.as_bytes();
        name[..bytes.len()].copy_from_slice(bytes);
        name[bytes.len()] = 0;
        let Ok(text) = CStr::from_bytes_until_nul(&name) else { continue };
        // SAFETY: handle was just opened.
        let address = unsafe { dlsym(handle, text) };
        if !address.is_null() && !own.contains(&(address as usize)) {
            learn(FnId(index as u16), address);
        }
    }
    // SAFETY: handle was just opened.
    super::reach::note(unsafe { dlsym(handle, c"streamsan_sim_has_own_view") });
    if let Some(address) = SLOTS.iter().map(|slot| slot.load(Ordering::Relaxed)).find(|address| !address.is_null()) {
        driver_mapping::note(elf::object_of(address as usize));
    }
    STATE.store(1, Ordering::Release);
}

/// The driver: the one that `STREAMSAN_DRIVER` names (needed when the shim itself bears the
/// driver's SONAME), otherwise the one that the program has loaded or would load.
fn open_driver() -> *mut c_void {
    let open = |name: &OsStr, flags| {
        // SAFETY: the driver's constructors run in every CUDA program; this is where they would run
        // without us.
        let library = unsafe { Library::open(Some(name), flags) };
        // The handle is kept for the life of the process.
        library.map_or(std::ptr::null_mut(), Library::into_raw)
    };
    if let Some(path) = options::os_variable(c"STREAMSAN_DRIVER").filter(|path| !path.is_empty()) {
        let handle = open(path, libc::RTLD_NOW | libc::RTLD_LOCAL);
        if !handle.is_null() {
            return handle;
        }
    }
    // A library that is loaded already is preferred, whatever path it came from.
    let name = OsStr::new("libcuda.so.1");
    let loaded = open(name, libc::RTLD_NOW | libc::RTLD_NOLOAD);
    if loaded.is_null() { open(name, libc::RTLD_NOW | libc::RTLD_LOCAL) } else { loaded }
}

/// Which function of the table has this real address.
pub(crate) fn by_address(address: *mut c_void) -> Option<FnId> {
    resolve_all();
    // About 440 look-ups at start-up over 730 slots: 0.1 ms in all, not worth a table that must be
    // built and kept in step.
    let index = SLOTS.iter().position(|slot| slot.load(Ordering::Relaxed) == address)?;
    Some(FnId(index as u16))
}

/// Calls a real function by its table name: `real!(cuCtxGetCurrent(&raw mut context => *mut
/// CUcontext))`. Answers `NOT_FOUND` on drivers without it.
macro_rules! real {
    ($symbol:ident ($($arg:expr => $ty:ty),* $(,)?)) => {{
        match $crate::real::driver::function(cuda_sys::id::$symbol) {
            Some(address) => {
                // SAFETY: the slot holds the driver's function of this name, whose signature the
                // caller states.
                let call: unsafe extern "C" fn($($ty),*) -> cuda_sys::CUresult = unsafe { std::mem::transmute(address) };
                // SAFETY: the caller passes valid arguments.
                unsafe { call($($arg),*) }
            }
            None => cuda_sys::CUresult::ERROR_NOT_FOUND,
        }
    }};
}
pub(crate) use real;
