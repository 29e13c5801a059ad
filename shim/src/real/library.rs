//! A function of a library that is observed besides the driver (PyTorch's, NCCL's): the real one
//! behind our export of the same name.
//!
//! Owns looking for it once, in the libraries after ours and in the one that should have it. Does
//! not define exports: see `crate::libraries`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::real::driver;

/// A function of a library, looked for once.
pub struct LibraryFunction {
    library: &'static CStr,
    name: &'static CStr,
    known: AtomicUsize,
}

const ABSENT: usize = 1;

impl LibraryFunction {
    /// The function `name` of the library with this SONAME.
    pub const fn new(library: &'static CStr, name: &'static CStr) -> Self {
        Self { library, name, known: AtomicUsize::new(0) }
    }

    /// Its address; `None` when the library is not there or has no such function. `own`: our
    /// function of the same name, or 0.
    #[inline]
    pub fn find(&self, own: usize) -> Option<usize> {
        let known = self.known.load(Ordering::Relaxed);
        if known > ABSENT { Some(known) } else { self.look_for(own) }
    }

    #[cold]
    #[inline(never)]
    fn look_for(&self, own: usize) -> Option<usize> {
        if self.known.load(Ordering::Relaxed) == ABSENT {
            return None;
        }
        // SAFETY: RTLD_NEXT and handles of dlopen are what dlsym takes. The library is loaded, for
        // it or one that needs it calls us; where it was loaded locally (a Python extension's
        // dependency) RTLD_NEXT does not find it.
        let found = unsafe {
            let next = driver::dlsym(libc::RTLD_NEXT, self.name);
            if next.is_null() {
                let library = libc::dlopen(self.library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
                if library.is_null() { next } else { driver::dlsym(library, self.name) }
            } else {
                next
            }
        };
        let known = if found.is_null() || found as usize == own { ABSENT } else { found as usize };
        self.known.store(known, Ordering::Relaxed);
        (known != ABSENT).then_some(known)
    }
}
