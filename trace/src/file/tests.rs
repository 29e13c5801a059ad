//! Files as they are written, read back whole, cut, changed, and with frames left out, repeated and
//! swapped; and files of the versions before frames were chained.

use std::io;

use super::*;
use crate::segment::{SEGMENT_VERSION, SegmentHead, UNCHAINED_SEGMENT};

/// Number of records in the samples.
const RECORDS: u32 = 5000;

/// The records of a file that is written, before its end mark.
fn fill<W: io::Write>(writer: &mut Writer<W>, records: u32) {
    for n in 0..records {
        writer.record(n % 3, &n.to_le_bytes().repeat(1 + n as usize % 7)).expect("record");
        if n % 499 == 498 {
            writer.flush().expect("flush");
        }
    }
    writer.flush().expect("flush");
    writer.late(1, [b"late".to_vec()]).expect("late");
}

/// A file of many frames, and one that is a segment.
fn samples() -> [Vec<u8>; 2] {
    let head = SegmentHead { recording: 0xfeed_beef, number: 3, keeps_last: false };
    [None, Some(head)].map(|head| {
        let mut bytes = Vec::new();
        let mut writer = match head {
            None => Writer::new(&mut bytes).expect("header"),
            Some(head) => Writer::segment(&mut bytes, &head).expect("header"),
        };
        fill(&mut writer, RECORDS);
        writer.finish().expect("its end");
        bytes
    })
}

fn sample() -> Vec<u8> {
    let [file, _] = samples();
    file
}

/// Where the frames of a file begin, and where it ends.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(bytes).expect("a trace");
    let is_chained = reader.has_end_mark();
    let mut at = vec![reader.position() as usize];
    while reader.next_frame(&mut Frame::default()).expect("whole") {
        at.push(reader.position() as usize);
    }
    // The last frame is not handed out.
    at.extend(is_chained.then_some(bytes.len()));
    at
}

/// The frames of a file behind its header, the last one included.
fn frames(bytes: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let borders = borders(bytes);
    (&bytes[..borders[0]], borders.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect())
}

/// The same records in a file of the version before frames were chained.
fn unchained(bytes: &[u8]) -> Vec<u8> {
    let (header, frames) = frames(bytes);
    let mut old = header.to_vec();
    let version = if header.len() > 16 { UNCHAINED_SEGMENT } else { UNCHAINED_FILE };
    old[8..12].copy_from_slice(&version.to_le_bytes());
    for frame in &frames[..frames.len() - 1] {
        let (head, stored) = frame.split_at(FRAME_HEAD);
        old.extend_from_slice(&head[..16]);
        old.extend_from_slice(&crc32fast::hash(stored).to_le_bytes());
        old.extend_from_slice(stored);
    }
    old
}

fn read(bytes: &[u8]) -> (Vec<(u32, Vec<u8>)>, Option<FileError>) {
    let mut records = Vec::new();
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (records, Some(error)),
    };
    loop {
        match reader.frame(|process, record| records.push((process, record.to_vec()))) {
            Ok(true) => {}
            Ok(false) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

#[test]
fn records_come_back_per_process_in_order() {
    let (records, error) = read(&sample());
    assert!(error.is_none());
    assert_eq!(records.len(), RECORDS as usize + 1);
    for process in 0..3 {
        let numbers: Vec<u32> = records.iter().filter(|(p, _)| *p == process).map(|(_, r)| word(r, 0)).collect();
        assert!(numbers.windows(2).all(|w| w[0] + 3 == w[1]));
    }
}

#[test]
fn late_definitions_are_found_without_reading_the_rest() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("header");
    writer.record(3, b"early").expect("record");
    writer.flush().expect("flush");
    writer.late(3, [b"one".to_vec(), vec![7; BLOCK], b"two".to_vec()]).expect("late");
    writer.late(4, []).expect("nothing");
    writer.finish().expect("its end");
    let found = |bytes: &[u8]| {
        let mut list = Vec::new();
        let upto = late(io::Cursor::new(bytes), |process, record, whole| {
            assert!(whole.as_ptr_range().contains(&record.as_ptr()), "a record is a part of its frame");
            list.push((process, record.len()));
        });
        assert!(list.is_empty() || upto > 0);
        list
    };
    assert_eq!(found(&bytes), [(3, 3), (3, BLOCK), (3, 3)]);
    assert_eq!(found(&unchained(&bytes)), [(3, 3), (3, BLOCK), (3, 3)]);
    let (records, error) = read(&bytes);
    assert!(error.is_none());
    assert_eq!(records.iter().map(|(p, _)| *p).collect::<Vec<_>>(), [3, 3 | LATE, 3 | LATE, 3 | LATE]);
    for cut in 0..bytes.len() {
        assert!(found(&bytes[..cut]).len() <= 3);
    }
}

#[test]
fn a_torn_file_gives_its_whole_frames_and_a_named_error() {
    let bytes = sample();
    let whole = read(&bytes).0.len();
    for cut in [17, 30, bytes.len() / 2, bytes.len() - FRAME_HEAD - 1] {
        let (records, error) = read(&bytes[..cut]);
        assert!(records.len() < whole);
        assert!(matches!(error, Some(FileError::Torn { .. })), "cut at {cut}: {error:?}");
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_never_whole() {
    for bytes in samples() {
        let (all, borders) = (read(&bytes).0, borders(&bytes));
        assert!(borders.len() > 30, "{borders:?}");
        for (frames, border) in borders[..borders.len() - 1].iter().enumerate() {
            for cut in [*border, border + 1, border + FRAME_HEAD - 1] {
                let (records, error) = read(&bytes[..cut]);
                assert_eq!(records[..], all[..records.len()], "what is there is read");
                assert_eq!(records.is_empty(), frames == 0);
                match error {
                    Some(FileError::Cut { at }) => assert_eq!((at, cut), (*border as u64, *border)),
                    Some(FileError::Torn { at }) => assert!(at == *border as u64 && cut > *border),
                    other => panic!("cut at {cut}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_frame_that_is_left_out_repeated_or_swapped_is_noticed_at_the_next_one() {
    for bytes in samples() {
        let ((header, frames), all) = (frames(&bytes), read(&bytes).0);
        let together =
            |order: &[usize]| [header, &order.iter().map(|n| frames[*n]).collect::<Vec<_>>().concat()].concat();
        let as_they_were: Vec<usize> = (0..frames.len()).collect();
        assert_eq!(together(&as_they_were), bytes);
        // The index of the first frame that does not follow.
        let noticed = |order: &[usize], first: usize, what: &str| {
            let (records, error) = read(&together(order));
            let at = (header.len() + order[..first].iter().map(|n| frames[*n].len()).sum::<usize>()) as u64;
            assert!(matches!(error, Some(FileError::Missing { at: there }) if there == at), "{what}: {error:?}");
            assert_eq!(records[..], all[..records.len()], "{what}");
        };
        for n in 0..frames.len() - 1 {
            let mut order = as_they_were.clone();
            order.remove(n);
            noticed(&order, n, &format!("without frame {n}"));
            let mut order = as_they_were.clone();
            order.insert(n, n);
            noticed(&order, n + 1, &format!("frame {n} twice"));
            for other in n + 1..frames.len() - 1 {
                let mut order = as_they_were.clone();
                order.swap(n, other);
                noticed(&order, n, &format!("{n} and {other} swapped"));
            }
        }
        // Frames and ends of other files.
        let mut other = Vec::new();
        let mut writer = Writer::segment(&mut other, &SegmentHead::default()).expect("header");
        writer.record(0, b"other").expect("record");
        writer.finish().expect("its end");
        let (other_header, others) = self::frames(&other);
        for end in [others[0], others[1], frames[frames.len() - 1]] {
            let error = read(&[header, frames[0], end].concat()).1;
            assert!(matches!(error, Some(FileError::Missing { .. })), "{error:?}");
        }
        let error = read(&[other_header, &frames.concat()].concat()).1;
        assert!(matches!(error, Some(FileError::Missing { .. })), "another header: {error:?}");
        for more in [&b"x"[..], frames[0], &bytes, frames[frames.len() - 1]] {
            let error = read(&[&bytes, more].concat()).1;
            assert!(matches!(error, Some(FileError::Damaged { what: "something follows its end", .. })), "{error:?}");
        }
    }
}

#[test]
fn damage_never_panics_and_is_named() {
    let mut small = Vec::new();
    let mut writer = Writer::new(&mut small).expect("header");
    fill(&mut writer, 40);
    writer.finish().expect("its end");
    for (bytes, step) in [(&small, 1), (&sample(), 97)] {
        for at in (0..bytes.len()).step_by(step) {
            for change in [0x01, 0x02, 0x55, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let (_, error) = read(&damaged);
                assert!(error.is_some(), "a changed byte at {at} went unnoticed");
            }
        }
    }
    assert!(matches!(read(b"hello").1, Some(FileError::Foreign)));
    for version in [0_u32, 5, 99, u32::MAX] {
        let mut newer = small.clone();
        newer[8..12].copy_from_slice(&version.to_le_bytes());
        assert!(matches!(read(&newer).1, Some(FileError::Version { theirs, .. }) if theirs == version));
    }
}

#[test]
fn files_of_the_versions_before_are_read_as_they_were() {
    for bytes in samples() {
        let old = unchained(&bytes);
        let reader = Reader::new(&old[..]).expect("a trace");
        assert_eq!((reader.has_end_mark(), reader.segment()), (false, Reader::new(&bytes[..]).expect("one").segment()));
        assert_eq!(read(&old).0, read(&bytes).0);
        let borders = borders(&old);
        for (n, border) in borders.iter().enumerate() {
            // A cut between two frames does not show, one inside of a frame does.
            let (records, error) = read(&old[..*border]);
            assert!(error.is_none() && records.is_empty() == (n == 0), "cut at {border}: {error:?}");
            let torn = read(&old[..border - 1]).1;
            assert!(n == 0 || matches!(torn, Some(FileError::Torn { .. })), "cut at {}: {torn:?}", border - 1);
        }
        let mut damaged = old.clone();
        damaged[borders[1] - 1] ^= 0x55;
        assert!(matches!(read(&damaged).1, Some(FileError::Damaged { .. })));
    }
}

/// A disk with room for so many bytes.
struct Disk<'a>(&'a std::cell::RefCell<Vec<u8>>, &'a std::cell::Cell<usize>);

impl io::Write for Disk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = self.0.borrow_mut();
        let fits = bytes.len().min(self.1.get() - there.len());
        there.extend_from_slice(&bytes[..fits]);
        if fits == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_could_not_be_written_gets_no_end_mark_even_if_there_is_room_again() {
    let whole = sample();
    for room in (16..whole.len()).step_by(1999).chain([whole.len() - 1]) {
        let (there, room) = (std::cell::RefCell::default(), std::cell::Cell::new(room));
        let mut writer = Writer::new(Disk(&there, &room)).expect("header");
        let mut failed = false;
        for n in 0..RECORDS {
            failed |= writer.record(n % 3, &n.to_le_bytes().repeat(1 + n as usize % 7)).is_err();
            failed |= n % 499 == 498 && writer.flush().is_err();
        }
        failed |= writer.flush().is_err();
        failed |= writer.late(1, [b"late".to_vec()]).is_err();
        room.set(usize::MAX);
        assert_eq!(writer.finish().is_err(), failed);
        assert_eq!(read(&there.borrow()).1.is_some(), failed);
        assert!(writer.record(0, b"more").is_err() && writer.write_frame(0, b"more").is_err(), "it has ended");
    }
}

/// The records that a reader hands out that passes over late definitions before a byte.
fn read_knowing(bytes: &[u8], known: u64) -> (Vec<(u32, usize)>, Option<FileError>) {
    let mut records = Vec::new();
    let mut reader = Reader::new(bytes).expect("a trace");
    reader.pass_over_late(known);
    loop {
        match reader.frame(|process, record| records.push((process, record.len()))) {
            Ok(true) => {}
            Ok(false) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

#[test]
fn late_definitions_that_are_known_are_passed_over_and_others_are_not() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("header");
    for process in [3, 4] {
        writer.record(process, b"early").expect("record");
        writer.flush().expect("flush");
        writer.late(process, [vec![7; BLOCK], b"two".to_vec()]).expect("late");
    }
    writer.finish().expect("its end");
    let upto = late(io::Cursor::new(&bytes), |_, _, _| {});
    let early = [(3, 5), (4, 5)];
    assert_eq!(read_knowing(&bytes, upto).0, early);
    let (all, error) = read_knowing(&bytes, 0);
    assert!(error.is_none() && all.len() == 6, "{all:?}");
    // A byte before the second process's: those of the first alone are known.
    let (_, frames) = frames(&bytes);
    let lens = frames.iter().map(|frame| frame.len() as u64);
    let starts: Vec<u64> = lens.scan(16, |at, len| Some(std::mem::replace(at, *at + len))).collect();
    let second = read_knowing(&bytes, starts[3]).0;
    assert_eq!(second, [(3, 5), (4, 5), (4 | LATE, BLOCK), (4 | LATE, 3)]);
    // Their checksums are looked at all the same.
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let found = Reader::new(&damaged[..]).is_err() || read_knowing(&damaged, upto).1.is_some();
        assert!(found, "byte {at} was changed");
    }
}

#[test]
fn late_definitions_that_do_not_unpack_are_not_known() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("header");
    writer.late(3, [b"one".to_vec()]).expect("late");
    writer.late(3, [b"two".to_vec()]).expect("late");
    writer.finish().expect("its end");
    // The second frame's bytes are no compressed ones, and its checksum is right.
    let forged = forged(&bytes, |n, _, stored| {
        if n == 1 {
            stored.fill(0x55);
        }
    });
    let mut seen = 0;
    let upto = late(io::Cursor::new(&forged), |_, _, _| seen += 1);
    assert_eq!(seen, 1);
    assert!(matches!(read_knowing(&forged, upto).1, Some(FileError::Damaged { .. })), "the report says so");
}

/// A file of frames that each unpack to so many bytes of nothing.
fn claims(frames: usize, raw: usize, late: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("header");
    let mut block = Vec::new();
    block.extend_from_slice(&(raw as u32).to_le_bytes());
    block.resize(4 + raw, 0);
    for _ in 0..frames {
        writer.write_frame(if late { LATE } else { 0 }, &block).expect("frame");
    }
    writer.finish().expect("its end");
    bytes
}

#[test]
fn what_a_file_unpacks_to_is_bounded_by_its_size() {
    for (frames, raw) in [(1, 64 << 20), (2, 30 << 20), (40, 4 << 20), (400, 1 << 20)] {
        let bytes = claims(frames, raw, false);
        let (records, error) = read(&bytes);
        assert!(matches!(error, Some(FileError::Damaged { .. })), "{frames} frames of {raw}: {error:?}");
        let unpacked: usize = records.iter().map(|(_, record)| record.len()).sum();
        assert!(unpacked as u64 <= UNPACKED_MORE + UNPACKED_PER_BYTE * bytes.len() as u64, "{unpacked}");
        let (mut seen, from) = (0, claims(frames, raw, true));
        late(std::io::Cursor::new(&from), |_, record, _| seen += record.len() as u64);
        assert!(seen <= UNPACKED_MORE + UNPACKED_PER_BYTE * from.len() as u64, "{seen}");
    }
    // What programs record is far from it, and so is a large image of zeros.
    for (frames, raw) in [(1, 1 << 20), (20, 1 << 20), (1, 31 << 20)] {
        assert!(read(&claims(frames, raw, false)).1.is_none(), "{frames} frames of {raw}");
    }
}

/// The file with other words in the heads of its frames, whose checksums are right.
fn forged(bytes: &[u8], mut change: impl FnMut(usize, &mut FrameHead, &mut Vec<u8>)) -> Vec<u8> {
    let (header, frames) = frames(bytes);
    let mut made = header.to_vec();
    let mut before = crc32fast::hash(header);
    for (n, frame) in frames.iter().enumerate() {
        let (head, stored) = frame.split_at(FRAME_HEAD);
        let mut head = FrameHead::decode(head.try_into().expect("a head"), true).expect("a head");
        let mut stored = stored.to_vec();
        change(n, &mut head, &mut stored);
        let head = FrameHead::chained(head.process, head.raw as usize, &stored, before);
        made.extend(head.encode());
        made.extend(&stored);
        before = head.sum;
    }
    made
}

#[test]
fn a_frame_that_is_not_what_it_claims_is_damage() {
    for bytes in samples() {
        let (all, error) = read(&bytes);
        assert!(error.is_none() && forged(&bytes, |_, _, _| ()) == bytes);
        let last = frames(&bytes).1.len() - 1;
        let is_segment = bytes[8..12] == SEGMENT_VERSION.to_le_bytes();
        type Change = fn(&mut FrameHead, &mut Vec<u8>);
        let wrong: [(Change, bool); 6] = [
            (|_, stored| stored.clear(), false),
            (|head, _| head.raw += 1, false),
            (|head, _| head.raw -= 1, false),
            (|head, _| head.process |= STATE, is_segment),
            (|head, _| head.process |= AGAIN, is_segment),
            (|head, _| head.process |= END, is_segment),
        ];
        for (kind, (change, right)) in wrong.into_iter().enumerate() {
            for at in 0..last {
                let forged = forged(&bytes, |n, head, stored| {
                    if n == at {
                        change(head, stored);
                    }
                });
                let (records, error) = read(&forged);
                let found = matches!(error, Some(FileError::Damaged { .. }));
                assert!(found != right, "change {kind} of frame {at}: {error:?}");
                assert!(right || records.len() < all.len() && all.starts_with(&records), "{kind}, {at}");
            }
        }
    }
}

/// A file that gets shorter while it is read.
struct Shrinking<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that are read before the file is cut to `left`.
    before: usize,
    left: usize,
}

impl io::Read for Shrinking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = if self.at < self.before { self.bytes.len() } else { self.left };
        let count = end.saturating_sub(self.at).min(buffer.len());
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_never_whole() {
    let bytes = sample();
    let borders = borders(&bytes);
    let all = read(&bytes).0;
    let end = borders[borders.len() - 2];
    for (before, left) in borders[..borders.len() - 1].iter().flat_map(|at| [(*at, 0), (*at, *at), (at - 9, end)]) {
        let from = Shrinking { bytes: &bytes, at: 0, before, left };
        let mut reader = Reader::new(io::BufReader::with_capacity(16, from)).expect("a trace");
        let mut records = Vec::new();
        let error = loop {
            match reader.frame(|process, record| records.push((process, record.to_vec()))) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        assert!(matches!(error, Some(FileError::Cut { .. } | FileError::Torn { .. })), "{before} {left}: {error:?}");
        assert_eq!(records[..], all[..records.len()]);
    }
}
