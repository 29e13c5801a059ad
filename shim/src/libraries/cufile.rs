//! cuFile (GPUDirect Storage): reads of a file write memory and writes read it, past CUDA.
//!
//! Owns the exports of these functions (`cufile.h`: the core, stream and batch APIs), and what is
//! pending of each batch. A synchronous call makes its access before it returns, for the host: it
//! is not ordered with any stream. A call on a stream is an op of that stream. An entry of a batch
//! is a request, from its submission until the host has seen its status. CUDA calls that cuFile
//! makes inside are its transport: they neither race nor order.
//!
//! A synchronous call says how many bytes it has moved. The others read a file to its end at most,
//! and a call on a stream may look at its size as late as the stream gets there, so these bytes are
//! a bound. Entries of one batch that have one cookie can not be told apart: they end together.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use cuda_sys::{CUresult, CUstream, FnId};
use trace::{Op, Region};

use super::requests::{self, Access};
use crate::ids::streams::working_stream;
use crate::log::call_names::library_call;
use crate::observe::{Phase, observe};
use crate::real::library::LibraryFunction;
use crate::runtime::lifecycle;
use crate::runtime::thread_state::{inside_transport, set_inside_transport};

/// `CUfileHandle_t`, `CUfileBatchHandle_t`.
type Handle = *mut c_void;

/// `CUfileError_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Status {
    error: c_int,
    driver: CUresult,
}

impl Status {
    /// `CU_FILE_DRIVER_NOT_INITIALIZED`: what a call answers when there is no cuFile behind us,
    /// which cannot be.
    const ABSENT: Self = Self { error: 5001, driver: CUresult::SUCCESS };
}

/// `CUfileIOParams_t`; the union has one member.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    mode: c_int,
    base: u64,
    file_offset: i64,
    offset: i64,
    size: usize,
    file: Handle,
    opcode: c_int,
    cookie: usize,
}

/// `CUfileIOEvents_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    cookie: usize,
    status: c_int,
    moved: usize,
}

/// `CUFILE_READ`.
const READ: c_int = 0;
/// `CUFILE_WAITING` and `CUFILE_PENDING`: an entry with another status is over.
const UNFINISHED: [c_int; 2] = [1, 2];

const SONAME: &std::ffi::CStr = c"libcufile.so.0";

/// An entry of a batch that has not been seen to end.
struct Pending {
    batch: usize,
    cookie: usize,
    request: u32,
    /// Its status was answered; others with its cookie are open.
    is_over: bool,
}

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// Runs cuFile's own work.
fn inside<T>(run: impl FnOnce() -> T) -> T {
    let was_inside = inside_transport();
    set_inside_transport(true);
    let result = run();
    set_inside_transport(was_inside);
    result
}

/// Whether a call is the program's own, and looked at.
fn is_observed() -> bool {
    lifecycle::is_running() && !inside_transport()
}

fn at(base: u64, offset: i64, size: u64) -> Region {
    Region::linear(base.wrapping_add_signed(offset), size)
}

/// A synchronous call: what it has moved is known when it returns.
fn synchronous(id: FnId, writes: bool, whole: Region, run: impl FnOnce() -> isize) -> isize {
    if !is_observed() || whole.is_empty() {
        return run();
    }
    let borrower = requests::lend_for_call(id, whole, writes);
    let moved = inside(run);
    requests::give_back(borrower);
    if let Ok(width @ 1..) = u64::try_from(moved) {
        let region = Region::linear(whole.start, width.min(whole.width));
        requests::made(id, &[Access { region, reads: !writes, writes, exact: true }]);
    }
    moved
}

/// cuFile's function of one of our names.
macro_rules! real {
    ($name:ident: $type:ty) => {
        // SAFETY: cuFile's function of this name has had this signature since it exists.
        Function::$name.find().map(|real| unsafe { std::mem::transmute::<usize, $type>(real) })
    };
}

macro_rules! functions {
    ($($name:ident),+ $(,)?) => {
        /// The functions that are observed.
        #[expect(clippy::enum_variant_names, reason = "cuFile's names")]
        #[derive(Clone, Copy)]
        enum Function { $($name),+ }

        static REALS: [LibraryFunction; [$(stringify!($name)),+].len()] = [$(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => LibraryFunction::new(SONAME, name),
                Err(_) => LibraryFunction::new(SONAME, c""),
            }
        ),+];

        impl Function {
            fn ours(self) -> *mut c_void {
                match self { $(Self::$name => $name as *mut c_void),+ }
            }

            fn named(name: &[u8]) -> Option<Self> {
                [$((stringify!($name), Self::$name)),+].into_iter().find(|f| f.0.as_bytes() == name).map(|f| f.1)
            }
        }
    };
}

functions! {
    cuFileRead,
    cuFileWrite,
    cuFileReadAsync,
    cuFileWriteAsync,
    cuFileBatchIOSubmit,
    cuFileBatchIOGetStatus,
    cuFileBatchIOCancel,
    cuFileBatchIODestroy,
}

impl Function {
    fn find(self) -> Option<usize> {
        REALS[self as usize].find(self.ours() as usize)
    }
}

/// Our function of a name, for a program that looked cuFile's up by `dlsym` and is to get `found`.
/// `None`: it is no such function, or another library's.
pub fn wrapper(name: &[u8], found: *mut c_void) -> Option<*mut c_void> {
    let function = Function::named(name)?;
    (function.find() == Some(found as usize)).then(|| function.ours())
}

macro_rules! synchronous {
    ($(#[$doc:meta])* $name:ident, $writes:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for cuFile's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(file: Handle, base: u64, size: usize, file_offset: i64, offset: i64) -> isize {
            type Real = unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize;
            const ID: FnId = library_call(stringify!($name));
            let Some(real) = real!($name: Real) else { return -(Status::ABSENT.error as isize) };
            synchronous(ID, $writes, at(base, offset, size as u64), || {
                // SAFETY: arguments are passed on as they came.
                unsafe { real(file, base, size, file_offset, offset) }
            })
        }
    };
}

synchronous! {
    /// `cuFileRead`: from a file to memory.
    cuFileRead, true
}

synchronous! {
    /// `cuFileWrite`: from memory to a file.
    cuFileWrite, false
}

macro_rules! on_stream {
    ($(#[$doc:meta])* $name:ident, $writes:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for cuFile's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(
            file: Handle,
            base: u64,
            size: *const usize,
            file_offset: *const i64,
            offset: *const i64,
            moved: *mut isize,
            stream: CUstream,
        ) -> Status {
            type Real = unsafe extern "C" fn(
                Handle,
                u64,
                *const usize,
                *const i64,
                *const i64,
                *mut isize,
                CUstream,
            ) -> Status;
            const ID: FnId = library_call(stringify!($name));
            let Some(real) = real!($name: Real) else { return Status::ABSENT };
            // SAFETY: arguments are passed on as they came.
            let call = || unsafe { real(file, base, size, file_offset, offset, moved, stream) };
            if !is_observed() || size.is_null() || offset.is_null() {
                return call();
            }
            // SAFETY: cuFile reads both now, or when the stream gets there.
            let region = unsafe { at(base, offset.read(), size.read() as u64) };
            let status = inside(call);
            if status.error == 0 && !region.is_empty() {
                submitted(ID, stream, Access { region, reads: !$writes, writes: $writes, exact: false });
            }
            status
        }
    };
}

on_stream! {
    /// `cuFileReadAsync`: from a file to memory, in stream order.
    cuFileReadAsync, true
}

on_stream! {
    /// `cuFileWriteAsync`: from memory to a file, in stream order.
    cuFileWriteAsync, false
}

/// An access is made in stream order.
fn submitted(id: FnId, stream: CUstream, access: Access) {
    // The null stream is the legacy one, as for every library that takes a stream by value.
    let handle = if stream.0.is_null() { CUstream(std::ptr::without_provenance_mut(1)) } else { stream };
    let Access { region, reads, writes, exact } = access;
    observe(id, 0, Phase::Before, |cx| {
        if let Some(request) = working_stream(cx, handle) {
            cx.log(&Op::HostTransfer { request, region, reads, writes, exact });
        }
    });
}

/// `cuFileBatchIOSubmit`.
///
/// # Safety
/// As for cuFile's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn cuFileBatchIOSubmit(batch: Handle, count: c_uint, entries: *mut Entry, flags: c_uint) -> Status {
    type Real = unsafe extern "C" fn(Handle, c_uint, *mut Entry, c_uint) -> Status;
    const ID: FnId = library_call("cuFileBatchIOSubmit");
    let Some(real) = real!(cuFileBatchIOSubmit: Real) else { return Status::ABSENT };
    let mut begun = Vec::new();
    if is_observed() && !entries.is_null() {
        // SAFETY: there are so many entries.
        for entry in unsafe { std::slice::from_raw_parts(entries, count as usize) } {
            let (region, writes) = (at(entry.base, entry.offset, entry.size as u64), entry.opcode == READ);
            if !region.is_empty() {
                let request = requests::begin(ID, &[Access { region, reads: !writes, writes, exact: !writes }]);
                begun.push(Pending { batch: batch as usize, cookie: entry.cookie, request, is_over: false });
            }
        }
    }
    // SAFETY: arguments are passed on as they came.
    let status = inside(|| unsafe { real(batch, count, entries, flags) });
    if status.error == 0 {
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).extend(begun);
    } else {
        begun.iter().for_each(|pending| requests::end(ID, pending.request));
    }
    status
}

/// `cuFileBatchIOGetStatus`.
///
/// # Safety
/// As for cuFile's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn cuFileBatchIOGetStatus(
    batch: Handle,
    least: c_uint,
    count: *mut c_uint,
    events: *mut Event,
    timeout: *mut c_void,
) -> Status {
    type Real = unsafe extern "C" fn(Handle, c_uint, *mut c_uint, *mut Event, *mut c_void) -> Status;
    const ID: FnId = library_call("cuFileBatchIOGetStatus");
    let Some(real) = real!(cuFileBatchIOGetStatus: Real) else { return Status::ABSENT };
    // SAFETY: arguments are passed on as they came.
    let status = inside(|| unsafe { real(batch, least, count, events, timeout) });
    if status.error == 0 && is_observed() && !count.is_null() && !events.is_null() {
        // SAFETY: the call has filled in so many events.
        let events = unsafe { std::slice::from_raw_parts(events, *count as usize) };
        let over = events.iter().filter(|event| !UNFINISHED.contains(&event.status)).map(|event| event.cookie);
        seen_over(ID, batch as usize, over);
    }
    status
}

/// Entries with these cookies are over.
fn seen_over(id: FnId, batch: usize, cookies: impl Iterator<Item = usize>) {
    let mut ended = Vec::new();
    {
        let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
        for cookie in cookies {
            let alike = |p: &Pending| p.batch == batch && p.cookie == cookie;
            if let Some(one) = pending.iter_mut().find(|p| alike(p) && !p.is_over) {
                one.is_over = true;
            }
            if pending.iter().filter(|p| alike(p)).all(|p| p.is_over) {
                ended.extend(pending.extract_if(.., |p| alike(p)).map(|p| p.request));
            }
        }
    }
    ended.into_iter().for_each(|request| requests::end(id, request));
}

/// All entries of a batch are over.
fn all_over(id: FnId, batch: usize) {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let ended: Vec<u32> = pending.extract_if(.., |p| p.batch == batch).map(|p| p.request).collect();
    drop(pending);
    ended.into_iter().for_each(|request| requests::end(id, request));
}

/// `cuFileBatchIOCancel`.
///
/// # Safety
/// As for cuFile's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn cuFileBatchIOCancel(batch: Handle) -> Status {
    type Real = unsafe extern "C" fn(Handle) -> Status;
    const ID: FnId = library_call("cuFileBatchIOCancel");
    let Some(real) = real!(cuFileBatchIOCancel: Real) else { return Status::ABSENT };
    // SAFETY: arguments are passed on as they came.
    let status = inside(|| unsafe { real(batch) });
    if status.error == 0 {
        all_over(ID, batch as usize);
    }
    status
}

/// `cuFileBatchIODestroy`.
///
/// # Safety
/// As for cuFile's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn cuFileBatchIODestroy(batch: Handle) {
    type Real = unsafe extern "C" fn(Handle);
    const ID: FnId = library_call("cuFileBatchIODestroy");
    let Some(real) = real!(cuFileBatchIODestroy: Real) else { return };
    // SAFETY: arguments are passed on as they came.
    inside(|| unsafe { real(batch) });
    all_over(ID, batch as usize);
}
