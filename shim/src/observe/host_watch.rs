//! The host's own accesses to memory that copies still use: no call tells of them, so they are
//! looked for.
//!
//! [`watch`] compares what the source of a copy looked like when the copy was enqueued with what it
//! looks like when the host is ordered after it: a change is a write of the host that nothing
//! ordered. On request [`pages`] are taken from the CPU while a copy uses them: then every touch is
//! seen when it happens, reads too. Owns the way from calls to the watches, and what looking may
//! cost; what a change is worth is decided by the analyzer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_sys::CUgraphExec;
use trace::{Epoch, GraphExecId, HostFuncId, Op, Region, StreamId};

use crate::host::watches::{Look, Watches};
use crate::log::core::Core;
use crate::observe::context::Cx;
use crate::stack::native::is_readable_range;

/// Where pinned memory lies, all of it: most copies are told by two comparisons to have nothing to
/// do with it.
static LOWEST: AtomicU64 = AtomicU64::new(u64::MAX);
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// Pinned memory has come or gone.
pub fn note_bounds(watches: &Watches) {
    let (start, end) = watches.bounds();
    LOWEST.store(start, Ordering::Relaxed);
    HIGHEST.store(end, Ordering::Relaxed);
}

fn may_be_pinned(region: &Region) -> bool {
    region.array.is_none()
        && region.start >= LOWEST.load(Ordering::Relaxed)
        && region.start < HIGHEST.load(Ordering::Relaxed)
}

/// What summing up may cost: large sources are read in full as long as all of it takes less than
/// one part in 250 of the run, so that short programs are seen in full and long ones do not notice.
pub struct Allowance {
    began: Instant,
    spent: AtomicU64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { began: Instant::now(), spent: AtomicU64::new(0) }
    }
}

impl Allowance {
    /// Nanoseconds that are there from the beginning.
    const START: u64 = 8_000_000;
    /// Of so many nanoseconds of the run one may be spent.
    const SHARE: u64 = 250;
    /// Most bytes read of write-combined memory, which comes at some 100 MB/s.
    const WRITE_COMBINED: u64 = 2048;

    /// How many bytes to sum up of so many; 0: all.
    fn most(&self, bytes: u64, write_combined: bool, sample: u64) -> u64 {
        if write_combined {
            return Self::WRITE_COMBINED.min(sample);
        }
        if bytes <= sample {
            return 0;
        }
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Twice, at 8 bytes a nanosecond.
        let cost = bytes.saturating_mul(2) / 8;
        let allowed = Self::START.saturating_add(elapsed / Self::SHARE);
        if self.spent.load(Ordering::Relaxed).saturating_add(cost) <= allowed { 0 } else { (sample / 4).max(1) }
    }

    fn spend(&self, since: Instant) {
        let spent = u64::try_from(since.elapsed().as_nanos()).unwrap_or(0);
        self.spent.fetch_add(spent, Ordering::Relaxed);
    }
}

/// The graph whose node reads, and which node, counted from 1.
pub type Node = (GraphExecId, u32);

impl Cx<'_> {
    /// Work at `epoch`, the op logged last, reads these bytes: when they are pinned memory, they
    /// are watched until it is over.
    pub fn watch_source(&mut self, epoch: Epoch, stream: StreamId, node: Node, region: &Region) {
        if !may_be_pinned(region) {
            return;
        }
        let Some(core) = self.core().filter(|core| core.options.host_writes) else { return };
        let Some(look) = self.begin_watch(core, epoch, stream, node, region, false) else { return };
        // Older work that still reads these bytes: the host has just said that they are ready for
        // more, so now is the time to look.
        let (mut known, mut after, mut seed) = (None, 0, look.seed);
        while let Some(old) = core.lock().and_then(|mut s| s.watches.next_reused(region, look.id, after)) {
            after = old.id;
            let now = see(core, &old);
            if old.region == look.region && old.most == look.most {
                (known, seed) = (now, old.seed);
            }
            self.conclude(core, &old, now, true);
        }
        if known.is_none() {
            seed = look.seed;
        }
        let sums = known.or_else(|| see(core, &look));
        let protects = may_protect(core);
        if let Some(mut shared) = core.lock() {
            let shared = &mut *shared;
            if shared.watches.ready(&shared.engine, look.id, seed, sums) {
                shared.watches.supersede(look.id);
                if protects {
                    shared.watches.protect(look.id);
                }
            }
        }
    }

    /// Work at `epoch`, the op logged last, writes these bytes: when they are pinned memory,
    /// touches of the CPU are looked for until it is over.
    pub fn watch_target(&mut self, epoch: Epoch, stream: StreamId, node: Node, region: &Region) {
        if !may_be_pinned(region) {
            return;
        }
        let Some(core) = self.core().filter(|core| may_protect(core)) else { return };
        let Some(look) = self.begin_watch(core, epoch, stream, node, region, true) else { return };
        if let Some(mut shared) = core.lock() {
            shared.watches.supersede(look.id);
            shared.watches.protect(look.id);
        }
    }

    fn begin_watch(
        &mut self,
        core: &'static Core,
        epoch: Epoch,
        stream: StreamId,
        (exec, node): Node,
        region: &Region,
        writes: bool,
    ) -> Option<Look> {
        let thread = self.thread();
        let mut shared = core.lock()?;
        let shared = &mut *shared;
        // Somebody has waited since the op was logged: what the device wrote meanwhile can not be
        // told from the host's writes.
        if shared.engine.host_changes() != self.known() {
            return None;
        }
        let most = |bytes, combined| core.allowance.most(bytes, combined, core.options.host_sample);
        let look = shared.watches.begin(&shared.engine, epoch, region, writes, most)?;
        let op = Op::HostWatch { watch: look.id, stream, exec, node, region: *region, writes };
        shared.log(self.call, thread, self.captured_frames(), &op);
        Some(look)
    }

    /// Looks at the watches that have just ended. `func`: a host function begins, which knows more
    /// than the host threads.
    #[cold]
    pub fn look_at_ended(&mut self, func: Option<HostFuncId>) {
        let Some(core) = self.core() else { return };
        loop {
            let next = core.lock().and_then(|mut shared| {
                let shared = &mut *shared;
                shared.watches.next_ended(&shared.engine, func)
            });
            let Some(look) = next else { return };
            let now = see(core, &look);
            self.conclude(core, &look, now, false);
        }
    }

    /// A look is over: says what changed.
    fn conclude(&mut self, core: &'static Core, look: &Look, now: Option<crate::host::checksum::Sums>, goes_on: bool) {
        let changed = |watches: &Watches| now.as_ref().and_then(|now| watches.changed(look.id, now));
        let Some(mut shared) = core.lock() else { return };
        if changed(&shared.watches).is_none() {
            return shared.watches.settle(look.id, goes_on && now.is_some());
        }
        drop(shared);
        // Another thread may have enqueued work that writes here and not have come to log it.
        if core.thread_count() > 1 {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.with_full_stack(core);
        let thread = self.thread();
        let Some(mut shared) = core.lock() else { return };
        if let Some((start, end)) = changed(&shared.watches) {
            let op = Op::HostAccess { watch: look.id, start, end, writes: true, in_the_act: false };
            shared.log(self.call, thread, self.captured_frames(), &op);
        }
        shared.watches.settle(look.id, false);
    }

    /// A copy is about to write here.
    pub fn device_will_write(&mut self, region: &Region) {
        if may_be_pinned(region)
            && let Some(mut shared) = self.core().and_then(Core::lock)
            && !shared.watches.is_empty()
        {
            shared.watches.forget(region.start, region.end());
        }
    }

    /// Where the pinned memory that begins at an address lies.
    pub fn pinned_range(&self, ptr: u64) -> Option<(u64, u64)> {
        self.core()?.lock()?.watches.range(ptr)
    }

    /// Memory from `start` to `end` is about to go away: returns when nobody reads it any more.
    pub fn host_memory_goes(&mut self, start: u64, end: u64) {
        let Some(core) = self.core() else { return };
        for _ in 0..4000 {
            let Some(mut shared) = core.lock() else { return };
            if !shared.watches.is_read(start, end) {
                return shared.watches.leave(start, end);
            }
            drop(shared);
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// A graph was launched: its copies from the host are watched.
    pub fn watch_graph(&mut self, epoch: Epoch, stream: StreamId, handle: CUgraphExec) {
        if LOWEST.load(Ordering::Relaxed) >= HIGHEST.load(Ordering::Relaxed) {
            return;
        }
        let Some(core) = self.core() else { return };
        let Some((exec, host)) = core.handles.execs.get(&(handle.0 as u64)).map(|e| (e.id, e.host.clone())) else {
            return;
        };
        if host.calls_host
            && let Some(mut shared) = core.lock()
        {
            shared.watches.calls_host(epoch);
        }
        for (index, region) in &host.sources {
            self.watch_source(epoch, stream, (exec, index + 1), region);
        }
        for (index, region) in &host.targets {
            self.watch_target(epoch, stream, (exec, index + 1), region);
        }
    }
}

/// Whether pages may be protected: asked for, possible, and without effect on the device.
fn may_protect(core: &Core) -> bool {
    static SHARED: AtomicU64 = AtomicU64::new(0);
    if !core.options.host_accesses {
        return false;
    }
    // Where devices go through the CPU's page tables they would lose access too.
    if SHARED.load(Ordering::Relaxed) == 0 {
        const USES_HOST_PAGE_TABLES: i32 = 100;
        let mut shared = 0_i32;
        let _ = crate::real!(cuDeviceGetAttribute(&raw mut shared => *mut i32, USES_HOST_PAGE_TABLES => i32, 0 => i32));
        SHARED.store(1 + u64::from(shared != 0), Ordering::Relaxed);
    }
    SHARED.load(Ordering::Relaxed) == 1 && crate::host::sigsegv::install()
}

/// Sums a look up, outside of the lock. `None`: some byte can not be read.
fn see(core: &Core, look: &Look) -> Option<crate::host::checksum::Sums> {
    let began = Instant::now();
    // What the driver allocated is readable until a call that waits for us frees it.
    if look.registered && !is_readable_range(look.region.start, look.region.end()) {
        return None;
    }
    // SAFETY: as just said; registered pages were tried.
    let sums = unsafe { crate::host::checksum::sums(&look.region, look.most, look.seed) };
    core.allowance.spend(began);
    Some(sums)
}
