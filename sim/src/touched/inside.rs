//! Races inside the grids of a launch, from the detector's numbers to what a tool is told
//! ([`cuda_sys::InsideReport`]): threads, functions, source lines, shared variables.
//!
//! Owns the report and its bounds. The detector is `sim-races`.

use std::collections::HashMap;

use cuda_sys::{InsideFrame, InsideRace, InsideReport, InsideSide, inside_flags, inside_side_flags};

use super::grids::{Member, Tried, Whole};
use crate::interp::{MachineModule, Program, SharedVariable};
use device_code::ptx;
use sim_races::{Answer, Grade, Inexact, Kind, Race, Remedy, Scope, Side, SyncKind};

/// Races of a grid that are told one by one.
const MOST: usize = 128;

/// Bytes of texts from which on names are left out: a report must fit into one record of a trace.
const MOST_TEXT: usize = 96 << 10;

/// In place of a remedy: see [`Grid::synchronises`].
const SUPERFLUOUS: u32 = 39;

/// Calls inlined into each other that are told.
const MOST_FRAMES: usize = 8;

/// The variable of the module that an address is in: its name, where it begins, its bytes.
pub(crate) type Globals<'a> = dyn Fn(u64) -> Option<(String, u64, u64)> + 'a;

/// Where names come from.
pub(crate) enum Names<'a> {
    /// The PTX text.
    Ptx(&'a ptx::Module),
    /// The symbol table of the machine code.
    Machine(&'a MachineModule),
    /// Nowhere.
    #[cfg(test)]
    Nothing,
}

impl Names<'_> {
    fn function<'n>(&'n self, program: &Program, pc: u32) -> &'n str {
        match self {
            Names::Machine(code) => code.function_of(program, pc),
            #[cfg(test)]
            Names::Nothing => "",
            Names::Ptx(ast) => {
                let function = program.function_of(pc).and_then(|number| ast.functions.get(number));
                function.map_or("", |function| ast.name(function.name))
            }
        }
    }

    fn shared_variables(&self, kernel: &str) -> Vec<SharedVariable> {
        match self {
            Names::Machine(code) => code.shared_variables(kernel),
            #[cfg(test)]
            Names::Nothing => Vec::new(),
            Names::Ptx(ast) => crate::interp::shared_variables_of(ast, kernel),
        }
    }
}

/// The races inside one grid.
pub(crate) struct Grid {
    kernel: u32,
    flags: u32,
    shape: ([u32; 3], [u32; 3]),
    inexact: Inexact,
    textures: u64,
    more: u64,
    races: Vec<InsideRace>,
    sides: Vec<InsideSide>,
    frames: Vec<InsideFrame>,
    texts: Texts,
}

#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    known: HashMap<String, u32>,
}

impl Texts {
    /// The number of a text; 0, that of nothing, where there is no room for it.
    fn number(&mut self, text: &str) -> u32 {
        if self.bytes.is_empty() {
            self.bytes.push(0);
        }
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let fits = self.bytes.len() + text.len() < MOST_TEXT && !text.bytes().any(|byte| byte == 0);
        if text.is_empty() || !fits {
            return 0;
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        let number = self.known.len() as u32 + 1;
        self.known.insert(text.to_owned(), number);
        number
    }
}

/// A linear number as three coordinates.
fn coordinates(linear: u32, size: [u32; 3]) -> [u32; 3] {
    let [x, y] = [size[0].max(1), size[1].max(1)];
    [linear % x, linear / x % y, linear / x / y]
}

impl Grid {
    /// One that did nothing.
    pub(crate) fn not_run(kernel: &str, shape: ([u32; 3], [u32; 3])) -> Grid {
        let mut texts = Texts::default();
        let (kernel, inexact) = (texts.number(kernel), Inexact::default());
        let (races, sides, frames) = (Vec::new(), Vec::new(), Vec::new());
        let flags = inside_flags::NOT_RUN;
        Grid { kernel, flags, shape, inexact, textures: 0, more: 0, races, sides, frames, texts }
    }

    /// What the detector has found in a grid, and in others that began before it.
    pub(super) fn of(found: &[Race], inexact: Inexact, member: &Member, whole: &Whole<'_>) -> Grid {
        let mut flags = if matches!(whole.names, Names::Machine(_)) { inside_flags::MACHINE } else { 0 };
        flags |= if member.failed { inside_flags::FAILED } else { 0 };
        let mut grid = Grid {
            flags,
            inexact,
            textures: member.textures,
            more: found.len().saturating_sub(MOST) as u64,
            ..Grid::not_run(&member.kernel, member.shape)
        };
        let shared = found.iter().any(|race| race.shared.is_some());
        let variables = if shared { whole.names.shared_variables(&member.kernel) } else { Vec::new() };
        for race in found.iter().take(MOST) {
            let Some((program, _)) = whole.instruction(race.sides[0].site) else { continue };
            let [Some(mut one), Some(mut other)] = race.sides.map(|side| grid.side(&side, whole)) else { continue };
            if race.remedy == Remedy::BlockStays {
                // The memory of the block that ends.
                let ended = usize::from(race.shared == Some(race.sides[1].block));
                [&mut one, &mut other][ended].flags |= inside_side_flags::ENDS;
            }
            grid.sides.extend([one, other]);
            let dynamic = program.kernel(&member.kernel).map_or(0, |kernel| kernel.dynamic_start());
            let mut told = grid.race(race, &variables, (dynamic, member.dynamic_shared));
            if race.shared.is_none() {
                grid.name_global(&mut told, whole.globals);
            }
            grid.races.push(told);
        }
        grid
    }

    /// Tells whether a line that synchronises is superfluous: as an item of the list of races,
    /// whose remedy says so.
    pub(super) fn synchronises(&mut self, tried: &Tried, whole: &Whole<'_>) {
        let Some(&site) = tried.sites.first() else { return };
        if self.races.len() >= 2 * MOST {
            self.was_not_tried();
            return;
        }
        let none = Side { site, kind: Kind::Read, scope: None, asynchronous: false, block: 0, thread: None };
        let Some(side) = self.side(&none, whole) else { return };
        self.sides.extend([side, side]);
        self.races.push(InsideRace {
            address: match tried.kind {
                SyncKind::Fence => 0,
                SyncKind::ProxyFence => 1,
                SyncKind::WarpBarrier | SyncKind::Divided => 2,
                SyncKind::BlockBarrier => 3,
            },
            count: tried.count,
            shared: 0,
            variable: 0,
            begins: 0,
            size: 0,
            grade: match tried.answer {
                Answer::Superfluous => 0,
                Answer::Unknown => 1,
                Answer::Needed => 3,
            },
            remedy: SUPERFLUOUS,
        });
    }

    /// Nothing is known of what is superfluous.
    pub(super) fn was_not_tried(&mut self) {
        self.flags |= inside_flags::NOT_TRIED;
    }

    fn side(&mut self, side: &Side, whole: &Whole<'_>) -> Option<InsideSide> {
        let ((program, site), (member, block)) = (whole.instruction(side.site)?, whole.place(side.block)?);
        let first = self.frames.len() as u32;
        for (file, line) in program.sources(site).take(MOST_FRAMES) {
            let file = self.texts.number(file);
            self.frames.push(InsideFrame { file, line: *line });
        }
        let mut flags = if side.asynchronous { inside_side_flags::ASYNCHRONOUS } else { 0 };
        flags |= side.thread.map_or(0, |_| inside_side_flags::THREAD);
        Some(InsideSide {
            function: self.texts.number(whole.names.function(program, site)),
            first,
            frames: self.frames.len() as u32 - first,
            at: program.line(site),
            kind: match side.kind {
                Kind::Read => 0,
                Kind::Write => 1,
                Kind::Atomic => 2,
            },
            scope: match side.scope {
                None => 0,
                Some(Scope::Block) => 1,
                Some(Scope::Cluster) => 2,
                Some(Scope::Device) => 3,
            },
            flags,
            block: coordinates(block, member.shape.0),
            thread: coordinates(side.thread.unwrap_or(0), member.shape.1),
        })
    }

    /// Names the variable of the module that a race in global memory is in.
    fn name_global(&mut self, race: &mut InsideRace, globals: &Globals<'_>) {
        if let Some((name, at, size)) = globals(race.address) {
            race.variable = self.texts.number(&name);
            (race.begins, race.size) = ((race.address - at) as u32, size as u32);
        }
    }

    fn race(&mut self, race: &Race, variables: &[SharedVariable], dynamic: (u32, u32)) -> InsideRace {
        let within = |v: &&SharedVariable| race.address.wrapping_sub(v.offset) < v.size;
        let variable = variables.iter().find(within).filter(|_| race.shared.is_some());
        let is_dynamic = race.shared.is_some() && race.address >= dynamic.0.into();
        let (begins, size) = match variable {
            Some(variable) => (variable.offset as u32, variable.size as u32),
            None if is_dynamic => dynamic,
            None => (0, 0),
        };
        InsideRace {
            address: race.address,
            count: race.count,
            shared: race.shared.is_some().into(),
            variable: variable.map_or(0, |variable| self.texts.number(&variable.name)),
            begins,
            size,
            grade: match race.grade {
                Grade::Benign => 0,
                Grade::Possible => 1,
                Grade::Likely => 2,
                Grade::Certain => 3,
            },
            remedy: match race.remedy {
                Remedy::WarpBarrier => 0,
                Remedy::BlockBarrier => 1,
                Remedy::AwaitCopy => 2,
                Remedy::WiderScope => 3,
                Remedy::Atomic => 4,
                Remedy::ClusterBarrier => 5,
                Remedy::ReleaseAcquire => 6,
                Remedy::ProxyFence => 7,
                Remedy::AwaitPhase => 8,
                Remedy::AwaitGroup => 9,
                Remedy::AwaitUsers => 10,
                Remedy::LaunchOrder => 11,
                Remedy::MapFence => 12,
                Remedy::BlockStays => 13,
                Remedy::WiderWait => 14,
                Remedy::RegisterFence => 15,
                Remedy::AwaitProduct => 16,
                Remedy::FirstWrite => 17,
                Remedy::EachReader => 38,
                Remedy::OneBegins => 39,
            },
        }
    }

    /// Counts another grid, which is not told of.
    pub(super) fn count(&mut self, other: &Grid) {
        self.more += other.races.len() as u64 + other.more;
        self.flags |= other.flags;
        self.inexact.widened += other.inexact.widened;
        self.inexact.unsaid += other.inexact.unsaid;
        self.textures += other.textures;
    }

    /// Shows it as a tool sees it.
    pub(super) fn read(&self, tell: impl FnOnce(&InsideReport)) {
        tell(&InsideReport {
            kernel: self.kernel,
            flags: self.flags,
            grid: self.shape.0,
            block: self.shape.1,
            widened: self.inexact.widened,
            unsaid: self.inexact.unsaid,
            textures: self.textures,
            more: self.more,
            races: self.races.as_ptr(),
            race_count: self.races.len(),
            sides: self.sides.as_ptr(),
            frames: self.frames.as_ptr(),
            frame_count: self.frames.len(),
            texts: self.texts.bytes.as_ptr(),
            text_bytes: self.texts.bytes.len(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbered_once_and_bounded() {
        let mut texts = Texts::default();
        assert_eq!(["a", "", "b", "a", "x\0y"].map(|text| texts.number(text)), [1, 0, 2, 1, 0]);
        assert_eq!(texts.bytes, b"\0a\0b\0");
        assert_eq!(texts.number(&"x".repeat(MOST_TEXT)), 0);
    }

    #[test]
    fn numbers_become_coordinates() {
        assert_eq!(coordinates(0, [4, 3, 2]), [0, 0, 0]);
        assert_eq!(coordinates(23, [4, 3, 2]), [3, 2, 1]);
    }
}
