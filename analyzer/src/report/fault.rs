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
}

impl Fault {
    /// What the error means and what mends it, where that is known without any launch: a sentence,
    /// and lines to paste.
    pub fn explained(&self) -> Option<(String, Vec<String>)> {
        if self.result != UNJOINED {
            return None;
        }
        let site = site(&self.stack).map_or_else(String::new, |at| format!(", {at}"));
        let said =
            "CUDA says \"capturing stream has unjoined work\": a stream that was drawn into the capture by a wait was \
                    not joined again with the stream that the capture began on. There is no graph."
                .to_string();
        let record = "cudaEventRecord(event, forked);";
        let wait = "cudaStreamWaitEvent(origin, event, 0);";
        let width = record.len().max(wait.len());
        let lines = vec![
            format!("{record:width$}  // behind the last work of each such stream"),
            format!("{wait:width$}  // before {}{site}", self.call),
        ];
        Some((said, lines))
    }
}

/// `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`.
pub const UNJOINED: u32 = 904;
