//! The link to the shim: its table of functions, and what the calls of MPI need of it.
//!
//! Owns finding `libstreamsan.so` when this library is loaded, the check of its version, and every
//! call of the table. Without a shim in the process the wrappers only forward.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicPtr, Ordering};

use mpi_interface::{Link, Table, Transfer, VERSION};

use super::names::{CallNumber, NAMES};

/// A timeline of the trace: something that accesses memory in parallel with the host.
pub type Timeline = NonZeroU32;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// Looks for the shim and links with it.
pub fn start() {
    // SAFETY: a string that ends in NUL. Preloaded libraries are in the global scope.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"streamsan_mpi_link".as_ptr()) };
    if found.is_null() {
        return;
    }
    // SAFETY: the shim's function of this name has this type in every version.
    let link: Link = unsafe { std::mem::transmute(found) };
    // SAFETY: the names live as long as the process: a preloaded library is never unloaded.
    let table = unsafe { link(VERSION, NAMES.as_ptr(), NAMES.len(), start as *const () as _) };
    if table.is_null() {
        signal_free::say!(
            "streamsan: libstreamsan_mpi.so does not fit libstreamsan.so (another version): MPI's calls are not \
             observed"
        );
    }
    TABLE.store(table.cast_mut(), Ordering::Release);
}

fn table() -> Option<&'static Table> {
    // SAFETY: null, or the shim's table, which is never freed.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// Whether the shim is here and the calling thread is not inside of MPI already.
pub fn is_outermost() -> bool {
    table().is_some_and(|table| !(table.is_inside)())
}

/// Runs MPI's own work. An error handler of the program may leave it by an exception.
pub fn inside_mpi<T>(run: impl FnOnce() -> T) -> T {
    struct Inside(&'static Table);
    impl Drop for Inside {
        fn drop(&mut self) {
            (self.0.set_inside)(false);
        }
    }
    let _inside = table().map(|table| {
        (table.set_inside)(true);
        Inside(table)
    });
    run()
}

/// Whether an address lies in memory that CUDA knows.
pub fn is_cuda_memory(address: u64) -> bool {
    table().is_some_and(|table| (table.is_cuda_memory)(address))
}

/// A call accesses this before it returns, which `run` makes.
pub fn during_call<T>(call: CallNumber, transfers: &[Transfer], run: impl FnOnce() -> T) -> T {
    struct Lent(&'static Table, u32);
    impl Drop for Lent {
        fn drop(&mut self) {
            (self.0.give_back)(self.1);
        }
    }
    let _lent = table().map(|table| {
        // SAFETY: so many transfers.
        Lent(table, unsafe { (table.access)(call.0, transfers.as_ptr(), transfers.len()) })
    });
    run()
}

/// Something begins that accesses this until it is complete: its timeline.
pub fn begin(call: CallNumber, transfers: &[Transfer]) -> Option<Timeline> {
    // SAFETY: so many transfers.
    let number = table().map(|table| unsafe { (table.begin)(call.0, transfers.as_ptr(), transfers.len()) });
    number.and_then(Timeline::new)
}

/// The host has seen it complete.
pub fn end(call: CallNumber, timeline: Timeline) {
    if let Some(table) = table() {
        (table.end)(call.0, timeline.get());
    }
}
