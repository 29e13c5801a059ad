//! x86-64.

use core::arch::{asm, naked_asm};

/// Bits of the addresses that programs have: four levels of page tables.
pub(crate) const ADDRESSES: u32 = 47;
/// Bits to shift the low byte of the address of an instruction by to get its place in the table of
/// a thread: sets of four runs of 64 bytes each.
pub(crate) const SET_SHIFT: u32 = 8;
/// Where what an instruction does lies in the key of its run, above its address.
pub(crate) const KEY_SHIFT: u32 = 48;

/// The body of a function that is told the address of an access. Four instructions while nothing
/// is asked, eight where no device can reach the 64 KiB around it. Where one can, twenty-six if the
/// run of this instruction goes on: it is moved on here, as `shim/src/host/touches/runs.rs` lays
/// out.
/// Anything else is the shim's to decide, if devices can reach the page. The address of the access
/// is the return address (`caller`) or the second argument (`given`).
macro_rules! tell_access {
    ($gate:path, $touch:path, $what:expr, caller) => {
        $crate::arch::tell_access!(@ $gate, $touch, $what, "mov rdx, qword ptr [rsp]")
    };
    ($gate:path, $touch:path, $what:expr, given) => {
        $crate::arch::tell_access!(@ $gate, $touch, $what, "mov rdx, rsi")
    };
    (@ $gate:path, $touch:path, $what:expr, $pc:literal) => {
        core::arch::naked_asm!(
            "mov rcx, qword ptr [rip + {gate} + 8]",
            "test rcx, rcx",
            "je 2f",
            "mov rax, rdi",
            "shr rax, 16",
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
            "mov rax, qword ptr [rip + {gate}]",
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
            gate = sym $gate,
            touch = sym $touch,
            set = const $crate::arch::SET_SHIFT as i32,
            set_of_null = const (1 << ($crate::arch::SET_SHIFT + 8)) as i32,
            key = const (($what) as i64) << $crate::arch::KEY_SHIFT,
            what = const ($what) as i32,
        )
    };
}

/// The body of a function that is told a range: goes to `$range` with the address of the access and
/// `$how`, while anything is asked.
macro_rules! tell_range {
    ($gate:path, $range:path, $how:expr, caller) => {
        $crate::arch::tell_range!(@ $gate, $range, $how, "mov rdx, qword ptr [rsp]")
    };
    ($gate:path, $range:path, $how:expr, given) => {
        $crate::arch::tell_range!(@ $gate, $range, $how, "nop")
    };
    (@ $gate:path, $range:path, $how:expr, $pc:literal) => {
        core::arch::naked_asm!(
            "cmp qword ptr [rip + {gate}], 0",
            "jne 3f",
            "ret",
            "3:",
            $pc,
            "mov ecx, {how}",
            "jmp {range}",
            gate = sym $gate,
            range = sym $range,
            how = const $how as i32,
        )
    };
}

macro_rules! no_room {
    () => {
        "streamsan: no room for 2 GiB of addresses (ulimit -v?): compile without streamsan_inline.s, or give room"
    };
}

/// The functions behind the symbols of code that asks in line. The first one makes the room, by
/// system calls; where there is none, no such code can run: it says so and ends the process.
macro_rules! inline_symbols {
    ($gate:path, $room:path) => {
        /// Answers with the bytes of the granules.
        ///
        /// # Safety
        /// Called by the loader.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn __streamsan_granules() {
            core::arch::naked_asm!(
                ".type __streamsan_granules, @gnu_indirect_function",
                "mov dword ptr [rip + {gate} + {asked}], 1",
                "mov rax, qword ptr [rip + {gate} + {room}]",
                "test rax, rax",
                "jne 2f",
                "xor edi, edi",
                "mov esi, {size}",
                "mov edx, {rights}",
                "mov r10d, {flags}",
                "mov r8, -1",
                "xor r9d, r9d",
                "mov eax, {mmap}",
                "syscall",
                "cmp rax, -4095",
                "jae 3f",
                "mov rcx, rax",
                "xor eax, eax",
                "lock cmpxchg qword ptr [rip + {gate} + {room}], rcx",
                // Another thread was faster: its room is the answer. This one stays, never used.
                "cmove rax, rcx",
                "2:",
                "ret",
                "3:",
                "mov edi, {stderr}",
                "lea rsi, [rip + 4f]",
                "mov edx, {length}",
                "mov eax, {write}",
                "syscall",
                "mov edi, 126",
                "mov eax, {exit}",
                "syscall",
                "ud2",
                "4:",
                concat!(".ascii \"", $crate::arch::no_room!(), "\\n\""),
                gate = sym $gate,
                asked = const core::mem::offset_of!($crate::gate::Gate, is_asked_inline),
                room = const core::mem::offset_of!($crate::gate::Gate, room),
                size = const $room as i64,
                // The shim makes writable what it needs: `mlockall` gives memory to all that is.
                rights = const libc::PROT_READ,
                flags = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                mmap = const libc::SYS_mmap as i32,
                write = const libc::SYS_write as i32,
                exit = const libc::SYS_exit_group as i32,
                stderr = const libc::STDERR_FILENO,
                length = const $crate::arch::no_room!().len() as i32 + 1,
            )
        }

        /// Answers with the gate, as version 1 of `include/streamsan_inline.s` knows it.
        ///
        /// # Safety
        /// Called by the loader.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn __streamsan_gate_1() {
            core::arch::naked_asm!(
                ".type __streamsan_gate_1, @gnu_indirect_function",
                "lea rax, [rip + {gate}]",
                "ret",
                gate = sym $gate,
            )
        }
    };
}

/// The body of a function that says nothing of interest.
macro_rules! just_return {
    () => {
        core::arch::naked_asm!("ret")
    };
}

/// The body of a wrapper of up to four arguments, that tells `$told` (while anything is asked) of
/// the first three and of the return address, and goes to the real function.
macro_rules! tell_then_jump {
    ($gate:path, $real:path, $told:path) => {
        core::arch::naked_asm!(
            "cmp qword ptr [rip + {gate}], 0",
            "jne 3f",
            "jmp qword ptr [rip + {real}]",
            "3:",
            // The arguments are kept while the shim is told; the stack is aligned by that.
            ".cfi_startproc",
            "push rdi", ".cfi_adjust_cfa_offset 8",
            "push rsi", ".cfi_adjust_cfa_offset 8",
            "push rdx", ".cfi_adjust_cfa_offset 8",
            "push rcx", ".cfi_adjust_cfa_offset 8",
            "mov rcx, qword ptr [rsp + 32]",
            "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
            "call {told}",
            "add rsp, 8", ".cfi_adjust_cfa_offset -8",
            "pop rcx", ".cfi_adjust_cfa_offset -8",
            "pop rdx", ".cfi_adjust_cfa_offset -8",
            "pop rsi", ".cfi_adjust_cfa_offset -8",
            "pop rdi", ".cfi_adjust_cfa_offset -8",
            "jmp qword ptr [rip + {real}]",
            ".cfi_endproc",
            gate = sym $gate,
            real = sym $real,
            told = sym $told,
        )
    };
}

pub(crate) use {inline_symbols, just_return, no_room, tell_access, tell_range, tell_then_jump};

/// `memmove`, made of instructions that no compiler turns into a call of it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn move_bytes() {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdx",
        "mov r8, rdi",
        "sub r8, rsi",
        "cmp r8, rdx",
        "jb 2f",
        "rep movsb",
        "ret",
        "2:",
        "lea rdi, [rdi + rcx - 1]",
        "lea rsi, [rsi + rcx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
    )
}

/// As [`move_bytes`], for `memset`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn set_bytes() {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}

/// Compares 16 bytes with `expected` and replaces them by `value` if they are equal; answers what
/// was there.
///
/// # Safety
/// The address is valid, may be written and is a multiple of 16.
pub(crate) unsafe fn exchange_16(a: *mut u128, expected: u128, value: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // SAFETY: the caller's promise; every processor that runs CUDA has the instruction. It wants a
    // part of the value in rbx, which the compiler keeps for itself.
    unsafe {
        asm!(
            "mov r8, rbx",
            "mov rbx, rsi",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "mov rbx, r8",
            in("rdi") a,
            in("rsi") value as u64,
            in("rcx") (value >> 64) as u64,
            inout("rax") low,
            inout("rdx") high,
            out("r8") _,
            options(nostack),
        );
    }
    u128::from(high) << 64 | u128::from(low)
}
