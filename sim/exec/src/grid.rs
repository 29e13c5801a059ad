//! A launch: distributes blocks over threads, gives resident blocks their turns, and turns what
//! went wrong into a [`Fault`].

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::block::Progress;
use super::cluster::Cluster;
use super::env::{Env, reserved_middle, reserved_shared};
use crate::device_work::DeviceWorkState;
use crate::exec::matrix::group_registers;
use crate::exec::matrix::held_registers::ProductRows;
use crate::grid_barrier::GridBarrier;
use crate::grid_dependence::Opening;
use crate::interface::Compile;
use crate::interface::{Device, Fault, FaultKind, Launch};
use crate::launch_constants::{self, Clusters, Memories};
use crate::polls::Changes;
use crate::program::{InstFn, Kernel, LANES, NativeEntries, Program};

/// Turns that a block gets before the next one is begun beside it: a block that spins for a later
/// one must not hang.
const TURNS: u32 = 4;

/// Blocks that are resident at most in a launch that is not cooperative: about what a GPU holds.
const RESIDENT: u64 = 2112;

/// Warps of a program's launches from which on it is worth to look at its code for hot places.
const WORTH: u64 = 64;

/// In `Shared::stuck`: no blocks are left.
const ENDED: u64 = u64::MAX;

/// How often a launch tells that it gets on.
const TELL: Duration = Duration::from_millis(1);

/// The native code that a launch uses.
fn native_code<'b>(
    program: &'b Program,
    launch: &Launch,
    device: &dyn Device,
    warps: u64,
    members: u64,
) -> Option<&'b NativeEntries> {
    let make = launch.native?;
    if launch.compile == Compile::Off || device.observing() || device.memory_events().is_some() || members > 1 {
        return None;
    }
    let always = launch.compile == Compile::Always;
    let before = program.warps.fetch_add(warps, Ordering::Relaxed);
    if !always && before.saturating_add(warps) < WORTH {
        return None;
    }
    program.native.get_or_init(|| make(program, always)).as_ref()
}

/// The number of the unit that begins as number `at` in the order of a schedule.
fn in_order_of(schedule: u64, at: u64, units: u64) -> u64 {
    if schedule == 0 || units < 2 {
        return at;
    }
    // Steps through all of them, if the step has no divisor in common with their number.
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut step = schedule.wrapping_mul(0x9e37_79b9) % units;
    while divisor(step, units) != 1 {
        step = (step + 1) % units;
    }
    ((u128::from(at) * u128::from(step) + u128::from(schedule)) % u128::from(units)) as u64
}

struct Shared<'b> {
    env: &'b Env<'b>,
    /// Clusters to run; without clusters these are the blocks.
    units: u64,
    next: AtomicU64,
    stop: AtomicBool,
    fault: Mutex<Option<Fault>>,
    /// Workers that have something to do.
    busy: AtomicU64,
    /// Of each worker: where its blocks poll in vain, how often memory of the system's had been
    /// changed then, plus one. [`ENDED`] if it has none left.
    stuck: Vec<AtomicU64>,
}

impl Shared<'_> {
    /// Whether all blocks of a worker poll memory of the system's in vain, and so do those of all
    /// other workers since the same change of it.
    fn nobody_goes_on(&self, index: u64, resident: &VecDeque<Cluster<'_>>) -> bool {
        let changes = self.env.system_changes.so_far();
        let mine = if resident.iter().all(|block| block.polls_in_vain(changes)) { changes + 1 } else { 0 };
        self.stuck[index as usize].store(mine, Ordering::Release);
        let alike = |other: &AtomicU64| matches!(other.load(Ordering::Acquire), at if at == mine || at == ENDED);
        mine != 0 && self.stuck.iter().all(alike)
    }

    /// A worker has nothing to do: for ever, or until the grids have ended that this one depends
    /// on.
    fn worker_rests(&self, comes_back: bool) {
        let Some(overlap) = self.env.overlap.filter(|overlap| !overlap.may_pass()) else { return };
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            overlap.rests();
        }
        if comes_back {
            overlap.sleep();
            self.busy.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Runs a kernel to its end on up to `workers` threads (the calling one among them).
///
/// # Errors
/// The first [`Fault`] that any thread met. The other blocks are stopped soon after.
pub fn run(
    program: &Program,
    kernel: &Kernel,
    launch: &Launch,
    device: &dyn Device,
    workers: usize,
) -> Result<(), Fault> {
    let refuse = |kind| {
        let kernel = kernel.name.clone();
        Err(Fault {
            kernel,
            block: [0; 3],
            thread: [0; 3],
            kind,
            line: 0,
            machine: program.machine.is_some(),
            source: None,
        })
    };
    if let Some(error) = &kernel.error {
        return refuse(FaultKind::Unsupported(Box::new(error.clone())));
    }
    let bad = |why| refuse(FaultKind::BadLaunch(why));
    let threads = launch.block.iter().try_fold(1u32, |a, &b| a.checked_mul(b));
    let Some(threads) = threads.filter(|&n| n <= 1024) else { return bad("more than 1024 threads in a block") };
    let blocks = launch.grid.iter().try_fold(1u64, |a, &b| a.checked_mul(u64::from(b)));
    let Some(blocks) = blocks else { return bad("too many blocks") };
    if threads == 0 || blocks == 0 {
        return bad("a dimension of the grid or block is zero");
    }
    if u64::from(kernel.static_shared) + u64::from(launch.dynamic_shared) > 1 << 20 {
        return bad("more shared memory than a block can have");
    }
    let size = (kernel.params_size() as usize).max(launch.params.len());
    let mut params = vec![0u64; size.div_ceil(8) + 2];
    for (at, &byte) in launch.params.iter().enumerate() {
        params[at / 8] |= u64::from(byte) << (at % 8 * 8);
    }
    let lane_local = if kernel.nested { kernel.local.max(launch.stack).max(64 << 10) } else { kernel.local };
    let cluster = std::array::from_fn(|at| match (launch.cluster[at], kernel.cluster) {
        (0, Some(cluster)) => cluster[at].max(1),
        (size, _) => size.max(1),
    });
    let explicit = launch.cluster[0] != 0 || kernel.cluster.is_some();
    let clusters = (0..3).map(|axis| {
        let (grid, size) = (launch.grid[axis], cluster[axis]);
        grid.is_multiple_of(size).then_some(u64::from(grid / size))
    });
    let Some(units) = clusters.product::<Option<u64>>() else {
        return bad("a grid that is no multiple of its cluster");
    };
    let members = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    if members > 16 {
        return bad("more than 16 blocks in a cluster");
    }
    let lane_local = lane_local.next_multiple_of(16);
    let workspace: Vec<AtomicU32> =
        if launch.cooperative { (0..64).map(|_| AtomicU32::new(0)).collect() } else { Vec::new() };
    let workspace_at = if launch.cooperative { workspace.as_ptr() as u64 } else { 0 };
    let reserved_shared = reserved_shared(program, kernel, launch);
    let memory = Memories {
        local: lane_local,
        workspace: workspace_at,
        params: params.as_ptr() as u64,
        reserved: reserved_middle(&reserved_shared),
    };
    let bank0 = launch_constants::bank0(program, launch, Clusters { size: cluster, explicit }, memory);
    let overlap = device.overlap();
    let product_rows = device.memory_events().and_then(|_| ProductRows::of(program));
    let env = Env {
        device,
        program,
        kernel,
        launch,
        params,
        constants: launch_constants::fill(program, &bank0),
        bank0,
        observing: device.observing() || device.memory_events().is_some(),
        orders: device.observing() && program.order.device && members == 1,
        events: device.memory_events(),
        touch: product_rows.as_ref().map(|_| group_registers::touch as InstFn),
        product_rows,
        reserved_shared,
        lane_local,
        cluster,
        explicit_cluster: explicit,
        native: native_code(program, launch, device, blocks * u64::from(threads.div_ceil(LANES as u32)), members),
        started: Instant::now(),
        workspace,
        overrun: AtomicBool::new(false),
        device_work: DeviceWorkState::default(),
        grid_barrier: GridBarrier::default(),
        system_changes: Changes::default(),
        overlap,
        opening: Opening::new(overlap, blocks, blocks <= RESIDENT),
        operations: AtomicU64::new(1),
    };
    // Threads cost more than small grids take.
    // Events come in the order of execution, which one thread has.
    let workers = if env.events.is_some() { 1 } else { workers };
    let helpers = (workers.max(1) as u64 - 1).min(blocks * u64::from(threads) / 4096).min(units - 1);
    let shared = Shared {
        env: &env,
        units,
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        fault: Mutex::new(None),
        busy: AtomicU64::new(helpers + 1),
        stuck: (0..=helpers).map(|_| AtomicU64::new(0)).collect(),
    };
    if helpers == 0 {
        work(&shared, 1, 0);
    } else {
        std::thread::scope(|scope| {
            let shared = &shared;
            let is_missing = |index: &u64| {
                let index = *index;
                let helper = std::thread::Builder::new();
                helper.spawn_scoped(scope, move || work(shared, helpers + 1, index)).is_err()
            };
            // Where the system gives no more threads, this one does their share.
            let missing: Vec<u64> = (1..=helpers).filter(is_missing).collect();
            if launch.cooperative && !missing.is_empty() {
                // Its blocks wait for each other.
                shared.stop.store(true, Ordering::Relaxed);
                panic!("the system gives no threads for a cooperative kernel");
            }
            for index in std::iter::once(0).chain(missing) {
                work(shared, helpers + 1, index);
            }
        });
    }
    match shared.fault.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(fault),
        Err(poisoned) => poisoned.into_inner().map_or(Ok(()), Err),
    }
}

/// What one thread does.
fn work(shared: &Shared<'_>, workers: u64, index: u64) {
    go_round(shared, workers, index);
    shared.stuck[index as usize].store(ENDED, Ordering::Release);
    shared.worker_rests(false);
}

/// Begins clusters (mostly of one block) in order, and goes round those that are not done.
fn go_round(shared: &Shared<'_>, workers: u64, index: u64) {
    let cooperative = shared.env.launch.cooperative;
    let size = shared.env.cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    let most = (RESIDENT / size).div_ceil(workers);
    let mut resident: VecDeque<Cluster<'_>> = VecDeque::new();
    let mut spare: Vec<Cluster<'_>> = Vec::new();
    let mut begun = index;
    let mut told = Instant::now();
    // The time is read after so many blocks: that costs as much as a small block.
    let (mut pace, mut unread) = (1u32, 0);
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        // A cooperative launch begins all its blocks at once; otherwise one more each time round.
        while cooperative || (resident.len() as u64) < most {
            let linear = if cooperative {
                begun += workers;
                begun - workers
            } else {
                shared.next.fetch_add(1, Ordering::Relaxed)
            };
            if linear >= shared.units {
                break;
            }
            let mut block = spare.pop().unwrap_or_else(|| Cluster::new(shared.env));
            // Where not all fit, one that waits for those of lower numbers must not keep them out.
            let all_fit = cooperative || shared.units <= most;
            let schedule = if all_fit { shared.env.launch.schedule } else { 0 };
            block.start(in_order_of(schedule, linear, shared.units));
            resident.push_back(block);
            if !cooperative {
                break;
            }
        }
        if resident.is_empty() {
            return;
        }
        let mut resting = 0;
        for _ in 0..resident.len() {
            let Some(mut block) = resident.pop_front() else { return };
            let alone = resident.is_empty();
            match block.run(if alone { TURNS } else { 1 }, !alone) {
                Progress::Done => {
                    unread += 1;
                    if unread >= pace {
                        let passed = told.elapsed();
                        if passed >= TELL {
                            shared.env.device.progress();
                            told = Instant::now();
                            pace = 1;
                        } else {
                            pace = (pace * 2).min(16);
                        }
                        unread = 0;
                    }
                    spare.push(block);
                }
                progress @ (Progress::Paused | Progress::Blocked | Progress::Rests) => {
                    resting += usize::from(progress == Progress::Rests);
                    if shared.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if shared.env.device.cancelled() {
                        report(shared, &block, 0, Some(FaultKind::Cancelled));
                        return;
                    }
                    // It may be waiting for a block of another thread, or for the host.
                    std::thread::yield_now();
                    resident.push_back(block);
                }
                Progress::Fault(warp) => {
                    report(shared, &block, warp, None);
                    return;
                }
            }
        }
        let all_begun =
            cooperative || resident.len() as u64 >= most || shared.next.load(Ordering::Relaxed) >= shared.units;
        if all_begun && !resident.is_empty() && shared.nobody_goes_on(index, &resident) {
            let blocks = (resident.len() as u64 * size, shared.units * size);
            if let Some(mut first) = resident.pop_front() {
                let warp = first.give_up_system(blocks, workers == 1);
                report(shared, &first, warp, None);
            }
            return;
        }
        if resting > 0 && resting == resident.len() && all_begun {
            shared.worker_rests(true);
        }
    }
}

#[cold]
fn report(shared: &Shared<'_>, block: &Cluster<'_>, warp: usize, kind: Option<FaultKind>) {
    shared.stop.store(true, Ordering::Relaxed);
    let (index, warp) = block.culprit(warp);
    let (found, lane) = warp.fault.clone().unwrap_or((FaultKind::Trap, 0));
    let fault = warp.fault_at(index, lane as usize, kind.unwrap_or(found));
    let mut slot = match shared.fault.lock() {
        Ok(slot) => slot,
        Err(poisoned) => poisoned.into_inner(),
    };
    slot.get_or_insert(fault);
}

#[cfg(test)]
mod tests {
    use super::in_order_of;

    #[test]
    fn every_schedule_begins_every_unit_once() {
        for units in 1..40 {
            for schedule in 0..20 {
                let mut begun: Vec<u64> = (0..units).map(|at| in_order_of(schedule, at, units)).collect();
                begun.sort_unstable();
                assert!(begun.into_iter().eq(0..units), "{units} in schedule {schedule}");
            }
        }
    }
}
