//! Exact mode: which bytes a launch really touches, told by patched instructions.
//!
//! Owns the way of one launch: NVIDIA's Sanitizer API calls back while the driver takes the launch
//! ([`callback`]), the kernel gets a table in device memory, the hook behind the launch records an
//! event ([`submitted`]), and when that has fired the table is read, becomes an [`Op::Exact`] and
//! is used again ([`drain`]). Nothing of this is loaded or run without `exact` in the options.
//!
//! The program is not synchronised: results are read on a stream of our own, when a hook of the
//! program finds them finished. It is held back only while all tables are in use, and for two
//! seconds at most: a kernel may wait for something that the program has yet to do. Such launches
//! have no exact ranges; the analyzer uses their summaries.
//!
//! What must never happen: a patched kernel that runs with anything but a table or null as its user
//! data. So every launch and every kernel node of a graph is given one of the two, whatever else
//! goes wrong here.

mod demand;
pub mod device_table;
pub mod glob;
pub mod graph_launch;
pub mod readback;
mod runs;
pub mod sanitizer_api;
mod settled;
pub mod table_pool;

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{CStr, OsStr, OsString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_sys::{CUcontext, CUstream};
use trace::wanted::Class;
use trace::{Epoch, KernelId, NoteKind, Op};

pub(crate) use crate::exact::device_table::Table;
use crate::exact::sanitizer_api::{Api, ContextData, GraphData, LaunchData, ModuleData, NodeData, StreamHandle};
use crate::exact::table_pool::{Offer, Pool, within};
use crate::handles::tables::CAPTURES;
use crate::log::core::Core;
use crate::runtime::lock::Lock;
use crate::runtime::thread_state;
use crate::runtime::{lifecycle, options, stderr};
use demand::{Demand, Function, Hold};

/// How long the program is held back for a free table.
const PATIENCE: Duration = Duration::from_secs(2);

/// The running exact mode.
struct Exact {
    api: Api,
    image: Vec<u8>,
    /// Names of kernels that are measured from the start; `None`: of none.
    pattern: Option<Vec<u8>>,
    /// Launches that are not measured any more, if that was not ruled out.
    settled: Option<settled::Known>,
    /// Kernels that are measured once the analyzer asks for them, if that was asked for.
    demand: Option<Demand>,
    /// Guards the functions that add patches, which the API wants called one at a time: contexts
    /// that have ours.
    patched: Lock<Vec<CUcontext>>,
    pool: Lock<Pool>,
    /// Held back in vain once: do not try again before a launch has finished.
    stuck: AtomicBool,
    /// Launches that got no table.
    missed: AtomicU64,
    /// Executable graphs of which nothing was left to measure when they were launched last, by
    /// their handles.
    idle: Lock<HashSet<usize>>,
    /// Modules that were loaded and could not be patched: what they run must not be taken to touch
    /// nothing.
    refused: Lock<Vec<*mut c_void>>,
}

// SAFETY: what is not in a lock is read only or atomic.
unsafe impl Sync for Exact {}
// SAFETY: as above.
unsafe impl Send for Exact {}

#[unsafe(link_section = "streamsan_state")]
static EXACT: AtomicPtr<Exact> = AtomicPtr::new(std::ptr::null_mut());
#[unsafe(link_section = "streamsan_state")]
static PENDING: AtomicU32 = AtomicU32::new(0);
static ASKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread is reading tables.
    static DRAINING: Cell<bool> = const { Cell::new(false) };
}

#[inline]
fn running() -> Option<&'static Exact> {
    // SAFETY: a published value is never freed.
    unsafe { EXACT.load(Ordering::Acquire).as_ref() }
}

/// Before the first `cuInit`: starts exact mode if the options ask for it. When it can not, says so
/// once; the program runs on, checked without it.
pub fn prepare() {
    if ASKED.swap(true, Ordering::AcqRel) {
        return;
    }
    let text = options::variable(c"STREAMSAN_OPTIONS").unwrap_or_default();
    let value = |key: &[u8]| options::value(text, key);
    let asked = |key: &[u8]| value(key).filter(|v| !matches!(*v, b"0" | b"no"));
    // All kernels but those that the code decides; `all`: those too.
    let settles = asked(b"exact").is_some_and(|p| matches!(p, b"" | b"1" | b"yes"));
    let pattern = asked(b"exact").map(|p| if matches!(p, b"1" | b"yes" | b"all") { b"" } else { p });
    let confirm = asked(b"confirm").is_some();
    if pattern.is_none() && !confirm {
        return;
    }
    let path = |key: &[u8], otherwise: OsString| {
        value(key).filter(|v| !v.is_empty()).map_or(otherwise, |v| OsStr::from_bytes(v).to_os_string())
    };
    let library = path(b"sanitizer-library", "libsanitizer-public.so".into());
    let patch = path(b"exact-patch", beside());
    if let Err(why) = start(&library, &patch, pattern, settles, confirm) {
        fail(format_args!("no exact mode: {why}"));
    }
}

fn start(library: &OsStr, patch: &OsStr, pattern: Option<&[u8]>, settles: bool, confirm: bool) -> Result<(), String> {
    let image =
        std::fs::read(patch).map_err(|e| format!("{}: {e} (scripts/patch makes it)", patch.to_string_lossy()))?;
    let api = Api::load(library)?;
    let exact: &'static Exact = Box::leak(Box::new(Exact {
        api,
        image,
        pattern: pattern.map(<[u8]>::to_vec),
        settled: settles.then(settled::Known::default),
        demand: confirm.then(Demand::default),
        patched: Lock::new(Vec::new()),
        pool: Lock::new(Pool::default()),
        stuck: AtomicBool::new(false),
        missed: AtomicU64::new(0),
        idle: Lock::new(HashSet::new()),
        refused: Lock::new(Vec::new()),
    }));
    let mut subscriber: *mut c_void = std::ptr::null_mut();
    let api = &exact.api;
    // SAFETY: the callback lives as long as the process.
    let answer = unsafe { (api.subscribe)(&raw mut subscriber, callback, std::ptr::null_mut()) };
    if answer != 0 {
        return Err(format!("sanitizerSubscribe answered {answer} (another tool is using the API?)"));
    }
    EXACT.store(std::ptr::from_ref(exact).cast_mut(), Ordering::Release);
    for domain in [
        crate::exact::sanitizer_api::domain::RESOURCE,
        crate::exact::sanitizer_api::domain::LAUNCH,
        crate::exact::sanitizer_api::domain::GRAPHS,
    ] {
        // SAFETY: the subscriber was just made.
        let answer = unsafe { (api.enable_domain)(1, subscriber, domain) };
        if answer != 0 {
            return Err(format!("sanitizerEnableDomain answered {answer}"));
        }
    }
    // While the driver still works: cudart takes its context down in a handler that was registered
    // earlier and so runs later.
    // SAFETY: the handler lives as long as the process.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

/// `exact.fatbin` beside this library.
fn beside() -> OsString {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of our own code; the out-pointer is to a local.
    if unsafe { libc::dladdr(prepare as *const c_void, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return "exact.fatbin".into();
    }
    // SAFETY: dladdr answers a C string.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes());
    std::path::Path::new(path).with_file_name("exact.fatbin").into_os_string()
}

/// Says once that there is no exact mode, in this process and in its coverage.
#[cold]
fn fail(why: std::fmt::Arguments<'_>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        stderr::say(why);
        note("exact mode", 1);
    }
}

fn note(text: &str, count: u64) {
    if let Some(core) = lifecycle::core()
        && let Some(mut shared) = core.lock()
    {
        shared.define(&Op::Note { kind: NoteKind::Unobserved, text: text.into(), count });
    }
}

/// What the API calls while the driver works: on the program's threads, inside its calls.
unsafe extern "C" fn callback(_user: *mut c_void, domain: u32, event: u32, data: *const c_void) {
    let Some(exact) = running() else { return };
    let run = AssertUnwindSafe(|| match (domain, event) {
        (crate::exact::sanitizer_api::domain::RESOURCE, crate::exact::sanitizer_api::event::MODULE_LOADED) => {
            // SAFETY: the API passes this structure with this id.
            exact.loaded(unsafe { &*data.cast::<ModuleData>() });
        }
        (crate::exact::sanitizer_api::domain::RESOURCE, crate::exact::sanitizer_api::event::MODULE_UNLOAD) => {
            // SAFETY: as above.
            exact.unloaded(unsafe { &*data.cast::<ModuleData>() });
        }
        (crate::exact::sanitizer_api::domain::RESOURCE, crate::exact::sanitizer_api::event::CONTEXT_DESTROY) => {
            // SAFETY: as above.
            exact.forget(unsafe { &*data.cast::<ContextData>() }.context);
        }
        (crate::exact::sanitizer_api::domain::LAUNCH, crate::exact::sanitizer_api::event::LAUNCH_BEGIN) => {
            // SAFETY: as above.
            exact.launching(unsafe { &*data.cast::<LaunchData>() });
        }
        (crate::exact::sanitizer_api::domain::LAUNCH, crate::exact::sanitizer_api::event::LAUNCH_SET_UP) => {
            // SAFETY: as above.
            exact.set_up(unsafe { &*data.cast::<LaunchData>() });
        }
        (crate::exact::sanitizer_api::domain::GRAPHS, crate::exact::sanitizer_api::event::EXEC_CREATING) => {
            exact.graph_made(true)
        }
        (crate::exact::sanitizer_api::domain::GRAPHS, crate::exact::sanitizer_api::event::EXEC_CREATED) => {
            exact.graph_made(false)
        }
        (crate::exact::sanitizer_api::domain::GRAPHS, crate::exact::sanitizer_api::event::NODE_LAUNCH_BEGIN) => {
            // SAFETY: as above; only the fields before the union are looked at yet.
            let kind = unsafe { (*data.cast::<NodeData>()).kind };
            if kind == 0 {
                // SAFETY: as above; of a kernel node the launch is there.
                exact.launching_node(unsafe { &*data.cast::<NodeData>() });
            }
        }
        (crate::exact::sanitizer_api::domain::GRAPHS, crate::exact::sanitizer_api::event::GRAPH_LAUNCH_BEGIN) => {
            // SAFETY: as above.
            exact.graph_begins(unsafe { &*data.cast::<GraphData>() });
        }
        _ => {}
    });
    let _ = catch_unwind(run);
}

impl Exact {
    /// A module is being loaded: patched at once, unless kernels are measured on demand only.
    fn loaded(&self, module: &ModuleData) {
        if self.pattern.is_none() {
            return;
        }
        let patched = !lifecycle::is_off() && self.patch(module.context, module.module);
        if !patched && let Ok(mut refused) = self.refused.lock() {
            refused.push(module.module);
        }
    }

    fn is_refused(&self, module: *mut c_void) -> bool {
        self.refused.lock().map_or(true, |refused| refused.contains(&module))
    }

    fn unloaded(&self, module: &ModuleData) {
        if let Ok(mut refused) = self.refused.lock() {
            refused.retain(|m| *m != module.module);
        }
        self.forget_functions(|f| f.module == module.module);
    }

    /// Functions go away: their handles may come back as others.
    fn forget_functions(&self, gone: impl Fn(&Function) -> bool) {
        if let Some(demand) = &self.demand {
            demand.forget(&gone);
        }
        if let Some(settled) = &self.settled {
            settled.forget(&gone);
        }
    }

    /// Patches a module. False: it runs as it did.
    fn patch(&self, context: CUcontext, module: *mut c_void) -> bool {
        let Ok(mut patched) = self.patched.lock() else { return false };
        if !patched.contains(&context) {
            // SAFETY: the image is a fatbin that lives as long as the process.
            let answer = unsafe { (self.api.add_patches)(self.image.as_ptr().cast(), context) };
            if answer != 0 {
                fail(format_args!("no exact mode: sanitizerAddPatches answered {answer}"));
                return false;
            }
            patched.push(context);
        }
        let mut answer = 0;
        for (instruction, function) in crate::exact::sanitizer_api::PATCHES {
            // SAFETY: the module is loaded; the names are those of our patches.
            answer |= unsafe { (self.api.patch_instructions)(instruction, module, function.as_ptr()) };
        }
        // SAFETY: as above.
        answer |= unsafe { (self.api.patch_module)(module) };
        if answer != 0 {
            note("code that could not be patched", 1);
        }
        answer == 0
    }

    /// A function that the analyzer wants measured: its module is patched, if it is not yet.
    #[cold]
    fn begin(&self, demand: &Demand, function: Function) {
        // While a stream is captured most calls of ours would break the capture: asked again at the
        // next launch.
        if lifecycle::is_off() || CAPTURES.load(Ordering::Acquire) != 0 {
            return;
        }
        let known =
            if self.pattern.is_some() { Some(!self.is_refused(function.module)) } else { demand.patched(&function) };
        match demand.holds(function.module) {
            _ if known.is_some() => {}
            Hold::Free => {}
            Hold::Unknown => return,
            Hold::Held => {
                note("exact ranges of kernels in doubt that are part of executable graphs", 1);
                return demand.add(function, false);
            }
        }
        let patched = known.unwrap_or_else(|| {
            let before = DRAINING.replace(true);
            let patched = within(function.context, || self.patch(function.context, function.module));
            DRAINING.set(before);
            patched == Some(true)
        });
        demand.add(function, patched);
    }

    /// A kernel is about to be handed to the device: gives it a table, or null.
    fn launching(&self, launch: &LaunchData) {
        // A table that no hook took belongs to a launch that failed, or that is not the program's.
        // Nobody knows when it ends, so the table is given up.
        let left = thread_state::with(|l| l.launching.replace(std::ptr::null_mut()));
        if !left.is_null() {
            // SAFETY: made by Box::into_raw below, taken once.
            let left = unsafe { Box::from_raw(left) };
            if let Ok(mut pool) = self.pool.lock() {
                pool.give_up(left.context);
            }
        }
        // What the driver launches for calls of ours is no business of the program's.
        let ours = DRAINING.get() || lifecycle::is_off();
        let asked = !ours && self.demand.as_ref().is_some_and(|demand| demand.measures(launch));
        let decided = !ours && self.settled.as_ref().is_some_and(|settled| settled.has(launch));
        let wanted = !ours && (asked || !decided && self.wants(launch.name)) && !self.is_refused(launch.module);
        let table = if wanted { self.take(launch.context, launch.stream_handle) } else { None };
        if wanted && table.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        let given = self.assign(launch, table.as_ref().map_or(std::ptr::null(), Table::address));
        let Some(table) = table else { return };
        if given {
            thread_state::with(|l| l.launching.set(Box::into_raw(Box::new(table))));
        } else {
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.give_back(table);
        }
    }

    fn take(&self, context: CUcontext, stream: StreamHandle) -> Option<Table> {
        let offer = self.pool.lock().ok()?.take(context);
        match offer {
            Offer::Free(table) => Some(table),
            Offer::None => None,
            Offer::First => {
                // The driver may launch kernels of its own for this.
                DRAINING.set(true);
                let table = Table::new(&self.api, context, stream);
                DRAINING.set(false);
                table
            }
        }
    }

    /// Says what the patches in a launch get as their user data.
    fn assign(&self, launch: &LaunchData, data: *const c_void) -> bool {
        // SAFETY: the handles are those of the launch that a callback is about.
        unsafe { (self.api.set_launch_data)(launch.launch, launch.function, launch.stream_handle, data) == 0 }
    }

    fn wants(&self, name: *const std::ffi::c_char) -> bool {
        let Some(pattern) = &self.pattern else { return false };
        if pattern.is_empty() {
            return true;
        }
        if name.is_null() {
            return false;
        }
        // SAFETY: the API passes a C string.
        crate::exact::glob::matches(pattern, unsafe { CStr::from_ptr(name) }.to_bytes())
    }

    fn give_back(&self, table: Table) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.give_back(table);
        }
    }

    /// A context goes away, and its tables with it.
    fn forget(&self, context: CUcontext) {
        let Ok(mut patched) = self.patched.lock() else { return };
        patched.retain(|c| *c != context);
        drop(patched);
        self.forget_functions(|f| f.context == context);
        let Ok(mut pool) = self.pool.lock() else { return };
        let lost = pool.forget(context);
        drop(pool);
        PENDING.fetch_sub(lost.len() as u32, Ordering::Relaxed);
        if let Some(core) = lifecycle::core() {
            lost.iter().for_each(|table| crate::exact::readback::lose(core, table));
        }
    }
}

/// The table of the launch that this thread has just made, if it got one.
pub struct Launched(Box<Table>);

/// Behind a launch: takes its table.
#[inline]
pub fn launched() -> Option<Launched> {
    let table = thread_state::with(|l| l.launching.get());
    if table.is_null() {
        return None;
    }
    thread_state::with(|l| l.launching.set(std::ptr::null_mut()));
    // SAFETY: made by Box::into_raw in `launching`, taken once.
    Some(Launched(unsafe { Box::from_raw(table) }))
}

/// Behind a launch that was logged: whether the analyzer wants this kernel measured from now on, or
/// such launches no more.
#[inline]
pub fn seen(kernel: KernelId, grid: [u32; 3], block: [u32; 3], core: &Core) {
    let Some(exact) = running() else { return };
    if let Some(settled) = &exact.settled {
        settled.follow(core.header().settled.has(Class::of(kernel, grid, block)));
    }
    if let Some(demand) = &exact.demand
        && let Some(function) = demand.asked(kernel, &core.header().wanted)
    {
        exact.begin(demand, function);
    }
}

/// The launch was none of those that are logged: its table is given up.
pub fn abandoned(launched: Launched) {
    if let Some(exact) = running()
        && let Ok(mut pool) = exact.pool.lock()
    {
        pool.give_up(launched.0.context);
    }
}

/// The launch has been logged at `epoch`: its table is read when the stream has got there.
pub fn submitted(launched: Launched, epoch: Epoch, stream: CUstream, per_thread: bool) {
    let (Some(exact), Some(core)) = (running(), lifecycle::core()) else { return };
    let mut table = *launched.0;
    table.epoch = epoch;
    if !table.submitted(stream, per_thread) {
        return crate::exact::readback::lose(core, &table);
    }
    let context = table.context;
    if let Ok(mut pool) = exact.pool.lock() {
        pool.pending.push(table);
        PENDING.fetch_add(1, Ordering::Relaxed);
    }
    if CAPTURES.load(Ordering::Acquire) == 0 {
        exact.wait_for_table(core, context);
    }
}

/// Reads the tables of launches that have finished. Called by hooks that have nothing left to do;
/// free of cost when nothing is pending.
#[inline]
pub fn drain() {
    if PENDING.load(Ordering::Relaxed) != 0 {
        drain_slow();
    }
}

#[cold]
fn drain_slow() {
    // While a stream is captured most calls of ours would break the capture.
    if CAPTURES.load(Ordering::Acquire) != 0 {
        return;
    }
    if let (Some(exact), Some(core)) = (running(), lifecycle::core()) {
        exact.drain(core);
    }
}

/// The program ends: what is still running is waited for, a little.
extern "C" fn at_exit() {
    let (Some(exact), Some(core)) = (running(), lifecycle::core()) else { return };
    let begun = Instant::now();
    while PENDING.load(Ordering::Relaxed) != 0 && begun.elapsed() < PATIENCE {
        exact.drain(core);
        if PENDING.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let missed = exact.missed.load(Ordering::Relaxed);
    if missed > 0 {
        note("exact ranges of launches that found no free table", missed);
    }
}
