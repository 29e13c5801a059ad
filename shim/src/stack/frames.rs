//! A captured stack: native return addresses and Python frames.
//!
//! Owns the buffer for one stack ([`Frames`]), how much of a stack an op is worth ([`Depth`]), and
//! the key by which the log recognises equal stacks. Frames are found by [`super::native`] and
//! [`super::python`]; walks that are known are recognised with [`super::walk_memo`] and
//! [`super::stack_ids`]. Does not write to the trace.

use trace::StackId;

use super::native;
use super::python::{self, RawPyFrame};
use super::stack_ids::StackIds;
use super::walk::WalkResult;
use super::walk_memo::WalkMemo;

/// Most native frames kept.
pub const MAX_NATIVE: usize = native::MAX;
/// Native frames kept when there are Python frames: PyTorch's deepest dispatch from operator to
/// launch takes about 20.
const NATIVE_UNDER_PYTHON: usize = 28;
/// Native frames kept of [`Depth::Caller`]: enough to come out of CUDA's runtime.
const NATIVE_OF_CALLER: usize = 6;
/// Most Python frames kept.
pub const MAX_PYTHON: usize = 64;

/// One stack: 2 KiB.
#[repr(C)]
pub struct Frames {
    native_len: usize,
    python_len: usize,
    /// The stack's id, when the walk was known: then no frames are written.
    known: StackId,
    /// What stands for the walk in [`StackIds`]; 0: nothing.
    walk: u64,
    native: [u64; MAX_NATIVE],
    python: [RawPyFrame; MAX_PYTHON],
}

impl Frames {
    /// No frames.
    #[allow(clippy::new_without_default, reason = "two kilobytes should be made on purpose")]
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
    pub fn remember(&self, known: StackIds, id: StackId) {
        if self.walk != 0 {
            known.put(self.walk, id);
        }
    }

    /// The native frames, innermost first.
    pub fn native(&self) -> &[u64] {
        &self.native[..self.native_len]
    }

    /// The Python frames, innermost first.
    pub fn python(&self) -> &[RawPyFrame] {
        &self.python[..self.python_len]
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

    /// 128 bits that identify a stack: two independent 64-bit hashes.
    pub fn key(&self) -> u128 {
        let mut hash = Hash::new();
        let mut words = self.native().chunks_exact(2);
        words.by_ref().for_each(|pair| hash.mix(pair[0], pair[1]));
        // Other modules at the same addresses make another stack of the same words.
        let shape = self.native_len as u64 | u64::from(native::modules::generation()) << 32;
        hash.mix(words.remainder().first().copied().unwrap_or(0), shape);
        for frame in self.python() {
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
    /// The innermost native frames, which show whose call it is. For allocations where no stacks
    /// are wanted: the memory that a library keeps for itself is still known.
    Caller,
}

/// Fills `frames` with the calling thread's stack.
pub fn capture(frames: &mut Frames, depth: Depth) {
    walk(frames, depth, None);
}

/// As [`capture`], or only [`Frames::known`] when the walk is known.
pub fn recall(frames: &mut Frames, depth: Depth, known: StackIds) {
    frames.clear();
    let Some(mut memo) = WalkMemo::take() else { return capture(frames, depth) };
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
fn fill(frames: &mut Frames, depth: Depth, native: WalkResult, python: WalkResult) {
    if native.is_known() || python.is_known() {
        capture(frames, depth);
    }
}

/// The native and the Python part.
#[unsafe(link_section = "streamsan_hot")]
fn walk(frames: &mut Frames, depth: Depth, memo: Option<&mut WalkMemo>) -> [WalkResult; 2] {
    let (tree, chains) = match memo {
        Some(memo) => (Some(&mut memo.kept.native), Some(&mut memo.kept.python)),
        None => (None, None),
    };
    let python = if depth == Depth::Caller { WalkResult::NOTHING } else { python::capture(&mut frames.python, chains) };
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
        0 => WalkResult::NOTHING,
        most => native::capture(&mut frames.native[..most], python.has_frames(), tree),
    };
    (frames.native_len, frames.python_len) = (native.len, python.len);
    [native, python]
}
