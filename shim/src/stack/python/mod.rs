//! Python frames of the calling thread, read out of CPython's own structures.
//!
//! Owns finding an interpreter in the process ([`detect`]), the walk over the calling thread's
//! frames ([`capture`]) and the description of a code object ([`describe`]). Where the fields are
//! is in [`layout`], which walks are known in [`walk_chains`] (it keeps what the walk reads of a
//! frame, so the two know each other), and the text of names in [`unicode`]. Line tables are
//! decoded by the analyzer.
//!
//! No GIL is taken and no reference is counted: the thread is inside our call, so its own frames
//! and the code objects that they run can neither change nor die until it returns. Frames of other
//! threads cannot be read this way.
//!
//! The first captures of a process probe every word before they read it and check what they find
//! against what a frame must look like. When anything is off (a patched interpreter, an unknown
//! build), Python frames are switched off with a reason ([`refusal`]) before a wild pointer is
//! followed.

mod layout;
pub(crate) mod unicode;
pub(crate) mod walk_chains;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::native::is_readable;
use super::walk::WalkResult;
use crate::arch;
use layout::{CPythonLayout, FrameChain, MAX_OFFSET};
pub use layout::{Encoding, Refusal};
pub use walk_chains::WalkChains;

/// Set in [`RawPyFrame::offset`] of a frame that is the outermost one of its run of the
/// interpreter's loop: the next frame belongs to another native frame of that loop.
pub const ENTRY_FRAME: u32 = 1 << 31;

/// Captures that probe before they read.
const CAREFUL: u32 = 16;
/// Frames skipped at most in one walk (the interpreter's own, between runs of the loop).
const MOST_SKIPPED: usize = 256;
/// Largest code object believed, in bytes.
const LARGEST_CODE: i64 = 1 << 26;
/// Longest line table believed, in bytes.
const LARGEST_TABLE: u64 = 16 << 20;

/// Finds a symbol as `dlsym(RTLD_DEFAULT, name)` does; null when there is none. Must be the real
/// `dlsym`.
pub type Resolver = unsafe fn(&CStr) -> *mut c_void;

/// A frame as captured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct RawPyFrame {
    /// Address of the code object.
    pub code: u64,
    /// Byte offset of the last instruction; [`ENTRY_FRAME`] may be set.
    pub offset: u32,
    /// Differs, with the code object's address being the same, when another code object has taken
    /// its place.
    pub check: u32,
}

/// What a code object says of itself. Valid during the call that hands it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description<'a> {
    /// Path of the source file as Python knows it.
    pub file: &'a str,
    /// Qualified name (plain name before 3.11).
    pub name: &'a str,
    /// First line of the function.
    pub first_line: u32,
    /// Encoding of `lines`.
    pub encoding: Encoding,
    /// The line table.
    pub lines: &'a [u8],
}

/// An interpreter that was found.
struct Interpreter {
    layout: CPythonLayout,
    is_initialized: unsafe extern "C" fn() -> c_int,
    is_finalizing: unsafe extern "C" fn() -> c_int,
    thread_state: unsafe extern "C" fn() -> *mut c_void,
    code_type: u64,
    /// Version as `major << 8 | minor`.
    version: u32,
}

#[unsafe(link_section = "streamsan_state")]
static FOUND: AtomicPtr<Interpreter> = AtomicPtr::new(core::ptr::null_mut());
/// Captures still to be done with care. `u32::MAX`: switched off.
#[unsafe(link_section = "streamsan_state")]
static CARE: AtomicU32 = AtomicU32::new(CAREFUL);
#[unsafe(link_section = "streamsan_state")]
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Looks for an interpreter in the process, unless one is known. To be called once CUDA is used,
/// and again when libraries were loaded; cheap where there is no Python (one look-up). True when
/// there is one whose frames can be read.
///
/// # Safety
/// `resolve` gives addresses of symbols of loaded objects or null.
pub unsafe fn detect(resolve: Resolver) -> bool {
    if !FOUND.load(Ordering::Acquire).is_null() {
        return true;
    }
    if REFUSED.load(Ordering::Relaxed) != 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(resolve) } {
        Ok(Some(interpreter)) => {
            // Never freed: captures may be using it. A second thread that got here at the same time
            // leaks one.
            FOUND.store(Box::into_raw(Box::new(interpreter)), Ordering::Release);
            true
        }
        Ok(None) => false,
        Err(refusal) => {
            refuse(refusal);
            false
        }
    }
}

/// Why Python frames are not read although there is an interpreter.
pub fn refusal() -> Option<Refusal> {
    Refusal::from_code(REFUSED.load(Ordering::Relaxed))
}

/// An address in the interpreter's module.
pub fn address() -> Option<u64> {
    // SAFETY: never freed once stored.
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }.map(|found| found.code_type)
}

/// Version of the interpreter found, as (major, minor).
pub fn version() -> Option<(u32, u32)> {
    // SAFETY: never freed once stored.
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }.map(|found| (found.version >> 8, found.version & 0xff))
}

#[cold]
fn refuse(refusal: Refusal) {
    REFUSED.store(refusal as u32, Ordering::Relaxed);
    CARE.store(u32::MAX, Ordering::Relaxed);
}

/// # Safety
/// As for [`detect`].
unsafe fn find(resolve: Resolver) -> Result<Option<Interpreter>, Refusal> {
    // SAFETY: names of CPython's API; a symbol of that name has that type. `Py_GetVersion` needs no
    // initialisation.
    unsafe {
        let get = |name: &CStr| Some(resolve(name)).filter(|address| !address.is_null());
        let Some(get_version) = get(c"Py_GetVersion") else { return Ok(None) };
        let get_version: unsafe extern "C" fn() -> *const c_char = core::mem::transmute(get_version);
        let (major, minor) = layout::parse_version(CStr::from_ptr(get_version()).to_bytes())?;
        let needed = |name| get(name).ok_or(Refusal::MissingSymbol);
        let runtime = needed(c"_PyRuntime")? as u64;
        let finalizing = get(c"Py_IsFinalizing").or_else(|| get(c"_Py_IsFinalizing")).ok_or(Refusal::MissingSymbol)?;
        Ok(Some(Interpreter {
            layout: CPythonLayout::of(major, minor, runtime)?,
            is_initialized: core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(needed(
                c"Py_IsInitialized",
            )?),
            is_finalizing: core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(finalizing),
            thread_state: core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(needed(
                c"PyGILState_GetThisThreadState",
            )?),
            code_type: needed(c"PyCode_Type")? as u64,
            version: major << 8 | minor,
        }))
    }
}

/// Fills `buf` with the calling thread's Python frames, innermost first, and says how many there
/// are; with `chains`: only if the walk is not known. None without an interpreter, before it is
/// initialised, once it is being finalised, and on threads that never ran Python.
#[inline]
pub fn capture(buf: &mut [RawPyFrame], chains: Option<&mut WalkChains>) -> WalkResult {
    let found = FOUND.load(Ordering::Acquire);
    // SAFETY: never freed once stored.
    match unsafe { found.as_ref() } {
        None => WalkResult::NOTHING,
        Some(found) => walk(found, buf, chains),
    }
}

#[unsafe(link_section = "streamsan_hot")]
fn walk(found: &Interpreter, buf: &mut [RawPyFrame], chains: Option<&mut WalkChains>) -> WalkResult {
    // SAFETY: functions of CPython that may be called at any time, on any thread, without the GIL:
    // two read a flag, one reads a thread-local variable.
    let state = unsafe {
        if (found.is_initialized)() == 0 || (found.is_finalizing)() != 0 {
            return WalkResult::NOTHING;
        }
        (found.thread_state)() as u64
    };
    let care = CARE.load(Ordering::Relaxed);
    if state == 0 || care == u32::MAX {
        return WalkResult::NOTHING;
    }
    if care != 0 {
        return walk_carefully(found, state, buf, care);
    }
    let Some(first) = first(found, state, read) else { return WalkResult { len: 0, id: None } };
    if first == 0 {
        return WalkResult::NOTHING;
    }
    let Some(chains) = chains else { return walk_all(found, first, buf, None) };
    let (mut place, mut frame) = (chains.begin(), first);
    while is_pointer(frame)
        && let Some(seen) = see(found, frame, read)
        && chains.meet(&mut place, frame, &seen)
    {
        if let Some(id) = chains.next(&mut place) {
            return WalkResult { len: 0, id: Some(id) };
        }
        frame = seen.previous;
    }
    walk_all(found, first, buf, Some(chains.keep(place)))
}

/// Walks, whatever is known.
#[inline(never)]
fn walk_all(
    found: &Interpreter,
    first: u64,
    buf: &mut [RawPyFrame],
    mut kept: Option<walk_chains::ChainBuilder<'_>>,
) -> WalkResult {
    let note = |frame, seen| kept.iter_mut().for_each(|kept| kept.note(frame, seen));
    match frames(found, first, buf, read, note) {
        Ok(len) => WalkResult { len, id: kept.filter(|_| len > 0).and_then(walk_chains::ChainBuilder::end) },
        Err(len) => WalkResult { len, id: None },
    }
}

/// Reads what is there without asking.
#[inline(always)]
fn read(address: u64) -> Option<u64> {
    // SAFETY: called once the layout has proved right in the first captures, on the calling
    // thread's own chain.
    Some(unsafe { (address as *const u64).read_unaligned() })
}

#[cold]
#[inline(never)]
fn walk_carefully(found: &Interpreter, state: u64, buf: &mut [RawPyFrame], care: u32) -> WalkResult {
    let mut fault = false;
    let mut read = |address: u64| {
        if !is_readable(address) || !is_readable(address.wrapping_add(7)) {
            fault = true;
            return None;
        }
        // SAFETY: both ends were just found readable.
        Some(unsafe { (address as *const u64).read_unaligned() })
    };
    let walked = match first(found, state, &mut read) {
        Some(first) => frames(found, first, buf, &mut read, |_, _| {}),
        None => Err(0),
    };
    let len = match walked {
        // An empty chain proves nothing.
        Ok(0) => 0,
        Ok(len) => {
            // A race with another thread's count, or with a refusal, is decided for the other.
            let _ = CARE.compare_exchange(care, care - 1, Ordering::Relaxed, Ordering::Relaxed);
            len
        }
        Err(_) => {
            refuse(if fault { Refusal::BadPointer } else { Refusal::BadFrame });
            0
        }
    };
    WalkResult { len, id: None }
}

/// The innermost frame of a thread state; 0: none. `None`: the state is none.
#[inline(always)]
fn first(found: &Interpreter, state: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    match found.layout.chain {
        FrameChain::Direct { current } => read(state + current),
        FrameChain::ThroughCFrame { cframe, current } => match read(state + cframe)? {
            0 => Some(0),
            inner if is_pointer(inner) => read(inner + current),
            _ => None,
        },
    }
}

/// All that a walk reads of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FrameFields {
    /// The caller's frame.
    previous: u64,
    /// The code object; 0: this is the interpreter's own frame, and there is nothing else to it.
    code: u64,
    /// The code object's line table.
    lines: u64,
    /// Its name.
    name: u64,
    /// Its first line.
    first_line: u32,
    /// As [`RawPyFrame::offset`].
    offset: u32,
}

impl FrameFields {
    /// See [`RawPyFrame::check`].
    #[inline(always)]
    fn check(&self) -> u32 {
        let line = u64::from(self.first_line);
        let mixed = (self.lines ^ self.name.rotate_left(21) ^ line.rotate_left(43)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }

    /// With the frame's address and the number of frames before it.
    #[inline]
    fn hash(&self, frame: u64, level: u16) -> u64 {
        let rest = u64::from(self.offset) << 32 | u64::from(self.first_line);
        [self.previous, self.code, self.lines, self.name, rest, u64::from(level)]
            .iter()
            .fold(frame, |hash, word| (hash.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Looks at a frame. `None` when it is none.
#[inline(always)]
fn see(found: &Interpreter, frame: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<FrameFields> {
    let at = &found.layout.offsets;
    let previous = read(frame + at.previous)?;
    if found.layout.is_own_frame(|| read(frame + at.owner).map(|word| word as u8))? {
        return Some(FrameFields { previous, code: 0, lines: 0, name: 0, first_line: 0, offset: 0 });
    }
    // Tagged pointers (3.14): the low bits are no part of the address.
    let code = read(frame + at.code)? & !7;
    if !is_pointer(code) || read(code + at.object_type)? != found.code_type {
        return None;
    }
    let offset = found.layout.instruction_offset(code, read(frame + at.instruction)?);
    if !(-2..LARGEST_CODE).contains(&offset) {
        return None;
    }
    let entry = found.layout.is_entry(|| read(frame + at.entry).map(|word| word as u8))?;
    Some(FrameFields {
        previous,
        code,
        lines: read(code + at.lines)?,
        name: read(code + at.name)?,
        first_line: read(code + at.first_line)? as u32,
        offset: offset.max(0) as u32 | if entry { ENTRY_FRAME } else { 0 },
    })
}

/// Walks the chain that starts at a frame. `Err` (with the frames so far) when something is no
/// frame.
#[inline(always)]
fn frames(
    found: &Interpreter,
    mut frame: u64,
    buf: &mut [RawPyFrame],
    mut read: impl FnMut(u64) -> Option<u64>,
    mut note: impl FnMut(u64, FrameFields),
) -> Result<usize, usize> {
    let mut len = 0;
    for _ in 0..buf.len() + MOST_SKIPPED {
        if frame == 0 || len == buf.len() {
            break;
        }
        let Some(seen) = is_pointer(frame).then(|| see(found, frame, &mut read)).flatten() else { return Err(len) };
        note(frame, seen);
        frame = seen.previous;
        if seen.code != 0 {
            buf[len] = RawPyFrame { code: seen.code, offset: seen.offset, check: seen.check() };
            len += 1;
        } else if let Some(last) = len.checked_sub(1) {
            // The interpreter's own frame: below it on the native stack another run of the loop
            // begins.
            buf[last].offset |= ENTRY_FRAME;
        }
    }
    Ok(len)
}

#[inline(always)]
fn is_pointer(address: u64) -> bool {
    address & 7 == 0 && (4096..1 << arch::ADDRESSES).contains(&address)
}

/// Hands the description of a captured frame's code object to `take`. To be called on the thread
/// that captured the frame, before it returns to its caller: later the code object may be gone.
/// `None` when the object is not what it was.
pub fn describe<T>(frame: &RawPyFrame, take: impl FnOnce(Description<'_>) -> T) -> Option<T> {
    // SAFETY: never freed once stored.
    let found = unsafe { FOUND.load(Ordering::Acquire).as_ref() }?;
    let at = &found.layout.offsets;
    // Rare (once a code object), so every word is probed.
    let read = |address: u64| {
        // SAFETY: both ends are found readable first.
        (is_readable(address) && is_readable(address.wrapping_add(7)))
            .then(|| unsafe { (address as *const u64).read_unaligned() })
    };
    let code = frame.code;
    if !is_pointer(code) || read(code + at.object_type)? != found.code_type {
        return None;
    }
    let (lines, name, first_line) = (read(code + at.lines)?, read(code + at.name)?, read(code + at.first_line)? as u32);
    if (FrameFields { previous: 0, code, lines, name, first_line, offset: 0 }).check() != frame.check {
        return None;
    }
    let mut file = [0; crate::stack::python::unicode::LONGEST];
    let mut name_text = [0; crate::stack::python::unicode::LONGEST];
    let file = crate::stack::python::unicode::read(&found.layout.text, read(code + at.file)?, &mut file)?;
    let name = crate::stack::python::unicode::read(&found.layout.text, name, &mut name_text)?;
    if !is_pointer(lines) {
        return None;
    }
    let len = read(lines + layout::BYTES_SIZE)?;
    let data = lines + layout::BYTES_DATA;
    if len > LARGEST_TABLE || len > 0 && !crate::stack::python::unicode::all_readable(data, len) {
        return None;
    }
    // SAFETY: found readable; the bytes of a bytes object never change, and its code object holds
    // it.
    let lines = unsafe { core::slice::from_raw_parts(data as *const u8, len as usize) };
    let first_line = (first_line as i32).max(0) as u32;
    Some(take(Description { file, name, first_line, encoding: found.layout.encoding, lines }))
}

const _: () = assert!(MAX_OFFSET < 4096);
