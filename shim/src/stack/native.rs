//! Native frames: the walk over the calling thread's stack.
//!
//! Owns the walk itself. What it stands on: [`rule`] (how to get from one frame to the next, out of `.eh_frame`),
//! [`cache`] (rules already worked out, shared by all threads), [`memo`] (the thread's last walk, whose outer part mostly still
//! holds), [`memory`] (which bytes may be read without a fault) and [`modules`] (the object files of the process). Names and
//! lines are the analyzer's business.
//!
//! A warm walk costs some nanoseconds a frame: one probe of the cache and two loads from the stack, and from the first frame on
//! that it shares with the last walk, two loads that wait for nothing. It takes no lock, allocates nothing and has no state of a thread but two words of const-initialised TLS, so it also works before `main`,
//! during thread exit, in signal handlers and in a forked child. A cold frame costs one `dl_iterate_phdr`, that is, a short
//! critical section under the loader's list lock; nothing of ours is locked at that time.
//!
//! Only `rip`, `rsp` and `rbp` are followed. That is enough for what compilers emit in the frames of functions that call
//! others; a frame whose caller hangs on another register ends the walk.

mod cache;
mod memo;
mod memory;
pub mod modules;
mod rule;

pub use modules::{ModuleInfo, modules_since, note_interpreter, note_modules_changed};

use memo::{Memo, NOT_PLAIN};
use memory::Window;
pub(super) use memory::is_readable;
pub use memory::is_readable_range;
use rule::{Base, Rule, SavedFp};

/// Most frames that one capture gives.
pub const MAX: usize = 96;

/// Bytes below a return address that a call instruction can take.
const LONGEST_CALL: u64 = 7;

/// The registers that a walk needs.
#[derive(Clone, Copy)]
struct Registers {
    /// The address to look up: of the instruction itself, or one below a return address.
    lookup: u64,
    sp: u64,
    fp: u64,
}

/// Fills `buf` (not empty, at most [`MAX`] entries are of use) with return addresses of the calling thread, innermost first, and says how many there are. The first one
/// lies in the function that called into this library: innermost frames of our own are left out. Frames further out that
/// belong to this library (a callback that we wrapped) are kept.
///
/// An address that a signal interrupted is given plus one, so that "minus one" leads into the right instruction for every
/// entry. Never faults, never fails; a stack that cannot be followed is short.
///
/// With `to_python` the first frame of Python's interpreter is the last one: what lies further out is told by Python's own frames.
#[inline(never)]
#[unsafe(link_section = "streamsan_hot")]
pub fn capture(buf: &mut [u64], to_python: bool) -> usize {
    let (pc, sp, fp): (u64, u64, u64);
    // SAFETY: reads three registers, touches no memory.
    unsafe {
        core::arch::asm!(
            "lea {pc}, [rip]", "mov {sp}, rsp", "mov {fp}, rbp",
            pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    walk(Registers { lookup: pc, sp, fp }, buf, to_python)
}

/// Clears what a fork may have copied in the middle of a change. To be called in the child of a fork.
pub fn after_fork_in_child() {
    modules::after_fork_in_child();
    memo::after_fork_in_child();
}

#[inline]
fn walk(mut at: Registers, buf: &mut [u64], to_python: bool) -> usize {
    let mut window = Window::around(at.sp);
    let mut memo = Memo::take(memory::thread_pointer(), to_python);
    let mut len = 0;
    let mut own = true;
    let mut fp_slot = NOT_PLAIN;
    // Frames of our own do not count, so the number of steps has a bound of its own.
    for _ in 0..buf.len() + MAX {
        let mut rule = rule_at(at.lookup);
        own &= rule.is_own();
        if !own {
            // `lookup` of the first frame outside this library is a return address minus one, or interrupted code.
            buf[len] = at.lookup + 1;
            len += 1;
            if let Some(memo) = &mut memo {
                match memo.meet(at, &mut window, &mut buf[len..]) {
                    Some((more, last)) => {
                        len += more;
                        at = last;
                        rule = rule_at(at.lookup);
                    }
                    None => memo.note(at, fp_slot),
                }
            }
            if len == buf.len() || to_python && rule.is_interpreter() {
                break;
            }
        }
        let Some(next) = step(rule, at, &mut window) else { break };
        (at, fp_slot) = next;
    }
    len
}

#[inline]
fn rule_at(lookup: u64) -> Rule {
    match cache::get(lookup) {
        Some(rule) if !rule.is_unknown() || modules::unchanged_since(rule) => rule,
        _ => rule_cold(lookup),
    }
}

#[cold]
#[inline(never)]
fn rule_cold(lookup: u64) -> Rule {
    let (rule, keep) = modules::find_rule(lookup);
    if keep {
        cache::put(lookup, rule);
    }
    rule
}

/// The frame that called the one at `at`, and where its frame pointer was loaded from (0: it is still that of `at`), or
/// [`NOT_PLAIN`].
#[inline]
fn step(rule: Rule, at: Registers, window: &mut Window) -> Option<(Registers, u64)> {
    let mut plain = true;
    let cfa = match rule.base() {
        Base::Sp => at.sp.wrapping_add_signed(rule.cfa_offset()),
        Base::Fp => at.fp.wrapping_add_signed(rule.cfa_offset()),
        Base::FpDeref => {
            plain = false;
            window.read(at.fp.wrapping_add_signed(rule.cfa_offset()))?
        }
        Base::Other => return step_other(rule, at, window).map(|next| (next, NOT_PLAIN)),
    };
    // Stacks grow down: a caller's frame is above its callee's. This also ends loops.
    if cfa <= at.sp || cfa & 7 != 0 {
        return None;
    }
    let ra = window.read(cfa - 8)?;
    let slot = match rule.saved_fp() {
        SavedFp::Same => 0,
        SavedFp::AtCfa => cfa.wrapping_add_signed(rule.fp_offset()),
        SavedFp::AtFp => at.fp.wrapping_add_signed(rule.fp_offset()),
    };
    let fp = if slot == 0 { at.fp } else { window.read(slot)? };
    if ra < 2 {
        return None;
    }
    Some((Registers { lookup: ra - 1, sp: cfa, fp }, if plain { slot } else { NOT_PLAIN }))
}

#[cold]
#[inline(never)]
fn step_other(rule: Rule, at: Registers, window: &mut Window) -> Option<Registers> {
    if rule.is_signal() {
        return step_signal(at, window);
    }
    if rule.is_end() {
        return None;
    }
    step_frame_pointer(at, window)
}

/// Out of a signal handler. The kernel left a `ucontext_t` where the handler's frame ended; offsets of its registers are
/// the x86-64 ABI of the kernel (`struct rt_sigframe`).
fn step_signal(at: Registers, window: &mut Window) -> Option<Registers> {
    const RBP: u64 = 120;
    const RSP: u64 = 160;
    const RIP: u64 = 168;
    let fp = window.read(at.sp + RBP)?;
    let sp = window.read(at.sp + RSP)?;
    let pc = window.read(at.sp + RIP)?;
    if pc < 2 {
        return None;
    }
    // The handler may have run on a stack of its own.
    if !window.holds(sp) {
        *window = Window::around(sp);
    }
    Some(Registers { lookup: pc, sp, fp })
}

/// Code without unwind information: believe the frame pointer, but only when what it leads to is a call in a known module.
fn step_frame_pointer(at: Registers, window: &mut Window) -> Option<Registers> {
    if at.fp < at.sp || at.fp & 7 != 0 || !window.reaches(at.fp) {
        return None;
    }
    let fp = window.read(at.fp)?;
    let ra = window.read(at.fp + 8)?;
    if ra < 4096 || rule_at(ra - 1).is_unknown() || !follows_call(ra) {
        return None;
    }
    Some(Registers { lookup: ra - 1, sp: at.fp + 16, fp })
}

/// Whether the instruction before `ra` is a call. `ra` must lie in the code of a loaded module.
fn follows_call(ra: u64) -> bool {
    let first = ra - LONGEST_CALL;
    if !memory::is_readable(first) || !memory::is_readable(ra - 1) {
        return false;
    }
    // SAFETY: both ends were just found readable, and seven bytes span at most two pages.
    let bytes = unsafe { core::slice::from_raw_parts(first as *const u8, LONGEST_CALL as usize) };
    // call rel32, or FF /2 with a register or memory operand of any length.
    bytes[2] == 0xe8 || (0..6).any(|i| bytes[i] == 0xff && bytes[i + 1] >> 3 & 7 == 2)
}
