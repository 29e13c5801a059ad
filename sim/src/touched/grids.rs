//! The grids of one launch that is searched for races: the one that the host launched, and those
//! that kernels launched in turn. Owns which of the detector's numbers are whose; a race between
//! two grids is told with the later one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sim_races::{Answer, Detector, GridEvents, LaunchPoint, Race, Reading, SyncKind};

use super::inside::{Globals, Grid, Names};
use crate::interp::{Launch, Program};
use crate::memory::unwritten;

/// Bits of an instruction's number in machine code, of which each kernel is a program of its own.
const SITES: u32 = 20;

/// Events that are told again of one launch to find out what is superfluous: some seconds.
const MOST_TOLD: usize = 1 << 24;

/// The instructions of a line that order accesses, and whether they are superfluous.
pub(super) struct Tried {
    pub(super) sites: Vec<u32>,
    pub(super) kind: SyncKind,
    pub(super) count: u64,
    pub(super) answer: Answer,
}

/// One grid.
pub(crate) struct Member {
    /// Its kernel's mangled name.
    pub(crate) kernel: String,
    /// Blocks, and threads of a block.
    pub(crate) shape: ([u32; 3], [u32; 3]),
    /// Dynamic shared memory in bytes.
    pub(crate) dynamic_shared: u32,
    /// Accesses that the detector was not told of.
    pub(crate) textures: u64,
    /// It ended with a fault.
    pub(crate) failed: bool,
    /// The detector's number of its first block.
    first: u32,
}

/// All of them.
pub(crate) struct InsideGrids {
    detector: Detector,
    machine: bool,
    superfluous: bool,
    /// By their first blocks, and the names of all kernels.
    members: Mutex<(Vec<Member>, Vec<String>)>,
}

impl InsideGrids {
    /// For a launch of machine code, or of PTX; its synchronisation is tried if that is wanted.
    pub(crate) fn new(machine: bool, superfluous: bool) -> InsideGrids {
        let detector = Detector::new(Reading { machine });
        let detector = if superfluous { detector.recording() } else { detector };
        let detector = match unwritten::kept() {
            Some(kept) => detector.watching(kept),
            None => detector,
        };
        InsideGrids { detector, machine, superfluous, members: Mutex::default() }
    }

    fn members(&self) -> MutexGuard<'_, (Vec<Member>, Vec<String>)> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What finds the races.
    pub(crate) fn detector(&self) -> &Detector {
        &self.detector
    }

    /// A grid begins; `point` is where a kernel launched it.
    pub(crate) fn begin(&self, kernel: &str, launch: &Launch, point: Option<&LaunchPoint>) -> GridEvents<'_> {
        let mut members = self.members();
        let (members, kernels) = &mut *members;
        let number = kernels.iter().position(|known| known == kernel).unwrap_or_else(|| {
            kernels.push(kernel.to_owned());
            kernels.len() - 1
        });
        let sites = if self.machine { (number as u32) << SITES } else { 0 };
        let blocks = launch.grid.iter().fold(1u32, |all, &size| all.saturating_mul(size));
        let events = self.detector.grid(point, blocks, sites);
        members.push(Member {
            kernel: kernel.to_owned(),
            shape: (launch.grid, launch.block),
            dynamic_shared: launch.dynamic_shared,
            textures: 0,
            failed: false,
            first: events.first_block(),
        });
        events
    }

    /// It has ended: accesses that the detector was not told of, and whether it ended with a fault.
    pub(crate) fn end(&self, grid: &GridEvents<'_>, textures: u64, failed: bool) {
        let first = grid.first_block();
        if let Some(member) = self.members().0.iter_mut().find(|member| member.first == first) {
            (member.textures, member.failed) = (textures, failed);
        }
    }

    /// The names of the kernels, without repetitions.
    pub(crate) fn kernels(&self) -> Vec<String> {
        self.members().1.clone()
    }

    /// What to tell of each grid. `programs` has the program of each of the kernels.
    pub(crate) fn reports(self, programs: &[&Program], names: &Names<'_>, globals: &Globals<'_>) -> Vec<Grid> {
        let (members, _) = self.members.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut races: Vec<Vec<Race>> = members.iter().map(|_| Vec::new()).collect();
        let whole = Whole { members: &members, programs, machine: self.machine, names, globals };
        for race in self.detector.races() {
            let later = race.sides.iter().map(|side| whole.number(side.block)).max().unwrap_or(0);
            if let Some(of) = races.get_mut(later) {
                of.push(race);
            }
        }
        // What is not exact is so of all grids together.
        let mut inexact = self.detector.inexact();
        let told = members.iter().zip(&races);
        let mut grids: Vec<Grid> =
            told.map(|(member, races)| Grid::of(races, std::mem::take(&mut inexact), member, &whole)).collect();
        if self.superfluous
            && let Some(grid) = grids.first_mut()
        {
            match tried(&self.detector, &whole) {
                Some(tried) => tried.iter().for_each(|one| grid.synchronises(one, &whole)),
                None => grid.was_not_tried(),
            }
        }
        grids
    }
}

/// Tells of each line that synchronises whether it is superfluous. `None`: nothing is known of any.
fn tried(detector: &Detector, whole: &Whole<'_>) -> Option<Vec<Tried>> {
    let (all, mut trials) = detector.trials(MOST_TOLD)?;
    // A line may be several instructions, of copies of a loop's body or of one fence.
    let mut lines: Vec<(Vec<(String, u32)>, Tried)> = Vec::new();
    for one in all {
        let (program, site) = whole.instruction(one.site)?;
        let place: Vec<(String, u32)> = program.sources(site).cloned().collect();
        let known =
            lines.iter_mut().find(|(line, tried)| !place.is_empty() && *line == place && tried.kind == one.kind);
        match known {
            Some((_, tried)) => {
                tried.sites.push(one.site);
                tried.count += one.count;
            }
            None => {
                let tried = Tried { sites: vec![one.site], kind: one.kind, count: one.count, answer: Answer::Unknown };
                lines.push((place, tried));
            }
        }
    }
    for (_, tried) in &mut lines {
        tried.answer = trials.without(&tried.sites);
    }
    Some(lines.into_iter().map(|(_, tried)| tried).collect())
}

/// What the numbers of a race mean.
pub(crate) struct Whole<'a> {
    members: &'a [Member],
    programs: &'a [&'a Program],
    machine: bool,
    pub(crate) names: &'a Names<'a>,
    pub(crate) globals: &'a Globals<'a>,
}

impl Whole<'_> {
    fn number(&self, block: u32) -> usize {
        self.members.partition_point(|member| member.first <= block).saturating_sub(1)
    }

    /// The grid of a block, and the block's number there.
    pub(crate) fn place(&self, block: u32) -> Option<(&Member, u32)> {
        let member = self.members.get(self.number(block))?;
        Some((member, block - member.first))
    }

    /// The program of an instruction, and its number there.
    pub(crate) fn instruction(&self, site: u32) -> Option<(&Program, u32)> {
        let (kernel, within) = if self.machine { (site >> SITES, site & ((1 << SITES) - 1)) } else { (0, site) };
        Some((self.programs.get(kernel as usize)?, within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim_races::{MemoryEvents, Stream, ThreadOf};

    #[test]
    fn blocks_and_instructions_belong_to_grids() {
        let grids = InsideGrids::new(true, false);
        let launch = |x| Launch { grid: [x, 2, 1], block: [32, 1, 1], ..Launch::default() };
        let parent = grids.begin("parent", &launch(3), None);
        parent.block_starts(5, 32, 5);
        parent.launches(ThreadOf { block: 5, thread: 1 }, Stream::Detached);
        let point = grids.detector().launched();
        assert!(point.is_some());
        let child = grids.begin("child", &launch(1), point.as_ref());
        let again = grids.begin("child", &launch(1), point.as_ref());
        grids.end(&child, 4, true);
        assert_eq!(grids.kernels(), ["parent", "child"]);
        let held = grids.members();
        let members = &held.0;
        let (globals, names) = (|_| None, Names::Nothing);
        let whole = Whole { members, programs: &[], machine: true, names: &names, globals: &globals };
        let place = |block| whole.place(block).map(|(member, block)| (member.kernel.as_str(), block));
        assert_eq!(place(5), Some(("parent", 5)));
        assert_eq!(place(child.first_block() + 1), Some(("child", 1)));
        assert_eq!(place(again.first_block()), Some(("child", 0)));
        assert_eq!(
            members.iter().map(|member| (member.textures, member.failed)).collect::<Vec<_>>(),
            [(0, false), (4, true), (0, false)]
        );
    }
}
