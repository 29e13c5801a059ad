//! The records of a frame, fed in order while what the next launches need is on its way.
//!
//! Owns how far ahead is looked. A long run's launches are spread over more memory than the processor's caches hold, and each needs a few
//! places that lead to one another: to wait for them took about a sixth of the time of generated launches.

use trace::Record;
use trace::file::{FileError, Frame};

use super::live;
use crate::Analysis;

/// Records that are looked at before their turn. A power of two.
const AHEAD: usize = 16;
/// Records before its turn at which what was remembered of a launch is asked for, and at which what that leads to.
const STAGES: [usize; 2] = [10, 5];

/// Decodes and feeds all records of a frame; damage is counted, not followed.
pub fn feed(analysis: &mut Analysis, frame: &Frame) -> Result<(), FileError> {
    let (mut records, mut launches) = ([&[][..]; AHEAD], [None; AHEAD]);
    let (mut count, mut end) = (0_usize, Ok(()));
    for bytes in frame.records() {
        let Ok(bytes) = bytes.map_err(|error| end = Err(error)) else { break };
        let here = count % AHEAD;
        if count >= AHEAD {
            live::feed(analysis, records[here], launches[here]);
        }
        records[here] = bytes;
        launches[here] = match Record::launch(bytes) {
            Some(Ok(record)) => analysis.foresee(&record.op),
            _ => None,
        };
        for (stage, before) in STAGES.into_iter().enumerate() {
            if let Some(launch) = launches[(count + before) % AHEAD] {
                analysis.prepare(launch, stage);
            }
        }
        count += 1;
    }
    for here in (count.saturating_sub(AHEAD)..count).map(|n| n % AHEAD) {
        live::feed(analysis, records[here], launches[here]);
    }
    end
}
