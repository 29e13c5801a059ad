//! A function of a library that a process may have more than once, under names of its own: Python
//! packages bring copies of UCX with a hash in the file's name, loaded for their own use only.
//!
//! Owns finding the copy that a caller would have got without us: the next one in the global scope,
//! then the one among the libraries that the caller's own file needs (`dlsym(3)`: a handle is
//! searched with its dependencies). Answers are kept for each place of a call. Does not define
//! exports: see `crate::libraries`. Libraries of which there is one are [`super::library`]'s.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::real::driver;

/// A function of such a library.
pub struct ScopedFunction {
    library: &'static CStr,
    name: &'static CStr,
    /// By return address.
    known: RwLock<Option<HashMap<u64, usize>>>,
    /// What a program has looked up by `dlsym`; 0: nothing.
    looked_up: AtomicUsize,
}

impl ScopedFunction {
    /// The function `name` of libraries with this SONAME.
    pub const fn new(library: &'static CStr, name: &'static CStr) -> Self {
        Self { library, name, known: RwLock::new(None), looked_up: AtomicUsize::new(0) }
    }

    /// Its address for a call that returns to `caller`; `own`: our function of that name.
    pub fn find(&self, own: usize, caller: u64) -> Option<usize> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.as_ref().and_then(|known| known.get(&caller)) {
            return Some(*found);
        }
        drop(known);
        let found = self.look_for(own, caller)?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(caller, found);
        Some(found)
    }

    /// A program has got this address from `dlsym`. Whether that is the function that calls through
    /// our own lead to: a second copy is left alone.
    pub fn note_looked_up(&self, own: usize, found: usize) -> bool {
        if self.next(own).is_some_and(|next| next != found) {
            return false;
        }
        let earlier = self.looked_up.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed);
        earlier.is_ok() || earlier == Err(found)
    }

    /// The next one in the global scope.
    fn next(&self, own: usize) -> Option<usize> {
        // SAFETY: RTLD_NEXT is a handle that dlsym takes.
        let next = unsafe { driver::dlsym(libc::RTLD_NEXT, self.name) } as usize;
        (next != 0 && next != own).then_some(next)
    }

    #[cold]
    fn look_for(&self, own: usize, caller: u64) -> Option<usize> {
        let other = |found: *mut c_void| (!found.is_null() && found as usize != own).then_some(found as usize);
        self.next(own)
            .or_else(|| self.needed_by(caller).and_then(other))
            .or_else(|| Some(self.looked_up.load(Ordering::Relaxed)).filter(|found| *found != 0))
            .or_else(|| self.within(self.library).and_then(other))
    }

    /// Among the libraries that the file of this address needs.
    fn needed_by(&self, caller: u64) -> Option<*mut c_void> {
        self.within(file_of(caller)?)
    }

    /// In this file, if it is loaded, and those that it needs.
    fn within(&self, file: &CStr) -> Option<*mut c_void> {
        // SAFETY: RTLD_NOLOAD only counts a reference, which is given back below.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: a handle of dlopen.
        let found = unsafe { driver::dlsym(handle, self.name) };
        let close = driver::find_dlclose();
        if close != 0 {
            type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
            // SAFETY: the C library's dlclose, and a handle that is ours alone.
            unsafe { std::mem::transmute::<usize, Close>(close)(handle) };
        }
        Some(found)
    }
}

/// The file that code at this address is of. The name lives as long as the file is loaded: until a
/// call has returned to it, in any case.
pub fn file_of<'a>(address: u64) -> Option<&'a CStr> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: dladdr takes any address; info is ours.
    let is_known = unsafe { libc::dladdr(std::ptr::without_provenance(address as usize), &raw mut info) } != 0;
    // SAFETY: dladdr's names are C strings.
    (is_known && !info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) })
}
