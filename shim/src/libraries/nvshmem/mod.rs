//! NVSHMEM's puts, gets, signals and collectives on streams (`nvshmemx_api.h`), each an op of the
//! stream that it is given. The collectives are in `collectives`.
//!
//! Owns the exports of these functions. A put writes memory of another processing element, and a
//! get reads it: `nvshmem_ptr` says where this process has that memory, and if other processes have
//! it too, the access is compared with theirs. A signal is a value that a stream writes there, and
//! `signal_wait_until` a wait for one. CUDA calls that NVSHMEM makes inside are its transport.
//! Memory that this process has no address of is counted as not modelled, and so are signals that
//! are added and waits whose comparison streams do not have. Calls that do not block (`nbi`) count
//! as over in stream order, though NVSHMEM promises that only behind `quiet`: that may hide a race
//! and invents none.
//!
//! Barriers, `quiet` and puts and gets of types other than bytes are not here. They are seen as the
//! kernels and copies that they make; what is behind a kernel of a barrier is possible only.

pub mod collectives;

use std::ffi::{CStr, c_int, c_void};

use cuda_sys::{CUstream, FnId};
use trace::{Op, Region, Space, StreamId, WaitCompare};

use crate::ids::streams::working_stream;
use crate::log::call_names::library_call;
use crate::observe::{Phase, observe};
use crate::real::library::LibraryFunction;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};

const SONAME: &CStr = c"libnvshmem_host.so.3";

/// `NVSHMEM_SIGNAL_SET`.
const SET: c_int = 9;
/// `NVSHMEM_CMP_EQ`.
const EQUAL: c_int = 0;
/// `NVSHMEM_CMP_GT`.
const GREATER: c_int = 2;
/// `NVSHMEM_CMP_GE`.
const AT_LEAST: c_int = 5;

static PTR: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_ptr");

/// Where this process has symmetric memory of a processing element; 0: nowhere.
fn mapped(symmetric: *const c_void, pe: c_int) -> u64 {
    type Ptr = unsafe extern "C" fn(*const c_void, c_int) -> *mut c_void;
    let Some(real) = PTR.find(0) else { return 0 };
    // SAFETY: NVSHMEM's signature. It was given this address and this element with the call that is
    // observed.
    unsafe { std::mem::transmute::<usize, Ptr>(real)(symmetric, pe) as u64 }
}

/// What a call does, in this order.
#[derive(Default)]
struct Effects {
    reads: Region,
    writes: Region,
    /// The address and the value of a signal.
    signal: Option<(u64, u64)>,
    waits: Option<(u64, u64, WaitCompare)>,
    /// Something that is not described by these.
    in_part: bool,
}

/// Bytes of a processing element, as this process has them.
fn remote(effects: &mut Effects, symmetric: *const c_void, bytes: usize, pe: c_int) -> Region {
    let at = mapped(symmetric, pe);
    effects.in_part |= at == 0 && bytes > 0;
    Region::linear(at, if at == 0 { 0 } else { bytes as u64 })
}

fn put(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int) -> Effects {
    let mut effects = Effects { reads: Region::linear(source as u64, bytes as u64), ..Effects::default() };
    effects.writes = remote(&mut effects, dest, bytes, pe);
    effects
}

fn get(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int) -> Effects {
    let mut effects = Effects { writes: Region::linear(dest as u64, bytes as u64), ..Effects::default() };
    effects.reads = remote(&mut effects, source, bytes, pe);
    effects
}

/// The same, and a signal behind it.
fn signalled(mut effects: Effects, signal: *mut u64, value: u64, op: c_int, pe: c_int) -> Effects {
    let at = mapped(signal.cast(), pe);
    if op == SET && at != 0 {
        effects.signal = Some((at, value));
    } else {
        effects.in_part = true;
    }
    effects
}

fn waited(signal: *mut u64, compare: c_int, value: u64) -> Effects {
    let compare = match compare {
        EQUAL => Some((value, WaitCompare::Equal)),
        AT_LEAST => Some((value, WaitCompare::GreaterEqual)),
        GREATER => value.checked_add(1).map(|next| (next, WaitCompare::GreaterEqual)),
        _ => None,
    };
    let waits = compare.map(|(value, compare)| (signal as u64, value, compare));
    Effects { in_part: waits.is_none(), waits, ..Effects::default() }
}

/// Runs the real call and logs what it does.
fn around(id: FnId, stream: CUstream, real: impl FnOnce(), effects: impl FnOnce() -> Effects) {
    if !lifecycle::is_running() || inside_transport() {
        return real();
    }
    set_inside_transport(true);
    real();
    let effects = effects();
    set_inside_transport(false);
    log(id, stream, &effects);
}

/// Logs what a call does.
fn log(id: FnId, stream: CUstream, effects: &Effects) {
    // The null stream is the legacy one, as for every library that takes a stream by value.
    let handle = if stream.0.is_null() { CUstream(std::ptr::without_provenance_mut(1)) } else { stream };
    observe(id, 0, Phase::Before, |cx| {
        if effects.in_part {
            cx.not_modelled();
        }
        let Some(stream) = working_stream(cx, handle) else { return };
        for op in effects.ops(stream).into_iter().flatten() {
            cx.log(&op);
        }
    });
}

impl Effects {
    fn ops(&self, stream: StreamId) -> [Option<Op<'static>>; 3] {
        let Self { reads, writes, signal, waits, .. } = *self;
        let copies = !reads.is_empty() || !writes.is_empty();
        let copy = Op::Copy {
            stream,
            dst: writes,
            src: reads,
            dst_space: Space::Device,
            src_space: Space::Device,
            asynchronous: true,
            batch: 0,
        };
        let signal = signal.map(|(address, value)| Op::WriteValue { stream, address, value, width: 8, barrier: true });
        let waits = waits.map(|(address, value, compare)| Op::WaitValue { stream, address, value, width: 8, compare });
        [copies.then_some(copy), signal, waits]
    }
}

macro_rules! on_stream {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $effects:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for NVSHMEM's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(clippy::too_many_arguments, reason = "NVSHMEM's signature")]
        pub unsafe extern "C" fn $name($($arg: $ty,)* stream: CUstream) {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static REAL: LibraryFunction = LibraryFunction::new(SONAME, NAME);
            type Real = unsafe extern "C" fn($($ty,)* CUstream);
            const ID: FnId = library_call(stringify!($name));
            // Without NVSHMEM behind us, which cannot be, there is nothing to do.
            let Some(real) = REAL.find($name as *const () as usize) else { return };
            // SAFETY: NVSHMEM's function of this name has had this signature since it exists.
            let real: Real = unsafe { std::mem::transmute::<usize, Real>(real) };
            // SAFETY: arguments are passed on as they came.
            around(ID, stream, || unsafe { real($($arg,)* stream) }, || $effects);
        }
    )*};
}

on_stream! {
    /// `nvshmemx_putmem_on_stream`.
    nvshmemx_putmem_on_stream(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int)
        => put(dest, source, bytes, pe);
    /// `nvshmemx_putmem_nbi_on_stream`.
    nvshmemx_putmem_nbi_on_stream(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int)
        => put(dest, source, bytes, pe);
    /// `nvshmemx_getmem_on_stream`.
    nvshmemx_getmem_on_stream(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int)
        => get(dest, source, bytes, pe);
    /// `nvshmemx_getmem_nbi_on_stream`.
    nvshmemx_getmem_nbi_on_stream(dest: *mut c_void, source: *const c_void, bytes: usize, pe: c_int)
        => get(dest, source, bytes, pe);
    /// `nvshmemx_putmem_signal_on_stream`.
    nvshmemx_putmem_signal_on_stream(
        dest: *mut c_void, source: *const c_void, bytes: usize, signal: *mut u64, value: u64, op: c_int, pe: c_int
    ) => signalled(put(dest, source, bytes, pe), signal, value, op, pe);
    /// `nvshmemx_putmem_signal_nbi_on_stream`.
    nvshmemx_putmem_signal_nbi_on_stream(
        dest: *mut c_void, source: *const c_void, bytes: usize, signal: *mut u64, value: u64, op: c_int, pe: c_int
    ) => signalled(put(dest, source, bytes, pe), signal, value, op, pe);
    /// `nvshmemx_signal_op_on_stream`.
    nvshmemx_signal_op_on_stream(signal: *mut u64, value: u64, op: c_int, pe: c_int)
        => signalled(Effects::default(), signal, value, op, pe);
    /// `nvshmemx_signal_wait_until_on_stream`.
    nvshmemx_signal_wait_until_on_stream(signal: *mut u64, compare: c_int, value: u64)
        => waited(signal, compare, value);
}
