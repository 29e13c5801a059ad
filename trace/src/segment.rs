//! Segments: a recording as a folder of files, each of which can be read without those before it.
//!
//! Owns the header of a segment and the names of the files. A segment is a trace file whose header
//! says which part of which recording it is. It begins with what lives at that moment (frames with
//! [`crate::file::STATE`]); definitions of earlier segments are told again where they are needed
//! ([`crate::file::AGAIN`]). Who has read the segment before passes over both.
//!
//! ```text
//! FOLDER/000000.trace, 000001.trace, ...   finished segments
//! FOLDER/000002.part                       the one that is being written, locked by its writer
//! FOLDER/shared/HASH.code                  code images, named by their content
//! FOLDER/shared/HASH.late                  symbols, as traces with late definitions only
//! FOLDER/saved-1-REASON/                   what `--keep-last` kept when it was saved
//! ```
//!
//! What is written into them, and when, is the analyzer's.

/// Version of the header and framing of a segment, and of the records in it.
pub const SEGMENT_VERSION: u32 = 4;
/// The version before frames were chained ([`crate::file::UNCHAINED_FILE`]).
pub const UNCHAINED_SEGMENT: u32 = 2;
/// Bytes of a segment's header behind the header of every trace file.
pub const SEGMENT_HEAD: usize = 24;
/// Ending of finished segments.
pub const FINISHED: &str = "trace";
/// Ending of the segment that is being written.
pub const UNFINISHED: &str = "part";
/// The folder of what all segments share.
pub const SHARED: &str = "shared";
/// Ending of code images in it.
pub const CODE: &str = "code";
/// Ending of files with late definitions in it.
pub const SYMBOLS: &str = "late";

/// Set in `flags`: earlier segments may have been deleted on purpose (`--keep-last`).
const KEEPS_LAST: u32 = 1;

/// What the header of a segment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentHead {
    /// The recording, by a random number.
    pub recording: u64,
    /// Number of the segment, from 0.
    pub number: u64,
    /// Whether the recording keeps its end only.
    pub keeps_last: bool,
}

impl SegmentHead {
    /// The bytes of the header.
    pub fn encode(&self) -> [u8; SEGMENT_HEAD] {
        let mut bytes = [0; SEGMENT_HEAD];
        bytes[..8].copy_from_slice(&self.recording.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&(u32::from(self.keeps_last) * KEEPS_LAST).to_le_bytes());
        bytes
    }

    /// The header that these bytes are. Flags of later versions are passed over.
    pub fn decode(bytes: &[u8; SEGMENT_HEAD]) -> Self {
        let number = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self { recording: number(0), number: number(8), keeps_last: number(16) & u64::from(KEEPS_LAST) != 0 }
    }

    /// The name of a segment's file.
    pub fn file_name(number: u64, ending: &str) -> String {
        format!("{number:06}.{ending}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Reader, Writer};

    #[test]
    fn the_header_of_a_segment_comes_back_and_its_frames_behind_it() {
        for keeps_last in [false, true] {
            let head = SegmentHead { recording: 0xfeed_beef_dead_f00d, number: 7, keeps_last };
            let mut bytes = Vec::new();
            let mut writer = Writer::segment(&mut bytes, &head).expect("header");
            writer.record(2, b"one").expect("record");
            writer.finish().expect("finish");
            let written = writer.written();
            assert_eq!(written, bytes.len() as u64);
            let mut reader = Reader::new(&bytes[..]).expect("a trace");
            assert_eq!(reader.segment(), Some(head));
            let mut seen = Vec::new();
            assert!(reader.frame(|process, record| seen.push((process, record.to_vec()))).expect("a frame"));
            assert!(!reader.frame(|_, _| ()).expect("its end"));
            assert_eq!((seen, reader.position()), (vec![(2, b"one".to_vec())], written));
            for cut in 16..16 + SEGMENT_HEAD {
                assert!(Reader::new(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }
}
