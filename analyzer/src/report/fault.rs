//! An error that ended a context or a capture, as reports print it.
//!
//! Owns the data, and what an error of a capture means. [`crate::detect::faults`] finds the
//! launches that may have caused the others.

use crate::report::call_site::site;
use crate::symbols::frame::Frame;
use serde::{Deserialize, Serialize};

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
    pub stream: String,
    /// How many launches.
    pub total: u64,
    /// From how many places.
    pub places: u64,
    /// The places that launched first, oldest first.
    pub oldest: Vec<FaultSite>,
}

/// An error that ended a context or a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fault {
    /// The process.
    pub pid: u32,
    /// The driver's answer (`CUresult`).
    pub result: u32,
    /// The call that returned it.
    pub call: String,
    /// Where that was.
    pub stack: Vec<Frame>,
    /// The launch that caused it, if every launch was waited for.
    pub culprit: Option<FaultSite>,
    /// The stream of that launch.
    pub stream: String,
    /// Otherwise: the launches in flight, by stream.
    pub running: Vec<Running>,
    /// Of a capture with unjoined work: the stream that it began on, as lines name it.
    pub origin: String,
    /// The streams that were not joined.
    pub unjoined: Vec<UnjoinedStream>,
}

/// A stream that was drawn into a capture and not joined.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UnjoinedStream {
    /// The stream.
    pub stream: String,
    /// As lines name it.
    pub short: String,
    /// Where it was drawn in.
    pub drawn_in: String,
    /// Its last call.
    pub last: String,
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

/// `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`.
pub const UNJOINED: u32 = 904;
