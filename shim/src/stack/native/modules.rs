//! The object files of the process: which one holds an address, its unwind information, and the
//! list for the trace.
//!
//! Owns all use of `dl_iterate_phdr` in stack capture. A module gets into the list when an address
//! in it is met for the first time, so the list holds exactly the modules that captured stacks
//! refer to. The list only grows; a module that took over the addresses of another one is a new
//! entry. Entries live in memory mapped for them and are never freed.
//!
//! Unwind information is read inside the callback of `dl_iterate_phdr`, that is, while no module
//! can go away. The lock that the loader holds meanwhile protects its list only; it is not the one
//! held while constructors run. Nothing is allocated with the program's allocator under it.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::arch;
use crate::stack::native::unwind_rule;
use crate::stack::native::unwind_rule::UnwindRule;
use crate::stack::native::{readable, rule_cache};

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const PF_R: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

/// Most modules kept; frames of further ones stay without a name.
const MOST: usize = 4096;

/// An object file mapped into the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModuleInfo {
    /// First address mapped.
    pub start: u64,
    /// One past the last address mapped.
    pub end: u64,
    /// What to subtract from an address to get the file's own virtual address.
    pub bias: u64,
    /// Path of the file, as bytes of the file system; `linux-vdso.so.1` for the kernel's own.
    pub path: &'static [u8],
    /// GNU build id, empty when there is none.
    pub build_id: &'static [u8],
}

static LIST: [AtomicPtr<ModuleInfo>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
#[unsafe(link_section = "streamsan_state")]
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Set while a thread appends. Never waited for.
static APPENDING: AtomicBool = AtomicBool::new(false);

/// Calls `visit` for every module that was added since `generation` (0: since the beginning),
/// oldest first, and gives the generation to ask with next time. A module comes after those whose
/// addresses it took over. When a capture has returned, the modules of its frames are in the list.
pub fn modules_since(generation: u32, mut visit: impl FnMut(&ModuleInfo)) -> u32 {
    let count = COUNT.load(Ordering::Acquire);
    for slot in &LIST[(generation as usize).min(count as usize)..count as usize] {
        // SAFETY: a slot below `COUNT` points to an entry that is never freed nor changed.
        if let Some(module) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            visit(module);
        }
    }
    count
}

/// How many modules the list holds: cheaper than [`modules_since`] to see that nothing is new.
#[inline]
pub fn generation() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// To be called after `dlclose` (and, at will, after `dlopen`): what was learnt about addresses is
/// forgotten. Modules that come and go unnoticed cost wrong frames at worst.
pub fn note_modules_changed() {
    rule_cache::forget_all();
}

/// Libraries whose frames count as our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Companion {
    /// `libstreamsan_host.so`.
    Instrumented = 0,
    /// `libstreamsan_mpi.so`.
    Mpi = 1,
}

/// An address in each of them; 0: it is not there.
static COMPANIONS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Frames of this library, which holds this address, are left out of stacks as our own are.
pub fn note_companion(companion: Companion, address: u64) {
    COMPANIONS[companion as usize].store(address, Ordering::Relaxed);
}

/// An address in Python's interpreter (its data do as well), once there is one: walks may end where
/// they get to it.
#[unsafe(link_section = "streamsan_state")]
static INTERPRETER: AtomicU64 = AtomicU64::new(0);

/// Says where Python's interpreter is.
pub fn note_interpreter(address: u64) {
    if INTERPRETER.swap(address, Ordering::Relaxed) != address {
        rule_cache::forget_all();
    }
}

/// See [`crate::stack::after_fork_in_child`].
pub fn after_fork_in_child() {
    APPENDING.store(false, Ordering::Relaxed);
}

/// Whether the modules are still those of the time when `rule`, an unknown one, was made.
#[cold]
#[inline(never)]
pub fn unchanged_since(rule: UnwindRule) -> bool {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: `info` is valid during the callback, `data` is the word below.
        unsafe { *data.cast::<u64>() = fingerprint(&*info) };
        1
    }
    let mut now = 0_u64;
    // SAFETY: the callback keeps to its contract.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut now).cast()) };
    UnwindRule::unknown(now).fingerprint() == rule.fingerprint()
}

/// A number that changes whenever a module comes or goes.
fn fingerprint(info: &libc::dl_phdr_info) -> u64 {
    info.dlpi_adds ^ info.dlpi_subs << 28
}

struct Search {
    pc: u64,
    rule: UnwindRule,
    keep: bool,
}

/// Works out the rule for the code at `pc`, and whether it may be kept.
pub fn find_rule(pc: u64) -> (UnwindRule, bool) {
    let mut search = Search { pc, rule: UnwindRule::unknown(0), keep: false };
    // SAFETY: errno is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: `visit` keeps to the contract of the callback; `search` outlives the call.
    unsafe {
        libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast());
        *libc::__errno_location() = errno;
    }
    (search.rule, search.keep)
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: both are valid during the callback, see `find_rule`.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader says so many headers are there.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    let bias = info.dlpi_addr;
    let inside = |header: &libc::Elf64_Phdr, address: u64| {
        header.p_type == PT_LOAD && address.wrapping_sub(bias.wrapping_add(header.p_vaddr)) < header.p_memsz
    };
    if !headers.iter().any(|header| inside(header, search.pc)) {
        search.rule = UnwindRule::unknown(fingerprint(info));
        search.keep = true;
        return 0;
    }
    // SAFETY: the module is loaded and stays so during the callback.
    search.keep = unsafe { note(info, headers) };
    search.rule =
        headers.iter().find(|header| header.p_type == PT_GNU_EH_FRAME).map_or(UnwindRule::NO_INFO, |header| {
            let at = bias.wrapping_add(header.p_vaddr);
            let segment_end = |address: u64| {
                let segment = headers.iter().find(|header| inside(header, address) && header.p_flags & PF_R != 0)?;
                Some(bias.wrapping_add(segment.p_vaddr) + segment.p_filesz.min(segment.p_memsz))
                    .filter(|end| *end > address)
            };
            if segment_end(at).is_none_or(|end| end - at < header.p_memsz) {
                return UnwindRule::NO_INFO;
            }
            // SAFETY: the header lies within a loaded, readable segment.
            let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, header.p_memsz as usize) };
            unwind_rule::compile(search.pc, bytes, at, segment_end)
        });
    if search.rule == UnwindRule::NO_INFO && is_sigreturn(search.pc) {
        search.rule = UnwindRule::SIGNAL;
    }
    let companions = COMPANIONS.each_ref().map(|address| address.load(Ordering::Relaxed));
    let is_own = |header: &libc::Elf64_Phdr| {
        inside(header, (&raw const APPENDING) as u64) || companions.iter().any(|address| inside(header, *address))
    };
    if headers.iter().any(is_own) {
        search.rule = search.rule.own();
    }
    let interpreter = INTERPRETER.load(Ordering::Relaxed);
    if interpreter != 0 && headers.iter().any(|header| inside(header, interpreter)) {
        search.rule = search.rule.interpreter();
    }
    1
}

/// Whether the code at `pc` returns from a signal handler, as C libraries write it.
fn is_sigreturn(pc: u64) -> bool {
    const CODE: &[u8] = &arch::SIGRETURN;
    // `pc` is a return address minus one here: the address that the kernel put there is the code's
    // first byte.
    let at = pc + 1;
    readable::is_readable(at)
        && readable::is_readable(at + CODE.len() as u64 - 1)
        // SAFETY: both ends are readable and span at most two pages.
        && unsafe { core::slice::from_raw_parts(at as *const u8, CODE.len()) } == CODE
}

// `inline(never)` here and in `rule` keeps buffers that are not needed at the same time from being
// on the stack at the same time: a cold capture may have to do with a few kilobytes.

/// Puts a module into the list unless it is there. False when another thread is changing the list
/// (or this one, below a signal).
///
/// # Safety
/// `info` and `headers` belong to a module that is loaded now and stays so during the call.
#[inline(never)]
unsafe fn note(info: &libc::dl_phdr_info, headers: &[libc::Elf64_Phdr]) -> bool {
    if APPENDING.swap(true, Ordering::Acquire) {
        return false;
    }
    let bias = info.dlpi_addr;
    let loads = || headers.iter().filter(|header| header.p_type == PT_LOAD);
    let start = loads().map(|header| bias.wrapping_add(header.p_vaddr) & !4095).min().unwrap_or(0);
    let end = loads().map(|header| bias.wrapping_add(header.p_vaddr).wrapping_add(header.p_memsz)).max().unwrap_or(0);
    // SAFETY: see above.
    let build_id = unsafe { build_id(bias, headers) };
    let count = COUNT.load(Ordering::Relaxed) as usize;
    let newest = LIST[..count].iter().rev().find_map(|slot| {
        // SAFETY: entries are never freed.
        unsafe { slot.load(Ordering::Relaxed).as_ref() }.filter(|module| module.start < end && start < module.end)
    });
    // SAFETY: null, or a C string of the loader.
    let name = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } }.to_bytes();
    // The kernel is asked for a path once: a sandbox may forbid it later. There is one executable,
    // and a build id names a file.
    let is_known = |path: &[u8]| name.is_empty() || !build_id.is_empty() || path == name;
    let same = newest.is_some_and(|module| {
        (module.start, module.end, module.bias, module.build_id) == (start, end, bias, build_id)
            && is_known(module.path)
    });
    if !same && count < MOST {
        let mut buffer = [0_u8; 1024];
        let path = path(name, start, &mut buffer);
        if newest.is_some() {
            // Rules of the module that was here before are still kept for these addresses.
            rule_cache::forget_all();
        }
        let kept = arena::keep(path).zip(arena::keep(build_id));
        if let Some((path, build_id)) = kept
            && let Some(entry) = arena::place(ModuleInfo { start, end, bias, path, build_id })
        {
            LIST[count].store(entry, Ordering::Relaxed);
            COUNT.store(count as u32 + 1, Ordering::Release);
        }
    }
    APPENDING.store(false, Ordering::Release);
    true
}

/// # Safety
/// As for [`note`]. The result is valid as long as the module.
unsafe fn build_id<'a>(bias: u64, headers: &[libc::Elf64_Phdr]) -> &'a [u8] {
    for header in headers.iter().filter(|header| header.p_type == PT_NOTE) {
        let at = bias.wrapping_add(header.p_vaddr);
        // SAFETY: notes are part of a loaded segment.
        let mut notes = unsafe { core::slice::from_raw_parts(at as *const u8, header.p_filesz as usize) };
        let align = if header.p_align == 8 { 8 } else { 4 };
        while let Some((head, rest)) = notes.split_at_checked(12) {
            let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let (name_len, len, kind) = (word(0) as usize, word(4) as usize, word(8));
            // Alignment counts from the note's start, whose header is 12 bytes.
            let padded = |len: usize| (12 + len).next_multiple_of(align) - 12;
            let name_end = padded(name_len);
            let Some(content) = rest.get(name_end..).and_then(|rest| rest.get(..len)) else { break };
            if kind == NT_GNU_BUILD_ID && rest.get(..name_len) == Some(b"GNU\0") && len <= 64 {
                return content;
            }
            let next = name_end + len.next_multiple_of(align);
            notes = rest.get(next..).unwrap_or_default();
        }
    }
    &[]
}

/// The path of a module: what the loader says when that is absolute, else what the kernel says.
#[inline(never)]
fn path<'a>(name: &[u8], start: u64, buffer: &'a mut [u8; 1024]) -> &'a [u8] {
    let mut len = 0;
    if name.first() != Some(&b'/') && (name.is_empty() || name.contains(&b'/')) {
        len = mapped_file(start, buffer) as isize;
    }
    if len == 0 && name.is_empty() {
        // SAFETY: writes at most the length given.
        let link = |link: &CStr| unsafe { libc::readlink(link.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
        // By this thread: the main thread may have ended. Kernels before 3.17 know only that.
        len = [c"/proc/thread-self/exe", c"/proc/self/exe"].map(link).into_iter().max().unwrap_or(0);
    }
    if len > 0 {
        return &buffer[..len as usize];
    }
    let len = name.len().min(buffer.len());
    buffer[..len].copy_from_slice(&name[..len]);
    &buffer[..len]
}

/// Reads the path of the file mapped at `start` out of the process's `maps` and gives its length; 0
/// when there is none.
#[inline(never)]
fn mapped_file(start: u64, buffer: &mut [u8; 1024]) -> usize {
    // SAFETY: plain system calls on a file of our own.
    unsafe {
        let open = |path: &CStr| libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let file = match open(c"/proc/thread-self/maps") {
            by_thread if by_thread >= 0 => by_thread,
            _ => open(c"/proc/self/maps"),
        };
        if file < 0 {
            return 0;
        }
        let mut chunk = [0_u8; 1024];
        let mut line = [0_u8; 1024];
        let mut line_len = 0;
        let mut found = 0;
        'file: loop {
            let got = libc::read(file, chunk.as_mut_ptr().cast(), chunk.len());
            if got <= 0 {
                break;
            }
            for byte in &chunk[..got as usize] {
                if *byte != b'\n' {
                    if line_len < line.len() {
                        line[line_len] = *byte;
                        line_len += 1;
                    }
                    continue;
                }
                let text = &line[..line_len];
                line_len = 0;
                let from = text
                    .iter()
                    .map_while(|byte| char::from(*byte).to_digit(16))
                    .fold(0_u64, |value, digit| value << 4 | u64::from(digit));
                if from == start {
                    if let Some(at) = text.iter().position(|byte| *byte == b'/') {
                        found = text.len() - at;
                        buffer[..found].copy_from_slice(&text[at..]);
                    }
                    break 'file;
                }
            }
        }
        libc::close(file);
        found
    }
}

/// Memory for the entries: mapped in chunks, never given back. Used by the thread that has set
/// [`APPENDING`].
mod arena {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    const CHUNK: u64 = 64 << 10;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static END: AtomicU64 = AtomicU64::new(0);

    fn take(len: usize) -> Option<*mut u8> {
        let len = (len as u64).next_multiple_of(8);
        if END.load(Relaxed) - NEXT.load(Relaxed) < len {
            let size = len.max(CHUNK);
            // SAFETY: a fresh anonymous mapping.
            let at = unsafe {
                libc::mmap(
                    core::ptr::null_mut(),
                    size as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                return None;
            }
            NEXT.store(at as u64, Relaxed);
            END.store(at as u64 + size, Relaxed);
        }
        Some(NEXT.fetch_add(len, Relaxed) as *mut u8)
    }

    /// A copy of `bytes` that is never freed.
    pub(super) fn keep(bytes: &[u8]) -> Option<&'static [u8]> {
        let to = take(bytes.len())?;
        // SAFETY: `to` has room for them and has no other user.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            Some(core::slice::from_raw_parts(to, bytes.len()))
        }
    }

    /// A copy of `value` that is never freed.
    pub(super) fn place<T: Copy>(value: T) -> Option<*mut T> {
        const { assert!(align_of::<T>() <= 8) };
        let to = take(size_of::<T>())?.cast::<T>();
        // SAFETY: room for it, aligned to 8.
        unsafe { to.write(value) };
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_code_of_the_c_library_has_a_rule() {
        let inside = libc::qsort as *const () as u64;
        find_rule(inside);
        let mut range = None;
        let generation = modules_since(0, |module| {
            if module.start <= inside && inside < module.end {
                assert!(module.path.starts_with(b"/") && !module.build_id.is_empty(), "{module:?}");
                range = Some(*module);
            }
        });
        let module = range.expect("a module that was asked for is in the list");
        // Some code around a function that is certainly code.
        let (mut with, mut without) = (0, 0);
        for pc in (inside - 0x10000..inside + 0x80000).step_by(53) {
            assert!(module.start < pc && pc < module.end);
            let (rule, keep) = find_rule(pc);
            assert!(keep && !rule.is_unknown() && !rule.is_own());
            if rule == UnwindRule::NO_INFO { without += 1 } else { with += 1 }
        }
        assert!(without * 10 < with, "{without} of {with}: padding between functions, hardly more");
        assert_eq!(modules_since(generation, |module| panic!("{module:?} twice")), generation);
    }

    #[test]
    fn addresses_in_no_module() {
        let heap = Box::new(0_u64);
        for address in [0, 8, &raw const *heap as u64, u64::MAX] {
            let (rule, keep) = find_rule(address);
            assert!(keep && rule.is_unknown() && unchanged_since(rule), "{address:#x}");
        }
    }

    #[test]
    fn errno_stays() {
        // SAFETY: the thread's own errno.
        unsafe {
            *libc::__errno_location() = 33;
            find_rule(main_of_this_test as *const () as u64);
            assert_eq!(*libc::__errno_location(), 33);
        }
    }

    fn main_of_this_test() {}

    #[test]
    fn a_path_is_read_from_the_kernel_s_map() {
        let mut start = 0;
        find_rule(main_of_this_test as *const () as u64);
        modules_since(0, |module| {
            if (module.start..module.end).contains(&(main_of_this_test as *const () as u64)) {
                start = module.start;
            }
        });
        let mut buffer = [0; 1024];
        let len = mapped_file(start, &mut buffer);
        let exe = std::env::current_exe().expect("own path");
        assert_eq!(core::str::from_utf8(&buffer[..len]).ok(), exe.to_str());
        assert_eq!(mapped_file(start + 1, &mut buffer), 0);
    }
}
