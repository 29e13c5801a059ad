//! Why a value or an extent is unknown.
//!
//! Owns the list of reasons and their wording for users.

use serde::{Deserialize, Serialize};
/// Why a value or extent is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Reason {
    /// The value came out of global memory.
    Loaded,
    /// The value came out of shared memory.
    Shared,
    /// The value came out of local memory that could not be followed.
    Local,
    /// Result of an atomic.
    AtomicResult,
    /// Floating-point value.
    Float,
    /// Value of another lane (shuffle, vote, match, reduction).
    CrossLane,
    /// A loop whose recurrence or bound was not solved.
    Loop,
    /// Two words that did not combine to a 64-bit value.
    Pairing,
    /// 32-bit arithmetic that may wrap around.
    MayWrap,
    /// Bit manipulation without a rule.
    Bits,
    /// Parameter or constant bank read at an unknown index, or outside the recorded bytes.
    Constant,
    /// Result of a call that was not followed.
    Call,
    /// What a call that was not followed may touch through a pointer that it is given: any byte of
    /// what it points into, in either direction.
    Passed,
    /// What a kernel touches that this one launches (dynamic parallelism).
    Launches,
    /// Read before any definition.
    Undefined,
    /// An instruction without a rule.
    Instruction,
    /// A special register without a rule.
    Special,
    /// Control flow without structure.
    Irreducible,
    /// Address built from a shared or local window, or from a hidden descriptor.
    Window,
    /// The range is in a tensor map, texture or surface object, not in registers.
    Descriptor,
    /// More alternatives or steps than the budget allows.
    Budget,
    /// The analysis itself failed.
    Failed,
}

impl Reason {
    /// Why nothing is known of memory behind a call that is not followed. Functions that launch
    /// work are known by their names, those inside the device runtime too.
    #[must_use]
    pub(crate) fn of_call(name: &str) -> Reason {
        if name.contains("LaunchDevice") || name == "cudaGraphLaunch" { Reason::Launches } else { Reason::Call }
    }

    /// Whether the value is data: it came out of memory, from another thread, or from a calculation
    /// with floating-point numbers. Nothing about the launch would tell it.
    #[must_use]
    pub fn is_data(self) -> bool {
        use Reason::{AtomicResult, CrossLane, Float, Loaded, Shared};
        matches!(self, Loaded | Shared | AtomicResult | CrossLane | Float)
    }

    /// A few words for users, fitting after "because of".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Reason::Loaded => "a value loaded from memory",
            Reason::Shared => "a value from shared memory",
            Reason::Local => "a value from local memory",
            Reason::AtomicResult => "the result of an atomic",
            Reason::Float => "a floating-point value",
            Reason::CrossLane => "a value of another lane (shuffle, vote)",
            Reason::Loop => "a loop that is not affine",
            Reason::Pairing => "two words that make no known 64-bit value",
            Reason::MayWrap => "32-bit arithmetic that may wrap around",
            Reason::Bits => "bit manipulation or division",
            Reason::Constant => "a parameter or constant at an unknown index",
            Reason::Call => "a call that was not followed",
            Reason::Passed => "a call that was not followed and is given the pointer",
            Reason::Launches => "a kernel that it launches",
            Reason::Undefined => "a register that was never written",
            Reason::Instruction => "an instruction without a rule",
            Reason::Special => "a special register without a rule",
            Reason::Irreducible => "control flow without structure",
            Reason::Window => "an address made of a shared or local window",
            Reason::Descriptor => "a tensor map, texture or surface",
            Reason::Budget => "too many cases",
            Reason::Failed => "the analysis failed",
        }
    }
}
