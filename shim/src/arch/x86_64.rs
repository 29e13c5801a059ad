//! x86-64.

use std::ffi::c_void;

use gimli::{Register, X86_64};
use iced_x86::{Code, Decoder, DecoderOptions};

use super::{MachineAccess, SignalFrame};

/// Bits of the addresses that programs have: four levels of page tables.
pub(crate) const ADDRESSES: u64 = 47;
/// The size of a page: the processor has one for programs.
#[inline(always)]
pub(crate) const fn page_size() -> u64 {
    4096
}

/// DWARF's number of the stack pointer.
pub(crate) const SP: Register = X86_64::RSP;
/// DWARF's number of the frame pointer.
pub(crate) const FP: Register = X86_64::RBP;
/// DWARF's number of the return address.
pub(crate) const RA: Register = X86_64::RA;
/// Registers that unwind information may name: more is an error of that function's information.
pub(crate) const MOST_RULES: usize = 18;
/// Whose extensions of DWARF the compilers use.
pub(crate) const VENDOR: gimli::Vendor = gimli::Vendor::Default;
/// Calls put the return address into a register.
pub(crate) const HAS_LINK: bool = false;
/// `struct rt_sigframe` of the kernel.
pub(crate) const SIGNAL_FRAME: SignalFrame = SignalFrame { fp: 120, sp: 160, pc: 168, link: None };
/// `mov rax, 15; syscall`: a return from a signal handler, as C libraries write it.
pub(crate) const SIGRETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// Bytes below a return address that a call instruction can take.
pub(crate) const LONGEST_CALL: usize = 7;
/// Bytes that one instruction takes at most.
const LONGEST_INSTRUCTION: u64 = 15;
const TRAP_FLAG: i64 = 0x100;

/// Program counter, stack pointer and frame pointer of the caller.
#[inline(always)]
pub(crate) fn registers() -> (u64, u64, u64) {
    let (pc, sp, fp): (u64, u64, u64);
    // SAFETY: reads three registers, touches no memory.
    unsafe {
        core::arch::asm!(
            "lea {pc}, [rip]", "mov {sp}, rsp", "mov {fp}, rbp",
            pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    (pc, sp, fp)
}

/// Where a frame keeps its return address: right below the canonical frame address.
#[inline(always)]
pub(crate) fn return_slot(cfa: u64, _saved_fp: i64) -> u64 {
    cfa - 8
}

/// The return address that a saved word stands for.
#[inline(always)]
pub(crate) fn strip(word: u64) -> u64 {
    word
}

/// The caller's stack pointer after a frame record at `record`, whose first word is `_fp`.
pub(crate) fn sp_above(record: u64, _fp: u64) -> u64 {
    record + 16
}

/// Whether the bytes before a return address are a call: `call rel32`, or FF /2 with a register or
/// memory operand of any length.
pub(crate) fn is_call(bytes: &[u8]) -> bool {
    bytes[2] == 0xe8 || (0..6).any(|i| bytes[i] == 0xff && bytes[i + 1] >> 3 & 7 == 2)
}

/// The processor's clock, which goes on at one speed.
#[cfg(feature = "cycles")]
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Address of the thread's control block.
pub(crate) fn thread_pointer() -> u64 {
    let tp: u64;
    // SAFETY: the first word of the control block is its own address in the x86-64 TLS ABI.
    unsafe { core::arch::asm!("mov {}, fs:0", out(reg) tp, options(nostack, readonly, preserves_flags)) };
    tp
}

/// Address of a symbol in the calling thread's memory that the loader lays out at start.
macro_rules! in_thread {
    ($symbol:literal) => {{
        let address: *const c_void;
        // SAFETY: the x86-64 TLS ABI: the offset from the thread's control block, whose first word
        // is its own address. Both words stay.
        unsafe {
            std::arch::asm!(
                concat!("mov {address}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                "add {address}, qword ptr fs:[0]",
                address = out(reg) address, options(pure, nomem, nostack),
            );
        }
        address
    }};
}

/// Address of `streamsan_local` in the calling thread.
#[inline(always)]
pub(crate) fn local() -> *const c_void {
    in_thread!("streamsan_local")
}

/// Address of `streamsan_stack_bounds` in the calling thread.
#[inline(always)]
pub(crate) fn stack_bounds() -> *const c_void {
    in_thread!("streamsan_stack_bounds")
}

/// Where [`local`] lies, counted from what `fs` points to.
pub(crate) fn local_offset() -> u64 {
    let offset: u64;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "mov {offset}, qword ptr [rip + streamsan_local@GOTTPOFF]",
            offset = out(reg) offset, options(pure, nomem, nostack),
        );
    }
    offset
}

/// The interrupted instruction's address.
pub(crate) fn pc(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64
}

/// The interrupted thread's stack pointer.
pub(crate) fn sp(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64
}

/// Whether a fault came of a store. The processor says so.
pub(crate) fn is_store(context: &libc::ucontext_t, _is_readable: fn(u64, u64) -> bool) -> bool {
    context.uc_mcontext.gregs[libc::REG_ERR as usize] & 2 != 0
}

/// Executes one instruction with the trap flag, whose handler must clear it. False: this processor
/// offers programs no such flag, and nothing was executed.
pub(crate) fn try_step() -> bool {
    // SAFETY: sets the trap flag for one instruction; the caller has installed the handler.
    unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop", "nop") };
    true
}

/// Makes the interrupted thread stop behind its next instruction, or go on.
pub(crate) fn set_stepping(context: &mut libc::ucontext_t, on: bool) {
    let flags = &mut context.uc_mcontext.gregs[libc::REG_EFL as usize];
    *flags = if on { *flags | TRAP_FLAG } else { *flags & !TRAP_FLAG };
}

/// The bytes of a repeated string instruction, by its registers: these begin at `address`. Only for
/// the instruction that was just interrupted.
pub(crate) fn repeated(context: &libc::ucontext_t, address: u64) -> Option<u64> {
    let registers = &context.uc_mcontext.gregs;
    let instruction = pc(context);
    // SAFETY: the instruction has just been executed; it is read only as far as it goes on.
    let byte = |at: u64| unsafe { *((instruction + at) as *const u8) };
    let mut at = 0;
    let (mut repeats, mut wide, mut half) = (false, false, false);
    while at < LONGEST_INSTRUCTION {
        match byte(at) {
            0xf2 | 0xf3 => repeats = true,
            0x66 => half = true,
            0x48..=0x4f => wide = true,
            _ => break,
        }
        at += 1;
    }
    let each = match byte(at) {
        0xa4 | 0xa6 | 0xaa | 0xac | 0xae => 1,
        0xa5 | 0xa7 | 0xab | 0xad | 0xaf if wide => 8,
        0xa5 | 0xa7 | 0xab | 0xad | 0xaf if half => 2,
        0xa5 | 0xa7 | 0xab | 0xad | 0xaf => 4,
        _ => return None,
    };
    let (source, target) = (registers[libc::REG_RSI as usize] as u64, registers[libc::REG_RDI as usize] as u64);
    let direction = registers[libc::REG_EFL as usize] & 0x400;
    (repeats && direction == 0 && (address == source || address == target))
        .then(|| (registers[libc::REG_RCX as usize] as u64).saturating_mul(each))
}

/// What the instruction at this address does to memory. `is_readable`: whether all bytes of a range
/// can be read.
pub(crate) fn operand(instruction: u64, is_readable: fn(u64, u64) -> bool) -> MachineAccess {
    let mut code = [0_u8; LONGEST_INSTRUCTION as usize];
    let readable = (1..=LONGEST_INSTRUCTION).rev().find(|len| is_readable(instruction, instruction + len));
    let Some(len) = readable else { return MachineAccess { bytes: 1, atomic: false } };
    // SAFETY: just found readable; code is not changed while it runs.
    unsafe { std::ptr::copy_nonoverlapping(instruction as *const u8, code.as_mut_ptr(), len as usize) };
    let decoded = Decoder::with_ip(64, &code[..len as usize], instruction, DecoderOptions::NONE).decode();
    let exchange =
        matches!(decoded.code(), Code::Xchg_rm8_r8 | Code::Xchg_rm16_r16 | Code::Xchg_rm32_r32 | Code::Xchg_rm64_r64);
    MachineAccess { bytes: (decoded.memory_size().size() as u64).max(1), atomic: decoded.has_lock_prefix() || exchange }
}

/// Whether the instruction at this address is an atomic operation on memory: it has the prefix, or
/// is an exchange. Allocates nothing.
pub(crate) fn is_atomic(instruction: u64, is_readable: fn(u64, u64) -> bool) -> bool {
    for at in instruction..instruction + LONGEST_INSTRUCTION {
        if !is_readable(at, at + 1) {
            return false;
        }
        // SAFETY: just found readable; code is not changed while it runs.
        match unsafe { *(at as *const u8) } {
            0xf0 => return true,
            // Other prefixes, REX last.
            0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64..=0x67 | 0x40..=0x4f => {}
            code => return matches!(code, 0x86 | 0x87),
        }
    }
    false
}

/// Whether [`blocks`] may be called.
#[inline]
pub(crate) fn has_blocks() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Sixteen sums of `len` bytes, a multiple of 128 that is not 0: of the words, plus the products of
/// their halves with a key, made of `A` and `B`, that goes on from block to block, so that blocks
/// that change places do not go unnoticed.
///
/// # Safety
/// [`has_blocks`] said so. The bytes can be read, and `at` is a multiple of 32.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn blocks<const A: u64, const B: u64>(at: u64, len: u64) -> [u64; 16] {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_mul_epu32, _mm256_set_epi64x, _mm256_setzero_si256, _mm256_srli_epi64,
        _mm256_xor_si256,
    };
    let words = |a: u64, b: u64, c: u64, d: u64| _mm256_set_epi64x(d as i64, c as i64, b as i64, a as i64);
    let mut key = words(A, B, A ^ B, !A);
    let step = words(B | 1, A, B ^ !A, A | 1 << 32);
    let mut sums = [_mm256_setzero_si256(); 4];
    for block in (at..at + len).step_by(128) {
        for (sum, from) in sums.iter_mut().zip((block..).step_by(32)) {
            // Volatile: the program may be writing at this moment, and any value is right then.
            // SAFETY: the caller's promise; aligned.
            let words = unsafe { (from as *const __m256i).read_volatile() };
            let keyed = _mm256_xor_si256(words, key);
            let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
            *sum = _mm256_add_epi64(_mm256_add_epi64(*sum, words), product);
        }
        key = _mm256_add_epi64(key, step);
    }
    // SAFETY: both are 128 bytes without padding, and any bits are words.
    unsafe { std::mem::transmute(sums) }
}

/// Up to which argument a system call that younger processors have in another form only may pass
/// addresses; 0: none.
pub(crate) fn arguments_of_older_call(number: i64) -> usize {
    match number {
        libc::SYS_open
        | libc::SYS_creat
        | libc::SYS_access
        | libc::SYS_unlink
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_poll
        | libc::SYS_pipe
        | libc::SYS_time => 1,
        libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_readlink
        | libc::SYS_rename
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_utime
        | libc::SYS_utimes
        | libc::SYS_epoll_wait
        | libc::SYS_getdents
        | libc::SYS_arch_prctl => 2,
        libc::SYS_select => 5,
        _ => 0,
    }
}

/// The body of a wrapper that jumps to the driver's function in a slot; `$find` gets the function's
/// number where there is none yet.
macro_rules! jump_to_slot {
    ($slots:path, $number:expr, $find:path) => {
        core::arch::naked_asm!(
            "lea r11, [rip + {slots}]",
            "mov r11, [r11 + {offset}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2: mov r11d, {index}",
            "jmp {find}",
            slots = sym $slots,
            offset = const $number as usize * size_of::<usize>(),
            index = const $number,
            find = sym $find,
        )
    };
}

/// What [`jump_to_slot`] jumps to: asks `$find` for the function and jumps there with every
/// argument register as it was.
macro_rules! find_and_jump {
    ($find:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 24",
            "movsd [rsp], xmm0",
            "movsd [rsp + 8], xmm1",
            "mov edi, r11d",
            "call {find}",
            "mov r11, rax",
            "movsd xmm0, [rsp]",
            "movsd xmm1, [rsp + 8]",
            "add rsp, 24",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp r11",
            find = sym $find,
        )
    };
}

/// The body of `dlsym`: `$pick` gets the two arguments and the return address. What it answers is
/// returned; null: jump to `$real`.
macro_rules! pick_or_jump_2 {
    ($pick:path, $real:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "mov rdx, [rsp + 16]",
            "sub rsp, 8",
            "call {pick}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "test rax, rax",
            "jnz 2f",
            "mov rax, [rip + {real}]",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2: ret",
            pick = sym $pick,
            real = sym $real,
        )
    };
}

/// As [`pick_or_jump_2`], with three arguments.
macro_rules! pick_or_jump_3 {
    ($pick:path, $real:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "mov rcx, [rsp + 24]",
            "call {pick}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "test rax, rax",
            "jnz 2f",
            "mov rax, [rip + {real}]",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2: ret",
            pick = sym $pick,
            real = sym $real,
        )
    };
}

/// The body of a wrapper with one argument that calls `$note` and jumps to what it answers.
macro_rules! note_then_jump {
    ($note:path) => {
        core::arch::naked_asm!(
            "push rdi",
            "call {note}",
            "pop rdi",
            "jmp rax",
            note = sym $note,
        )
    };
}

/// The body of a wrapper that gives its arguments to `$before` and jumps to what it answers. The
/// stack of a touch begins at this frame's caller: where that is, the directives say.
macro_rules! tell_then_jump {
    ($before:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 8",
            ".cfi_def_cfa_offset 64",
            "call {before}",
            "add rsp, 8",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            ".cfi_def_cfa_offset 8",
            "jmp rax",
            ".cfi_endproc",
            before = sym $before,
        )
    };
}

pub(crate) use {find_and_jump, jump_to_slot, note_then_jump, pick_or_jump_2, pick_or_jump_3, tell_then_jump};
