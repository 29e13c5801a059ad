//! Exit codes of the `streamsan` command, and why it ends with one. Others script against the
//! numbers: never change the meaning of one.
//!
//! Owns the numbers, the [`Reason`]s for them, and the rule which reason decides when several
//! apply. Commands collect reasons in an [`Ending`]; `cli::main` of the command turns it into a
//! number or a signal. `docs/reference/exit-codes.md` tells users the same.

/// Nothing was found, for the commands that run no program (`check`, `explain`, `dump`). With `run`
/// and `record` a clean run ends with the program's own exit code.
pub const CLEAN: i32 = 0;

/// `hunt`: a program ended with an error of its own, and nothing worse has happened.
pub const PROGRAM_FAILED: i32 = 1;

/// Findings (with `diff`: new ones), unless `--error-exitcode` names another number; with 0 the
/// program's own exit code is kept.
pub const FINDINGS: i32 = 66;

/// The command line, `STREAMSAN_OPTIONS` or the configuration file was wrong, or a file or kernel
/// that they name is not there; nothing was run.
pub const USAGE: i32 = 2;

/// With `--require-cuda`: the program made no use of CUDA that could be checked.
pub const NO_CUDA: i32 = 4;

/// The tool itself failed (or switched itself off half way), so that a clean report would mean
/// nothing.
pub const INTERNAL: i32 = 70;

/// The program could not be started: it is there, but cannot be executed (as shells answer).
pub(crate) const CANNOT_EXECUTE: i32 = 126;

/// The program could not be started: it was not found (as shells answer).
pub const NOT_FOUND: i32 = 127;

/// Why a command ends with another number than [`CLEAN`]. The first of those that apply decides.
///
/// A refusal of the simulated GPU comes before the program's end and before findings. A refused
/// kernel fails in stream order, so the calls behind it fail or not as threads run, and a race
/// among them is found in one run and not in the next: only this order gives each run of a program
/// the same code. Findings come before the program's own code, because a program that fails after a
/// race may fail because of it. The ways in which a run can have checked nothing follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// What the user asked for is wrong; nothing was done.
    Usage,
    /// The command could not do its work.
    Failed,
    /// The program was not found.
    NotFound,
    /// The program can not be executed, or must not be.
    CannotExecute,
    /// The simulated GPU refused something. Whatever the program answered may come from that.
    NotSimulated,
    /// The program died of this signal; of a hunt: a user's signal ended it.
    Signal(i32),
    /// This rank ends with what the first rank of its machine says of all.
    Leader(i32),
    /// Findings fail the run, with this exit code.
    Findings(i32),
    /// `hunt`: a program was not checked, or not to its end.
    ProgramNotChecked,
    /// `hunt`: a program ended with an error of its own.
    ProgramFailed,
    /// The program ended with this exit code, which is not 0.
    Program(i32),
    /// The report says less than it seems to: ops are missing or were not judged.
    Incomplete,
    /// Nothing that could be checked used CUDA.
    NoCuda,
    /// A trace could not be read to its end.
    NotRead,
    /// A report or a trace could not be written, or lacks something.
    NotWritten,
}

impl Reason {
    fn code(self) -> i32 {
        match self {
            Self::Usage => USAGE,
            Self::NotFound => NOT_FOUND,
            Self::CannotExecute => CANNOT_EXECUTE,
            Self::Signal(signal) => 128 + signal,
            Self::Leader(code) | Self::Findings(code) | Self::Program(code) => code,
            Self::ProgramFailed => PROGRAM_FAILED,
            Self::NoCuda => NO_CUDA,
            Self::Failed
            | Self::NotSimulated
            | Self::ProgramNotChecked
            | Self::Incomplete
            | Self::NotRead
            | Self::NotWritten => INTERNAL,
        }
    }
}

/// How a command ends: the reasons that were met, in any order. None: it ends with [`CLEAN`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Ending(Vec<Reason>);

impl Ending {
    /// That of a program that ended with this exit code.
    pub fn of_program(code: i32) -> Self {
        Self::default().and(code != CLEAN, Reason::Program(code))
    }

    /// Adds a reason.
    pub fn note(&mut self, reason: Reason) {
        self.0.push(reason);
    }

    /// With a reason more, if it `applies`.
    pub fn and(mut self, applies: bool, reason: Reason) -> Self {
        if applies {
            self.note(reason);
        }
        self
    }

    /// With all reasons of another.
    pub fn joined(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    /// The reason that decides.
    fn first(&self) -> Option<Reason> {
        self.0.iter().min().copied()
    }

    /// The exit code.
    pub fn code(&self) -> i32 {
        self.first().map_or(CLEAN, Reason::code)
    }

    /// The signal that the command dies of instead of ending with a code.
    pub fn signal(&self) -> Option<i32> {
        match self.first()? {
            Reason::Signal(signal) => Some(signal),
            _ => None,
        }
    }
}

impl From<Reason> for Ending {
    fn from(reason: Reason) -> Self {
        Self(vec![reason])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What docs/reference/exit-codes.md says under "Which one, when several apply", for each pair.
    #[test]
    fn the_first_reason_of_the_documented_order_decides() {
        use Reason::*;
        let of_a_run = [
            (NotSimulated, INTERNAL),
            (Findings(FINDINGS), FINDINGS),
            (Program(3), 3),
            (Incomplete, INTERNAL),
            (NoCuda, NO_CUDA),
            (NotWritten, INTERNAL),
        ];
        let of_a_hunt = [
            (Findings(9), 9),
            (ProgramNotChecked, INTERNAL),
            (ProgramFailed, PROGRAM_FAILED),
            (NoCuda, NO_CUDA),
            (NotWritten, INTERNAL),
        ];
        for order in [&of_a_run[..], &of_a_hunt] {
            for (i, (first, code)) in order.iter().enumerate() {
                assert_eq!(Ending::from(*first).code(), *code, "{first:?}");
                for (second, _) in &order[i..] {
                    let ending = Ending::from(*second).and(true, *first).and(false, Usage);
                    assert_eq!((ending.code(), ending.signal()), (*code, None), "{first:?} before {second:?}");
                }
            }
        }
        assert_eq!((Ending::default().code(), Ending::of_program(0).code()), (CLEAN, CLEAN));
    }

    #[test]
    fn a_signal_is_passed_on_unless_the_simulated_gpu_may_be_its_cause() {
        let died = Ending::from(Reason::Findings(FINDINGS)).and(true, Reason::Signal(11));
        assert_eq!((died.signal(), died.code()), (Some(11), 139));
        let refused = died.joined(Reason::NotSimulated.into());
        assert_eq!((refused.signal(), refused.code()), (None, INTERNAL));
    }
}
