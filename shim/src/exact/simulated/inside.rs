//! Races inside kernels: which launches are checked, and what the simulator tells of them, on its
//! way into the log.
//!
//! Owns the patterns of `--inside`, and the copy of a report until its launch has ended.

use std::ffi::{CStr, c_char};

use cuda_sys::InsideReport;
use trace::Op;
use trace::codec::{List, Text};
use trace::op::inside::{InsideFrame, InsideRace, InsideSide};

use super::budget::STAND_IN;
use super::tickets::LaunchPlace;
use crate::exact::glob;
use crate::log::core::Core;

/// Whether a kernel of this name is to be checked. Kernels of the simulator's stand-ins are none of
/// the program's.
pub(super) fn wants(patterns: Option<&[u8]>, name: *const c_char) -> bool {
    // SAFETY: null, or the simulator's C string.
    let stand_in = !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(STAND_IN);
    !stand_in && glob::wants(patterns, name)
}

/// What was told of one grid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct InsideGrid {
    kernel: Vec<u8>,
    flags: u32,
    grid: [u32; 3],
    block: [u32; 3],
    counts: [u64; 4],
    races: Vec<InsideRace>,
    sides: Vec<InsideSide>,
    frames: Vec<InsideFrame>,
    texts: Vec<u8>,
}

impl InsideGrid {
    /// A copy of a report.
    ///
    /// # Safety
    /// The simulator's report, within its call.
    pub(super) unsafe fn of(report: &InsideReport) -> InsideGrid {
        let (count, frames) = (report.race_count, report.frame_count);
        // SAFETY: the caller's promise: so many of each.
        let (races, sides, frames, texts) = unsafe {
            (
                list(report.races, count),
                list(report.sides, 2 * count),
                list(report.frames, frames),
                list(report.texts, report.text_bytes),
            )
        };
        let race = |race: &cuda_sys::InsideRace| {
            let &cuda_sys::InsideRace { address, count, shared, variable, begins, size, grade, remedy } = race;
            InsideRace { address, count, shared, variable, begins, size, grade, remedy }
        };
        let side = |side: &cuda_sys::InsideSide| {
            let &cuda_sys::InsideSide { function, first, frames, at, kind, scope, flags, block, thread } = side;
            InsideSide { function, first, frames, at, kind, scope, flags, block, thread }
        };
        let frame = |frame: &cuda_sys::InsideFrame| InsideFrame { file: frame.file, line: frame.line };
        InsideGrid {
            kernel: texts.split(|byte| *byte == 0).nth(report.kernel as usize).unwrap_or_default().to_vec(),
            flags: report.flags,
            grid: report.grid,
            block: report.block,
            counts: [report.widened, report.unsaid, report.textures, report.more],
            races: races.iter().map(race).collect(),
            sides: sides.iter().map(side).collect(),
            frames: frames.iter().map(frame).collect(),
            texts: texts.to_vec(),
        }
    }

    /// Logs it for the launch at a place.
    pub(super) fn log(&self, core: &Core, place: LaunchPlace) {
        let Some(mut shared) = core.lock() else { return };
        shared.define(&Op::Inside {
            timeline: place.epoch.timeline,
            time: place.epoch.time,
            node: place.node,
            kernel: Text(&self.kernel),
            flags: self.flags,
            grid: self.grid,
            block: self.block,
            counts: List::new(&self.counts),
            races: List::new(&self.races),
            sides: List::new(&self.sides),
            frames: List::new(&self.frames),
            texts: &self.texts,
        });
    }
}

/// What a pointer and a count stand for.
///
/// # Safety
/// There are so many.
unsafe fn list<'a, T>(at: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if count == 0 || at.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(at, count) } }
}
