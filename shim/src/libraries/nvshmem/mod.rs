//! NVSHMEM's host functions (`nvshmem_api.h`, `nvshmemx_api.h` and their collectives, version 3.8).
//!
//! Owns what they do, by kinds: puts, gets and signals on streams ([`on_stream`]), collectives
//! ([`collectives`]), barriers ([`meetings`]) of teams ([`teams`]), and puts, gets and atomics that
//! the host makes ([`by_host`]). [`exports`] has the macro that makes their exports. A put writes
//! memory of another processing element, and a get reads it: `nvshmem_ptr` says where this process
//! has that memory, and if other processes have it too, the access is compared with theirs. CUDA
//! calls that NVSHMEM makes inside are its transport. Memory that this process has no address of is
//! counted as not modelled.

pub mod by_host;
pub mod collectives;
mod exports;
pub mod meetings;
pub mod on_stream;
pub mod teams;

use std::ffi::{CStr, c_int, c_void};

use cuda_sys::{CUstream, FnId};
use trace::{Op, Region, Space, StreamId, WaitCompare};

use self::exports::export;
use crate::ids::streams::working_stream;
use crate::observe::{Phase, observe};
use crate::real::library::LibraryFunction;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};

const SONAME: &CStr = c"libnvshmem_host.so.3";

/// Memory that NVSHMEM only reads.
type Source<T> = *const T;
/// Memory that it writes.
type Dest<T> = *mut T;

static PTR: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_ptr");

/// Where this process has symmetric memory of a processing element; 0: nowhere.
fn mapped(symmetric: *const c_void, pe: c_int) -> u64 {
    type Ptr = unsafe extern "C" fn(*const c_void, c_int) -> *mut c_void;
    let Some(real) = PTR.find(0) else { return 0 };
    // SAFETY: NVSHMEM's signature. It was given this address and this element with the call that is
    // observed.
    unsafe { std::mem::transmute::<usize, Ptr>(real)(symmetric, pe) as u64 }
}

/// What NVSHMEM answers about a team; `None`: the team does not exist.
fn of_team(function: &LibraryFunction, team: i32) -> Option<usize> {
    type Ask = unsafe extern "C" fn(i32) -> c_int;
    let real = function.find(0)?;
    // SAFETY: NVSHMEM's signature; the team was given with the call that is observed.
    usize::try_from(unsafe { std::mem::transmute::<usize, Ask>(real)(team) }).ok()
}

fn elements_of(team: i32) -> Option<usize> {
    static SIZE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_n_pes");
    of_team(&SIZE, team)
}

fn own_place_in(team: i32) -> Option<usize> {
    static PLACE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_my_pe");
    of_team(&PLACE, team)
}

/// Elements of one type that a call moves.
#[derive(Clone, Copy)]
struct Elements {
    size: usize,
    count: usize,
    /// From one element to the next, of the destination and of the source: in elements.
    strides: (isize, isize),
}

impl Elements {
    fn of<T>(count: usize) -> Self {
        Self { size: size_of::<T>(), count, strides: (1, 1) }
    }

    fn apart<T>(count: usize, dest: isize, source: isize) -> Self {
        Self { size: size_of::<T>(), count, strides: (dest, source) }
    }

    /// The bytes from this address on. `None`: they are not described.
    fn region(&self, at: u64, stride: isize) -> Option<Region> {
        let bytes = self.size.checked_mul(self.count)?;
        if stride == 1 || self.count <= 1 {
            return Some(Region::linear(at, bytes as u64));
        }
        let pitch = usize::try_from(stride).ok().filter(|stride| *stride > 0)?.checked_mul(self.size)?;
        Some(Region::pitched(at, self.size as u64, u32::try_from(self.count).ok()?, pitch as u64))
    }
}

/// What a call does, in this order.
#[derive(Default)]
struct Effects {
    reads: Region,
    writes: Region,
    /// The address and the value of a signal.
    signal: Option<(u64, u64)>,
    /// The words that it waits for: address, value, bytes.
    waits: Vec<(u64, u64, u8)>,
    compare: Option<WaitCompare>,
    /// Something that is not described by these.
    in_part: bool,
}

/// Bytes of this processing element.
fn own(effects: &mut Effects, at: u64, elements: Elements, stride: isize) -> Region {
    let region = elements.region(at, stride);
    effects.in_part |= region.is_none();
    region.unwrap_or_default()
}

/// Bytes of a processing element, as this process has them.
fn remote(effects: &mut Effects, symmetric: u64, elements: Elements, stride: isize, pe: c_int) -> Region {
    let at = mapped(symmetric as *const c_void, pe);
    effects.in_part |= at == 0 && elements.count > 0;
    if at == 0 { Region::default() } else { own(effects, at, elements, stride) }
}

fn put<T>(dest: Dest<T>, source: Source<T>, elements: Elements, pe: c_int) -> Effects {
    let mut effects = Effects::default();
    effects.reads = own(&mut effects, source as u64, elements, elements.strides.1);
    effects.writes = remote(&mut effects, dest as u64, elements, elements.strides.0, pe);
    effects
}

fn get<T>(dest: Dest<T>, source: Source<T>, elements: Elements, pe: c_int) -> Effects {
    let mut effects = Effects::default();
    effects.writes = own(&mut effects, dest as u64, elements, elements.strides.0);
    effects.reads = remote(&mut effects, source as u64, elements, elements.strides.1, pe);
    effects
}

/// A value that the call brings itself.
fn put_one<T>(dest: Dest<T>, pe: c_int) -> Effects {
    let mut effects = Effects::default();
    effects.writes = remote(&mut effects, dest as u64, Elements::of::<T>(1), 1, pe);
    effects
}

/// A value that the call answers.
fn get_one<T>(source: Source<T>, pe: c_int) -> Effects {
    let mut effects = Effects::default();
    effects.reads = remote(&mut effects, source as u64, Elements::of::<T>(1), 1, pe);
    effects
}

/// Asks NVSHMEM something, as a part of its own work.
fn asking<R>(ask: impl FnOnce() -> R) -> R {
    let outer = inside_transport();
    set_inside_transport(true);
    let answer = ask();
    set_inside_transport(outer);
    answer
}

// Of the functions that run a real call, as little as possible is compiled for each of NVSHMEM's
// thousand: hence `dyn`, and what is never inlined.

/// Whether a call is observed: not where nothing is recorded, nor inside of another call.
#[inline(never)]
fn is_observed() -> bool {
    lifecycle::is_running() && !inside_transport()
}

/// Runs the real call, whose own calls of CUDA are its transport, and logs what it does.
fn around<R>(id: FnId, real: impl FnOnce() -> R, stream: CUstream, effects: impl Fn() -> Effects) -> R {
    if !is_observed() {
        return real();
    }
    let answer = asking(real);
    log_transported(id, stream, &effects);
    answer
}

/// Logs what a call does that NVSHMEM has to be asked about.
fn log_transported(id: FnId, stream: CUstream, effects: &dyn Fn() -> Effects) {
    log(id, stream, &asking(effects));
}

/// The null stream is the legacy one, as for every library that takes a stream by value.
fn handle_of(stream: CUstream) -> CUstream {
    if stream.0.is_null() { CUstream(std::ptr::without_provenance_mut(1)) } else { stream }
}

/// Logs what a call does.
#[inline(never)]
fn log(id: FnId, stream: CUstream, effects: &Effects) {
    observe(id, 0, Phase::Before, |cx| {
        if effects.in_part {
            cx.not_modelled();
        }
        let Some(stream) = working_stream(cx, handle_of(stream)) else { return };
        effects.ops(stream, |op| {
            cx.log(&op);
        });
    });
}

impl Effects {
    fn ops(&self, stream: StreamId, mut log: impl FnMut(Op<'static>)) {
        if !self.reads.is_empty() || !self.writes.is_empty() {
            log(Op::Copy {
                stream,
                dst: self.writes,
                src: self.reads,
                dst_space: Space::Device,
                src_space: Space::Device,
                asynchronous: true,
                batch: 0,
            });
        }
        if let Some((address, value)) = self.signal {
            log(Op::WriteValue { stream, address, value, width: 8, barrier: true });
        }
        for &(address, value, width) in &self.waits {
            let Some(compare) = self.compare else { continue };
            log(Op::WaitValue { stream, address, value, width, compare });
        }
    }
}
