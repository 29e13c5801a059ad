//! Words for a fault of a kernel: which allocation is next to the address. Reports nothing itself.

use crate::interp::FaultKind;
use crate::memory::{self, Allocation};

/// What lies next to an address that no allocation holds, as words behind a report.
pub(crate) fn text(fault: &FaultKind) -> String {
    let &FaultKind::OutOfBounds { address, space: "global", .. } = fault else { return String::new() };
    let distance = |block: &Allocation| match address {
        at if at < block.at => block.at - at,
        at => (at + 1).saturating_sub(block.end()),
    };
    let blocks = memory::get().allocations();
    let Some(block) = blocks.iter().min_by_key(|block| distance(block)) else {
        return "; there is no allocation".to_owned();
    };
    let (size, at) = (block.size, block.at);
    let place = match address {
        address if address < at => format!("{} bytes before", at - address),
        address if address >= block.end() => format!("{} bytes behind", address - block.end()),
        address => format!("at byte {} of", address - at),
    };
    format!("; that is {place} the nearest allocation, of {size} bytes at 0x{at:x}")
}
