//! An error that ended a context or a capture, and the sentence of a hint, as reports print them.
//!
//! Owns the data, its names and lines, and what an error of a capture means.
//! [`detect::faults`] finds the launches that may have caused the others.

use crate::call_site::site;
use crate::elaborate::{Elaborator, called};
use crate::model::Hint;
use detect::faults::{Failure, UNJOINED};
use detect::hints::{CodeSpot, HintKind, Said};
use detect::state::captures::{Capture, Unjoined};
use kernels::LoadScope;
use serde::{Deserialize, Serialize};
use symbols::frame::Frame;
use trace::{KernelId, StackId};

/// Maximum number of places reported for a stream.
const PLACES: usize = 16;

/// A place that launched a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FaultSite {
    /// Demangled kernel name; empty when unknown.
    pub kernel: String,
    /// Where.
    pub stack: Vec<Frame>,
    /// How many launches.
    pub count: u64,
}

/// Launches of one stream that the host had not seen finish.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Running {
    /// The stream.
    pub(crate) stream: String,
    /// How many launches.
    pub total: u64,
    /// From how many places.
    pub(crate) places: u64,
    /// The places that launched first, oldest first.
    pub oldest: Vec<FaultSite>,
}

/// An error that ended a context or a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fault {
    /// The process.
    pub(crate) pid: u32,
    /// The driver's answer (`CUresult`).
    pub result: u32,
    /// The call that returned it.
    pub(crate) call: String,
    /// Where that was.
    pub(crate) stack: Vec<Frame>,
    /// The launch that caused it, if every launch was waited for.
    pub culprit: Option<FaultSite>,
    /// The stream of that launch.
    pub(crate) stream: String,
    /// Otherwise: the launches in flight, by stream.
    pub running: Vec<Running>,
    /// Of a capture with unjoined work: the stream that it began on, as lines name it.
    pub(crate) origin: String,
    /// The streams that were not joined.
    pub(crate) unjoined: Vec<UnjoinedStream>,
}

/// A stream that was drawn into a capture and not joined.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UnjoinedStream {
    /// The stream.
    pub(crate) stream: String,
    /// As lines name it.
    pub(crate) short: String,
    /// Where it was drawn in.
    pub(crate) drawn_in: String,
    /// Its last call.
    pub(crate) last: String,
}

impl Fault {
    /// What the error means and what mends it, where that is known without any launch: a sentence,
    /// and lines to paste.
    pub fn explained(&self) -> Option<(String, Vec<String>)> {
        if self.result != UNJOINED {
            return None;
        }
        let site = site(&self.stack).map_or_else(String::new, |at| format!(", {at}"));
        let at = |at: &str, word: &str| if at.is_empty() { String::new() } else { format!("{word}{at}") };
        let named = |of: &UnjoinedStream| match &*of.drawn_in {
            "" => of.stream.clone(),
            at => format!("{}, drawn in by the wait at {at},", of.stream),
        };
        let (who, was) = match &self.unjoined[..] {
            [] => ("a stream that was drawn into the capture by a wait".to_string(), "was"),
            [one] => (named(one), "was"),
            many => (many.iter().map(named).collect::<Vec<_>>().join(" and "), "were"),
        };
        let said = format!(
            "CUDA says \"capturing stream has unjoined work\": {who} {was} not joined again with the stream that the \
             capture began on. There is no graph."
        );
        let origin = if self.origin.is_empty() { "origin" } else { &self.origin };
        let wait = format!("cudaStreamWaitEvent({origin}, event, 0);");
        let before = format!("before {}{site}", self.call);
        let mut lines = Vec::new();
        for of in &self.unjoined {
            let after = at(&of.last, ", ");
            lines.push((
                format!("cudaEventRecord(event, {});", of.short),
                format!("after its last captured call{after}"),
            ));
            lines.push((wait.clone(), before.clone()));
        }
        if lines.is_empty() {
            let record = "cudaEventRecord(event, forked);".to_string();
            lines = vec![(record, "behind the last work of each such stream".to_string()), (wait, before)];
        }
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
        let lines = lines.into_iter().map(|(line, comment)| format!("{line:width$}  // {comment}"));
        Some((said, lines.collect()))
    }
}

/// Failures with names and lines.
pub fn faults(failures: &[Failure], elaborator: &mut Elaborator<'_>) -> Vec<Fault> {
    let launched = |elaborator: &mut Elaborator<'_>, kernel: KernelId, stack: StackId, count: u64| FaultSite {
        kernel: elaborator.kernel_name(kernel),
        stack: elaborator.stacks.resolve(stack),
        count,
    };
    let one = |f: &Failure| {
        let stack = elaborator.stacks.resolve(f.stack);
        let (origin, unjoined) = f.capture.as_ref().map(|f| unjoined(elaborator, f)).unwrap_or_default();
        Fault {
            origin,
            unjoined,
            pid: elaborator.names.process.pid,
            result: f.result,
            call: called(&stack, elaborator.names.call(f.call)),
            culprit: f.culprit.map(|(_, kernel, stack)| launched(elaborator, kernel, stack, 1)),
            stream: f.culprit.map(|(stream, ..)| elaborator.stream_name(stream)).unwrap_or_default(),
            running: f
                .running
                .iter()
                .map(|(stream, total, places)| Running {
                    stream: elaborator.stream_name(*stream),
                    total: *total,
                    places: places.len() as u64,
                    oldest: places
                        .iter()
                        .take(PLACES)
                        .map(|((kernel, stack), count)| launched(elaborator, *kernel, *stack, *count))
                        .collect(),
                })
                .collect(),
            stack,
        }
    };
    failures.iter().map(one).collect()
}

/// The stream that a capture began on, as lines name it, and the streams that were not joined.
fn unjoined(elaborator: &mut Elaborator<'_>, capture: &Capture) -> (String, Vec<UnjoinedStream>) {
    let at =
        |elaborator: &mut Elaborator<'_>, stack: StackId| site(&elaborator.stacks.resolve(stack)).unwrap_or_default();
    let one = |unjoined: &Unjoined| {
        let name = elaborator.stream(unjoined.stream);
        let drawn_in = unjoined.brought_by.and_then(|wait| capture.waits.get(wait as usize));
        UnjoinedStream {
            stream: name.long,
            short: name.short,
            drawn_in: drawn_in.map_or_else(String::new, |wait| at(elaborator, wait.stack)),
            last: capture.nodes.get(unjoined.node as usize).map_or_else(String::new, |node| at(elaborator, node.stack)),
        }
    };
    let streams = capture.replay(&|_| false).unjoined.iter().map(one).collect();
    (elaborator.stream(capture.origin).short, streams)
}

/// The sentence of a hint.
pub fn hint(said: &Said, elaborator: &mut Elaborator<'_>) -> Hint {
    let (first, second) = (elaborator.stream_name(said.streams.0), elaborator.stream_name(said.streams.1));
    let text = match (said.key.kind.sentence(), said.key.inside) {
        (Some(sentence), _) => in_words(sentence, &first, &second),
        (None, Some((kernel, spot))) => inside(said, kernel, spot, elaborator),
        (None, None) if said.key.kind == HintKind::CommunicatorOrder => {
            communicator_order([&first, &second], "another member of the two in this process")
        }
        // It is about no call: see `superfluous`.
        (None, None) => String::new(),
    };
    let text = sentence(text);
    let other = elaborator.stacks.resolve(said.key.other);
    let stack = elaborator.stacks.resolve(said.key.stack);
    Hint { kind: said.key.kind, text, count: said.count, pid: elaborator.names.process.pid, stack, other }
}

/// It begins with a capital letter.
fn sentence(mut text: String) -> String {
    if let Some(head) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &head);
    }
    text
}

/// A sentence with its streams. One pass: the name of a stream is the program's.
fn in_words(sentence: &str, first: &str, second: &str) -> String {
    let mut parts = sentence.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (stream, rest) = part.split_once('}').unwrap_or((part, ""));
        text.push_str(if stream == "first" { first } else { second });
        text.push_str(rest);
    }
    text
}

/// The sentence about two communicators: the streams that one member uses, in its order, and who
/// uses them in the other one.
fn communicator_order([first, second]: [&str; 2], other: &str) -> String {
    sentence(format!(
        "a collective of one NCCL communicator is enqueued on {first}, then one of another communicator on {second}; {other} \
         enqueues the second one first. Each waits for all members, and a device may have no room for both: this may deadlock \
         (NCCL's user guide, \"Using multiple NCCL communicators concurrently\"). Enqueue them in the same order everywhere."
    ))
}

/// The hint about two communicators that members in two processes use in different orders. `calls`:
/// the streams and stacks of one member, in its order.
pub fn members_disagree(calls: [&(String, Vec<Frame>); 2], (pid, other): (u32, &str), count: u64) -> Hint {
    let [first, second] = calls;
    let text = communicator_order([&first.0, &second.0], &format!("a member of the two in {other}"));
    Hint { kind: HintKind::CommunicatorOrder, text, count, pid, stack: second.1.clone(), other: first.1.clone() }
}

/// The sentence about a place in the code of a kernel: a flag that is polled by too weak a load, or
/// a bulk operation without a fence between the proxies in front of it.
fn inside(said: &Said, kernel: KernelId, spot: CodeSpot, elaborator: &mut Elaborator<'_>) -> String {
    let name = elaborator.kernel_name(kernel);
    let load = match spot {
        CodeSpot::Flag(load) => load,
        CodeSpot::Copy(copy) => {
            let [store, copy] = [copy.store, copy.at].map(|instruction| {
                let lines = elaborator.kernel_lines(said.streams.0, kernel, instruction);
                lines.map_or_else(String::new, |lines| format!(" at {lines}"))
            });
            return format!(
                "kernel {name} may store to shared memory{store} and come to the bulk operation{copy}, which reads shared memory, \
                 without a fence between the proxies: if that is the same memory, the operation need not see the store \
                 (fence.proxy.async, behind the store and before the barrier)."
            );
        }
    };
    let mut at = |instruction: u32| match elaborator.kernel_line(said.streams.0, kernel, instruction) {
        Some(line) => format!(" at {line}"),
        None => String::new(),
    };
    let place = at(load.at);
    if said.key.kind == HintKind::FlagUnordered {
        let data = load.data.map_or_else(String::new, &mut at);
        return format!(
            "kernel {name} polls a flag{place} in memory that another process has too, and touches data{data} behind it without \
             an acquire: it may see the flag and not what was stored before it (ld.acquire.sys, or a fence behind the loop)."
        );
    }
    let scope = match load.scope {
        LoadScope::Device => "a load with the scope of its device",
        LoadScope::Block => "a load with the scope of its block or cluster",
        LoadScope::Weak | LoadScope::System => "a plain load",
    };
    format!(
        "kernel {name} polls a flag{place} in memory that another process has too, by {scope}: stores of other devices need not \
         become visible to it (ld.acquire.sys)."
    )
}

/// CUDA's name of an error.
pub(crate) fn error_name(result: u32) -> &'static str {
    match result {
        700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
        702 => "CUDA_ERROR_LAUNCH_TIMEOUT",
        710 => "CUDA_ERROR_ASSERT",
        714 => "CUDA_ERROR_HARDWARE_STACK_ERROR",
        715 => "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        716 => "CUDA_ERROR_MISALIGNED_ADDRESS",
        717 => "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        718 => "CUDA_ERROR_INVALID_PC",
        719 => "CUDA_ERROR_LAUNCH_FAILED",
        904 => "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        _ => "CUDA error",
    }
}
