//! What the threads of a grid keep while they launch work themselves (dynamic parallelism): buffers
//! for the parameters of what they launch, texts that they asked for, and their last errors.
//!
//! Owns that memory, which lasts as long as the grid. The functions that kernels call are in
//! `exec::device_runtime`; the driver keeps what was launched and decides when it runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Bytes of parameters that a kernel launched by a kernel may have (CUDA C++ Programming Guide,
/// dynamic parallelism).
pub(crate) const PARAMETERS: u64 = 4096;
const TEXTS: u64 = 1 << 20;
const RESERVED: u64 = 64 << 20;

/// WorkShape of a launch whose parameters are still being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkShape {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
}

#[derive(Default)]
struct State {
    /// What each buffer in use is for; `None` where the launch itself says it.
    used: HashMap<u64, Option<WorkShape>>,
    free: Vec<u64>,
    /// Buffers, bytes of text and handles given out so far.
    buffers: u64,
    text_bytes: u64,
    handles: u64,
    texts: HashMap<String, u64>,
    /// By block and thread.
    errors: HashMap<([u32; 3], [u32; 3]), u32>,
}

/// What the threads of one grid keep.
#[derive(Default)]
pub(crate) struct DeviceWorkState {
    /// Reserved when it is first needed; 0 when the system grants none.
    start: OnceLock<u64>,
    state: Mutex<State>,
}

impl DeviceWorkState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn reserve(&self) -> Option<u64> {
        let map = || {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
            // SAFETY: a new mapping wherever the system likes.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), RESERVED as usize, protection, flags, -1, 0) };
            if at == libc::MAP_FAILED { 0 } else { at as u64 }
        };
        Some(*self.start.get_or_init(map)).filter(|&start| start != 0)
    }

    /// True when all bytes up to `end` are in memory of this grid.
    pub(crate) fn holds(&self, address: u64, end: u64) -> bool {
        self.start.get().is_some_and(|&start| start != 0 && start <= address && end <= start + RESERVED)
    }

    /// A buffer for parameters; `None` when there is no room.
    pub(crate) fn buffer(&self, shape: Option<WorkShape>) -> Option<u64> {
        let start = self.reserve()?;
        let mut state = self.state();
        let at = match state.free.pop() {
            Some(at) => at,
            None if TEXTS + (state.buffers + 1) * PARAMETERS > RESERVED => return None,
            None => {
                state.buffers += 1;
                start + TEXTS + (state.buffers - 1) * PARAMETERS
            }
        };
        state.used.insert(at, shape);
        Some(at)
    }

    /// Takes a buffer back: what it was for, and its bytes. `None` when there is no such buffer.
    pub(crate) fn take(&self, at: u64) -> Option<(Option<WorkShape>, Vec<u8>)> {
        let mut state = self.state();
        let shape = state.used.remove(&at)?;
        // SAFETY: a buffer of this grid, which no other thread has been given; what threads store
        // there without being asked to is a race of the program.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, PARAMETERS as usize) }.to_vec();
        state.free.push(at);
        Some((shape, bytes))
    }

    /// A number for a stream or an event, unlike all others of the grid.
    pub(crate) fn handle(&self) -> u64 {
        let mut state = self.state();
        state.handles += 16;
        state.handles
    }

    /// The address of a text that kernels can read, with a zero behind it; 0 when there is no room.
    pub(crate) fn text(&self, text: &str) -> u64 {
        let Some(start) = self.reserve() else { return 0 };
        let mut state = self.state();
        if let Some(&at) = state.texts.get(text) {
            return at;
        }
        let at = start + state.text_bytes;
        let bytes = text.len() as u64 + 1;
        if state.text_bytes + bytes > TEXTS {
            return 0;
        }
        // SAFETY: the part of the mapping that nothing has been given yet. It is zero.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), at as *mut u8, text.len()) };
        state.text_bytes += bytes;
        state.texts.insert(text.to_owned(), at);
        at
    }

    /// Remembers what went wrong for a thread.
    pub(crate) fn failed(&self, thread: ([u32; 3], [u32; 3]), status: u32) {
        if status != 0 {
            self.state().errors.insert(thread, status);
        }
    }

    /// A thread's last error, 0 for none.
    pub(crate) fn last_error(&self, thread: ([u32; 3], [u32; 3]), forget: bool) -> u32 {
        let errors = &mut self.state().errors;
        if forget { errors.remove(&thread) } else { errors.get(&thread).copied() }.unwrap_or(0)
    }
}

impl Drop for DeviceWorkState {
    fn drop(&mut self) {
        if let Some(&start) = self.start.get()
            && start != 0
        {
            // SAFETY: the mapping of `reserve`; the grid has ended, and nothing else knows it.
            unsafe { libc::munmap(start as *mut libc::c_void, RESERVED as usize) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_with_what_was_written() {
        let work = DeviceWorkState::default();
        assert!(!work.holds(0, 8));
        let shape = WorkShape { function: 7, grid: [1; 3], block: [2; 3], shared: 3 };
        let (first, second) = (work.buffer(Some(shape)).unwrap(), work.buffer(None).unwrap());
        assert!(work.holds(first, first + PARAMETERS) && first != second);
        // SAFETY: a buffer just given out.
        unsafe { (first as *mut u64).write(9) };
        let (found, bytes) = work.take(first).unwrap();
        assert_eq!((found, bytes[0]), (Some(shape), 9));
        assert_eq!(work.take(first), None, "it is not there twice");
        assert_eq!(work.buffer(None), Some(first), "it is given out again");
    }

    #[test]
    fn errors_are_a_threads_own() {
        let work = DeviceWorkState::default();
        work.failed(([0; 3], [1, 0, 0]), 9);
        assert_eq!(work.last_error(([0; 3], [0; 3]), false), 0);
        assert_eq!(work.last_error(([0; 3], [1, 0, 0]), false), 9);
        assert_eq!(work.last_error(([0; 3], [1, 0, 0]), true), 9);
        assert_eq!(work.last_error(([0; 3], [1, 0, 0]), true), 0);
    }
}
