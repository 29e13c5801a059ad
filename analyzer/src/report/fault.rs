//! An error that ended a context, as reports print it.
//!
//! Owns the data only. [`crate::detect::faults`] finds the launches that may have caused it.

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

/// An error that ended a context.
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
