//! The state of one warp and the loop that executes its instructions, divergence included.
//!
//! Lanes at the same instruction with the same frame form a group and execute together. Of several
//! groups that can run, the one deepest in calls goes first, then the one that is furthest behind
//! in the code; groups meet again when they reach the same instruction. Since compilers lay out
//! code in (nearly) topological order, that is where control flow joins.
//!
//! Every lane makes progress, as since Volta: the group that has waited longest goes next after one
//! that keeps jumping, after one that yields (`nanosleep`), and after so many jumps and divergences
//! of whichever groups had been preferred. So a lane may spin for another lane of its warp.

use std::any::Any;
use std::sync::atomic::Ordering;

use sim_races::{Lanes, MemoryEvents, SyncKind};

use crate::block::BlockState;
use crate::bulk_work::object::Vain;
use crate::env::Env;
use crate::exec::matrix::held_registers::GroupRegisters;
use crate::grid_barrier::Arrivals;
pub(crate) use crate::groups::{Group, Wait};
use crate::interface::{Extent, Fault, FaultKind};
use crate::observed_order::OrderEvent;
use crate::polls::Polls;
use crate::program::{Entered, Inst, LANES, NativeEntries, Next, Pred, Row, Slot};

/// Jumps after which a group gives way to the other groups of its warp.
const SLICE: u32 = 512;

/// Jumps and divergences after which the group that has waited longest has its turn, whichever
/// groups made them: lanes that spin and diverge in their loop use up no slice.
const PATIENCE: u32 = 1 << 12;

/// Rows that one warp may have: 2 Mi rows are 512 MiB, which only runaway recursion reaches.
const MAX_ROWS: u32 = 1 << 17;

/// What became of a warp that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All lanes have exited.
    Done,
    /// All lanes wait for other warps.
    Blocked,
    /// Its budget is used up, or it asked to let others run.
    Paused,
    /// See [`Warp::fault`].
    Fault,
}

/// One warp.
pub struct Warp<'b> {
    pub env: &'b Env<'b>,
    /// The block it belongs to; valid while the warp runs.
    pub(crate) block: *mut BlockState,
    pub index: u32,
    pub pc: u32,
    pub active: u32,
    pub(crate) rbase: u32,
    pub(crate) pbase: u32,
    pub lbase: u32,
    pub(crate) alive: u32,
    /// The lanes that it begins with.
    whole: u32,
    pub groups: Vec<Group>,
    frame: *mut Row,
    constants: *const Row,
    rows: Vec<Row>,
    preds: Vec<u32>,
    /// Local memory of the lanes one after the other, allocated when first touched.
    pub(crate) local: Vec<u64>,
    /// Extents found lately, and which entry is replaced next.
    pub extents: [Extent; 4],
    pub(crate) next_extent: usize,
    pub(crate) fault: Option<(FaultKind, u32)>,
    /// Thread indices in x, y, z of each lane.
    pub tid: [[u32; LANES]; 3],
    pub(crate) stamp: u64,
    /// The group that has waited longest is picked next.
    oldest: bool,
    /// Jumps and divergences since such a group was picked.
    unfair: u32,
    /// How often lanes have yielded while others waited for them.
    pub(crate) yields: u32,
    /// The barrier (number and phase that must end) that the whole warp waits at, at its program
    /// counter. There are no groups then.
    pub parked: Option<(u8, u32)>,
    /// It goes on behind such a barrier, and has executed nothing since.
    pub resumed: bool,
    /// Its lanes at the grid's barrier.
    pub(crate) arrivals: Arrivals,
    /// Jumps made since the launch began, the base of `%clock`.
    pub(crate) jumps: u64,
    pub(crate) vain: Vain,
    /// Of barriers in memory of the system's.
    pub(crate) polls: Polls,
    /// What it did last was to wait for the grids that its own one depends on.
    pub(crate) awaits_grids: bool,
    /// What the store that is executed writes, for those who observe.
    pub(crate) storing: Option<Box<[[u64; 4]; LANES]>>,
    /// What the last one wrote, whose memory serves again.
    pub(crate) last_stored: Option<Box<[[u64; 4]; LANES]>>,
    /// Of the compare-and-swap of 4 bytes that is executed: the lanes that leave each byte as it
    /// is.
    pub(crate) keeping: [u32; 4],
    /// The operation on memory that is executed is a part of that bulk operation.
    pub(crate) bulk: Option<u64>,
    /// What registers of products of its warp group hold, for those who look for races.
    pub(crate) registers: Option<Box<GroupRegisters>>,
    /// What native code keeps for this warp; it has not seen it since the warp was started if it is
    /// not `known`.
    pub native: Option<Box<dyn Any>>,
    pub native_known: bool,
}

impl<'b> Warp<'b> {
    /// The lanes that it begins with.
    pub(crate) fn began_with(&self) -> u32 {
        self.whole
    }

    /// A warp that has not begun.
    pub(crate) fn new(env: &'b Env<'b>, index: u32) -> Self {
        let [nx, ny, _] = env.launch.block;
        let mut tid = [[0; LANES]; 3];
        let linear = |lane: usize| index * LANES as u32 + lane as u32;
        tid[0] = std::array::from_fn(|lane| linear(lane) % nx);
        tid[1] = std::array::from_fn(|lane| linear(lane) / nx % ny);
        tid[2] = std::array::from_fn(|lane| linear(lane) / nx / ny);
        let function = &env.program.functions[env.kernel.function as usize];
        let threads: u32 = env.launch.block.iter().product();
        let lanes = threads.saturating_sub(index * LANES as u32).min(LANES as u32);
        let mut warp = Warp {
            env,
            block: std::ptr::null_mut(),
            index,
            pc: 0,
            active: 0,
            rbase: 0,
            pbase: 0,
            lbase: 0,
            alive: 0,
            whole: if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 },
            groups: Vec::new(),
            frame: std::ptr::null_mut(),
            constants: env.constants.as_ptr(),
            rows: vec![Row([0; LANES]); function.rows as usize],
            preds: vec![0; function.preds as usize],
            local: Vec::new(),
            extents: [Extent { start: 1, end: 0, writable: false }; 4],
            next_extent: 0,
            fault: None,
            tid,
            stamp: 0,
            oldest: false,
            unfair: 0,
            yields: 0,
            parked: None,
            resumed: false,
            arrivals: Arrivals::default(),
            jumps: 0,
            vain: Vain::default(),
            polls: Polls::default(),
            awaits_grids: false,
            storing: None,
            last_stored: None,
            keeping: [0; 4],
            bulk: None,
            registers: None,
            native: None,
            native_known: false,
        };
        warp.frame = warp.rows.as_mut_ptr();
        warp
    }

    /// Puts the warp at the start of the kernel, with the lanes that the block has.
    pub(crate) fn start(&mut self) {
        self.alive = self.whole;
        self.active = self.alive;
        self.groups.clear();
        (self.oldest, self.unfair) = (false, 0);
        self.pc = self.env.program.functions[self.env.kernel.function as usize].entry;
        (self.rbase, self.pbase, self.lbase) = (0, 0, 0);
        self.native_known = false;
        (self.parked, self.resumed, self.arrivals) = (None, false, Arrivals::default());
        (self.fault, self.vain, self.polls) = (None, Vain::default(), Polls::default());
        self.registers = self.env.product_rows.as_ref().map(|_| Box::default());
        self.set_frame();
        // The return address of a kernel: no instruction.
        self.rows[0] = Row([u64::from(u32::MAX); LANES]);
    }

    /// The running function's rows, and its predicates.
    pub fn frame_and_preds(&mut self) -> (*mut Row, *mut u32) {
        (self.frame, self.preds[self.pbase as usize..].as_mut_ptr())
    }

    pub(crate) fn set_frame(&mut self) {
        // SAFETY: `enter` and `new` keep `rows` long enough for the frame at `rbase`.
        self.frame = unsafe { self.rows.as_mut_ptr().add(self.rbase as usize) };
    }

    /// Makes room for a frame above the running one.
    ///
    /// Returns false when the calls are nested too deep.
    pub(crate) fn reserve(&mut self, rbase: u32, rows: u32, pbase: u32, preds: u32) -> bool {
        let (Some(rows), Some(preds)) = (rbase.checked_add(rows), pbase.checked_add(preds)) else { return false };
        if rows > MAX_ROWS || preds > MAX_ROWS {
            return false;
        }
        if self.rows.len() < rows as usize {
            self.rows.resize((rows as usize).next_power_of_two(), Row([0; LANES]));
        }
        if self.preds.len() < preds as usize {
            self.preds.resize((preds as usize).next_power_of_two(), 0);
        }
        self.set_frame();
        true
    }

    /// The row of an operand.
    #[inline(always)]
    pub(crate) fn row(&self, slot: Slot) -> *const Row {
        let base = if slot.0 & Slot::CONSTANT != 0 { self.constants } else { self.frame.cast_const() };
        // SAFETY: the compiler of the program hands out slots inside the constants or the
        // function's frame, and the frame's rows were reserved before the function was entered.
        unsafe { base.add((slot.0 & !Slot::CONSTANT) as usize) }
    }

    /// The row of a result.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, slot: Slot) -> *mut Row {
        debug_assert!(slot.0 & Slot::CONSTANT == 0);
        // SAFETY: as in `row`; results are never constants.
        unsafe { self.frame.add(slot.0 as usize) }
    }

    /// One lane of an operand.
    #[inline(always)]
    pub(crate) fn get(&self, slot: Slot, lane: usize) -> u64 {
        // SAFETY: `row` points to a live row that nothing else refers to now; `lane` is masked into
        // it.
        unsafe { (*self.row(slot)).0[lane & (LANES - 1)] }
    }

    /// Sets one lane of a result.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: Slot, lane: usize, value: u64) {
        // SAFETY: as in `get`.
        unsafe { (*self.row_mut(slot)).0[lane & (LANES - 1)] = value }
    }

    /// A row of an absolute number, whatever frame runs.
    pub(crate) fn absolute(&mut self, row: u32) -> &mut Row {
        &mut self.rows[row as usize]
    }

    /// The lanes in which a predicate is true.
    #[inline(always)]
    pub fn pred(&self, pred: Pred) -> u32 {
        let flip = if pred.0 & Pred::NEGATED != 0 { u32::MAX } else { 0 };
        if pred.0 & !Pred::NEGATED == Pred::ALWAYS.0 {
            return u32::MAX ^ flip;
        }
        self.preds[(self.pbase + (pred.0 & !Pred::NEGATED)) as usize] ^ flip
    }

    /// Sets a predicate in the lanes of a mask. The predicate that is not there is ignored.
    #[inline(always)]
    pub(crate) fn set_pred(&mut self, pred: Pred, mask: u32, bits: u32) {
        if pred == Pred::ALWAYS {
            return;
        }
        let word = &mut self.preds[(self.pbase + pred.0) as usize];
        *word = (*word & !mask) | (bits & mask);
    }

    /// The block's state.
    #[inline(always)]
    pub fn block(&mut self) -> &mut BlockState {
        // SAFETY: set by the block before it runs the warp; the block's state is not touched by
        // anything else meanwhile, for one thread runs the whole block.
        unsafe { &mut *self.block }
    }

    /// Records what is wrong; the first lane of `mask` is the culprit.
    #[cold]
    pub fn fail(&mut self, kind: FaultKind, mask: u32) -> Next {
        self.fault = Some((kind, mask.trailing_zeros()));
        Next::Fault
    }

    /// What is wrong, with the place in the code and the thread.
    #[cold]
    pub(crate) fn fault_at(&self, block: [u32; 3], lane: usize, kind: FaultKind) -> Fault {
        let program = self.env.program;
        let lane = lane & (LANES - 1);
        Fault {
            kernel: self.env.kernel.name.clone(),
            block,
            thread: self.tid.map(|tid| tid[lane]),
            kind,
            line: program.line(self.pc),
            machine: program.machine.is_some(),
            source: program.source(self.pc).cloned(),
        }
    }

    /// Ends lanes.
    pub(crate) fn exit(&mut self, mask: u32) {
        self.active &= !mask;
        self.alive &= !mask;
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Lanes(_)) {
                group.wait = Wait::None;
            }
        }
        let (index, alive) = (self.index as usize, self.alive);
        let site = self.pc;
        self.tell_lanes(mask, |events, lanes| events.exits(lanes, site));
        let completed = self.block().lanes_left(index, alive);
        for number in (0..u32::BITS as u8).filter(|number| completed >> number & 1 != 0) {
            let whole = self.block().is_of_all(number);
            self.tell_barrier_completes(mask, number, whole);
        }
        if self.env.launch.cooperative {
            self.env.grid_barrier.leave(mask.count_ones(), self.env.threads());
        }
    }

    /// Tells those who observe the order between kernels.
    #[inline]
    pub(crate) fn tell_order(&mut self, event: OrderEvent) {
        if self.env.orders {
            let (device, index) = (self.env.device, self.index);
            device.observe_order(self.block().index, index, event);
        }
    }

    /// A barrier of the block has what it waited for. `lanes`: some that came to it.
    pub(crate) fn tell_barrier_completes(&mut self, lanes: u32, number: u8, whole: bool) {
        self.tell_lanes(lanes, |events, lanes| events.barrier_completes(lanes.block, number, whole));
        self.tell_order(OrderEvent::BlockMeets);
    }

    /// Tells of lanes of this warp.
    #[inline]
    pub(crate) fn tell_lanes(&mut self, mask: u32, tell: impl FnOnce(&dyn MemoryEvents, Lanes)) {
        if let Some(events) = self.env.events
            && mask != 0
        {
            let (block, warp) = (self.block().linear as u32, self.index);
            tell(events, Lanes { block, warp, mask });
        }
    }

    /// Tells that what is told next is all that an instruction does, which may be left out
    /// (`None`: it may not).
    #[inline]
    pub(crate) fn tell_synchronises(&mut self, by: Option<(u32, SyncKind)>) {
        if let Some(events) = self.env.events {
            events.synchronises(by);
        }
    }

    /// Runs the warp until it has ended, waits for others, or has made `budget` jumps.
    pub fn run(&mut self, budget: u32) -> Outcome {
        let code: &'b [Inst] = &self.env.program.code;
        let native: Option<&'b NativeEntries> = self.env.native;
        let mut budget = budget;
        if let Some((number, phase)) = self.parked {
            if self.block().barrier_passed(number, phase).is_none() {
                return Outcome::Blocked;
            }
            self.parked = None;
            self.pc += 1;
            self.resumed = true;
        }
        self.set_frame();
        if self.resumed
            && let Some(outcome) = self.run_to_next_barrier(&mut budget)
        {
            return outcome;
        }
        loop {
            let oldest = self.oldest || self.unfair >= PATIENCE;
            if (!self.groups.is_empty() || self.active == 0) && !self.pick(oldest) {
                return if self.alive == 0 { Outcome::Done } else { Outcome::Blocked };
            }
            let others = self.groups.iter().any(|group| group.wait == Wait::None);
            self.oldest = false;
            if oldest || !others {
                self.unfair = 0;
            }
            // The nearest place where another group waits to be joined.
            let limit = if oldest {
                u32::MAX
            } else {
                let same = self.groups.iter().filter(|group| group.rbase == self.rbase);
                same.filter(|group| !group.wait.is_for_others())
                    .map(|group| group.pc)
                    .filter(|&pc| pc > self.pc)
                    .min()
                    .unwrap_or(u32::MAX)
            };
            // Groups behind this one in the code are joined or overtaken only by jumping back.
            let floor = if oldest || !others { 0 } else { self.pc };
            let mut slice = if others { SLICE } else { u32::MAX };
            let mut pc = self.pc;
            loop {
                if let Some(native) = native
                    && !native.entries[pc as usize].load(Ordering::Acquire).is_null()
                {
                    self.pc = pc;
                    let fuel = if others { SLICE.min(budget) } else { budget };
                    match native.code.enter(self, fuel) {
                        Entered::Nothing => {}
                        Entered::Fault => return Outcome::Fault,
                        Entered::Ran { spent, turns } => {
                            self.jumps += u64::from(turns);
                            // A region has jumps of its own, which are not counted.
                            self.unfair += if others { PATIENCE / 256 } else { 0 };
                            if self.parked.is_some() {
                                return Outcome::Blocked;
                            }
                            budget = budget.saturating_sub(turns);
                            if budget == 0 || spent && !others {
                                return self.pause();
                            }
                            self.oldest |= spent;
                            if spent || !self.groups.is_empty() || self.active == 0 {
                                break;
                            }
                            pc = self.pc;
                        }
                    }
                }
                self.resumed = false;
                let inst = &code[pc as usize];
                let mask = self.active & self.pred(inst.guard);
                if mask == 0 {
                    pc += 1;
                } else {
                    self.pc = pc;
                    if let Some(touch) = self.env.touch {
                        touch(self, inst, mask);
                    }
                    match (inst.run)(self, inst, mask) {
                        Next::Step => pc += 1,
                        Next::Jumped => {
                            pc = self.pc;
                            self.jumps += 1;
                            self.unfair += u32::from(others);
                            slice -= 1;
                            budget -= 1;
                            if budget == 0 {
                                return self.pause();
                            }
                            if slice == 0 {
                                self.oldest = true;
                                break;
                            }
                            if pc < floor {
                                break;
                            }
                        }
                        Next::Repick => {
                            self.unfair += 1;
                            budget -= 1;
                            if budget == 0 {
                                return self.pause();
                            }
                            break;
                        }
                        Next::Parked => return Outcome::Blocked,
                        Next::Yield => {
                            self.jumps += 1;
                            self.oldest = true;
                            return self.pause();
                        }
                        Next::Fault => return Outcome::Fault,
                    }
                }
                if pc >= limit {
                    self.pc = pc;
                    break;
                }
            }
        }
    }

    /// Runs native code of a whole warp that goes on behind a barrier: mostly it comes to the next
    /// one, and nothing of what `run` looks at matters. None where that is not so.
    #[inline]
    fn run_to_next_barrier(&mut self, budget: &mut u32) -> Option<Outcome> {
        let native: &'b NativeEntries = self.env.native?;
        if !self.groups.is_empty() || native.entries[self.pc as usize].load(Ordering::Acquire).is_null() {
            return None;
        }
        match native.code.enter(self, *budget) {
            Entered::Nothing => None,
            Entered::Fault => Some(Outcome::Fault),
            Entered::Ran { spent, turns } => {
                self.resumed = false;
                self.jumps += u64::from(turns);
                *budget = budget.saturating_sub(turns);
                if self.parked.is_some() {
                    return Some(Outcome::Blocked);
                }
                (*budget == 0 || spent).then(|| self.pause())
            }
        }
    }

    /// Stops for now. The group that ran goes to the end of the queue.
    fn pause(&mut self) -> Outcome {
        if self.active != 0 && !self.groups.is_empty() {
            let group = self.here(self.pc);
            self.send(self.active, group);
        }
        if self.alive == 0 { Outcome::Done } else { Outcome::Paused }
    }
}
