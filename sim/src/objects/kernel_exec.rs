//! Runs kernels: the connection between the driver's launches and the interpreter.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cuda_sys::{CUlimit, CUresult};
use device_code::ptx::{self, Space};

use crate::access_log::Collector;
use crate::config;
use crate::interp::{
    self, AccessKind, AccessOrder, Accesses, Device, DeviceStream, DeviceWork, Extent, Fault, FaultKind, Linker,
    OrderEvent, Program, TextureRequest, WarpTexture,
};
use crate::memory::address_space::{Page, UnmappedAddress};
use crate::memory::memcpy::{Memcpy, Memset};
use crate::memory::{self, AllocationKind, array, registered_view, texture, unwritten};
use crate::objects::context::Context;
use crate::objects::kernel_parts::device_launches::{self, Launched, Launches};
use crate::objects::kernel_parts::{native_kernel, nearest};
use crate::objects::module::{CodeForm, Function, Module};
use crate::objects::overlap::LaunchOverlap;
use crate::objects::task::KernelLaunch;
use crate::sched;
use crate::status::{self, Ran};
use crate::touched::grids::InsideGrids;
use crate::touched::inside::{Grid, Names};
use crate::touched::{LaunchTouched, Wish};
use sim_races::{Detector, GridEvents, LaunchPoint, MemoryEvents};

/// A module's code as the interpreter runs it.
pub(crate) struct Compiled(Program);

/// One launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaunchConfig {
    /// Blocks in x, y, z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub(crate) block: [u32; 3],
    /// Blocks of a cluster; zeros for none.
    pub(crate) cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
    /// The parameter block.
    pub(crate) params: Vec<u8>,
    /// Whether a grid-wide barrier must work.
    pub(crate) cooperative: bool,
}

impl Linker for Module {
    fn symbol(&self, name: &str, _space: Space) -> Option<u64> {
        self.globals.get(name).map(|global| global.at)
    }
}

impl Compiled {
    /// Compiles the PTX of a module.
    pub(super) fn new(module: &Module, ast: &ptx::Module) -> Compiled {
        Compiled(Program::compile(ast, module))
    }
}

/// Compiles what a kernel needs, unless that has been done.
pub(crate) fn prepare(function: &Function) -> Result<(), CUresult> {
    let module = function.module()?;
    program(function, &module).map(|_| ())
}

/// The kernel's code as the interpreter runs it: PTX is compiled a module at a time, machine code a
/// kernel at a time.
fn program<'a>(function: &'a Function, module: &'a Module) -> Result<&'a Program, CUresult> {
    match &module.code.form {
        CodeForm::Ptx { ast, .. } => Ok(&module.compiled(ast).0),
        CodeForm::Machine(code) => {
            let compile = || {
                let blocks: Vec<u64> = module.blocks.iter().map(|block| block.at).collect();
                Compiled(Program::compile_machine(code, &blocks, &function.name).unwrap_or_else(Program::empty))
            };
            Ok(&function.compiled.get_or_init(compile).0)
        }
    }
}

/// The device as a running kernel sees it.
struct Gpu<'t> {
    ctx: Arc<Context>,
    addresses: Option<Collector>,
    touched: Option<&'t LaunchTouched>,
    /// Finds the races of the grid, if somebody wants them.
    events: Option<GridEvents<'t>>,
    /// The same of all grids of the launch.
    detector: Option<&'t Detector>,
    /// Accesses of textures and surfaces, of which the detector is not told.
    textures: AtomicU64,
    /// Whose kernel runs; its function pointers are known.
    function: &'t Function,
    launches: Launches,
    overlap: Option<&'t LaunchOverlap>,
}

/// `cudaErrorNotSupported`.
const NOT_SUPPORTED: u32 = 801;

impl Gpu<'_> {
    /// Runs a texture or surface instruction, and tells which texels it touched.
    fn noting<R>(&self, run: impl FnOnce() -> R) -> R {
        if self.events.is_some() {
            self.textures.fetch_add(1, Ordering::Relaxed);
        }
        let Some(touched) = self.touched else { return run() };
        let (answer, texels) = texture::noted::noting(run);
        for (kind, at, size) in texels {
            touched.observe(&unordered(kind, size, &[(at, 0)]));
        }
        answer
    }
}

impl Device for Gpu<'_> {
    fn allocation(&self, address: u64) -> Option<Extent> {
        let memory = memory::get();
        let space = memory.space;
        if !space.contains(address) {
            // Host memory that the program registered; any other is out of reach.
            let block = memory.find(address).filter(|block| matches!(block.kind, AllocationKind::Registered(_)))?;
            // Its whole pages may have a view of their own, at another distance.
            let (start, end) = match registered_view::find(address) {
                Ok(view) => (view.start, view.end),
                Err(next) => (registered_view::last_end(address), next),
            };
            return Some(Extent { start: block.at.max(start), end: block.end().min(end), writable: true });
        }
        // As on a device, what counts is what is mapped, not who owns it: memory freed a moment ago
        // does not fault as long as something else keeps its page.
        let (start, end, page) = space.run_at(address)?;
        Some(Extent { start, end, writable: page == Page::ReadWrite })
    }

    fn host_address(&self, address: u64) -> u64 {
        memory::get().space.alias_of(address)
    }

    fn print(&self, text: &[u8]) {
        unsafe extern "C" {
            static stdout: *mut libc::FILE;
        }
        // Through C's own stream, so that the program's and the kernels' output keep their order in
        // one buffer.
        // SAFETY: libc's stream lives as long as the process and locks itself.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
    }

    fn complain(&self, text: &[u8]) {
        eprint!("{}", String::from_utf8_lossy(text));
    }

    fn malloc(&self, size: u64) -> u64 {
        let (ctx, device) = (self.ctx.owner().id, self.ctx.device);
        memory::get().alloc_device(ctx, device, size, memory::ALIGN, AllocationKind::Heap).unwrap_or(0)
    }

    fn free(&self, address: u64) {
        let _ = memory::get().free_device(address);
    }

    fn parameters(&self, function: u64) -> Option<u32> {
        Some(launchable(self.function, function)?.param_bytes as u32)
    }

    fn enqueue(&self, work: DeviceWork, stream: DeviceStream) -> u32 {
        // CUDA C++ Programming Guide, dynamic parallelism: neither may be given such memory. An
        // H100 (driver 580) answers 0 to both, does the copy, and leaves out the fill.
        let heap = |at| memory::get().find(at).is_some_and(|block| block.kind == AllocationKind::Heap);
        let (call, refused) = match &work {
            DeviceWork::Copy { to, from, bytes } => ("cudaMemcpyAsync", *bytes > 0 && (heap(*to) || heap(*from))),
            DeviceWork::Fill { to, bytes, .. } => ("cudaMemsetAsync", *bytes > 0 && heap(*to)),
            DeviceWork::Kernel { .. } => ("", false),
        };
        if refused {
            status::complain_of_kernel(&format!(
                "kernel `{}` gave {call} memory of the device's heap (malloc or cudaMalloc in a kernel): CUDA allows it \
                 in no call, and a device may leave the fill out; let a kernel copy or fill it",
                self.function.name
            ));
            return NOT_SUPPORTED;
        }
        let levels = self.ctx.limit(cuda_sys::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT).unwrap_or(u64::MAX);
        let is_kernel = matches!(work, DeviceWork::Kernel { .. });
        let point = self.detector.filter(|_| is_kernel).and_then(Detector::launched);
        self.launches.add(work, stream, levels, point)
    }

    fn limit(&self, limit: u32) -> Option<u64> {
        self.ctx.limit(CUlimit(limit))
    }

    fn error_text(&self, status: u32, name: bool) -> String {
        device_launches::error_text(status, name)
    }

    fn set_conditional(&self, handle: u64, value: u32) {
        crate::objects::conditional::set(handle, value);
    }

    fn texture(&self, request: &TextureRequest<'_>) -> Result<[u64; 4], String> {
        self.noting(|| texture::access::serve(request))
    }

    fn textures(&self, warp: &mut WarpTexture<'_>) -> Result<(), (u32, String)> {
        self.noting(|| texture::access::serve_warp(warp))
    }

    fn observing(&self) -> bool {
        self.addresses.is_some() || self.touched.is_some()
    }

    fn memory_events(&self) -> Option<&dyn MemoryEvents> {
        self.events.as_ref().map(|events| events as &dyn MemoryEvents)
    }

    fn observe(&self, accesses: &Accesses<'_>) {
        if let Some(addresses) = &self.addresses {
            addresses.observe(accesses);
        }
        if let Some(touched) = self.touched {
            touched.observe(accesses);
        }
    }

    fn observe_order(&self, block: [u32; 3], warp: u32, event: OrderEvent) {
        if let Some(touched) = self.touched {
            touched.observe_order(block, warp, event);
        }
    }

    fn overlap(&self) -> Option<&dyn interp::Overlap> {
        self.overlap.map(|overlap| overlap as &dyn interp::Overlap)
    }

    fn overrun(&self, access: &Fault) {
        // Once for each kernel.
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        if !TOLD.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(access.kernel.clone()) {
            return;
        }
        signal_free::say!(
            "streamsan-sim: hint: {access}; a device does not fault either, because it hands out shared memory in \
             steps of {} bytes",
            shared_unit()
        );
    }

    fn progress(&self) {
        sched::get().note_progress();
    }

    fn cancelled(&self) -> bool {
        self.ctx.check().is_err()
    }
}

/// Accesses that no instruction of a kernel makes.
fn unordered(kind: AccessKind, size: u32, lanes: &[(u64, u32)]) -> Accesses<'_> {
    Accesses { kind, size, lanes, block: [0; 3], line: 0, source: None, order: AccessOrder::default() }
}

/// The kernel that a function pointer points to which a kernel has.
fn launchable(from: &Function, pointer: u64) -> Option<Arc<Function>> {
    let module = from.module().ok()?;
    let name = match &module.code.form {
        CodeForm::Ptx { .. } => program(from, &module).ok()?.kernel_at(pointer)?,
        CodeForm::Machine(code) => &code.kernel_at(pointer)?.name,
    };
    module.function(name, None).ok()
}

/// What a block's shared memory is a multiple of (CUDA C Programming Guide, occupancy; an H200
/// faults at the first byte behind such a multiple).
fn shared_unit() -> u32 {
    if config::get_or_default().arch >= 80 { 128 } else { 256 }
}

/// Who wants to know what of a launch that runs.
#[derive(Clone, Copy, Default)]
struct Watch<'t> {
    /// Its bytes.
    touched: Option<&'t LaunchTouched>,
    /// Its races.
    inside: Option<&'t LaunchTouched>,
    /// Its grids, if the races are wanted.
    grids: Option<&'t InsideGrids>,
    /// The launches that it overlaps, or that overlap it.
    overlap: Option<&'t LaunchOverlap>,
}

/// Runs a kernel to its end; `touched`: what wants to know its bytes or its races.
pub(crate) fn run(
    function: &Function,
    launch: &LaunchConfig,
    touched: Option<&LaunchTouched>,
    overlap: Option<&LaunchOverlap>,
) -> Result<(), CUresult> {
    let Some(touched) = touched else { return execute(function, launch, Watch { overlap, ..Watch::default() }) };
    let Wish { bytes, inside, superfluous } = touched.starts();
    let begun = Instant::now();
    let module = function.module().ok().filter(|_| inside);
    let grids_of =
        |module: &Arc<Module>| InsideGrids::new(matches!(module.code.form, CodeForm::Machine(_)), superfluous);
    let grids = module.as_ref().map(grids_of);
    let touched_if = |wanted| Some(touched).filter(|_| wanted);
    let watch = Watch { touched: touched_if(bytes), inside: touched_if(inside), grids: grids.as_ref(), overlap };
    let ran = execute(function, launch, watch);
    if let Some((module, grids)) = module.zip(grids) {
        tell_races(&module, grids, touched);
    }
    if bytes {
        // What the search for races takes is no cost of measuring.
        touched.ran(if inside { Duration::ZERO } else { begun.elapsed() }, ran.is_err());
    }
    ran
}

/// Whether a launch may begin before those in front of it have ended: its code says what it does
/// before it waits.
pub(crate) fn can_begin_early(kernel: &KernelLaunch) -> bool {
    let is_code = |module: &Module| !module.code.stand_in && module.code.natives.get(&kernel.function.name).is_none();
    !kernel.launch.cooperative && kernel.function.module().is_ok_and(|module| is_code(&module))
}

/// Runs a kernel, and all that it launches: those are part of its launch.
fn execute(function: &Function, launch: &LaunchConfig, watch: Watch<'_>) -> Result<(), CUresult> {
    let touched = watch.touched;
    let launched = one_grid(function, launch, watch, (0, None))?;
    device_launches::run_all(launched, |Launched { work, level, point }| match work {
        DeviceWork::Kernel { function: pointer, grid, block, shared, params } => {
            let child = launchable(function, pointer).ok_or(CUresult::ERROR_NOT_FOUND)?;
            let launch = LaunchConfig { grid, block, shared, params, ..LaunchConfig::default() };
            one_grid(&child, &launch, watch, (level, point))
        }
        DeviceWork::Copy { to, from, bytes } => {
            let copied = Memcpy::linear(to, from, bytes).run(memory::get().space);
            moved(copied, touched, &[(AccessKind::Read, from, bytes), (AccessKind::Write, to, bytes)])
        }
        DeviceWork::Fill { to, value, bytes } => {
            let fill = Memset { at: to, pitch: 0, value: u32::from(value), size: 1, width: bytes, height: 1 };
            moved(fill.run(memory::get().space), touched, &[(AccessKind::Write, to, bytes)])
        }
    })
}

/// Tells of the bytes that a copy or fill of a kernel touched, if it could be done.
fn moved(
    done: Result<(), UnmappedAddress>,
    touched: Option<&LaunchTouched>,
    ranges: &[(AccessKind, u64, u64)],
) -> Result<VecDeque<Launched>, CUresult> {
    done.map_err(|at| {
        signal_free::say!("streamsan-sim: copy or fill by a kernel: there is no memory at 0x{:x}", at.addr);
        CUresult::ERROR_ILLEGAL_ADDRESS
    })?;
    for &(kind, mut at, mut bytes) in ranges {
        while let (Some(touched), 1..) = (touched, bytes) {
            let size = bytes.min(1 << 20) as u32;
            touched.observe(&unordered(kind, size, &[(at, 0)]));
            (at, bytes) = (at + u64::from(size), bytes - u64::from(size));
        }
    }
    Ok(VecDeque::new())
}

/// Threads that a grid's blocks are spread over. To ask the system means to read files: once is
/// enough.
fn workers() -> usize {
    static WORKERS: OnceLock<usize> = OnceLock::new();
    *WORKERS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(8))
}

/// When a kernel's bulk operations are carried out: the schedule says it as of all other work.
fn bulk_timing() -> interp::BulkTiming {
    let config = crate::config::get_or_default();
    match config.schedule {
        config::Schedule::Eager | config::Schedule::InOrder => interp::BulkTiming::AtOnce,
        config::Schedule::LateFirst => interp::BulkTiming::Late,
        config::Schedule::Random => interp::BulkTiming::Random(config.seed),
    }
}

/// In which order the blocks and warps of a kernel that is checked inside take their turns: a seed
/// says it as of all other work. Which release a thread meets hangs on that.
fn turns(is_checked: bool) -> u64 {
    let config = crate::config::get_or_default();
    if is_checked && config.schedule == config::Schedule::Random { config.seed } else { 0 }
}

/// Tells of the races of all grids. They are of one module.
fn tell_races(module: &Arc<Module>, grids: InsideGrids, touched: &LaunchTouched) {
    let names = match &module.code.form {
        CodeForm::Ptx { ast, .. } => Names::Ptx(ast),
        CodeForm::Machine(code) => Names::Machine(code),
    };
    let globals = |address: u64| {
        let mut all = module.globals.iter();
        let (name, global) = all.find(|(_, global)| address.wrapping_sub(global.at) < global.size)?;
        Some((name.clone(), global.at, global.size))
    };
    // All of them have run.
    let functions: Result<Vec<Arc<Function>>, CUresult> =
        grids.kernels().iter().map(|name| module.function(name, None)).collect();
    let Ok(functions) = functions else { return };
    let programs: Result<Vec<&Program>, CUresult> = functions.iter().map(|f| program(f, module)).collect();
    let Ok(programs) = programs else { return };
    grids.reports(&programs, &names, &globals).into_iter().for_each(|grid| touched.raced(grid));
}

/// Runs one grid. Returns what it launched.
fn one_grid(
    function: &Function,
    launch: &LaunchConfig,
    watch: Watch<'_>,
    (level, point): (u32, Option<LaunchPoint>),
) -> Result<VecDeque<Launched>, CUresult> {
    let touched = watch.touched;
    let module = function.module()?;
    if module.code.stand_in {
        status::runs(Ran::Nothing);
        watch.inside.inspect(|inside| inside.raced(Grid::not_run(&function.name, (launch.grid, launch.block))));
        // It did nothing, which says nothing of what it touches.
        unwritten::all_written();
        touched.inspect(|touched| touched.end(true));
        return Ok(VecDeque::new());
    }
    let program = program(function, &module)?;
    let kernel = program.kernel(&function.name).ok_or(CUresult::ERROR_NOT_FOUND)?;
    let launch = interp::Launch {
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.shared,
        shared_unit: shared_unit(),
        params: launch.params.clone(),
        cooperative: launch.cooperative,
        compile: crate::config::get_or_default().compile,
        schedule: turns(watch.grids.is_some()),
        bulk: bulk_timing(),
        native: crate::NATIVE,
        ..interp::Launch::default()
    };
    let machine = matches!(module.code.form, CodeForm::Machine(_));
    let gpu = |addresses, touched, (detector, events)| {
        let (ctx, launches) = (module.ctx.clone(), Launches::of_level(level));
        // What a kernel launches belongs to it: it begins when the kernel has ended.
        let overlap = watch.overlap.filter(|_| level == 0);
        let textures = AtomicU64::new(0);
        Gpu { ctx, addresses, touched, events, detector, textures, function, launches, overlap }
    };
    let native = module.code.natives.get(&function.name);
    // What stands in for a library is not the program's.
    if native.is_none() {
        status::runs(if machine { Ran::Machine } else { Ran::Ptx });
    }
    let grids = watch.grids.filter(|_| native.is_none());
    let begun = grids.map(|grids| grids.begin(&function.name, &launch, point.as_ref()));
    let device = gpu(Collector::new(), touched, (grids.map(InsideGrids::detector), begun));
    if let Some(native) = native
        && !device.observing()
    {
        return native_kernel::run(native, &function.name, &launch.params, &device).map(|()| VecDeque::new());
    }
    let ran = interp::run(program, kernel, &launch, &device, workers());
    if grids.is_none() && native.is_none() {
        // Nobody saw what it wrote.
        unwritten::all_written();
    }
    let observing = device.observing();
    if let Some(addresses) = device.addresses {
        let place = if machine { "sass_offset" } else { "ptx_line" };
        addresses.finish(&function.name, &launch, place, ran.is_ok());
    }
    if let (true, Some(native), Ok(())) = (observing, native, &ran) {
        let device = gpu(None, None, (None, None));
        return native_kernel::run(native, &function.name, &launch.params, &device).map(|()| VecDeque::new());
    }
    if let (Some(grids), Some(events)) = (grids, &begun) {
        grids.end(events, device.textures.load(Ordering::Relaxed), ran.is_err());
    }
    let launched = device.launches.in_order();
    ran.map(|()| launched).map_err(|fault| {
        match &fault.kind {
            FaultKind::Cancelled => {}
            // Without the place: every launch of the kernel has another.
            FaultKind::Unsupported(why) => {
                status::complain_of_kernel(&format!("kernel `{}` was refused: {why}", fault.kernel));
            }
            FaultKind::Texture(why) if why.ends_with(array::NOT_SIMULATED) => {
                status::complain_of_kernel(&format!("kernel `{}` was refused: {why}", fault.kernel));
            }
            kind => signal_free::say!("streamsan-sim: {fault}{}", nearest::text(kind)),
        }
        match fault.kind {
            FaultKind::OutOfBounds { .. } | FaultKind::MapPlace(_) => CUresult::ERROR_ILLEGAL_ADDRESS,
            FaultKind::Misaligned { .. } => CUresult::ERROR_MISALIGNED_ADDRESS,
            FaultKind::Trap => CUresult::ERROR_LAUNCH_FAILED,
            FaultKind::Tile(_) => CUresult::ERROR_ILLEGAL_INSTRUCTION,
            FaultKind::Assert => CUresult::ERROR_ASSERT,
            FaultKind::BadCall(_) => CUresult::ERROR_INVALID_PC,
            FaultKind::StackOverflow => CUresult::ERROR_HARDWARE_STACK_ERROR,
            FaultKind::Deadlock(_) | FaultKind::Phase { .. } | FaultKind::Registers(_) => {
                CUresult::ERROR_LAUNCH_TIMEOUT
            }
            FaultKind::BadLaunch(_) => CUresult::ERROR_INVALID_VALUE,
            FaultKind::Unsupported(_) => CUresult::ERROR_NOT_SUPPORTED,
            FaultKind::Texture(_) | FaultKind::Cancelled => CUresult::ERROR_LAUNCH_FAILED,
        }
    })
}
