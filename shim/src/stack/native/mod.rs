//! Native frames: the walk over the calling thread's stack.
//!
//! Owns the walk itself. It builds on [`unwind_rule`] (how to get from one frame to the next, out
//! of `.eh_frame`), [`rule_cache`] (rules already worked out, shared by all threads), [`walk_tree`]
//! (what the thread's earlier walks read: most walks are known), [`readable`] (which bytes may be
//! read without a fault) and [`modules`] (the object files of the process). [`walk_tree`] knows the
//! walk's registers, and the walk fills the tree. Names and lines are not found here: the analyzer
//! does that.
//!
//! A walk that is known costs about one load from the stack a frame, and no load waits for another.
//! One that is not known costs some nanoseconds a frame: a probe of the cache and two loads. It
//! takes no lock, allocates nothing and has no state of a thread but two words of const-initialised
//! TLS, so it also works before `main`, during thread exit, in signal handlers and in a forked
//! child. A cold frame costs one `dl_iterate_phdr`, that is, a short critical section under the
//! loader's list lock; nothing of ours is locked at that time.
//!
//! Only program counter, stack pointer and frame pointer are followed. That is enough for what
//! compilers emit in the frames of functions that call others; a frame whose caller depends on
//! another register ends the walk.

pub mod modules;
pub(crate) mod readable;
pub(crate) mod rule_cache;
pub(crate) mod unwind_rule;
pub(crate) mod walk_tree;

pub use modules::{Companion, ModuleInfo, modules_since, note_companion, note_interpreter, note_modules_changed};

use super::walk::WalkResult;
use crate::arch;
use crate::stack::native::readable::Window;
pub use crate::stack::native::readable::is_readable_range;
pub(super) use crate::stack::native::readable::{is_readable, thread_pointer};
use crate::stack::native::unwind_rule::{CfaBase, SavedFp, UnwindRule};
use crate::stack::native::walk_tree::TreePath;
pub use walk_tree::WalkTree;

/// Most frames that one capture gives.
pub const MAX: usize = 96;

/// The registers that a walk needs.
#[derive(Clone, Copy)]
struct Registers {
    /// The address to look up: of the instruction itself, or one below a return address.
    lookup: u64,
    sp: u64,
    fp: u64,
}

/// Fills `buf` (not empty, at most [`MAX`] entries are of use) with return addresses of the calling
/// thread, innermost first, and says how many there are. With `tree`: only if the walk is not
/// known. The first one lies in the function that called into this library: innermost frames of our
/// own are left out. Frames further out that belong to this library (a callback that we wrapped)
/// are kept.
///
/// An address that a signal interrupted is given plus one, so that "minus one" leads into the right
/// instruction for every entry. Never faults, never fails; a stack that cannot be followed is
/// short.
///
/// With `to_python` the first frame of Python's interpreter is the last one: what lies further out
/// is shown by Python's own frames.
#[inline(never)]
#[unsafe(link_section = "streamsan_hot")]
pub fn capture(buf: &mut [u64], to_python: bool, tree: Option<&mut WalkTree>) -> WalkResult {
    let (pc, sp, fp) = arch::registers();
    let at = Registers { lookup: pc, sp, fp };
    let mut window = Window::around(sp);
    let Some(tree) = tree else { return walk(at, window, buf, to_python, None) };
    let limits = (buf.len() as u64) << 1 | u64::from(to_python);
    match tree.find(at, limits, &mut window) {
        Ok(id) => WalkResult { len: 0, id: Some(id) },
        Err(miss) => walk(at, window, buf, to_python, miss.map(|miss| tree.path(miss, at, limits))),
    }
}

/// Where a walk's frame pointer came from, until it has come to matter.
enum FpFrom {
    /// It has: the words read say what it is.
    Known,
    /// The register.
    Register,
    /// A word on the stack.
    Memory(u64),
}

/// A walk in the middle.
struct Walk<'a> {
    at: Registers,
    fp_from: FpFrom,
    window: Window,
    path: Option<TreePath<'a>>,
    /// The link register of the frame that a signal interrupted.
    link: Option<u64>,
}

/// Walks, whatever is known.
#[inline(never)]
fn walk(at: Registers, window: Window, buf: &mut [u64], to_python: bool, path: Option<TreePath<'_>>) -> WalkResult {
    let mut walk = Walk { at, fp_from: FpFrom::Register, window, path, link: None };
    let mut len = 0;
    let mut own = true;
    let mut ended = false;
    // Frames of our own do not count, so the number of steps has a bound of its own.
    for _ in 0..buf.len() + MAX {
        let rule = walk.rule_at(walk.at.lookup);
        own &= rule.is_own();
        if !own {
            // `lookup` of the first frame outside this library is a return address minus one, or
            // interrupted code.
            buf[len] = walk.at.lookup + 1;
            len += 1;
            ended = len == buf.len() || to_python && rule.is_interpreter();
        }
        ended = ended || walk.step(rule).is_none();
        if ended {
            break;
        }
    }
    WalkResult { len, id: walk.path.filter(|_| ended && len > 0).and_then(TreePath::end) }
}

impl Walk<'_> {
    /// What can be kept of this walk would not say how it went on.
    fn give_up(&mut self) {
        if let Some(path) = &mut self.path {
            path.give_up();
        }
    }

    #[inline]
    fn rule_at(&mut self, lookup: u64) -> UnwindRule {
        match crate::stack::native::rule_cache::get(lookup) {
            Some(rule) if !rule.is_unknown() || modules::unchanged_since(rule) => rule,
            _ => self.rule_cold(lookup),
        }
    }

    #[cold]
    #[inline(never)]
    fn rule_cold(&mut self, lookup: u64) -> UnwindRule {
        let (rule, keep) = modules::find_rule(lookup);
        if keep {
            crate::stack::native::rule_cache::put(lookup, rule);
        } else {
            // Its module may not be in the list yet.
            self.give_up();
        }
        rule
    }

    /// A word that decides how the walk goes on.
    #[inline]
    fn read(&mut self, address: u64) -> Option<u64> {
        let Some(value) = self.window.read(address) else {
            self.give_up();
            return None;
        };
        if let Some(path) = &mut self.path {
            path.read(address, value);
        }
        Some(value)
    }

    /// The frame pointer, which now decides how the walk goes on.
    #[inline]
    fn fp(&mut self) -> u64 {
        match (core::mem::replace(&mut self.fp_from, FpFrom::Known), &mut self.path) {
            (FpFrom::Register, Some(path)) => path.register(self.at.fp),
            (FpFrom::Memory(address), Some(path)) => path.read(address, self.at.fp),
            _ => {}
        }
        self.at.fp
    }

    /// To the frame that called this one.
    #[inline]
    fn step(&mut self, rule: UnwindRule) -> Option<()> {
        let cfa = match rule.base() {
            CfaBase::Sp => self.at.sp.wrapping_add_signed(rule.cfa_offset()),
            CfaBase::Fp => self.fp().wrapping_add_signed(rule.cfa_offset()),
            CfaBase::FpDeref => {
                let at = self.fp().wrapping_add_signed(rule.cfa_offset());
                self.read(at)?
            }
            CfaBase::Other => return self.step_other(rule),
        };
        // Stacks grow down: a caller's frame is above its callee's. This also ends loops.
        if cfa <= self.at.sp || cfa & 7 != 0 {
            return None;
        }
        let ra = arch::strip(self.read(arch::return_slot(cfa, rule.fp_offset()))?);
        let slot = match rule.saved_fp() {
            SavedFp::Same => None,
            SavedFp::AtCfa => Some(cfa.wrapping_add_signed(rule.fp_offset())),
            SavedFp::AtFp => Some(self.fp().wrapping_add_signed(rule.fp_offset())),
        };
        if let Some(slot) = slot {
            let Some(fp) = self.window.read(slot) else {
                self.give_up();
                return None;
            };
            (self.at.fp, self.fp_from) = (fp, FpFrom::Memory(slot));
        }
        if ra < 2 {
            return None;
        }
        (self.at.lookup, self.at.sp) = (ra - 1, cfa);
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn step_other(&mut self, rule: UnwindRule) -> Option<()> {
        if rule.is_end() {
            return None;
        }
        self.give_up();
        let link = self.link.take();
        self.at = match link {
            _ if rule.is_signal() => self.step_signal()?,
            Some(link) if rule.is_leaf() => self.step_leaf(rule, link)?,
            _ => self.step_frame_pointer()?,
        };
        Some(())
    }

    /// Out of a signal handler. The kernel left a `ucontext_t` where the handler's frame ended;
    /// offsets of its registers are the ABI of the kernel (`struct rt_sigframe`).
    fn step_signal(&mut self) -> Option<Registers> {
        let fp = self.window.read(self.at.sp + arch::SIGNAL_FRAME.fp)?;
        let sp = self.window.read(self.at.sp + arch::SIGNAL_FRAME.sp)?;
        let pc = self.window.read(self.at.sp + arch::SIGNAL_FRAME.pc)?;
        self.link = arch::SIGNAL_FRAME.link.and_then(|link| self.window.read(self.at.sp + link));
        if pc < 2 {
            return None;
        }
        // The handler may have run on a stack of its own.
        if !self.window.holds(sp) {
            self.window = Window::around(sp);
        }
        Some(Registers { lookup: pc, sp, fp })
    }

    /// Out of a function that has not saved its return address, which a signal interrupted.
    fn step_leaf(&mut self, rule: UnwindRule, link: u64) -> Option<Registers> {
        let (at, ra) = (self.at, arch::strip(link));
        (ra >= 2).then(|| Registers { lookup: ra - 1, sp: at.sp.wrapping_add_signed(rule.cfa_offset()), fp: at.fp })
    }

    /// Code without unwind information: believe the frame pointer, but only when what it leads to
    /// is a call in a known module.
    fn step_frame_pointer(&mut self) -> Option<Registers> {
        let at = self.at;
        if at.fp < at.sp || at.fp & 7 != 0 || !self.window.reaches(at.fp) {
            return None;
        }
        let fp = self.window.read(at.fp)?;
        let ra = arch::strip(self.window.read(at.fp + 8)?);
        if ra < 4096 || self.rule_at(ra - 1).is_unknown() || !follows_call(ra) {
            return None;
        }
        Some(Registers { lookup: ra - 1, sp: arch::sp_above(at.fp, fp), fp })
    }
}

/// Whether the instruction before `ra` is a call. `ra` must lie in the code of a loaded module.
fn follows_call(ra: u64) -> bool {
    let first = ra - arch::LONGEST_CALL as u64;
    if !crate::stack::native::readable::is_readable(first) || !crate::stack::native::readable::is_readable(ra - 1) {
        return false;
    }
    // SAFETY: both ends were just found readable, and a call spans at most two pages.
    let bytes = unsafe { core::slice::from_raw_parts(first as *const u8, arch::LONGEST_CALL) };
    arch::is_call(bytes)
}
