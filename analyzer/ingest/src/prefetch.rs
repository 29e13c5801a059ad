//! Prefetching: the records of a frame are fed in order, while the launches among the next ones
//! have their cache entries fetched.
//!
//! Owns how far ahead it looks. The launch cache of a long run takes more memory than the
//! processor's caches hold: a look-up of each launch at its turn took a tenth of the time of
//! generated launches. Prefetching what the entries point to as well took as long as it saved
//! waiting.

use trace::LaunchRecord;
use trace::file::{FileError, Frame};

use analysis::Analysis;

/// Number of records to look ahead. A power of two.
const AHEAD: usize = 16;

/// Decodes and feeds all records of a frame. Damaged ones are counted and skipped.
pub fn feed(analysis: &mut Analysis, frame: &Frame) -> Result<(), FileError> {
    let (mut records, mut launches) = ([&[][..]; AHEAD], [None; AHEAD]);
    let (mut count, mut end) = (0_usize, Ok(()));
    for bytes in frame.records() {
        let Ok(bytes) = bytes.map_err(|error| end = Err(error)) else { break };
        let here = count % AHEAD;
        if count >= AHEAD {
            analysis.feed_prefetched(records[here], launches[here]);
        }
        let launch = LaunchRecord::decode(bytes).and_then(Result::ok);
        (records[here], launches[here]) = (bytes, launch.map(|launch| analysis.prefetch(&launch)));
        count += 1;
    }
    for here in (count.saturating_sub(AHEAD)..count).map(|n| n % AHEAD) {
        analysis.feed_prefetched(records[here], launches[here]);
    }
    end
}
