//! What is to be assumed of a program: another default stream, synchronisations that are left out.
//!
//! Owns what the user asked for. What becomes of it during a pass is
//! `analysis::counterfactual::edits`.

/// The kind that the default stream is assumed to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultStream {
    /// One for each context, which blocking streams wait for. Per-thread ones become it.
    Legacy,
    /// One for each host thread (`nvcc --default-stream per-thread`).
    PerThread,
    /// A stream of its own, which no other waits for.
    NonBlocking,
}

impl DefaultStream {
    /// All, as the option lists them.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::PerThread, Self::NonBlocking];

    /// The word of the option.
    pub fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::PerThread => "per-thread",
            Self::NonBlocking => "non-blocking",
        }
    }
}

/// What a user wants to have assumed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assumptions {
    /// The kind of the default stream, if it is another one.
    pub default_stream: Option<DefaultStream>,
    /// Synchronisations that are left out; see `analysis::counterfactual::edits`.
    pub without: Vec<String>,
}

impl Assumptions {
    /// These, for the rest of the process. `None`: nothing is assumed.
    pub fn keep(self) -> Option<&'static Self> {
        (self != Self::default()).then(|| &*Box::leak(Box::new(self)))
    }
}
