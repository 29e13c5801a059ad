//! The functions of NCCL.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_sys::{CUdevice, CUdeviceptr, CUstream};

use super::communicator::{
    Collective, CommHandle, Communicator, INTERNAL_ERROR, INVALID_ARGUMENT, UNHANDLED_CUDA_ERROR, begin_group,
    communicator, end_group, finish, forget,
};
use super::shared::UniqueId;
use super::split::split;
use super::transfer::{Combine, width};
use sim_driver_link::refused;

fn answer(outcome: Result<(), i32>) -> c_int {
    outcome.map_or_else(|status| status, |()| 0)
}

/// Hands a result out.
fn put<T>(to: *mut T, value: T) -> Result<(), i32> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(value) };
    Ok(())
}

/// Bytes of elements of a type.
fn size(name: &str, count: usize, kind: c_int) -> Result<u64, i32> {
    match width(kind) {
        Some(width) => Ok(count as u64 * width),
        None => {
            refused(&format!("{name}: ncclDataType_t {kind} is not simulated"));
            Err(INVALID_ARGUMENT)
        }
    }
}

fn reduction(name: &str, kind: c_int, operation: c_int) -> Result<Combine, i32> {
    if (0..=4).contains(&operation) {
        return Ok(Combine::Reduce(kind, operation));
    }
    refused(&format!("{name}: a reduction of the program's own is not simulated"));
    Err(INVALID_ARGUMENT)
}

/// Defines collectives: the body makes one out of the communicator and the arguments.
macro_rules! collective {
    ($name:ident |$comm:ident, $($arg:ident: $ty:ty),*| $body:block) => {
        /// # Safety
        /// A communicator of the library's.
        // SAFETY: the name and signature of NCCL.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty,)* comm: CommHandle, stream: usize) -> c_int {
            let name = stringify!($name);
            // SAFETY: the caller's promise.
            answer(unsafe { communicator(comm) }.and_then(|$comm| {
                let make = |name: &'static str| -> Result<Collective, i32> { let _ = name; $body };
                $comm.collective(&Collective { name, ..make(name)? }, CUstream::from_bits(stream))
            }))
        }
    };
}

collective! { ncclAllReduce |comm, send: u64, receive: u64, count: usize, kind: c_int, operation: c_int| {
    let bytes = size("ncclAllReduce", count, kind)?;
    let combine = reduction("ncclAllReduce", kind, operation)?;
    Ok(Collective { name: "", send, room: bytes, bytes, receive, combine, from: 0..comm.ranks, part: 0..bytes })
} }
collective! { ncclReduce |comm, send: u64, receive: u64, count: usize, kind: c_int, operation: c_int, root: c_int| {
    let bytes = size("ncclReduce", count, kind)?;
    let receive = if root as usize == comm.rank { receive } else { 0 };
    let combine = reduction("ncclReduce", kind, operation)?;
    Ok(Collective { name: "", send, room: bytes, bytes, receive, combine, from: 0..comm.ranks, part: 0..bytes })
} }
collective! { ncclReduceScatter |comm, send: u64, receive: u64, count: usize, kind: c_int, operation: c_int| {
    let bytes = size("ncclReduceScatter", count, kind)?;
    let combine = reduction("ncclReduceScatter", kind, operation)?;
    let (all, start) = (bytes * comm.ranks as u64, bytes * comm.rank as u64);
    Ok(Collective { name: "", send, room: all, bytes: all, receive, combine, from: 0..comm.ranks, part: start..start + bytes })
} }
collective! { ncclAllGather |comm, send: u64, receive: u64, count: usize, kind: c_int| {
    let bytes = size("ncclAllGather", count, kind)?;
    let combine = Combine::Concatenate;
    Ok(Collective { name: "", send, room: bytes, bytes, receive, combine, from: 0..comm.ranks, part: 0..bytes })
} }
collective! { ncclAlltoAll |comm, send: u64, receive: u64, count: usize, kind: c_int| {
    let bytes = size("ncclAlltoAll", count, kind)?;
    let (all, start, combine) = (bytes * comm.ranks as u64, bytes * comm.rank as u64, Combine::Concatenate);
    Ok(Collective { name: "", send, room: all, bytes: all, receive, combine, from: 0..comm.ranks, part: start..start + bytes })
} }
collective! { ncclGather |comm, send: u64, receive: u64, count: usize, kind: c_int, root: c_int| {
    let bytes = size("ncclGather", count, kind)?;
    let receive = if root as usize == comm.rank { receive } else { 0 };
    let combine = Combine::Concatenate;
    Ok(Collective { name: "", send, room: bytes, bytes, receive, combine, from: 0..comm.ranks, part: 0..bytes })
} }
collective! { ncclScatter |comm, send: u64, receive: u64, count: usize, kind: c_int, root: c_int| {
    let bytes = size("ncclScatter", count, kind)?;
    let root = usize::try_from(root).ok().filter(|&root| root < comm.ranks).ok_or(INVALID_ARGUMENT)?;
    let (all, start, combine) = (bytes * comm.ranks as u64, bytes * comm.rank as u64, Combine::Concatenate);
    let sent = if root == comm.rank { all } else { 0 };
    Ok(Collective { name: "", send, room: all, bytes: sent, receive, combine, from: root..root + 1, part: start..start + bytes })
} }
collective! { ncclBroadcast |comm, send: u64, receive: u64, count: usize, kind: c_int, root: c_int| {
    broadcast("ncclBroadcast", &comm, send, receive, size("ncclBroadcast", count, kind)?, root)
} }
collective! { ncclBcast |comm, buffer: u64, count: usize, kind: c_int, root: c_int| {
    broadcast("ncclBcast", &comm, buffer, buffer, size("ncclBcast", count, kind)?, root)
} }

/// The root alone contributes.
fn broadcast(
    name: &'static str,
    comm: &Communicator,
    send: u64,
    receive: u64,
    bytes: u64,
    root: c_int,
) -> Result<Collective, i32> {
    let root = usize::try_from(root).ok().filter(|&root| root < comm.ranks).ok_or(INVALID_ARGUMENT)?;
    let sent = if root == comm.rank { bytes } else { 0 };
    // The root's own buffer holds the result already, if it is the same.
    let receive = if sent > 0 && send == receive { 0 } else { receive };
    let (from, combine) = (root..root + 1, Combine::Concatenate);
    Ok(Collective { name, send, room: bytes, bytes: sent, receive, combine, from, part: 0..bytes })
}

/// # Safety
/// A communicator of the library's.
// SAFETY: the name and signature of NCCL.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclSend(
    send: u64,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: CommHandle,
    stream: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { communicator(comm) }.and_then(|comm| {
        let peer = usize::try_from(peer).ok().filter(|&peer| peer < comm.ranks).ok_or(INVALID_ARGUMENT)?;
        comm.send("ncclSend", peer, send, size("ncclSend", count, kind)?, CUstream::from_bits(stream))
    }))
}

/// # Safety
/// A communicator of the library's.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclRecv(
    receive: u64,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: CommHandle,
    stream: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { communicator(comm) }.and_then(|comm| {
        let peer = usize::try_from(peer).ok().filter(|&peer| peer < comm.ranks).ok_or(INVALID_ARGUMENT)?;
        comm.receive("ncclRecv", peer, receive, size("ncclRecv", count, kind)?, CUstream::from_bits(stream))
    }))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> c_int {
    begin_group();
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> c_int {
    answer(end_group())
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclGetUniqueId(to: *mut UniqueId) -> c_int {
    answer(UniqueId::new().ok_or(INTERNAL_ERROR).and_then(|id| put(to, id)))
}

fn join(to: *mut CommHandle, ranks: c_int, id: &UniqueId, rank: c_int, device: c_int) -> Result<(), i32> {
    put(to, Arc::into_raw(Arc::new(Communicator::join(id, ranks, rank, device)?)))
}

fn current_device() -> Result<c_int, i32> {
    let mut device: CUdevice = 0;
    cu!(cuCtxGetDevice(&mut device)).map_err(|_| UNHANDLED_CUDA_ERROR)?;
    Ok(device)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclCommInitRank(to: *mut CommHandle, ranks: c_int, id: UniqueId, rank: c_int) -> c_int {
    answer(current_device().and_then(|device| join(to, ranks, &id, rank, device)))
}

// The configuration says how NCCL works, not what.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclCommInitRankConfig(
    to: *mut CommHandle,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
    _config: *const c_void,
) -> c_int {
    answer(current_device().and_then(|device| join(to, ranks, &id, rank, device)))
}

// Several ids are several roads to one communicator. The first will do.
/// # Safety
/// `ids` has at least one.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRankScalable(
    to: *mut CommHandle,
    ranks: c_int,
    rank: c_int,
    count: c_int,
    ids: *const UniqueId,
    _config: *const c_void,
) -> c_int {
    if count < 1 || ids.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let id = unsafe { *ids };
    answer(current_device().and_then(|device| join(to, ranks, &id, rank, device)))
}

/// # Safety
/// A communicator of the library's; `to` is writable until the call, or its group, ends.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommSplit(
    comm: CommHandle,
    colour: c_int,
    key: c_int,
    to: *mut CommHandle,
    _config: *const c_void,
) -> c_int {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    answer(unsafe { communicator(comm) }.and_then(|comm| unsafe { split(comm, colour, key, to) }))
}

/// # Safety
/// `to` has room for as many communicators, `devices` as many devices, or it is null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitAll(to: *mut CommHandle, count: c_int, devices: *const c_int) -> c_int {
    let all = || {
        let id = UniqueId::new().ok_or(INTERNAL_ERROR)?;
        (0..count).try_for_each(|rank| {
            // SAFETY: the caller's promise.
            let device = if devices.is_null() { rank } else { unsafe { *devices.add(rank as usize) } };
            // SAFETY: as above.
            join(unsafe { to.add(rank as usize) }, count, &id, rank, device)
        })
    };
    if to.is_null() { INVALID_ARGUMENT } else { answer(all()) }
}

/// # Safety
/// A communicator of the library's that is not used again.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommDestroy(comm: CommHandle) -> c_int {
    let finished = answer(finish(comm as usize));
    // SAFETY: the caller's promise.
    unsafe { ncclCommAbort(comm) };
    finished
}

/// # Safety
/// As for [`ncclCommDestroy`].
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommAbort(comm: CommHandle) -> c_int {
    if !comm.is_null() {
        forget(comm as usize);
        // SAFETY: the caller's promise.
        drop(unsafe { Arc::from_raw(comm) });
    }
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclCommFinalize(comm: CommHandle) -> c_int {
    answer(finish(comm as usize))
}

macro_rules! facts {
    ($($name:ident |$comm:ident| $value:expr;)*) => { $(
        /// # Safety
        /// A communicator of the library's.
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(comm: CommHandle, to: *mut c_int) -> c_int {
            // SAFETY: the caller's promise.
            answer(unsafe { communicator(comm) }.and_then(|$comm| put(to, $value)))
        }
    )* };
}

facts! {
    ncclCommCount |comm| comm.ranks as c_int;
    ncclCommUserRank |comm| comm.rank as c_int;
    ncclCommCuDevice |comm| comm.device;
    ncclCommGetAsyncError |_comm| 0;
}

// Registered memory is used as any other.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclCommRegister(_comm: CommHandle, _at: u64, _size: usize, handle: *mut usize) -> c_int {
    answer(put(handle, 1))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclCommDeregister(_comm: CommHandle, _handle: usize) -> c_int {
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclMemAlloc(to: *mut CUdeviceptr, size: usize) -> c_int {
    let mut at: CUdeviceptr = 0;
    answer(cu!(cuMemAlloc_v2(&mut at, size)).map_err(|_| UNHANDLED_CUDA_ERROR).and_then(|()| put(to, at)))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn ncclMemFree(at: CUdeviceptr) -> c_int {
    answer(cu!(cuMemFree_v2(at)).map_err(|_| UNHANDLED_CUDA_ERROR))
}
