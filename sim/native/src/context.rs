//! What compiled code finds at its first argument, and the functions that it calls.

use super::relocations::address_at;
use sim_exec::exec::atomic::Word;
use sim_exec::float;
use sim_exec::interface::AccessKind;
use sim_exec::machine_module::SHARED_WINDOW;
use sim_exec::program::{LANES, Next, Row};
use sim_exec::warp::Warp;

/// The step of what does not grow by one.
pub(super) const IRREGULAR: u64 = u64::MAX / 2;

/// Where an instruction that accesses memory found it last.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Site {
    /// First address.
    pub(crate) start: u64,
    /// Accesses of its size that fit.
    pub(crate) count: u64,
    /// Where the first address is in the host's memory.
    pub(crate) host: u64,
}

/// What a region knows of the warp that it runs for.
#[repr(C)]
pub(crate) struct RegionContext {
    pub(crate) frame: *mut Row,
    pub(crate) preds: *mut u32,
    pub(crate) constants: *const Row,
    pub(crate) params: *const u64,
    pub(crate) shared: *mut u8,
    /// Bytes of shared memory, divided by 1, 2, 4, 8, 16, 32.
    pub(crate) shared_counts: [u64; 6],
    pub(crate) local: *mut u8,
    pub(crate) stride: u64,
    pub(crate) local_counts: [u64; 6],
    pub(crate) local_base: u64,
    pub(crate) dynamic: u64,
    /// Jumps back that each lane may make.
    pub(crate) fuel: u64,
    /// Set to 1 when a lane has made them all.
    pub(crate) spent: u64,
    /// `%ntid`, `%ctaid`, `%nctaid`, `%warpid`.
    pub(crate) special: [u32; 10],
    pub(crate) tid: *const [[u32; LANES]; 3],
    pub(crate) warp: *mut Warp<'static>,
    pub(crate) found: u64,
    pub(crate) sites: *mut Site,
    /// Where each lane is to go on.
    pub(crate) exits: [u32; LANES],
    /// The lane behind the first of a pack whose values are not what code supposes.
    pub(crate) missed: u64,
    /// The way (an `Exit`) by which a whole warp has left a region; null: by another.
    pub(crate) left: *const (),
    /// Not 0: registers are as the region supposes.
    pub(crate) trusted: u64,
    /// By how much `%tid` grows from lane to lane of the whole warp, or [`IRREGULAR`].
    pub(crate) tid_steps: [u64; 3],
    /// The same within each half of the warp.
    pub(crate) tid_half_steps: [u64; 3],
    /// Packs that have entered regions since one of them missed.
    pub(crate) entered: u32,
    /// What the lanes of a pack ask for, and where that is.
    pub(crate) addresses: [u64; LANES],
    pub(crate) pointers: [u64; LANES],
    /// The same in shared memory.
    pub(crate) near: [u32; LANES],
    /// What lanes take from each other, load or store.
    pub(crate) aside: [u32; LANES],
    /// What lanes write that do not store.
    pub(crate) nowhere: [u64; 4],
}

impl RegionContext {
    /// A context that has not been filled.
    pub(crate) fn new() -> RegionContext {
        RegionContext {
            frame: std::ptr::null_mut(),
            preds: std::ptr::null_mut(),
            constants: std::ptr::null(),
            params: std::ptr::null(),
            shared: std::ptr::null_mut(),
            shared_counts: [0; 6],
            local: std::ptr::null_mut(),
            stride: 0,
            local_counts: [0; 6],
            local_base: 0,
            dynamic: 0,
            fuel: 0,
            spent: 0,
            special: [0; 10],
            tid: std::ptr::null(),
            warp: std::ptr::null_mut(),
            found: 0,
            sites: std::ptr::null_mut(),
            exits: [0; LANES],
            missed: 0,
            left: std::ptr::null(),
            trusted: 0,
            tid_steps: [IRREGULAR; 3],
            tid_half_steps: [IRREGULAR; 3],
            entered: 0,
            addresses: [0; LANES],
            pointers: [0; LANES],
            near: [0; LANES],
            aside: [0; LANES],
            nowhere: [0; 4],
        }
    }

    /// Fills in what stays as it is while the warp is used, for one block after the other. They
    /// have the same shared memory.
    pub(crate) fn know(&mut self, w: &mut Warp<'_>) {
        let steps = |rows: usize| {
            w.tid.map(|tid| {
                let step = tid[1].wrapping_sub(tid[0]);
                let row = LANES / rows;
                let grows = |lane: usize| {
                    tid[lane / row * row].wrapping_add(step.wrapping_mul((lane % row) as u32)) == tid[lane]
                };
                if (0..LANES).all(grows) { step as i32 as u64 } else { IRREGULAR }
            })
        };
        (self.tid_steps, self.tid_half_steps) = (steps(1), steps(2));
        let env = w.env;
        self.constants = env.constants.as_ptr();
        self.params = env.params.as_ptr();
        let size = u64::from(w.block().shared_size);
        self.shared = w.block().shared();
        self.shared_counts = std::array::from_fn(|shift| size >> shift);
        self.stride = u64::from(env.lane_local);
        self.local_counts = std::array::from_fn(|shift| self.stride >> shift);
        self.dynamic = u64::from(env.dynamic_start());
        let ([a, b, c], [g, h, i]) = (env.launch.block, env.launch.grid);
        self.special = [a, b, c, 0, 0, 0, g, h, i, w.index];
    }

    /// Whether an address of the host is in the block's shared memory.
    fn is_shared(&self, at: u64) -> bool {
        at.wrapping_sub(self.shared as u64) < self.shared_counts[0]
    }

    /// Fills in what stays as it is while a block runs.
    pub(crate) fn fill(&mut self, w: &mut Warp<'_>) {
        self.special[3..6].copy_from_slice(&w.block().index);
    }
}

macro_rules! at {
    ($field:ident) => {
        std::mem::offset_of!(crate::context::RegionContext, $field) as i32
    };
}
pub(super) use at;

/// An access as compiled code passes it: site, bytes (a power of two), kind, space.
pub(super) fn pack(site: u32, shift: u32, kind: AccessKind, space: u32) -> u64 {
    let kind = match kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
        _ => 2,
    };
    u64::from(site) | u64::from(shift) << 32 | kind << 40 | u64::from(space) << 48
}

/// No site: the answer is not kept.
pub(super) const NO_SITE: u32 = u32::MAX;

/// Finds the memory at an address, or the fault, and leaves it in `found` (0 for a fault).
///
/// # Safety
/// The context is that of a region that runs.
pub(super) unsafe extern "C" fn find(context: *mut RegionContext, address: u64, access: u64, lane: u64, pc: u64) {
    // SAFETY: the caller's promise: compiled code holds no reference into the warp.
    let (context, w) = unsafe { (&mut *context, &mut *(*context).warp) };
    let (site, shift, space) = (access as u32, access >> 32 & 0xff, (access >> 48) as u32);
    let kind = match access >> 40 & 0xff {
        0 => AccessKind::Read,
        1 => AccessKind::Write,
        _ => AccessKind::Atomic,
    };
    let size = 1u64 << shift;
    match w.resolve(space, address, size as u32, kind, lane as usize) {
        Ok(host) => {
            context.found = host;
            if site == NO_SITE {
                return;
            }
            let shared = u64::from(w.block().shared_size);
            let base = w.shared_base();
            let known = w.extents.iter().find(|e| e.start <= address && address < e.end).copied();
            let place = if let Some(extent) = known {
                (extent.start, extent.end - extent.start, w.env.device.host_address(extent.start))
            } else if address.wrapping_sub(base) < shared {
                (base, shared, base)
            } else if address.wrapping_sub(SHARED_WINDOW) < shared {
                (SHARED_WINDOW, shared, base)
            } else {
                return;
            };
            if place.0.is_multiple_of(size) {
                // SAFETY: the warp has as many sites as its regions name.
                unsafe {
                    *context.sites.add(site as usize) = Site { start: place.0, count: place.1 >> shift, host: place.2 };
                }
            }
        }
        Err(kind) => {
            w.pc = pc as u32;
            let _ = w.fail(kind, 1 << lane);
            context.found = 0;
        }
    }
}

/// Finds the memory at one of several addresses of an access, as [`find`]: mostly it is where the
/// address before it was.
///
/// # Safety
/// As of [`find`].
pub(super) unsafe fn find_next(context: *mut RegionContext, address: u64, access: u64, lane: u64, pc: u64) {
    let (site, shift) = (access as u32, access >> 32 & 0xff);
    // SAFETY: the caller's promise; the warp has as many sites as its regions name.
    unsafe {
        if site != NO_SITE {
            let site = *(*context).sites.add(site as usize);
            let within = address.wrapping_sub(site.start);
            if within.rotate_right(shift as u32) < site.count {
                (*context).found = site.host + within;
                return;
            }
        }
        find(context, address, access, lane, pc);
    }
}

/// Finds the memory at the addresses of a pack's lanes, as [`find`]. `found` is 0 for a fault.
///
/// # Safety
/// As of [`find`].
pub(super) unsafe extern "C" fn find_pack(context: *mut RegionContext, mask: u64, access: u64, first: u64, pc: u64) {
    for lane in 0..LANES - first as usize {
        // SAFETY: the caller's promise: the context is nobody else's.
        unsafe {
            (*context).pointers[lane] = (&raw mut (*context).nowhere) as u64;
            if mask >> lane & 1 != 0 {
                find_next(context, (*context).addresses[lane], access, first + lane as u64, pc);
                if (*context).found == 0 {
                    return;
                }
                (*context).pointers[lane] = (*context).found;
            }
        }
    }
    // SAFETY: as above.
    unsafe { (*context).found = 1 };
}

/// Calls a function of a lane's values and leaves its result in `found`.
///
/// # Safety
/// As of [`find`]; `function` is the distance of one (`relocations::distance_of`).
pub(super) unsafe extern "C" fn call(context: *mut RegionContext, function: u64, a: u64, b: u64, c: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let function = std::mem::transmute::<usize, extern "C" fn(u64, u64, u64, u64) -> u64>(address_at(function));
        (*context).found = function(a, b, c, 0);
    }
}

/// Executes one instruction for some lanes as the interpreter does. Returns 0, or 1 for a fault.
///
/// # Safety
/// As of [`find`]; the instruction is one of lanes alone, and its operands are in the frame.
pub(super) unsafe extern "C" fn execute(context: *mut RegionContext, pc: u64, lanes: u64) -> u64 {
    // SAFETY: the caller's promise.
    let w = unsafe { &mut *(*context).warp };
    let inst = &w.env.program.code[pc as usize];
    w.pc = pc as u32;
    match (inst.run)(w, inst, lanes as u32) {
        Next::Fault => 1,
        _ => 0,
    }
}

/// Adds to a single in memory as one, as is done in the place where it is. Returns what it was.
///
/// # Safety
/// As of [`find`]. `at` is aligned and points to memory that stays mapped.
pub(super) unsafe extern "C" fn add_single(context: *mut RegionContext, at: u64, value: u64) -> u64 {
    let operand = f32::from_bits(value as u32);
    // SAFETY: the caller's promise.
    let shared = unsafe { (*context).is_shared(at) };
    let add = |old: u32| match (f32::from_bits(old), shared) {
        (old, true) => float::output(old + operand, 0).to_bits(),
        (old, false) => float::add_in_global(old, operand).to_bits(),
    };
    // SAFETY: the caller's promise.
    u64::from(unsafe { u32::update(at, add) })
}

/// Adds to a double in memory as one, as [`add_single`].
///
/// # Safety
/// As of [`add_single`].
pub(super) unsafe extern "C" fn add_double(context: *mut RegionContext, at: u64, value: u64) -> u64 {
    let operand = f64::from_bits(value);
    // SAFETY: the caller's promise.
    let shared = unsafe { (*context).is_shared(at) };
    let add = |old: u64| match (f64::from_bits(old), shared) {
        (old, true) => float::add_doubles(operand, old).to_bits(),
        (old, false) => float::add_double_in_global(old, operand).to_bits(),
    };
    // SAFETY: the caller's promise.
    unsafe { u64::update(at, add) }
}
