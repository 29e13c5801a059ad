//! Why a finding is not certain: the reasons, where in the code they are, and what would settle
//! each.
//!
//! Owns the choice of the reasons and their wording. The confidence itself is decided in
//! [`detect::confidence`], and why code does not say its bytes in `kernels::Summary::loss`.

use crate::elaborate::Elaborator;
use crate::finding::Inside;
use crate::words::{DoubtSide, Known};
use detect::confidence::{Confidence, Weakness, is_staged_copy, overlaps_in_doubt};
use detect::memory::{Access, AccessKind, Cause, Precision};
use detect::race::Race;
use detect::stale_graphs::RawStale;
use detect::state::polls::Poll;
use kernels::{Loss, LossRole, Reason};
use serde::{Deserialize, Serialize};
use symbols::demangle;
use trace::{MemoryKind, ParamSlot, StreamId};

/// One reason why a finding is not certain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Doubt {
    /// The side that is not exact, or the two together.
    pub side: DoubtSide,
    /// What is known instead.
    pub known: Known,
    /// Why, in words.
    pub reason: String,
    /// The instruction at which exactness is lost (byte offset in the code section, or line of
    /// PTX), when there is one.
    pub(crate) at: Option<u32>,
    /// Its source line, when the code has a line table.
    pub(crate) line: Option<Inside>,
    /// What would settle it; empty when nothing of StreamSan's would.
    pub(crate) settle: Vec<String>,
}

impl Doubt {
    fn of(side: DoubtSide, known: Known, reason: String) -> Self {
        Self { side, known, reason, at: None, line: None, settle: Vec::new() }
    }

    /// The reason with its place, in one line.
    pub(crate) fn sentence(&self) -> String {
        let known = match (self.side, self.known) {
            (DoubtSide::Pair, _) | (_, Known::OfPair) => String::new(),
            (side, known) => {
                let side = if side == DoubtSide::Previous { "the previous access" } else { "the access" };
                format!("{side}, {known}: ")
            }
        };
        let place = match (&self.line, self.at) {
            (Some(line), _) => format!(", {}:{}", line.file.rsplit('/').next().unwrap_or_default(), line.line),
            (None, Some(at)) => format!(", at {at:#x} of its code"),
            (None, None) => String::new(),
        };
        format!("{known}{}{place}", self.reason)
    }
}

/// The reasons why a race of two processes is not certain. `sides`: what each process says of its
/// own access. `by_flag`: a flag in memory may order them.
pub fn between(confidence: Confidence, sides: [Option<Doubt>; 2], by_flag: bool) -> Vec<Doubt> {
    if confidence == Confidence::Certain {
        return Vec::new();
    }
    let sides = sides.into_iter().zip([DoubtSide::Access, DoubtSide::Previous]);
    let mut doubts: Vec<Doubt> = sides.filter_map(|(doubt, side)| doubt.map(|doubt| Doubt { side, ..doubt })).collect();
    if by_flag {
        doubts.push(Doubt::of(
            DoubtSide::Pair,
            Known::OfPair,
            "one of the two comes after a wait for a flag in memory, which may have been set behind the other".into(),
        ));
    } else if doubts.is_empty() {
        doubts.push(Doubt::of(DoubtSide::Pair, Known::OfPair, IRREGULAR.into()));
    }
    doubts
}

/// The reason of a pair that is exact on both sides.
pub const IRREGULAR: &str = "the two patterns are too irregular to be compared byte by byte";

/// The reason of two kernels of which it is not known that they overlap.
const OVERLAP: &str = "whether the two overlap in this launch is not known: other threads that have waited may have \
                       told these so, or the kernel in front may let no other begin before it ends";

/// What a run measures besides what it must: which option settles a doubt that is left depends on
/// those that it had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measuring {
    /// Nothing.
    #[default]
    Nothing,
    /// Kernels of findings in doubt, from their next launch on (`--confirm`).
    Confirm,
    /// Kernels by name (`--exact=NAMES`).
    Named,
    /// Every kernel in doubt, from its first launch on (`--exact`).
    Exact,
}

impl Measuring {
    /// What would measure a kernel that this run has not measured. `again`: its finding came more
    /// than once. `--confirm` asks for a kernel when its finding is made, so a site that does not
    /// come again is never measured by it.
    fn settle(self, again: bool) -> Option<String> {
        const WHERE: &str = "(on a GPU, or with --sim without one)";
        Some(match (self, again) {
            (Self::Exact, _) => return None,
            (Self::Named, _) => "--exact without names measures these kernels, too".into(),
            (Self::Nothing, true) => format!("--confirm measures these kernels {WHERE}"),
            (Self::Nothing, false) => {
                format!("--exact measures these kernels {WHERE}; --confirm does not, for the site did not come again")
            }
            (Self::Confirm, true) => {
                "--exact measures these kernels from their first launch on; --confirm has not measured them".into()
            }
            (Self::Confirm, false) => "--exact measures these kernels from their first launch on; --confirm could \
                                       not measure them, for the site did not come again"
                .into(),
        })
    }
}

/// Why a graph may name memory that was freed on purpose; `None` when nothing speaks for that.
pub(crate) fn of_stale_memory(raw: &RawStale) -> Option<Doubt> {
    let was = &raw.ended.memory;
    let is_block = was.kind == Some(MemoryKind::Block);
    let why = match raw.weakness {
        Some(Weakness::Condition) => {
            "a condition decides whether the body of a conditional node runs, and its value is not known"
        }
        Some(Weakness::NotHandedOut) => "the pool that took the block back has not handed its bytes out again",
        Some(Weakness::SameBounds) => {
            "memory of the same bounds was allocated in its place by the same line, and the program may rely on that"
        }
        _ if raw.confidence == Confidence::Certain => return None,
        _ if raw.now.is_some_and(|now| (now.ptr, now.size) == (was.ptr, was.size)) => {
            "memory of the same bounds was allocated in its place, and the program may rely on that"
        }
        _ if is_block && raw.now.is_some() => {
            "the pool has handed the bytes to another block, and its owner may know that the graph uses them"
        }
        _ => return None,
    };
    Some(Doubt::of(DoubtSide::Pair, Known::OfPair, why.into()))
}

impl Elaborator<'_> {
    /// The reasons why a race is not certain; none when it is. `again`: the finding came more than
    /// once.
    pub(super) fn doubts(&mut self, race: &Race, again: bool) -> Vec<Doubt> {
        if race.confidence == Confidence::Certain {
            return Vec::new();
        }
        let mut doubts: Vec<Doubt> = Vec::new();
        for (side, access) in [(DoubtSide::Access, &race.access), (DoubtSide::Previous, &race.previous)] {
            doubts.extend(self.doubt_of(side, access, again));
        }
        let (previous, access) = (&race.previous, &race.access);
        if overlaps_in_doubt(previous, access) {
            doubts.push(Doubt::of(DoubtSide::Pair, Known::OfPair, OVERLAP.into()));
        }
        let by_rule = match race.weakness {
            Some(Weakness::Locks) => Some(
                "both kernels hold a lock while they touch these bytes; which of them comes first, and whether it \
                 is one lock, is not known",
            ),
            Some(Weakness::Claims) => Some(
                "both kernels touch these bytes only where a compare-and-swap has claimed a word for the thread, which \
                 one thread only can; whether the word belongs to these bytes is not known",
            ),
            Some(Weakness::Handover) => Some(
                "one kernel stores to a word atomically behind its access, and an atomic load of that word leads \
                 the other one to these bytes; whether the load saw the store is not known",
            ),
            Some(Weakness::OpenWait) => Some(
                "the previous access is behind a wait of its stream for a value in memory, which the host may \
                 write after this access",
            ),
            _ => None,
        };
        if let Some(poll) =
            self.polls.of(previous.epoch, access.epoch).filter(|_| race.weakness == Some(Weakness::Flag))
        {
            doubts.push(self.flag(poll, access.site.stream));
        } else if let Some(why) = by_rule {
            doubts.push(Doubt::of(DoubtSide::Pair, Known::OfPair, why.into()));
        } else if race.weakness == Some(Weakness::Condition) {
            let why = "a condition decides whether the body of a conditional node runs, and its value is not known";
            let mut doubt = Doubt::of(DoubtSide::Pair, Known::OfPair, why.into());
            doubt.settle.extend(self.measuring.settle(again));
            doubts.push(doubt);
        } else if is_staged_copy(self.names.call(previous.site.call), previous) {
            let why = "drivers often finish a copy from pageable memory before it returns, and CUDA does not promise \
                       it (rule C3)";
            let mut doubt = Doubt::of(DoubtSide::Pair, Known::OfPair, why.into());
            doubt.settle.push("--no-pageable-copies takes such copies to be over".into());
            doubts.push(doubt);
        } else if doubts.is_empty() || race.weakness == Some(Weakness::Message) {
            let host = [previous, access].iter().any(|a| matches!(a.site.cause, Cause::Host | Cause::Message));
            let why = if host && access.kind == AccessKind::Write && previous.kind == AccessKind::AtomicRead {
                "the kernel loads such words atomically, and nothing tells whether the host stores this one so"
            } else if host {
                "the host may have learned through memory that the previous access was over"
            } else {
                IRREGULAR
            };
            doubts.push(Doubt::of(DoubtSide::Pair, Known::OfPair, why.into()));
        }
        doubts
    }

    /// A kernel polls a flag before one of two accesses.
    fn flag(&mut self, poll: Poll, stream: StreamId) -> Doubt {
        let def = self.names.kernel(poll.kernel);
        let name = def.map_or_else(|| "a kernel".to_owned(), |def| demangle(&def.name));
        let name = name.split('(').next().unwrap_or_default();
        let why =
            format!("{name} polls a flag in memory before one of the two, and may have waited for the other there");
        let mut doubt = Doubt::of(DoubtSide::Pair, Known::OfPair, why);
        doubt.at = Some(poll.at).filter(|at| *at != 0);
        let context = self.streams.get(stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        doubt.line = doubt.at.zip(def).and_then(|(at, def)| self.line_in(def, self.names.arch(context)?, at));
        doubt
    }

    /// Why the bytes of one access are not exact; `None` when they are.
    pub fn doubt_of(&mut self, side: DoubtSide, access: &Access, again: bool) -> Option<Doubt> {
        let s = &access.site;
        let known = match access.extent.precision {
            Precision::Exact if !s.guessed => return None,
            _ if s.guessed => Known::Nothing,
            Precision::Bound => Known::UpperBound,
            _ => Known::StartOnly,
        };
        if s.cause != Cause::Kernel {
            return Some(Doubt::of(side, known, "the call does not say its bytes one by one".into()));
        }
        if s.measured {
            let why = "measured, in more pieces than are kept apart or as the size of an asynchronous copy";
            return Some(Doubt::of(side, known, why.into()));
        }
        let mut doubt = Doubt::of(side, known, String::new());
        doubt.settle.extend(self.measuring.settle(again));
        let loss = self.code.loss(s.kernel, access.kind, s.param, s.at);
        // Of some kernels only what they hand on is not known.
        if s.guessed && loss.is_none_or(|loss| loss.reason != Reason::Passed) {
            let why = self.code.reason(s.kernel).unwrap_or("its code was not found");
            doubt.reason = format!("neither directions nor bytes: {why}");
            return Some(doubt);
        }
        let def = self.names.kernel(s.kernel);
        let Some(loss) = loss else {
            doubt.reason = "the addresses of its threads make no pattern that is followed".into();
            return Some(doubt);
        };
        doubt.reason = words_of(&loss, def.map_or(&[], |def| &def.params));
        // Line 0 and offset 0 both mean that there is no instruction to name.
        doubt.at = Some(if loss.at == 0 { s.at } else { loss.at }).filter(|at| *at != 0);
        let context = self.streams.get(s.stream).map_or(trace::ContextId::NONE, |stream| stream.context);
        doubt.line = doubt.at.zip(def).and_then(|(at, def)| self.line_in(def, self.names.arch(context)?, at));
        if doubt.line.is_none() && doubt.at.is_some() {
            doubt.settle.push("nvcc -lineinfo makes this name the line".into());
        }
        Some(doubt)
    }
}

/// A loss in words: `the index is loaded from memory (parameter 2)`.
pub fn words_of(loss: &Loss, slots: &[ParamSlot]) -> String {
    let from = loss.param.map(|offset| parameter(u32::from(offset), slots));
    let through = from.as_ref().map_or_else(String::new, |from| format!(" ({from})"));
    match (loss.role, loss.reason) {
        (LossRole::Address, Reason::Loaded) => format!("the index is loaded from memory{through}"),
        (LossRole::Address, Reason::Descriptor) => format!("it goes through {}", Reason::Descriptor.words()),
        (LossRole::Address, Reason::Passed) => {
            "neither directions nor bytes: a call that was not followed is given the pointer".into()
        }
        (LossRole::Address, reason) => format!("the address depends on {}", reason.words()),
        (LossRole::Condition, reason) => format!("which threads make it depends on {}{through}", reason.words()),
        (LossRole::Iterations, Reason::Loop) => {
            format!("loop count from {}", from.unwrap_or_else(|| "a value that is not followed".into()))
        }
        (LossRole::Iterations, reason) => format!("the loop count depends on {}{through}", reason.words()),
    }
}

/// A parameter as a programmer counts them, from 1.
pub fn parameter(offset: u32, slots: &[ParamSlot]) -> String {
    let holds = |slot: &ParamSlot| (slot.offset..slot.offset.saturating_add(slot.size)).contains(&offset);
    match slots.iter().position(holds) {
        Some(at) if slots[at].offset == offset => format!("parameter {}", at + 1),
        Some(at) => format!("byte {} of parameter {}", offset - slots[at].offset, at + 1),
        None => format!("byte {offset} of its parameters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_what_and_whence() {
        let params = vec![ParamSlot { offset: 0, size: 8 }, ParamSlot { offset: 8, size: 24 }];
        let loss = |role, reason, param| Loss { role, reason, at: 0x40, param };
        let said = |loss: Loss| words_of(&loss, &params);
        assert_eq!(
            said(loss(LossRole::Address, Reason::Loaded, Some(8))),
            "the index is loaded from memory (parameter 2)"
        );
        assert_eq!(said(loss(LossRole::Iterations, Reason::Loop, Some(16))), "loop count from byte 8 of parameter 2");
        assert_eq!(
            said(loss(LossRole::Condition, Reason::CrossLane, None)),
            "which threads make it depends on a value of another lane (shuffle, vote)"
        );
    }

    #[test]
    fn an_option_that_the_run_had_already_is_not_advised() {
        use Measuring::{Confirm, Exact, Named, Nothing};
        for again in [false, true] {
            let said = |measuring: Measuring| measuring.settle(again);
            assert_eq!(said(Exact), None);
            for measuring in [Nothing, Confirm, Named] {
                let said = said(measuring).expect("an option");
                let advised = if measuring == Nothing && again { "--confirm" } else { "--exact" };
                assert!(said.starts_with(advised), "{said}");
                assert_eq!(said.contains("did not come again"), !again && measuring != Named, "{said}");
            }
        }
    }

    #[test]
    fn two_processes_say_what_each_does_not_know() {
        let one = || Some(Doubt::of(DoubtSide::Access, Known::StartOnly, "why".into()));
        let said = |doubts: Vec<Doubt>| doubts.iter().map(Doubt::sentence).collect::<Vec<_>>();
        assert_eq!(said(between(Confidence::Likely, [None, one()], false)), ["the previous access, start only: why"]);
        assert!(between(Confidence::Certain, [None, one()], false).is_empty());
        assert_eq!(said(between(Confidence::Likely, [None, None], false)), [IRREGULAR]);
        let by_flag = said(between(Confidence::Possible, [one(), None], true));
        assert!(by_flag.len() == 2 && by_flag[1].contains("a flag in memory"), "{by_flag:?}");
    }

    #[test]
    fn a_sentence_says_the_side_and_the_place() {
        let mut doubt = Doubt::of(DoubtSide::Previous, Known::UpperBound, "loop count from parameter 5".into());
        doubt.at = Some(0x120);
        assert_eq!(
            doubt.sentence(),
            "the previous access, upper bound: loop count from parameter 5, at 0x120 of its code"
        );
        doubt.line = Some(Inside { file: "/a/flash.h".into(), line: 412, source: None });
        assert!(doubt.sentence().ends_with("parameter 5, flash.h:412"));
        assert_eq!(Doubt::of(DoubtSide::Pair, Known::OfPair, "why".into()).sentence(), "why");
    }
}
