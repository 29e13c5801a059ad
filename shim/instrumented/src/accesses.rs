//! Loads and stores: what instrumented code calls before each.

use core::arch::naked_asm;
use core::ffi::c_void;

use crate::gate::{ATOMIC, GATE, GRANULE, KEY_SHIFT, READ, SET_SHIFT, TOUCH, WRITE, touch};
use crate::thread_sanitizer;

/// Functions that are told one address. Four instructions while nothing is asked, eight where no
/// device can reach the 64 KiB around it. Where one can, twenty-six if the run of this instruction
/// goes on: it is moved on here, as `shim/src/host/touches/runs.rs` lays out. Anything else is the
/// shim's to decide, if devices can reach the page. `$pc`: what puts the address of the access into
/// `rdx`.
macro_rules! accesses {
    ($($name:ident $bytes:literal $how:expr, $pc:literal;)*) => {$(
        /// An access is about to happen.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_address: *const c_void) {
            naked_asm!(
                "mov rcx, qword ptr [rip + {gate}]",
                "test rcx, rcx",
                "je 2f",
                "mov rax, rdi",
                "shr rax, {granule}",
                "cmp byte ptr [rcx + rax], 0",
                "jne 3f",
                "2:",
                "ret",
                "3:",
                $pc,
                // The set of its low byte: calls of one short loop never share one.
                "movzx ecx, dl",
                "shl ecx, {set}",
                "mov rax, qword ptr [rip + {gate} + 16]",
                "add rcx, qword ptr fs:[rax]",
                "cmp rcx, {set_of_null}",
                "jb 4f",
                "movabs rsi, {key}",
                "or rsi, rdx",
                "cmp qword ptr [rcx], rsi",
                "jne 4f",
                "cmp qword ptr [rcx + 8], rdi",
                "jne 4f",
                "mov esi, dword ptr [rip + {gate} + 24]",
                "cmp dword ptr [rcx + 24], esi",
                "jne 4f",
                "add rdi, qword ptr [rcx + 16]",
                "mov qword ptr [rcx + 8], rdi",
                "ret",
                "4:",
                "mov rax, qword ptr [rip + {gate} + 8]",
                "test rax, rax",
                "je 5f",
                "mov rcx, rdi",
                "shr rcx, 17",
                "mov ecx, dword ptr [rax + rcx * 4]",
                "mov r8d, edi",
                "shr r8d, 12",
                "bt ecx, r8d",
                "jnc 5f",
                "mov esi, {what}",
                "jmp qword ptr [rip + {touch}]",
                "5:",
                "ret",
                gate = sym GATE,
                touch = sym TOUCH,
                granule = const GRANULE as i32,
                set = const SET_SHIFT as i32,
                set_of_null = const (1 << (SET_SHIFT + 8)) as i32,
                key = const (($bytes << 3 | $how) << KEY_SHIFT) as i64,
                what = const ($bytes << 3 | $how) as i32,
            )
        }
    )*};
}

accesses! {
    __tsan_read1 1 READ, "mov rdx, qword ptr [rsp]";
    __tsan_read2 2 READ, "mov rdx, qword ptr [rsp]";
    __tsan_read4 4 READ, "mov rdx, qword ptr [rsp]";
    __tsan_read8 8 READ, "mov rdx, qword ptr [rsp]";
    __tsan_read16 16 READ, "mov rdx, qword ptr [rsp]";
    __tsan_write1 1 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_write2 2 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_write4 4 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_write8 8 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_write16 16 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read1_pc 1 READ, "mov rdx, rsi";
    __tsan_read2_pc 2 READ, "mov rdx, rsi";
    __tsan_read4_pc 4 READ, "mov rdx, rsi";
    __tsan_read8_pc 8 READ, "mov rdx, rsi";
    __tsan_read16_pc 16 READ, "mov rdx, rsi";
    __tsan_write1_pc 1 WRITE, "mov rdx, rsi";
    __tsan_write2_pc 2 WRITE, "mov rdx, rsi";
    __tsan_write4_pc 4 WRITE, "mov rdx, rsi";
    __tsan_write8_pc 8 WRITE, "mov rdx, rsi";
    __tsan_write16_pc 16 WRITE, "mov rdx, rsi";
    __tsan_unaligned_read1 1 READ, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read2 2 READ, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read4 4 READ, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read8 8 READ, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read16 16 READ, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_write1 1 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_write2 2 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_write4 4 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_write8 8 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_write16 16 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_write1 1 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_write2 2 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_write4 4 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_write8 8 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_write16 16 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read_write2 2 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read_write4 4 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read_write8 8 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_read_write16 16 WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_read1 1 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_read2 2 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_read4 4 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_read8 8 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_read16 16 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_write1 1 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_write2 2 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_write4 4 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_write8 8 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_volatile_write16 16 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_read2 2 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_read4 4 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_read8 8 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_read16 16 READ | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_write2 2 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_write4 4 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_write8 8 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_unaligned_volatile_write16 16 WRITE | ATOMIC, "mov rdx, qword ptr [rsp]";
    __tsan_vptr_read 8 READ, "mov rdx, qword ptr [rsp]";
    __tsan_vptr_update 8 WRITE, "mov rdx, qword ptr [rsp]";
}

/// Functions that are told a range. `$pc`: what puts the address of the access into `rdx`.
macro_rules! ranges {
    ($($name:ident $how:expr, $pc:literal;)*) => {$(
        /// An access is about to happen.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_address: *const c_void, _size: usize) {
            naked_asm!(
                "cmp qword ptr [rip + {gate} + 8], 0",
                "jne 3f",
                "ret",
                "3:",
                $pc,
                "mov ecx, {how}",
                "jmp {range}",
                gate = sym GATE,
                range = sym range,
                how = const $how as i32,
            )
        }
    )*};
}

ranges! {
    __tsan_read_range READ, "mov rdx, qword ptr [rsp]";
    __tsan_write_range WRITE, "mov rdx, qword ptr [rsp]";
    __tsan_read_range_pc READ, "nop";
    __tsan_write_range_pc WRITE, "nop";
}

extern "C" fn range(start: u64, len: u64, pc: u64, how: u64) {
    touch(start, len, how, pc);
}

/// Functions that say nothing of interest here.
macro_rules! silent {
    ($($name:ident)*) => {$(
        /// Nothing to note.
        ///
        /// # Safety
        /// Called by compilers' code.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!("ret")
        }
    )*};
}

silent! { __tsan_func_entry __tsan_func_exit }

/// An instrumented object of the process is being started.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    thread_sanitizer::start(__tsan_init as *mut c_void);
}
