//! A captured stack on its way into the trace: native return addresses and Python frames, and the
//! definitions that make them readable elsewhere.
//!
//! Owns the buffers, the definitions (modules, code objects, stacks) and which stack of the trace a
//! known walk is ([`Known`]); how frames are found, and walks known again, is in [`crate::stack`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace::codec::{List, Text};
use trace::{LineTable, Op, PyCodeId, PyFrame, StackId};

use crate::runtime::thread_state;
use crate::stack::native;
use crate::stack::python::{self, Encoding, RawPyFrame};
use crate::stack::walk_memo::{Found, Memo};

/// Most native frames kept.
pub const MAX_NATIVE: usize = native::MAX;
/// Native frames kept when there are Python frames: PyTorch's deepest dispatch from operator to
/// launch takes about 20.
const NATIVE_UNDER_PYTHON: usize = 28;
/// Native frames kept of [`Depth::Caller`]: enough to come out of CUDA's runtime.
const NATIVE_OF_CALLER: usize = 6;
/// Most Python frames kept.
pub const MAX_PYTHON: usize = 64;

/// The calling thread's buffer, to be emptied before it is used.
///
/// # Safety
/// The thread is inside shim code ([`crate::runtime::guard::Inside`]), which happens once at a
/// time, and keeps no other reference to its buffer.
pub unsafe fn buffer<'a>() -> &'a mut Frames {
    thread_state::with(|l| {
        // SAFETY: the caller's promise: nobody else refers to this thread's buffer. It has no
        // destructor, so it lives as long as the thread.
        unsafe { &mut *l.frames.get() }
    })
}

/// One stack: 2 KiB.
#[repr(C)]
pub struct Frames {
    native_len: usize,
    python_len: usize,
    /// The stack's id, when the walk was known: then no frames are written.
    known: StackId,
    /// What stands for the walk in [`Known`]; 0: nothing.
    walk: u64,
    native: [u64; MAX_NATIVE],
    python: [RawPyFrame; MAX_PYTHON],
}

impl Frames {
    /// No frames.
    #[expect(clippy::new_without_default, reason = "two kilobytes are not made by accident")]
    #[inline]
    pub const fn new() -> Self {
        Self {
            native: [0; MAX_NATIVE],
            native_len: 0,
            python: [RawPyFrame { code: 0, offset: 0, check: 0 }; MAX_PYTHON],
            python_len: 0,
            known: StackId::NONE,
            walk: 0,
        }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        (self.native_len, self.python_len, self.known, self.walk) = (0, 0, StackId::NONE, 0);
    }

    /// The stack's id, when the walk was known: then there are no frames here.
    #[inline]
    pub fn known(&self) -> StackId {
        self.known
    }

    /// Remembers that walks like this one give this stack.
    pub fn remember(&self, known: Known, id: StackId) {
        if self.walk != 0 {
            known.put(self.walk, id);
        }
    }

    /// The native frames, innermost first.
    pub fn native(&self) -> &[u64] {
        &self.native[..self.native_len]
    }

    /// Leaves the innermost native frame out.
    pub fn skip_one(&mut self) {
        if self.native_len > 0 {
            self.native.copy_within(1..self.native_len, 0);
            self.native_len -= 1;
        }
    }

    /// Whether nothing was captured.
    pub fn is_empty(&self) -> bool {
        self.native_len == 0 && self.python_len == 0
    }

    /// 128 bits that tell stacks apart: two independent 64-bit hashes.
    pub fn key(&self) -> u128 {
        let mut hash = Hash::new();
        let mut words = self.native().chunks_exact(2);
        words.by_ref().for_each(|pair| hash.mix(pair[0], pair[1]));
        // Other modules at the same addresses make another stack of the same words.
        let shape = self.native_len as u64 | u64::from(native::modules::generation()) << 32;
        hash.mix(words.remainder().first().copied().unwrap_or(0), shape);
        for frame in &self.python[..self.python_len] {
            hash.mix(frame.code, u64::from(frame.offset) << 32 | u64::from(frame.check));
        }
        hash.finish()
    }
}

/// Two independent 64-bit hashes of pairs of words. Each pair is multiplied out by itself, so that
/// what waits for the pair before is short.
struct Hash(u64, u64);

impl Hash {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325, 0x9e37_79b9_7f4a_7c15)
    }

    #[inline(always)]
    fn mix(&mut self, first: u64, second: u64) {
        let product = |first: u64, second: u64| {
            let wide = u128::from(first) * u128::from(second);
            wide as u64 ^ (wide >> 64) as u64
        };
        let a = product(first ^ 0xa076_1d64_78bd_642f, second ^ 0xe703_7ed1_a0b4_28db);
        let b = product(first ^ 0x8ebc_6af0_9c88_c6e3, second.rotate_left(32) ^ 0x5899_65cc_7537_4cc3);
        self.0 = (self.0 ^ a).wrapping_mul(0x0100_0000_01b3_0001).rotate_left(23);
        self.1 = (self.1.rotate_left(29) ^ b).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    fn finish(&self) -> u128 {
        u128::from(self.0 ^ (self.0 >> 31)) << 64 | u128::from(self.1 ^ (self.1 >> 33))
    }
}

/// How much of a stack an op is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Nothing.
    None,
    /// Python frames; the native ones only where there are none. For what happens as often as
    /// launches and says less.
    PythonFirst,
    /// Both.
    Full,
    /// The innermost native frames, which tell whose call it is. For allocations where no stacks
    /// are wanted: the memory that a library keeps for itself is still known.
    Caller,
}

/// Which stack a pair of known walks is, native frames and Python's, for all threads: numbers of
/// walks are never given out twice, so nothing is ever forgotten, only pushed out. Of one trace.
/// Entries have two words and no lock: the first is a function of both, so that a half-written
/// entry is none.
#[derive(Clone, Copy)]
pub struct Known(&'static [[[AtomicU64; 2]; WAYS]]);

const WAYS: usize = 4;
const SETS: usize = 2048;

impl Default for Known {
    fn default() -> Self {
        // A process has one core, a forked child its own: neither ever ends before the process.
        Self(Vec::leak((0..SETS).map(|_| Default::default()).collect()))
    }
}

impl Known {
    #[inline]
    fn set(self, walk: u64) -> &'static [[AtomicU64; 2]; WAYS] {
        // Numbers are small at first: few walks lie close together.
        &self.0[((walk >> 32) ^ (walk << 2)) as usize % SETS]
    }

    fn check(walk: u64, id: u64) -> u64 {
        walk ^ id.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    #[inline]
    fn get(self, walk: u64) -> StackId {
        for [check, id] in self.set(walk) {
            let id = id.load(Relaxed);
            if id != 0 && check.load(Relaxed) == Self::check(walk, id) {
                return StackId(id as u32);
            }
        }
        StackId::NONE
    }

    fn put(self, walk: u64, id: StackId) {
        let set = self.set(walk);
        let place = set.iter().position(|[_, id]| id.load(Relaxed) == 0).unwrap_or(walk as usize % WAYS);
        let id = u64::from(id.0);
        set[place][1].store(id, Relaxed);
        set[place][0].store(Self::check(walk, id), Relaxed);
    }
}

/// Fills `frames` with the calling thread's stack.
pub fn capture(frames: &mut Frames, depth: Depth) {
    walk(frames, depth, None);
}

/// As [`capture`], or only [`Frames::known`] when the walk is known.
pub fn recall(frames: &mut Frames, depth: Depth, known: Known) {
    frames.clear();
    let Some(mut memo) = Memo::take() else { return capture(frames, depth) };
    let [native, python] = walk(frames, depth, Some(&mut memo));
    drop(memo);
    let (Some(native_id), Some(python_id)) = (native.id, python.id) else { return fill(frames, depth, native, python) };
    frames.walk = u64::from(native_id) << 32 | u64::from(python_id);
    frames.known = known.get(frames.walk);
    if frames.known.is_none() {
        fill(frames, depth, native, python);
    }
}

/// Walks for what is known of the parts but not of the whole.
#[cold]
#[inline(never)]
fn fill(frames: &mut Frames, depth: Depth, native: Found, python: Found) {
    if native.is_known() || python.is_known() {
        capture(frames, depth);
    }
}

/// The native and the Python part.
#[unsafe(link_section = "streamsan_hot")]
fn walk(frames: &mut Frames, depth: Depth, memo: Option<&mut Memo>) -> [Found; 2] {
    let (tree, chains) = match memo {
        Some(memo) => (Some(&mut memo.kept.native), Some(&mut memo.kept.python)),
        None => (None, None),
    };
    let python = if depth == Depth::Caller { Found::NOTHING } else { python::capture(&mut frames.python, chains) };
    // Where there are Python frames they are what is read; of the C++ below, the operator and what
    // it calls. On a training step the native part is most of the cost.
    let most = match (depth, python.has_frames()) {
        (Depth::Caller, _) => NATIVE_OF_CALLER,
        (Depth::Full, false) => MAX_NATIVE,
        // Of a block that an autograd thread allocates, the operator and the node of the graph are
        // worth their price.
        (Depth::PythonFirst, false) | (Depth::Full, true) => NATIVE_UNDER_PYTHON,
        _ => 0,
    };
    let native = match most {
        0 => Found::NOTHING,
        most => native::capture(&mut frames.native[..most], python.has_frames(), tree),
    };
    (frames.native_len, frames.python_len) = (native.len, python.len);
    [native, python]
}

/// What has been defined so far.
#[derive(Default)]
pub struct Definitions {
    /// Generation of the module list that the trace knows.
    modules: u32,
    /// By address of the code object and what tells its successors at that address apart.
    codes: HashMap<(u64, u32), PyCodeId>,
}

impl Definitions {
    /// Writes the definition of a stack, and of everything that it refers to and that is new.
    pub fn define(&mut self, id: StackId, frames: &Frames, mut emit: impl FnMut(&Op<'_>)) {
        if native::modules::generation() != self.modules {
            self.modules = native::modules::modules_since(self.modules, |module| {
                let (path, build_id) = (Text(module.path), module.build_id);
                emit(&Op::Module { start: module.start, end: module.end, bias: module.bias, path, build_id });
            });
        }
        let mut python = [PyFrame::default(); MAX_PYTHON];
        for (to, from) in python.iter_mut().zip(&frames.python[..frames.python_len]) {
            *to = PyFrame { code: self.code(from, &mut emit), offset: from.offset };
        }
        emit(&Op::Stack {
            id,
            native: List::new(&frames.native[..frames.native_len]),
            python: List::new(&python[..frames.python_len]),
        });
    }

    /// The id of a code object, defining it when it is new.
    fn code(&mut self, frame: &RawPyFrame, emit: &mut impl FnMut(&Op<'_>)) -> PyCodeId {
        if let Some(id) = self.codes.get(&(frame.code, frame.check)) {
            return *id;
        }
        let id = PyCodeId(self.codes.len() as u32 + 1);
        self.codes.insert((frame.code, frame.check), id);
        python::describe(frame, |code| {
            emit(&Op::PyCode {
                id,
                file: code.file.into(),
                name: code.name.into(),
                first_line: code.first_line,
                encoding: match code.encoding {
                    Encoding::Lnotab => LineTable::Lnotab,
                    Encoding::V310 => LineTable::V310,
                    Encoding::V311 => LineTable::V311,
                },
                lines: code.lines,
            });
        });
        id
    }
}

/// Looks for a Python interpreter in the process, if none is known yet. Not to be called with the
/// lock held: it looks symbols up.
pub fn look_for_python() {
    /// As the symboliser of addresses wants it: by name, in everything that is loaded.
    unsafe fn resolve(name: &std::ffi::CStr) -> *mut std::ffi::c_void {
        // SAFETY: RTLD_DEFAULT is a special handle of dlsym.
        unsafe { crate::real::driver::dlsym(libc::RTLD_DEFAULT, name) }
    }
    // SAFETY: resolve answers addresses of symbols of loaded objects, or null.
    unsafe { python::detect(resolve) };
    if let Some(address) = python::address() {
        native::note_interpreter(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_remembered_or_pushed_out() {
        let known = Known::default();
        let walk = |n: u32| u64::from(n) << 32 | u64::from(n % 7);
        (1..=100_000).for_each(|n| known.put(walk(n), StackId(n)));
        let found = |n: &u32| known.get(walk(*n)) == StackId(*n);
        assert!((1..=100_000).all(|n| found(&n) || known.get(walk(n)).is_none()), "never another stack");
        assert!((1..=100_000).filter(found).count() > SETS, "most room is used");
        assert!(known.get(walk(100_001)).is_none());
    }
}
