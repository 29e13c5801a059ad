//! A hint as reports print it: one sentence, and the call sites that it is about.
//!
//! Owns the sentences. [`detect::hints`] finds what they say.

use crate::elaborate::Elaborator;
use crate::model::Hint;
use detect::hints::{HintKind, Said};

/// The sentence of a hint.
pub fn hint(said: &Said, elaborator: &mut Elaborator<'_>) -> Hint {
    let (first, second) = (elaborator.stream_name(said.streams.0), elaborator.stream_name(said.streams.1));
    let text = match said.key.kind {
        HintKind::WaitNeverRecorded => {
            format!(
                "{first} waits for an event that was never recorded: CUDA takes it for done, the wait does nothing."
            )
        }
        HintKind::NeverWaitedFor => {
            format!("An event was recorded on {first}, and nothing ever waits for it or asks about it.")
        }
        HintKind::RecordedAgain => format!(
            "An event was recorded on {second} before anything had waited for its record on {first}: who waits for it now does \
             not wait for {first}."
        ),
        HintKind::LegacyKernel => format!(
            "A kernel runs on {first}, while the rest of the program uses non-blocking streams, which it does not wait for."
        ),
    };
    let mut text = text;
    if let Some(head) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &head);
    }
    let other = elaborator.stacks.resolve(said.key.other);
    let stack = elaborator.stacks.resolve(said.key.stack);
    Hint { kind: said.key.kind.name(), text, count: said.count, pid: elaborator.names.process.pid, stack, other }
}
