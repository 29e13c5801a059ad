//! Which code is made for a region, and when: on first need, and again for packs that find other
//! values than the code assumes, or whose lanes part.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::Native;
use super::compiler::{Piece, RegionCompiler, Wanted};
use super::entry::{Region, Tier, narrow, observed, widest};
use super::pack::uniformity::Class;
use super::pack::width::Width;
use sim_exec::program::Program;
use sim_exec::warp::Warp;

/// Packs that may find other values than was supposed before the region is compiled again.
const MISSES: u32 = 12;

/// What a profiler calls code.
fn name(program: &Program, what: &str, pc: u32) -> String {
    format!("{what} from {pc} line {}", program.line(pc))
}

impl Native {
    /// Makes what a warp needs of a region. Returns false when it cannot run it, or when it is too
    /// early to compile.
    #[inline(always)]
    pub(super) fn ready(&self, region: &Region, warp: &mut Warp<'_>) -> bool {
        if warp.active == u32::MAX && region.packs.code().is_some() {
            return true;
        }
        self.made_ready(region, warp)
    }

    #[inline(never)]
    fn made_ready(&self, region: &Region, warp: &mut Warp<'_>) -> bool {
        let packs = region.width().full_packs(warp.active);
        if packs != 0 && !region.packs.tried() {
            if !region.is_due(self.often) {
                return false;
            }
            self.make_packs(region, warp);
        }
        if packs != 0 && region.packs.code().is_some() {
            return true;
        }
        if !region.lanes.tried() {
            if !region.is_due(self.often) {
                return false;
            }
            self.make_lanes(region, warp.env.program);
        }
        region.lanes.code().is_some()
    }

    fn compiler(&self) -> Option<MutexGuard<'_, RegionCompiler>> {
        if self.often == 0 { self.compiler.lock().ok() } else { self.compiler.try_lock().ok() }
    }

    #[cold]
    pub(super) fn make_lanes(&self, region: &Region, program: &Program) -> Option<()> {
        self.make(region.entry, &region.lanes, ("lanes", Wanted::Lanes), program)
    }

    #[cold]
    pub(super) fn make_joining(&self, region: &Region, program: &Program) -> Option<()> {
        self.make(region.entry, &region.joining, ("lanes up to join", Wanted::UpToJoin), program)
    }

    /// Makes code for lanes one by one. None while another thread makes code.
    fn make(&self, pc: u32, tier: &Tier, (what, wanted): (&str, Wanted<'_>), program: &Program) -> Option<()> {
        let mut compiler = self.compiler()?;
        if !tier.tried() {
            let piece = compiler.compile(program, pc, wanted);
            tier.set(piece.and_then(|piece| compiler.install(&piece, || name(program, what, pc))));
        }
        Some(())
    }

    #[cold]
    fn make_packs(&self, region: &Region, warp: &mut Warp<'_>) -> Option<()> {
        let mut compiler = self.compiler()?;
        if region.packs.tried() {
            return Some(());
        }
        let program = warp.env.program;
        let (width, piece) = new_packs(&mut compiler, region, warp)?;
        let installed = piece.as_ref().and_then(|piece| {
            let what = format!("packs of {}", width.lanes());
            compiler.install(piece, || name(program, &what, region.entry))
        });
        region.set_packs(width, installed, piece.as_ref().map_or(&[][..], |piece| &piece.supposed));
        Some(())
    }

    /// A pack has found values that are not as supposed: often enough, and the region is compiled
    /// without.
    #[cold]
    pub(super) fn missed(&self, region: &Region, warp: &mut Warp<'_>, first: usize) {
        let missed = region.missed.fetch_add(1, Ordering::Relaxed) + 1;
        if missed < MISSES || missed < region.entered.load(Ordering::Relaxed) / 16 {
            return;
        }
        let Some(mut compiler) = self.compiler() else { return };
        let Some(flow) = compiler.flow(warp.env.program, region.entry) else { return };
        // What the pack found is in the frame no more: nothing is supposed now of what differs
        // between any of the warp's packs.
        let registers = flow.registers();
        let width = region.width();
        let now = observed(warp, flow, width, width.full() << first);
        if let Ok(mut varying) = region.varying.lock() {
            if region.renewed.fetch_add(1, Ordering::Relaxed) >= 2 {
                varying.extend(0..registers);
            } else {
                varying.extend((0..registers).filter(|index| now.registers.get(index) == Some(&Class::Varying)));
            }
        }
        drop(compiler);
        region.packs.reset();
    }
}

/// Compiles code for the packs of a warp, and says how wide they are.
fn new_packs(compiler: &mut RegionCompiler, region: &Region, warp: &mut Warp<'_>) -> Option<(Width, Option<Piece>)> {
    let program = warp.env.program;
    let flow = compiler.flow(program, region.entry)?;
    let known = region.known_of_packs();
    let mut supposed = if known.renewed >= 2 { narrow(warp, flow) } else { widest(warp, flow) };
    supposed.registers.retain(|index, _| known.varying.binary_search(index).is_err());
    let mut piece = compiler.compile(program, region.entry, Wanted::Packs(&supposed));
    while piece.is_none()
        && let Some(&narrower) = Width::ALL.iter().find(|width| width.lanes() < supposed.width.lanes())
    {
        supposed.width = narrower;
        piece = compiler.compile(program, region.entry, Wanted::Packs(&supposed));
    }
    Some((supposed.width, piece))
}
