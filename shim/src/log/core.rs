//! The running log of a process: the lock, and what lies beside it.
//!
//! Owns [`Core`], which every op reaches by way of [`super::start::core`]: the options, the handle
//! tables and the lock around [`Shared`]. Everything slow (unwinding, asking the driver, reading
//! images) happens before the lock is taken. What happens under it is in [`super::shared`].

use std::sync::atomic::{AtomicU32, Ordering};

use signal_free::descriptors::own_proc;
use trace::ring::Header;
use trace::{NoteKind, Op, ThreadId};

use super::shared::{self, Shared};
use super::{call_names, stacks};
use crate::handles::tables::Handles;
use crate::host::read_budget::ReadBudget;
use crate::host::touches::{self, runs};
use crate::host::watches::Watches;
use crate::host::{held_touches, holds, page_protection, unwatched};
use crate::real::driver::real;
use crate::real::driver_mapping::OTHER_DRIVERS;
use crate::real::{mpi, reach};
use crate::runtime::attach::Attached;
use crate::runtime::lock::{Held, Lock, tid};
use crate::runtime::options::{self, Options};
use crate::runtime::{guard, lifecycle};
use crate::stack::stack_ids::StackIds;

/// Bytes that are kept of the name of the region that a process was started in, as of other ranges.
const MAX_REGION: usize = 200;

/// The running shim.
pub struct Core {
    /// The user's options.
    pub options: Options,
    /// Handle tables.
    pub handles: Handles,
    /// How much of the host's memory may be read.
    pub read_budget: ReadBudget,
    /// Whether exit waits for the report.
    pub own_analyzer: bool,
    /// Which stack a known walk is.
    pub stack_ids: StackIds,
    threads: AtomicU32,
    shared: Lock<Shared>,
    /// Held from when touches leave their queues until they are in the log: what another thread
    /// logs meanwhile may be ordered behind them by the program. Taken before `shared`.
    draining: Lock<()>,
    header: *const Header,
}

// SAFETY: header points into the ring, which is never unmapped; its fields are atomic. The rest is
// Sync by itself.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

impl Core {
    /// Takes over a fresh connection.
    pub fn new(options: Options, attached: Attached) -> Self {
        let header: *const Header = attached.producer.ring().header();
        let watches = Watches::new(options.host_accesses);
        let stack_ids = StackIds::default();
        let host_threads = options.host_threads;
        runs::forget_all();
        touches::set_thread_order(host_threads);
        Self {
            options,
            handles: Handles::default(),
            read_budget: ReadBudget::default(),
            own_analyzer: attached.own_analyzer,
            stack_ids,
            threads: AtomicU32::new(0),
            shared: Lock::new(Shared::new(attached.producer, watches, stack_ids, host_threads)),
            draining: Lock::new(()),
            header,
        }
    }

    /// The ring's shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: points into the ring, which is never unmapped.
        unsafe { &*self.header }
    }

    /// The first record: who writes.
    pub fn introduce(&self) {
        let exe = std::fs::read_link(own_proc("exe")).map(|p| p.into_os_string()).unwrap_or_default();
        let args = std::fs::read(own_proc("cmdline")).unwrap_or_default();
        let cwd = std::env::current_dir().map(|p| p.into_os_string()).unwrap_or_default();
        let mut driver: i32 = 0;
        let _ = real!(cuDriverGetVersion(&raw mut driver => *mut i32));
        let op = Op::Process {
            pid: std::process::id(),
            // SAFETY: getppid has no preconditions.
            parent: unsafe { libc::getppid() } as u32,
            exe: trace::codec::Text(exe.as_encoded_bytes()),
            args: trace::codec::Text(&args[..args.len().min(8192)]),
            cwd: trace::codec::Text(cwd.as_encoded_bytes()),
            driver: driver as u32,
        };
        if let Some(mut shared) = self.lock() {
            shared.define(&op);
            if self.options.host_threads {
                shared.log(call_names::HOST_THREADS, ThreadId::NONE, None, &Op::HostThreads {});
            }
            // Ranges of NVTX are numbered from 1 on.
            if let Some(name) = options::region().filter(|name| !name.is_empty()) {
                let name = trace::codec::Text(&name[..name.len().min(MAX_REGION)]);
                let op = Op::RangeStart { range: 0, name, domain: trace::codec::Text(&[]) };
                shared.log(call_names::PROGRAM, ThreadId::NONE, None, &op);
            }
        }
    }

    /// Logs the touches of protected pages that were seen since the last time. When it returns,
    /// those are in the log, too, that another thread has taken out of the queues.
    #[cold]
    pub fn log_touches(&self) {
        let Ok(_draining) = self.draining.lock() else {
            return lifecycle::switch_off(format_args!("a thread was killed inside a hook"));
        };
        page_protection::drain(|touch| {
            let Some(mut shared) = self.lock() else { return };
            let (start, end) = (touch.address, touch.address.saturating_add(1));
            let op = Op::HostAccess { watch: touch.watch, start, end, writes: touch.writes, in_the_act: true };
            let frames = self.options.stacks.then_some(&touch.frames);
            let thread = ThreadId(touch.thread & 0x00ff_ffff);
            if touch.waits_met {
                shared.log(call_names::HOST_ACCESS, thread, frames, &Op::WaitsMet { watch: touch.watch });
            }
            shared.log(call_names::HOST_ACCESS, thread, frames, &op);
            // What there is to say of this copy has been said.
            shared.watches.end(touch.watch);
        });
        held_touches::drain(|op, thread, frames| {
            let Some(mut shared) = self.lock() else { return };
            let frames = self.options.stacks.then_some(frames);
            shared.log(call_names::HOST_ACCESS, ThreadId(thread & 0x00ff_ffff), frames, op);
        });
    }

    /// The last records: what could not be observed.
    pub fn say_goodbye(&self) {
        self.log_touches();
        if let Some(mut shared) = self.lock() {
            shared.end_runs();
        }
        // The end of the process: whatever it has under way ends with it.
        if shared::has_time()
            && let Some(mut shared) = self.lock()
        {
            shared.log_time();
        }
        let others = OTHER_DRIVERS.load(Ordering::Relaxed) as u64;
        let untold = self.lock().map_or(0, |shared| shared.untold_touches());
        let counts = [
            (untold, "touches of the host while a graph with host functions may have run"),
            (
                self.read_budget.uncompared(),
                "sources of pending copies, which were not compared (that may take a hundredth of the run)",
            ),
            (page_protection::LOST.load(Ordering::Relaxed), "touches of host memory"),
            (holds::ended(), "touches of host memory that kernels use in place, after too many pages"),
            (holds::left_open(), "touches of a page of host memory, until the next call, after many of them"),
            (unwatched::missed(), "touches of host memory where stacks, locks or protections of the program lie"),
            (guard::SKIPPED.load(Ordering::Relaxed), "calls made inside a hook (by a signal handler)"),
            (others, "functions looked up in a second driver (dlmopen, another library in front of it)"),
            (u64::from(mpi::is_unobserved()), "MPI's calls (LD_PRELOAD lacks libstreamsan_mpi.so)"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        for (count, text) in counts.chain(reach::stepped_aside()) {
            if let Some(mut shared) = self.lock() {
                let op = Op::Note { kind: NoteKind::Unobserved, text: text.into(), count };
                shared.define(&op);
            }
        }
    }

    /// Takes the lock; `None` (and the shim is off) when its owner was killed while holding it.
    #[inline]
    pub fn lock(&self) -> Option<Held<'_, Shared>> {
        match self.shared.lock() {
            Ok(held) => Some(held),
            Err(_) => {
                lifecycle::switch_off(format_args!("a thread was killed inside a hook"));
                None
            }
        }
    }

    /// Host threads that have made calls.
    pub fn thread_count(&self) -> u32 {
        self.threads.load(Ordering::Relaxed)
    }

    /// A number for a thread that makes its first call; logs its definition.
    pub fn new_thread(&self) -> ThreadId {
        stacks::look_for_python();
        let id = ThreadId(self.threads.fetch_add(1, Ordering::Relaxed) + 1);
        let mut name = [0_u8; 16];
        // SAFETY: PR_GET_NAME writes up to 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let op = Op::Thread { id, tid: tid() as u32, name: trace::codec::Text(&name[..len]) };
        if let Some(mut shared) = self.lock() {
            shared.define(&op);
        }
        id
    }
}
