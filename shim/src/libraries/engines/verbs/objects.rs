//! ibverbs' objects: memory that is registered, completion queues, queue pairs.
//!
//! Owns our exports of the functions that make and destroy them. An object leaves our tables before
//! the call that destroys it, for while that call returns another thread may be given one of the
//! same address, key or number. Where the call fails, it is put back.

use std::ffi::{c_int, c_uint, c_void};

use cuda_sys::FnId;

use super::layout::{self, Context, MemoryRegion, OfContext, QueuePair, QueuePairInit};
use super::state::{self, Registered};
use super::{END, absent, ends, real};
use crate::libraries::engines::calls::{count_owed, cuda_knows, not_modelled};
use crate::log::call_names::library_call;

const OTHER: FnId = library_call("ibverbs");

/// Memory was registered that work requests name from `named` on.
fn registered(region: *mut MemoryRegion, start: Option<u64>, named: u64, length: usize) {
    count_owed();
    if region.is_null() {
        return;
    }
    // SAFETY: libibverbs has just answered it.
    let (context, key) = unsafe { ((*region).context as usize, (*region).local_key) };
    if state::operations(context).is_some() {
        state::lock().register(context, key, Registered { named, start, length: length as u64 });
    }
}

/// From which address on work requests name it.
fn named(iova: u64, access: c_uint) -> u64 {
    if access & layout::ZERO_BASED == 0 { iova } else { 0 }
}

type Pd = *mut OfContext;

/// `ibv_reg_mr`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(pd: Pd, start: u64, length: usize, access: c_uint) -> *mut MemoryRegion {
    type Real = unsafe extern "C" fn(Pd, u64, usize, c_uint) -> *mut MemoryRegion;
    let Some(real) = real!(ibv_reg_mr: Real) else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let region = unsafe { real(pd, start, length, access) };
    registered(region, Some(start), named(start, access), length);
    region
}

macro_rules! register_named {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for ibverbs' function.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pd: Pd, start: u64, length: usize, iova: u64, access: c_uint) -> *mut MemoryRegion {
            type Real = unsafe extern "C" fn(Pd, u64, usize, u64, c_uint) -> *mut MemoryRegion;
            let Some(real) = real!($name: Real) else { return std::ptr::null_mut() };
            // SAFETY: arguments are passed on as they came.
            let region = unsafe { real(pd, start, length, iova, access) };
            registered(region, Some(start), named(iova, access), length);
            region
        }
    };
}

register_named! {
    /// `ibv_reg_mr_iova`.
    ibv_reg_mr_iova
}

register_named! {
    /// `ibv_reg_mr_iova2`: what the header's macros call for flags of later versions.
    ibv_reg_mr_iova2
}

/// `ibv_reg_dmabuf_mr`. The memory is named by a descriptor; where it is in the process is known if
/// work requests name it by its own address, as all programs do that were read.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_dmabuf_mr(
    pd: Pd,
    offset: u64,
    length: usize,
    iova: u64,
    descriptor: c_int,
    access: c_uint,
) -> *mut MemoryRegion {
    type Real = unsafe extern "C" fn(Pd, u64, usize, u64, c_int, c_uint) -> *mut MemoryRegion;
    let Some(real) = real!(ibv_reg_dmabuf_mr: Real) else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let region = unsafe { real(pd, offset, length, iova, descriptor, access) };
    registered(region, cuda_knows(iova).then_some(iova), iova, length);
    region
}

/// `ibv_rereg_mr`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_rereg_mr(
    region: *mut MemoryRegion,
    flags: c_int,
    pd: Pd,
    start: u64,
    length: usize,
    access: c_uint,
) -> c_int {
    type Real = unsafe extern "C" fn(*mut MemoryRegion, c_int, Pd, u64, usize, c_uint) -> c_int;
    let Some(real) = real!(ibv_rereg_mr: Real) else { return absent() };
    // SAFETY: the region is valid until it is deregistered.
    let (context, key) = unsafe { ((*region).context as usize, (*region).local_key) };
    let before = state::lock().deregister(context, key);
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(region, flags, pd, start, length, access) };
    if result != 0 && result != layout::CHANGED_ALL_THE_SAME {
        if let Some(before) = before {
            state::lock().register(context, key, before);
        }
    } else if flags & layout::CHANGE_TRANSLATION != 0 {
        registered(region, Some(start), start, length);
    } else if let Some(before) = before {
        // Only the key may be another one: the memory and its names are what they were.
        // SAFETY: the region is valid until it is deregistered.
        state::lock().register(context, unsafe { (*region).local_key }, before);
    }
    result
}

/// `ibv_dereg_mr`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(region: *mut MemoryRegion) -> c_int {
    let Some(real) = real!(ibv_dereg_mr: unsafe extern "C" fn(*mut MemoryRegion) -> c_int) else { return absent() };
    // SAFETY: the region is valid until it is deregistered.
    let (context, key) = unsafe { ((*region).context as usize, (*region).local_key) };
    let before = state::lock().deregister(context, key);
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(region) };
    if let Some(before) = before.filter(|_| result != 0) {
        state::lock().register(context, key, before);
    }
    result
}

/// `ibv_create_cq`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_cq(
    context: *mut Context,
    entries: c_int,
    own: *mut c_void,
    channel: *mut c_void,
    vector: c_int,
) -> *mut OfContext {
    type Real = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void, c_int) -> *mut OfContext;
    let Some(real) = real!(ibv_create_cq: Real) else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let queue = unsafe { real(context, entries, own, channel, vector) };
    if !queue.is_null() && state::operations(context as usize).is_some() {
        state::lock().made_queue(queue as usize);
    }
    queue
}

/// `ibv_destroy_cq`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_cq(queue: *mut OfContext) -> c_int {
    let Some(real) = real!(ibv_destroy_cq: unsafe extern "C" fn(*mut OfContext) -> c_int) else { return absent() };
    let was_there = state::lock().take_queue(queue as usize);
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(queue) };
    if result != 0 && was_there {
        state::lock().made_queue(queue as usize);
    }
    result
}

/// `ibv_create_qp`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(pd: Pd, init: *mut QueuePairInit) -> *mut QueuePair {
    type Real = unsafe extern "C" fn(Pd, *mut QueuePairInit) -> *mut QueuePair;
    let Some(real) = real!(ibv_create_qp: Real) else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let pair = unsafe { real(pd, init) };
    if !pair.is_null() {
        // SAFETY: libibverbs has just answered the one and read the other.
        let (context, init) = unsafe { ((*pair).context as usize, &*init) };
        if !init.srq.is_null() && state::operations(context).is_some() {
            state::lock().share(context, init.srq as usize, init.recv_cq as usize);
        }
    }
    pair
}

/// `ibv_destroy_qp`: what is under way in it is over.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_qp(pair: *mut QueuePair) -> c_int {
    let Some(real) = real!(ibv_destroy_qp: unsafe extern "C" fn(*mut QueuePair) -> c_int) else { return absent() };
    // SAFETY: the pair is valid until it is destroyed.
    let (context, number) = unsafe { ((*pair).context as usize, (*pair).number) };
    let mut taken = state::lock().take_pair(context, number);
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(pair) };
    match result {
        0 => ends(END, &taken.all()),
        _ => state::lock().put_pair_back(context, number, taken),
    }
    result
}

/// `ibv_modify_qp`: a reset empties the queues, without completions.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(pair: *mut QueuePair, attributes: *mut c_uint, mask: c_int) -> c_int {
    type Real = unsafe extern "C" fn(*mut QueuePair, *mut c_uint, c_int) -> c_int;
    let Some(real) = real!(ibv_modify_qp: Real) else { return absent() };
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(pair, attributes, mask) };
    // SAFETY: the state is the first attribute, and the call has read it.
    if result == 0 && mask & layout::STATE != 0 && unsafe { *attributes } == layout::RESET {
        // SAFETY: the program's queue pair.
        let (context, number) = unsafe { ((*pair).context as usize, (*pair).number) };
        let over = state::lock().take_pair(context, number).all();
        ends(END, &over);
    }
    result
}

/// `ibv_destroy_srq`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_srq(queue: *mut OfContext) -> c_int {
    let Some(real) = real!(ibv_destroy_srq: unsafe extern "C" fn(*mut OfContext) -> c_int) else { return absent() };
    // SAFETY: the queue is valid until it is destroyed.
    let context = unsafe { (*queue).context as usize };
    let taken = state::lock().take_shared(context, queue as usize);
    // SAFETY: arguments are passed on as they came.
    let result = unsafe { real(queue) };
    if let Some(mut taken) = taken {
        match result {
            0 => ends(END, &taken.all()),
            _ => state::lock().put_shared_back(context, queue as usize, taken),
        }
    }
    result
}

/// `ibv_qp_to_qp_ex`: what is posted through its answer is not modelled.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_qp_to_qp_ex(pair: *mut QueuePair) -> *mut c_void {
    let real = real!(ibv_qp_to_qp_ex: unsafe extern "C" fn(*mut QueuePair) -> *mut c_void);
    let Some(real) = real else { return std::ptr::null_mut() };
    // SAFETY: the program's queue pair.
    if state::operations(unsafe { (*pair).context } as usize).is_some() {
        not_modelled(OTHER, "ibv_qp_to_qp_ex: work that ibv_wr_start and ibv_wr_complete post");
    }
    // SAFETY: arguments are passed on as they came.
    unsafe { real(pair) }
}
