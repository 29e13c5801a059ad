//! What the adapters of engines share: running a library's own work, finding the real function
//! behind an export, and counting what is not modelled.
//!
//! Owns no export. What a call accesses is its adapter's matter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use cuda_sys::FnId;
use trace::{NoteKind, Op};

use crate::log::start;
use crate::observe::{Phase, observe};
use crate::real::scoped;
use crate::runtime::guard::EntryGuard;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};
use crate::stack::native;

/// Whether a call is the program's own, whether or not CUDA is in use yet: what it makes may be
/// used later.
pub(crate) fn is_own() -> bool {
    !lifecycle::is_off() && !inside_transport()
}

/// Whether a call is the program's own, and what it accesses matters.
pub(crate) fn is_observed() -> bool {
    lifecycle::is_running() && !inside_transport()
}

/// Runs a library's own work: CUDA calls in it neither race nor order.
pub(crate) fn inside<T>(run: impl FnOnce() -> T) -> T {
    let was_inside = inside_transport();
    set_inside_transport(true);
    let result = run();
    set_inside_transport(was_inside);
    result
}

/// Runs what a library calls back: it is the program's again.
pub(crate) fn outside<T>(run: impl FnOnce() -> T) -> T {
    let was_inside = inside_transport();
    set_inside_transport(false);
    let result = run();
    set_inside_transport(was_inside);
    result
}

/// The address to which the call into this library returns; 0 if it is not known.
pub(crate) fn caller() -> u64 {
    let mut frame = [0];
    native::capture(&mut frame, false, None);
    frame[0]
}

/// What is to be counted once CUDA is in use.
static OWED: Mutex<Vec<(FnId, &'static str)>> = Mutex::new(Vec::new());
static IS_OWING: AtomicBool = AtomicBool::new(false);

/// How the names of libraries begin that drive engines for themselves: NCCL and its plugins,
/// NVSHMEM, MPI, UCX below the interface that programs call. What they move, and when, they agree
/// on with kernels of their own, or a call of the program's says it ([`super::super::nccl`],
/// [`super::super::mpi`]).
const OTHERS: [&[u8]; 13] = [
    b"libnccl",
    b"libnvshmem",
    b"nvshmem_",
    b"libmpi",
    b"libopen-pal",
    b"mca_",
    b"liboshmem",
    b"libucc",
    b"libhcoll",
    b"libsharp",
    b"libfabric",
    b"libucp",
    b"libuct",
];

/// Whether the call into this library comes from one that drives engines for itself.
pub(crate) fn is_of_others() -> bool {
    static KNOWN: RwLock<Option<HashMap<u64, bool>>> = RwLock::new(None);
    let caller = caller();
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref().and_then(|known| known.get(&caller)) {
        return *known;
    }
    drop(known);
    let is_of_others = scoped::file_of(caller).is_some_and(|file| {
        let name = file.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        OTHERS.iter().any(|begin| name.starts_with(begin))
    });
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(caller, is_of_others);
    is_of_others
}

/// Something in this call is not modelled; `what` says it by name.
pub(crate) fn not_modelled(call: FnId, what: &'static str) {
    if lifecycle::is_running() {
        observe(call, 0, Phase::Before, |cx| {
            cx.define(&Op::Note { kind: NoteKind::NotModelled, text: what.into(), count: 1 });
        });
        return;
    }
    let mut owed = OWED.lock().unwrap_or_else(PoisonError::into_inner);
    if !owed.contains(&(call, what)) {
        owed.push((call, what));
    }
    IS_OWING.store(true, Ordering::Release);
}

/// Counts what was not modelled before CUDA was in use.
pub(crate) fn count_owed() {
    if IS_OWING.load(Ordering::Acquire) && lifecycle::is_running() {
        let owed = std::mem::take(&mut *OWED.lock().unwrap_or_else(PoisonError::into_inner));
        IS_OWING.store(false, Ordering::Release);
        owed.into_iter().for_each(|(call, what)| not_modelled(call, what));
    }
}

/// Whether CUDA knows the memory at this address.
pub(crate) fn cuda_knows(address: u64) -> bool {
    if !lifecycle::is_running() {
        return false;
    }
    let Some(_inside) = EntryGuard::enter() else { return false };
    let shared = start::core().and_then(crate::log::core::Core::lock);
    shared.is_some_and(|shared| shared.engine.memory_kind(address).is_some())
}

/// The real functions behind exports of one library, as statics of a module `real`.
macro_rules! real_functions {
    ($soname:literal: $($name:ident),+ $(,)?) => {
        mod real {
            use crate::real::scoped::ScopedFunction;

            $(pub(super) static $name: ScopedFunction = ScopedFunction::new(
                $soname,
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            );)+
        }
    };
}

/// The real function of one of our names, with its type.
macro_rules! real {
    ($name:ident: $type:ty) => {{
        let found = real::$name.find($name as *const () as usize, crate::libraries::engines::calls::caller());
        // SAFETY: the library's function of this name has this signature.
        found.map(|real| unsafe { std::mem::transmute::<usize, $type>(real) })
    }};
}

pub(crate) use {real, real_functions};
