//! The records of a frame, fed in order while it is seen which of the next ones are launches, and
//! asked for where these are remembered.
//!
//! Owns how far ahead is looked. A long run's launches are remembered in more memory than the
//! processor's caches hold: to look each up at its turn took a tenth of the time of generated
//! launches. To ask for what that leads to took as long as it saved waiting.

use trace::LaunchRecord;
use trace::file::{FileError, Frame};

use super::live;
use crate::Analysis;

/// Records that are looked at before their turn. A power of two.
const AHEAD: usize = 16;

/// Decodes and feeds all records of a frame; damage is counted, not followed.
pub fn feed(analysis: &mut Analysis, frame: &Frame) -> Result<(), FileError> {
    let (mut records, mut launches) = ([&[][..]; AHEAD], [None; AHEAD]);
    let (mut count, mut end) = (0_usize, Ok(()));
    for bytes in frame.records() {
        let Ok(bytes) = bytes.map_err(|error| end = Err(error)) else { break };
        let here = count % AHEAD;
        if count >= AHEAD {
            live::feed_prefetched(analysis, records[here], launches[here]);
        }
        let launch = LaunchRecord::decode(bytes).and_then(Result::ok);
        (records[here], launches[here]) = (bytes, launch.map(|launch| analysis.prefetch(&launch)));
        count += 1;
    }
    for here in (count.saturating_sub(AHEAD)..count).map(|n| n % AHEAD) {
        live::feed_prefetched(analysis, records[here], launches[here]);
    }
    end
}
