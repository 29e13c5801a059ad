//! Our exports of NIXL's functions: `nixl_capi.h`.
//!
//! Owns what each call does to the tables (`super::transfers`).

use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cuda_sys::FnId;
use trace::Region;

use super::transfers::{Descriptor, List, Transfer, Transfers};
use crate::libraries::engines::calls::{caller, inside, is_observed, is_own, not_modelled, real, real_functions};
use crate::libraries::requests::{self, Access};
use crate::log::call_names::library_call;

real_functions! {
    c"libnixl_capi.so.0":
    nixl_capi_create_xfer_dlist,
    nixl_capi_destroy_xfer_dlist,
    nixl_capi_xfer_dlist_add_desc,
    nixl_capi_xfer_dlist_rem_desc,
    nixl_capi_xfer_dlist_clear,
    nixl_capi_xfer_dlist_resize,
    nixl_capi_xfer_dlist_is_sorted,
    nixl_capi_prep_xfer_dlist,
    nixl_capi_release_xfer_dlist_handle,
    nixl_capi_create_xfer_req,
    nixl_capi_make_xfer_req,
    nixl_capi_post_xfer_req,
    nixl_capi_get_xfer_status,
    nixl_capi_release_xfer_req,
    nixl_capi_destroy_xfer_req,
}

/// Handles, and pointers that are passed on, are numbers here.
type Handle = usize;

/// `NIXL_CAPI_SUCCESS`, `NIXL_CAPI_IN_PROG`.
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 1;
/// `NIXL_CAPI_ERROR_BACKEND`: the answer of a function that cannot be reached, which cannot be.
const ABSENT: c_int = -2;
/// `NIXL_CAPI_MEM_DRAM`, `NIXL_CAPI_MEM_VRAM`.
const MEMORY: [c_int; 2] = [0, 1];
/// `NIXL_CAPI_XFER_OP_READ`: the peer's bytes are read, and ours written.
const READ: c_int = 0;

const POST: FnId = library_call("nixl_capi_post_xfer_req");
const STATUS: FnId = library_call("nixl_capi_get_xfer_status");
const RELEASE: FnId = library_call("nixl_capi_release_xfer_req");

fn tables() -> MutexGuard<'static, Transfers> {
    static TABLES: LazyLock<Mutex<Transfers>> = LazyLock::new(Mutex::default);
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the library keeps a list sorted; versions without such lists have no function that says
/// so.
fn is_sorted(list: Handle, caller: u64) -> bool {
    type Real = unsafe extern "C" fn(Handle, *mut bool) -> c_int;
    let mut is_sorted = false;
    if let Some(real) = real::nixl_capi_xfer_dlist_is_sorted.find(0, caller) {
        // SAFETY: NIXL's function of this name has this signature; the list is the program's.
        unsafe { std::mem::transmute::<usize, Real>(real)(list, &raw mut is_sorted) };
    }
    is_sorted
}

/// The transfer is over, if it was under way.
fn over(call: FnId, transfer: Handle) {
    let mut tables = tables();
    let request = tables.transfers.get_mut(&transfer).map_or(0, |transfer| std::mem::take(&mut transfer.request));
    drop(tables);
    if request != 0 {
        requests::end(call, request);
    }
}

/// A transfer begins.
fn begin(transfer: Handle) {
    let known = tables().transfers.get(&transfer).cloned().unwrap_or_default();
    let Some(local) = known.local else {
        return not_modelled(POST, "NIXL: a transfer whose local descriptors are not known");
    };
    let accesses: Vec<Access> = access(&local, known.writes);
    if accesses.is_empty() {
        return;
    }
    let name = if known.writes { "the NIXL read" } else { "the NIXL write" };
    let request = requests::begin_named(POST, &accesses, name);
    if let Some(known) = tables().transfers.get_mut(&transfer) {
        known.request = request;
    }
}

fn access(local: &[Descriptor], writes: bool) -> Vec<Access> {
    let known = local.iter().filter(|(start, length)| *start != 0 && *length != 0);
    known
        .map(|(start, length)| Access { region: Region::linear(*start, *length), reads: !writes, writes, exact: true })
        .collect()
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*), |$real:ident| $body:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for NIXL's function.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "NIXL's signature")]
        unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            type Real = unsafe extern "C" fn($($type),*) -> c_int;
            let Some(found) = real!($name: Real) else { return ABSENT };
            // SAFETY: arguments are passed on as they came.
            let $real = || unsafe { found($($arg),*) };
            $body
        }
    )+

        /// Our function of a name, for a program that looked NIXL's up by `dlsym` and is to get
        /// `found`.
        pub(in crate::libraries::engines) fn wrapper(name: &[u8], found: *mut c_void) -> Option<*mut c_void> {
            let (_, ours, real) = [$((stringify!($name), $name as *mut c_void, &real::$name)),+]
                .into_iter()
                .find(|known| known.0.as_bytes() == name)?;
            (ours != found && real.note_looked_up(ours as usize, found as usize)).then_some(ours)
        }
    };
}

/// What a call has answered through a pointer.
///
/// # Safety
/// The call has succeeded.
unsafe fn answered(to: *const Handle) -> Handle {
    // SAFETY: forwarded from the caller.
    unsafe { to.read() }
}

exports! {
    /// `nixl_capi_create_xfer_dlist`. Earlier versions have a third argument; with the others it is
    /// passed on by register.
    fn nixl_capi_create_xfer_dlist(kind: c_int, list: *mut Handle, sorted: usize), |real| {
        let result = real();
        if result == SUCCESS {
            let is_memory = MEMORY.contains(&kind);
            let made = List { is_memory, has_places: true, is_known: true, descriptors: Vec::new() };
            // SAFETY: the call has succeeded.
            tables().lists.insert(unsafe { answered(list) }, made);
        }
        result
    };
    /// `nixl_capi_destroy_xfer_dlist`.
    fn nixl_capi_destroy_xfer_dlist(list: Handle), |real| {
        tables().lists.remove(&list);
        real()
    };
    /// `nixl_capi_xfer_dlist_add_desc`.
    fn nixl_capi_xfer_dlist_add_desc(list: Handle, start: u64, length: usize, device: u64), |real| {
        let result = real();
        if result == SUCCESS && let Some(list) = tables().lists.get_mut(&list) {
            list.add(start, length as u64);
        }
        result
    };
    /// `nixl_capi_xfer_dlist_rem_desc`.
    fn nixl_capi_xfer_dlist_rem_desc(list: Handle, place: c_int), |real| {
        let is_sorted = is_sorted(list, caller());
        let result = real();
        if result == SUCCESS && let Some(list) = tables().lists.get_mut(&list) {
            list.has_places &= !is_sorted;
            list.remove(usize::try_from(place).unwrap_or(usize::MAX));
        }
        result
    };
    /// `nixl_capi_xfer_dlist_clear`.
    fn nixl_capi_xfer_dlist_clear(list: Handle), |real| {
        let result = real();
        if result == SUCCESS && let Some(list) = tables().lists.get_mut(&list) {
            list.clear();
        }
        result
    };
    /// `nixl_capi_xfer_dlist_resize`.
    fn nixl_capi_xfer_dlist_resize(list: Handle, count: usize), |real| {
        let is_sorted = is_sorted(list, caller());
        let result = real();
        if result == SUCCESS && let Some(list) = tables().lists.get_mut(&list) {
            list.has_places &= !is_sorted;
            list.resize(count);
        }
        result
    };
    /// `nixl_capi_prep_xfer_dlist`.
    fn nixl_capi_prep_xfer_dlist(agent: Handle, name: usize, list: Handle, prepared: *mut Handle, options: Handle),
        |real| {
            let is_sorted = is_sorted(list, caller());
            let result = inside(real);
            if result == SUCCESS {
                let mut tables = tables();
                let mut copy = tables.lists.get(&list).cloned().unwrap_or_default();
                copy.has_places &= !is_sorted;
                // SAFETY: the call has succeeded.
                tables.prepared.insert(unsafe { answered(prepared) }, copy);
            }
            result
        };
    /// `nixl_capi_release_xfer_dlist_handle`.
    fn nixl_capi_release_xfer_dlist_handle(agent: Handle, prepared: Handle), |real| {
        tables().prepared.remove(&prepared);
        inside(real)
    };
    /// `nixl_capi_create_xfer_req`.
    fn nixl_capi_create_xfer_req(
        agent: Handle, operation: c_int, local: Handle, remote: Handle, peer: usize, transfer: *mut Handle,
        options: Handle
    ), |real| {
        let result = inside(real);
        if result == SUCCESS {
            let mut tables = tables();
            let local = tables.lists.get(&local).and_then(List::all);
            let made = Transfer { writes: operation == READ, local, request: 0 };
            // SAFETY: the call has succeeded.
            tables.transfers.insert(unsafe { answered(transfer) }, made);
        }
        result
    };
    /// `nixl_capi_make_xfer_req`.
    fn nixl_capi_make_xfer_req(
        agent: Handle, operation: c_int, local: Handle, places: *const c_int, count: usize, remote: Handle,
        remote_places: usize, remote_count: usize, transfer: *mut Handle, options: Handle
    ), |real| {
        let result = inside(real);
        if result == SUCCESS {
            let places = match places.is_null() || count == 0 {
                true => &[][..],
                // SAFETY: the call has read so many.
                false => unsafe { std::slice::from_raw_parts(places, count) },
            };
            let places = places.iter().map(|place| usize::try_from(*place).unwrap_or(usize::MAX));
            let mut tables = tables();
            let local = tables.prepared.get(&local).and_then(|list| list.at(places));
            let made = Transfer { writes: operation == READ, local, request: 0 };
            // SAFETY: the call has succeeded.
            tables.transfers.insert(unsafe { answered(transfer) }, made);
        }
        result
    };
    /// `nixl_capi_post_xfer_req`.
    fn nixl_capi_post_xfer_req(agent: Handle, transfer: Handle, options: Handle), |real| {
        if !is_own() {
            return real();
        }
        // An earlier post of it is over, or this one fails.
        over(POST, transfer);
        if is_observed() {
            begin(transfer);
        }
        let result = inside(real);
        if result != IN_PROGRESS {
            over(POST, transfer);
        }
        result
    };
    /// `nixl_capi_get_xfer_status`.
    fn nixl_capi_get_xfer_status(agent: Handle, transfer: Handle), |real| {
        let result = inside(real);
        if result != IN_PROGRESS {
            over(STATUS, transfer);
        }
        result
    };
    /// `nixl_capi_release_xfer_req`: what is under way is aborted, or the call fails.
    fn nixl_capi_release_xfer_req(agent: Handle, transfer: Handle), |real| {
        let result = inside(real);
        if result == SUCCESS {
            over(RELEASE, transfer);
        }
        result
    };
    /// `nixl_capi_destroy_xfer_req`: the handle is gone, and nothing will be heard of the transfer.
    fn nixl_capi_destroy_xfer_req(transfer: Handle), |real| {
        over(RELEASE, transfer);
        tables().transfers.remove(&transfer);
        real()
    };
}
