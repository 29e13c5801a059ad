//! Kernels as native code. Frequently executed code is compiled, a region at a time: the
//! instructions from an entry up to those that a warp executes collectively (barriers, shuffles,
//! votes, matrix products, calls) or that are not known here. Everything else stays in the
//! interpreter, so every kernel runs; uncompiled code is only slower.
//!
//! A region has two compiled forms, each made on demand: for packs of lanes in the host's vectors,
//! and for one lane after the other. Lanes of an incomplete pack, or that take another path than
//! the rest of their pack, run one by one. Between regions registers are in the warp's rows and
//! predicates: the interpreter and regions take over from each other at any instruction.
//!
//! `decode` and `effects` know the instructions, `flow` the control flow and the liveness of
//! registers, `plan` the blocks of a region. `region` makes the code for single lanes with
//! `instruction`, `values`, `arithmetic`, `floats` and `memory`; `pack` that for packs. `context`
//! is the data of running code, `entry` the compiled code of a place. `compiler` makes code,
//! `tiering` selects it. This file decides when to compile, and runs the result.
//!
//! Does not record addresses, and does not run clusters of several blocks: such launches are
//! interpreted.

#![warn(unreachable_pub)]

mod arithmetic;
mod compiler;
mod context;
mod decode;
mod effects;
mod entry;
mod floats;
mod flow;
mod instruction;
mod memory;
mod pack;
mod plan;
mod region;
mod tiering;
mod values;

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use compiler::{Installed, RegionCompiler, Tools, relocations};
use context::{RegionContext, Site};
use decode::Kind;
use entry::Region;
use pack::ONE_BY_ONE;
use pack::uniformity::Exit;

use sim_exec::env::Env;
use sim_exec::operations::operands;
use sim_exec::program::{Entered, Inst, LANES, NativeCode, NativeEntries, Next, Pred, Program};
use sim_exec::warp::Warp;

/// Entries of warps into a region before it is compiled. To compile an instruction takes about as
/// long as to interpret it for 2,000 warps; but a region has instructions that few warps come to,
/// and is compiled more than once (docs/measurements/simulator-speed.md).
const OFTEN: u32 = 10_000;

/// What is kept for a warp.
struct OfWarp {
    context: RegionContext,
    /// Where its accesses found memory.
    sites: Vec<Site>,
}

impl OfWarp {
    fn new() -> OfWarp {
        OfWarp { context: RegionContext::new(), sites: Vec::new() }
    }
}

/// The native code of one program.
struct Native {
    /// For each instruction: null where no region begins, [`candidate`], or the region.
    entries: Arc<[AtomicPtr<()>]>,
    counts: Box<[AtomicU32]>,
    /// Of each instruction: a warp executes it together and goes on behind it.
    passes: Box<[bool]>,
    often: u32,
    compiler: Mutex<RegionCompiler>,
    #[allow(clippy::vec_box, reason = "entries point to them")]
    regions: Mutex<Vec<Box<Region>>>,
}

/// How lanes have left a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// All at this instruction.
    At(u32),
    /// Each as the context says.
    Apart,
    /// One is at fault.
    Fault,
}

/// Marks an entry that is not compiled yet.
fn candidate() -> *mut () {
    std::ptr::dangling_mut()
}

/// Whether a region may begin at an instruction: one that native code executes, if only that of
/// whole warps.
fn may_begin(inst: &Inst) -> bool {
    !matches!(decode::kind_of_warp(inst), Kind::Stop)
}

/// Native code for a program; none is there yet. None where the host has none.
pub fn of(program: &Program, always: bool) -> Option<NativeEntries> {
    let native = Native::new(program, always)?;
    Some(NativeEntries { entries: native.entries.clone(), code: Box::new(native) })
}

impl NativeCode for Native {
    fn enter(&self, warp: &mut Warp<'_>, fuel: u32) -> Entered {
        let program = warp.env.program;
        let Some(mut region) = self.region(warp.env, warp.pc) else { return Entered::Nothing };
        let mask = warp.active;
        if !self.ready(region, warp) {
            return Entered::Nothing;
        }
        let fresh = warp.native.is_none();
        let kept = warp.native.get_or_insert_with(|| Box::new(OfWarp::new()));
        debug_assert!(kept.is::<OfWarp>());
        // SAFETY: nothing else is ever put there, and nobody takes it away while the warp is in
        // native code. (A checked cast is a call, one for each entry.)
        let OfWarp { context, sites } = unsafe { &mut *std::ptr::from_mut(&mut **kept).cast::<OfWarp>() };
        if fresh {
            context.know(warp);
        }
        if fresh || !warp.native_known {
            context.fill(warp);
            warp.native_known = true;
        }
        (context.frame, context.preds) = warp.frame_and_preds();
        context.local_base = u64::from(warp.lbase);
        context.spent = 0;
        context.tid = &raw const warp.tid;
        context.warp = std::ptr::from_mut(warp).cast();
        let fuel = fuel.max(1);
        let mut turns = 0;
        // What was known where the warp came to a barrier is so behind it.
        let mut left = if warp.resumed && !fresh { context.left } else { std::ptr::null() };
        let result = loop {
            // SAFETY: exits live as long as `self`.
            context.trusted =
                u64::from(unsafe { left.cast::<Exit>().as_ref() }.is_some_and(|left| region.trusts(left)));
            context.missed = 0;
            context.left = std::ptr::null();
            turns += 1;
            let end = self.run(region, warp, context, sites, mask, u64::from(fuel));
            if context.missed != 0 {
                region.entered.fetch_add(std::mem::take(&mut context.entered), Ordering::Relaxed);
                self.missed(region, warp, context.missed as usize - 1);
            }
            let ran = Entered::Ran { spent: context.spent != 0, turns };
            match end {
                Left::Fault => break Entered::Fault,
                Left::Apart => {
                    self.part(warp, mask, &context.exits);
                    break ran;
                }
                Left::At(pc) => {
                    self.left_at(program, pc);
                    warp.pc = pc;
                }
            }
            if context.spent != 0 || turns == fuel || !warp.groups.is_empty() {
                break ran;
            }
            let mut pure = true;
            let stuck = warp.pc == region.entry;
            let next = self.together(warp, mask, stuck, &mut pure);
            if !pure {
                context.left = std::ptr::null();
            }
            left = context.left;
            match next {
                Together::Region(next) if self.ready(next, warp) => region = next,
                Together::Fault => break Entered::Fault,
                _ => break ran,
            }
        };
        if warp.parked.is_none() {
            context.left = std::ptr::null();
        }
        result
    }
}

/// What came of the instructions between two regions.
enum Together<'n> {
    /// The warp stands at a region.
    Region(&'n Region),
    /// It stands at something else, or its lanes have parted.
    Other,
    Fault,
}

/// Runs compiled code for some lanes.
fn run_code(
    code: &Installed,
    warp: &mut Warp<'_>,
    context: &mut RegionContext,
    sites: &mut Vec<Site>,
    mask: u32,
    fuel: u64,
) -> u64 {
    let own = &code.sites;
    if sites.len() < own.end as usize {
        sites.resize(own.end as usize, Site::default());
    }
    if code.local {
        context.local = warp.local();
    }
    // SAFETY: there are so many.
    (context.fuel, context.sites) = (fuel, unsafe { sites.as_mut_ptr().add(own.start as usize) });
    // SAFETY: the context was filled for this warp, whose frame is that of the region's function,
    // and the mask is not empty.
    unsafe { (code.code)(context, mask) }
}

impl Native {
    fn new(program: &Program, always: bool) -> Option<Native> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let tools = Tools::get(cfg!(debug_assertions) && always)?;
        let code = &program.code;
        let entries: Arc<[AtomicPtr<()>]> = (0..=code.len()).map(|_| AtomicPtr::default()).collect();
        let mark = |pc: u32| {
            if let Some(entry) = entries.get(pc as usize) {
                entry.store(candidate(), Ordering::Relaxed);
            }
        };
        for function in &program.functions {
            mark(function.entry);
        }
        for (pc, inst) in code.iter().enumerate() {
            let pc = pc as u32;
            match decode::kind(inst) {
                Kind::Stop => {
                    decode::continues(program, inst, pc).into_iter().for_each(mark);
                }
                Kind::Branch => {
                    let target = operands::Branch::of(inst).target();
                    if target <= pc {
                        mark(target);
                    }
                }
                _ => {}
            }
        }
        // Nothing begins at what stops it.
        for (pc, inst) in code.iter().enumerate() {
            let ends = pc + 1 == code.len() && inst.guard != Pred::ALWAYS;
            if !may_begin(inst) || ends {
                entries[pc].store(std::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        entries[code.len()].store(std::ptr::null_mut(), Ordering::Relaxed);
        let counts = (0..=code.len()).map(|_| AtomicU32::new(0)).collect();
        let often = if always { 0 } else { OFTEN };
        let passes = code.iter().map(decode::passes).collect();
        let (compiler, regions) = (Mutex::new(RegionCompiler::new(tools)), Mutex::default());
        Some(Native { entries, counts, passes, often, compiler, regions })
    }

    /// Runs a region for the lanes of a mask: complete packs as such, the others one by one.
    fn run(
        &self,
        region: &Region,
        warp: &mut Warp<'_>,
        context: &mut RegionContext,
        sites: &mut Vec<Site>,
        mask: u32,
        fuel: u64,
    ) -> Left {
        let width = region.width();
        let packs = width.full_packs(mask);
        let code = if packs == 0 { None } else { region.packs.code() };
        let Some(code) = code else {
            let Some(code) = region.lanes.code() else { return Left::At(region.entry) };
            return match run_code(code, warp, context, sites, mask, fuel) {
                region::FAULT => Left::Fault,
                region::APART => Left::Apart,
                pc => Left::At(pc as u32),
            };
        };
        context.entered += packs.count_ones() >> width.lanes().trailing_zeros();
        let result = run_code(code, warp, context, sites, packs, fuel);
        if result == region::FAULT {
            return Left::Fault;
        }
        let rest = mask & !packs;
        if rest == 0 && result & u64::from(ONE_BY_ONE) == 0 && result != region::APART {
            return Left::At(result as u32);
        }
        self.run_rest(region, warp, context, sites, (mask, packs), fuel)
    }

    /// Goes on one by one with lanes that have left code for packs so, and with those that were
    /// never in a pack.
    #[inline(never)]
    fn run_rest(
        &self,
        region: &Region,
        warp: &mut Warp<'_>,
        context: &mut RegionContext,
        sites: &mut Vec<Site>,
        (mask, packs): (u32, u32),
        fuel: u64,
    ) -> Left {
        let (rest, width) = (mask & !packs, region.width());
        for lane in 0..LANES {
            if rest >> lane & 1 != 0 {
                context.exits[lane] = region.entry | ONE_BY_ONE;
            }
        }
        loop {
            let waits = (0..LANES).find(|&lane| mask >> lane & 1 != 0 && context.exits[lane] & ONE_BY_ONE != 0);
            let Some(first) = waits else {
                let place = context.exits[mask.trailing_zeros() as usize & (LANES - 1)];
                let same = (0..LANES).all(|lane| mask >> lane & 1 == 0 || context.exits[lane] == place);
                return if same { Left::At(place) } else { Left::Apart };
            };
            let place = context.exits[first];
            let mut lanes = 0;
            for lane in 0..LANES {
                lanes |= u32::from(context.exits[lane] == place) << lane;
            }
            let (lanes, pc) = (lanes & mask, place & !ONE_BY_ONE);
            let program = warp.env.program;
            match self.lanes_from(region, program, pc, width.lanes() == LANES) {
                Some(code) => {
                    if run_code(code, warp, context, sites, lanes, fuel) == region::FAULT {
                        return Left::Fault;
                    }
                }
                None => (0..LANES).filter(|lane| lanes >> lane & 1 != 0).for_each(|lane| context.exits[lane] = pc),
            }
        }
    }

    /// The code that runs lanes one by one from an instruction on. `whole`: lanes of a whole warp,
    /// which go on together where they meet again.
    fn lanes_from<'n>(&'n self, region: &'n Region, program: &Program, pc: u32, whole: bool) -> Option<&'n Installed> {
        if pc == region.entry {
            if !region.lanes.tried() {
                self.make_lanes(region, program)?;
            }
            return region.lanes.code();
        }
        let entry = self.entries[pc as usize].load(Ordering::Acquire);
        let region = if entry.is_null() || entry == candidate() {
            self.new_region(pc, self.often)?
        } else {
            // SAFETY: as in `region`.
            unsafe { &*entry.cast::<Region>() }
        };
        if whole && matches!(decode::kind(&program.code[pc as usize]), Kind::Branch) {
            if !region.joining.tried() {
                self.make_joining(region, program)?;
            }
            if let Some(code) = region.joining.code() {
                return Some(code);
            }
        }
        if !region.lanes.tried() {
            self.make_lanes(region, program)?;
        }
        region.lanes.code()
    }

    /// Executes instructions of a warp whose lanes are all together, up to the next region.
    /// `stuck`: the region there has left without executing anything. `pure` becomes false when
    /// they may have written registers.
    fn together(&self, warp: &mut Warp<'_>, mask: u32, mut stuck: bool, pure: &mut bool) -> Together<'_> {
        let program = warp.env.program;
        loop {
            let pc = warp.pc;
            let passes = self.passes.get(pc as usize).is_some_and(|&passes| passes);
            if !passes || mask == u32::MAX && !std::mem::take(&mut stuck) {
                match self.region(warp.env, pc) {
                    Some(region) if !passes || self.ready(region, warp) => break Together::Region(region),
                    None if !passes => break Together::Other,
                    _ => {}
                }
            }
            let inst = &program.code[pc as usize];
            let lanes = mask & warp.pred(inst.guard);
            if lanes != 0 {
                *pure &= decode::writes_nothing(inst);
                match (inst.run)(warp, inst, lanes) {
                    Next::Step => {}
                    Next::Fault => break Together::Fault,
                    _ => break Together::Other,
                }
            }
            warp.pc = pc + 1;
        }
    }

    /// Makes groups of the lanes that have left a region at different instructions.
    #[inline(never)]
    fn part(&self, warp: &mut Warp<'_>, mask: u32, exits: &[u32; LANES]) {
        let mut left = mask;
        let mut parted = false;
        while left != 0 {
            let pc = exits[left.trailing_zeros() as usize & (LANES - 1)];
            let mut lanes = 0;
            for (lane, &exit) in exits.iter().enumerate() {
                lanes |= u32::from(exit == pc) << lane;
            }
            lanes &= left;
            self.left_at(warp.env.program, pc);
            if lanes == mask && !parted {
                warp.pc = pc;
                return;
            }
            parted = true;
            let group = warp.here(pc);
            warp.send(lanes, group);
            left &= !lanes;
        }
    }

    /// The region that begins at an instruction, when it is entered often.
    #[inline]
    fn region(&self, env: &Env<'_>, pc: u32) -> Option<&Region> {
        let entry = self.entries[pc as usize].load(Ordering::Acquire);
        if entry.is_null() {
            return None;
        }
        if entry == candidate() {
            return self.region_if_due(env, pc);
        }
        // SAFETY: regions live as long as `self`.
        Some(unsafe { &*entry.cast::<Region>() })
    }

    /// A place where lanes have left a region: the next one begins there.
    #[inline]
    fn left_at(&self, program: &Program, pc: u32) {
        let count = &self.counts[pc as usize];
        if count.load(Ordering::Relaxed) == 0 && count.fetch_add(1, Ordering::Relaxed) == 0 {
            let inst = program.code.get(pc as usize);
            if inst.is_some_and(may_begin) {
                let (null, new) = (std::ptr::null_mut(), candidate());
                let _ = self.entries[pc as usize].compare_exchange(null, new, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    fn region_if_due(&self, env: &Env<'_>, pc: u32) -> Option<&Region> {
        let count = self.counts[pc as usize].fetch_add(1, Ordering::Relaxed);
        if env.program.code.get(pc as usize).is_none() || count < self.often {
            return None;
        }
        self.new_region(pc, count)
    }

    /// The region that begins at an instruction; nothing of it is compiled yet.
    #[cold]
    fn new_region(&self, pc: u32, waited: u32) -> Option<&Region> {
        let mut regions = self.regions.lock().ok()?;
        let entry = &self.entries[pc as usize];
        let known = entry.load(Ordering::Acquire);
        if known.is_null() || known == candidate() {
            self.counts[pc as usize].fetch_add(1, Ordering::Relaxed);
            regions.push(Box::new(Region::new(pc, waited)));
            let new: *const Region = &raw const **regions.last()?;
            entry.store(new.cast_mut().cast(), Ordering::Release);
        }
        // SAFETY: as in `region`.
        Some(unsafe { &*entry.load(Ordering::Acquire).cast::<Region>() })
    }
}
