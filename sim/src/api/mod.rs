//! The driver's functions as programs call them: C names, C types, statuses.
//!
//! Owns the checks of arguments and the handing out of results, in one folder for each chapter of
//! the driver API. What the functions mean is in [`crate::objects`], [`crate::memory`] and
//! [`crate::sched`].
//!
//! Every symbol of the table in `cuda-sys` is defined. A function that is simulated stands in an
//! `abi!` block (see `abi`) in the file of its topic. All others stand in `unsupported`: they
//! return `CUDA_ERROR_NOT_SUPPORTED` and say so. `startup::proc_address` refers to every symbol of
//! the table, so a missing one does not link.
//!
//! - `startup`: devices, contexts, entry points, names of statuses
//! - `memory`: allocations, pools, virtual memory, IPC, copies, memsets, arrays and textures
//! - `kernels`: modules, the linker, launches, occupancy
//! - `streams_events`: streams, events, captures, host functions, stream memory operations
//! - `graphs`: the structure, the nodes, executable graphs
//!
//! The chapters know each other at two places: nodes of graphs make the same tasks as other calls
//! (`graphs` uses `memory::{copy_descriptors, memsets, pools}`, `kernels::launches` and
//! `streams_events::stream_memops`), and `kernels` asks `startup::devices` for the limits of the
//! device.
#![allow(non_snake_case, reason = "C names")]

#[macro_use]
pub(crate) mod abi;
pub(crate) mod graphs;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod startup;
pub(crate) mod streams_events;
pub(crate) mod unsupported;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_sys::*;

use crate::objects::{capture, thread};
use crate::status;

type Res = Result<(), CUresult>;

const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;

static INITIALISED: AtomicBool = AtomicBool::new(false);

fn finish(name: &str, body: impl FnOnce() -> Res) -> CUresult {
    let _called = crate::sched::DriverCall::begin();
    let explained = status::explained();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CUresult::SUCCESS,
        Ok(Err(error)) => {
            if error == CUresult::ERROR_NOT_SUPPORTED {
                status::complain_unexplained(name, explained);
            }
            error
        }
        Err(_) => {
            status::complain(&format!("{name} failed inside the simulator"));
            CUresult::ERROR_UNKNOWN
        }
    }
}

/// A function that works without `cuInit`.
fn free(name: &str, body: impl FnOnce() -> Res) -> CUresult {
    finish(name, body)
}

/// A function that needs `cuInit` and must not be called from host functions of streams.
fn call(name: &str, body: impl FnOnce() -> Res) -> CUresult {
    if thread::is_forked() || !INITIALISED.load(Ordering::Acquire) {
        return CUresult::ERROR_NOT_INITIALIZED;
    }
    if thread::current().in_callback.get() {
        return CUresult::ERROR_NOT_PERMITTED;
    }
    let status = finish(name, body);
    // What the call asked for may not have run.
    if status == CUresult::SUCCESS && crate::sched::is_lost() { CUresult::ERROR_OPERATING_SYSTEM } else { status }
}

/// The same, and must not be called while a stream captures.
fn uncaptured(name: &str, body: impl FnOnce() -> Res) -> CUresult {
    call(name, || {
        capture::refuse_unsafe()?;
        body()
    })
}

/// Hands a result out. A program answers for its pointers; null is an error.
fn put<T>(to: *mut T, value: T) -> Res {
    if to.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Hands a result out where the caller asked for it.
fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: as in `put`.
        unsafe { to.write_unaligned(value) };
    }
}

/// Reads an argument.
fn get<T: Copy>(from: *const T) -> Result<T, CUresult> {
    if from.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null input pointer is readable.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads an array argument.
fn list<T: Copy>(from: *const T, count: usize) -> Result<Vec<T>, CUresult> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if from.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null array holds as many elements as the caller says.
    Ok((0..count).map(|n| unsafe { from.add(n).read_unaligned() }).collect())
}

/// Reads a name.
fn text(from: *const c_char) -> Result<String, CUresult> {
    if from.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the C interface: a non-null string ends with a zero.
    Ok(unsafe { std::ffi::CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Hands a name out, cut to the caller's buffer.
fn put_text(to: *mut c_char, len: usize, value: &str) -> Res {
    if to.is_null() || len == 0 {
        return Err(INVALID);
    }
    let n = value.len().min(len - 1);
    // SAFETY: the C interface: the buffer has `len` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), n);
        to.add(n).write(0);
    }
    Ok(())
}
