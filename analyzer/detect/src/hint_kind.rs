//! The kinds of hints, and what reports say of each.
//!
//! Owns their table: name, and sentence. [`super::hints`] finds them; `report::fault` fills in
//! the streams, and makes the sentences of hints about code and about members of communicators.

use serde::{Deserialize, Serialize};

/// Declares the kinds: each with its name in JSON and scripts, and with its sentence where that
/// names nothing but streams.
macro_rules! hint_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal $(, $sentence:literal)?;)+) => {
        /// What a hint is about.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum HintKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
        }

        impl HintKind {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name that JSON and scripts use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// Its sentence, where that names nothing but the streams `{first}` and `{second}`.
            pub fn sentence(self) -> Option<&'static str> {
                match self {
                    $(Self::$kind => hint_kinds!(@sentence $($sentence)?),)+
                }
            }
        }
    };
    (@sentence) => { None };
    (@sentence $sentence:literal) => { Some($sentence) };
}

hint_kinds! {
    /// A wait for an event that was never recorded: CUDA treats it as complete.
    WaitNeverRecorded = "wait-never-recorded",
        "{first} waits for an event that was never recorded: CUDA takes it for done, the wait \
         does nothing.";
    /// An event that was recorded and that nothing ever waited for or queried.
    NeverWaitedFor = "event-never-waited-for",
        "An event was recorded on {first}, and nothing ever waits for it or asks about it.";
    /// An event that was recorded again on another stream although nothing had waited for the
    /// previous record, which the new one does not cover. Then something waited.
    RecordedAgain = "event-recorded-again",
        "An event was recorded on {second} before anything had waited for its record on {first}: \
         who waits for it now does not wait for {first}.";
    /// A kernel on the legacy default stream, which waits for none of the program's non-blocking
    /// streams.
    LegacyKernel = "legacy-stream-kernel",
        "A kernel runs on {first}, while the rest of the program uses non-blocking streams, which \
         it does not wait for.";
    /// A launched graph copies from or to pageable memory of the host: it does so at each launch,
    /// and whether the memory still lives is not seen.
    PageableNode = "graph-pageable-memory",
        "A graph launched on {first} copies from or to pageable memory of the host, at each \
         launch: that memory must live, and hold what is wanted, as long as the graph does.";
    /// A kernel polls a flag that another process sets, by a load whose scope does not reach that
    /// process's device.
    FlagScope = "flag-scope";
    /// A kernel polls a flag that another process sets, and reads on without an acquire.
    FlagUnordered = "flag-without-acquire";
    /// Two kernels of PyTorch's symmetric memory use one word of a signal pad, and nothing orders
    /// them.
    SignalPad = "signal-pad",
        "Two kernels of PyTorch's symmetric memory use one word of a signal pad, on {first} and \
         on {second}, and nothing orders them: PyTorch calls that undefined behaviour. Give each \
         its own channel, or order them.";
    /// Two members of two communicators enqueue collectives of them in different orders.
    CommunicatorOrder = "communicator-order";
    /// The code of a kernel leads from a store to shared memory to a bulk operation that reads it,
    /// without a fence between the proxies.
    UnfencedCopy = "copy-without-proxy-fence";
    /// A fence or a barrier inside a kernel without which nothing is unordered in this run.
    SuperfluousInKernel = "superfluous-in-kernel";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_nothing_but_streams() {
        for sentence in HintKind::ALL.into_iter().filter_map(HintKind::sentence) {
            let plain = sentence.replace("{first}", "").replace("{second}", "");
            assert!(plain.len() < sentence.len() && !plain.contains(['{', '}']), "{sentence}");
        }
    }
}
