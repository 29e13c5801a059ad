//! What a row of the table says of its option.
//!
//! Owns the types of the columns, no row.

use crate::Id;

/// A command that takes options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Command {
    /// Check a program while it runs.
    Run = 1,
    /// Write a trace.
    Record = 2,
    /// Analyse traces.
    Check = 4,
    /// Compare two reports.
    Diff = 8,
    /// Show what kernels touch.
    Explain = 16,
    /// Draw a trace.
    Timeline = 32,
    /// Report the allocations of a trace.
    Memory = 64,
    /// Check all programs of a folder.
    Hunt = 128,
    /// Judge the synchronisations of a trace.
    Excess = 256,
}

impl Command {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Run,
        Self::Hunt,
        Self::Record,
        Self::Check,
        Self::Diff,
        Self::Excess,
        Self::Explain,
        Self::Timeline,
        Self::Memory,
    ];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Hunt => "hunt",
            Self::Record => "record",
            Self::Check => "check",
            Self::Diff => "diff",
            Self::Excess => "excess",
            Self::Explain => "explain",
            Self::Timeline => "timeline",
            Self::Memory => "memory",
        }
    }
}

/// A set of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commands(u16);

impl Commands {
    /// These.
    pub const fn of(list: &[Command]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < list.len() {
            bits |= list[i] as u16;
            i += 1;
        }
        Self(bits)
    }

    /// Whether the command is one of them.
    pub const fn has(self, command: Command) -> bool {
        self.0 & command as u16 != 0
    }

    /// The commands, in the order of the help.
    pub fn iter(self) -> impl Iterator<Item = Command> + Clone {
        Command::ALL.into_iter().filter(move |command| self.has(*command))
    }
}

/// Who acts on an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// The shim inside of the program. The launcher passes the value on.
    Shim,
    /// The analysis and its reports.
    Analyzer,
    /// What starts the program.
    Launcher,
    /// The shim and the analyzer, each for its part.
    Both,
}

impl Reader {
    /// Whether the shim reads it.
    pub const fn is_shim(self) -> bool {
        matches!(self, Self::Shim | Self::Both)
    }
}

/// The heading that the help shows an option under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// How the program runs and what is recorded.
    Run,
    /// The simulated GPU.
    Sim,
    /// What counts as a finding.
    Detection,
    /// What fails the run.
    Gate,
    /// What is written, and where.
    Output,
    /// Measured ranges.
    Exact,
}

impl Group {
    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Run => "Running and recording",
            Self::Sim => "Simulated GPU",
            Self::Detection => "Detection",
            Self::Gate => "Pass or fail",
            Self::Output => "Output",
            Self::Exact => "Exact mode",
        }
    }
}

/// The type of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// On or off.
    Flag,
    /// A number in a range.
    Number {
        /// The lowest.
        min: u64,
        /// The highest.
        max: u64,
    },
    /// One of some words.
    Choice(&'static [&'static str]),
    /// The name of a file.
    File,
    /// The name of a file or a folder, or `off`.
    PathOrOff(&'static str),
    /// A pattern that may be given several times.
    Patterns,
    /// One of some words, or one with a pattern behind a `=`; may be given several times.
    Rules(&'static [&'static str]),
    /// The name of a file that may be given several times.
    Files,
    /// The name of a folder that may be given several times.
    Folders,
    /// On, off, or on for what a word names.
    Word(&'static str),
    /// An amount of bytes or time ([`crate::Amount`]), as the help writes it.
    Amount(&'static str),
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its number.
    pub id: Id,
    /// The name, without dashes.
    pub name: &'static str,
    /// A letter for the command line.
    pub letter: Option<char>,
    /// The type.
    pub kind: Kind,
    /// The default, as it would be written; empty where there is none.
    pub default: &'static str,
    /// The commands that take it. With none it belongs into `STREAMSAN_OPTIONS`.
    pub commands: Commands,
    /// Who acts on it.
    pub reader: Reader,
    /// Where the help shows it.
    pub group: Group,
    /// What it does, in one line.
    pub help: &'static str,
    /// Commands with a switch of their own by this name, which takes no value.
    pub switch_of: &'static [&'static str],
}
