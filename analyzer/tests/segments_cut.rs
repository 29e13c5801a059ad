//! Segments of which a part is missing, each frame of them intact: the segment is named, the others
//! are read, and nothing is found that is not there.

use std::path::Path;

use ingest::recorded;
use ingest::segments::writer::SegmentWriter;
use trace::file::{Frame, Reader};

use crate::segments::program::Program;
use crate::segments::{Scratch, TINY, after_a_gap, checked, findings, pass_time, segment};

/// Where the frames of a file begin, the empty last one among them, and where it ends.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(bytes).expect("a trace");
    let mut at = vec![reader.position() as usize];
    while reader.next_frame(&mut Frame::default()).expect("whole") {
        at.push(reader.position() as usize);
    }
    at.push(bytes.len());
    at
}

/// Checks the folder with other bytes in place of a segment.
fn with(folder: &Path, number: u64, bytes: &[u8]) -> (Vec<report::model::Outcome>, String) {
    let path = segment(folder, number);
    let kept = std::fs::read(&path).expect("there");
    std::fs::write(&path, bytes).expect("written");
    let (outcomes, error) = checked(folder);
    std::fs::write(&path, kept).expect("written");
    (outcomes, error.unwrap_or_default())
}

/// The writer died between the frame that says why the recording ends and the end of the file.
#[test]
fn a_segment_that_was_never_finished_is_not_the_end() {
    let (_scratch, folder, all) = after_a_gap(true);
    let last = segment(&folder, *all.last().expect("some"));
    let bytes = std::fs::read(&last).expect("there");
    let part = last.with_extension("part");
    std::fs::rename(&last, &part).expect("there");
    let borders = borders(&bytes);
    for (n, border) in borders.iter().enumerate() {
        std::fs::write(&part, &bytes[..*border]).expect("written");
        let (outcomes, error) = checked(&folder);
        let is_whole = n + 1 == borders.len();
        assert_eq!(error.as_deref(), (!is_whole).then_some("the end of the recording is missing"), "{border}");
        assert!(findings(&outcomes).is_empty());
    }
}

#[test]
fn a_segment_that_is_cut_off_or_lacks_a_frame_is_named_and_nothing_is_invented() {
    for waits in [false, true] {
        let (_scratch, folder, all) = after_a_gap(waits);
        let whole = findings(&checked(&folder).0);
        assert_eq!(whole.len(), usize::from(!waits));
        for number in &all {
            let bytes = std::fs::read(segment(&folder, *number)).expect("there");
            let borders = borders(&bytes);
            let name = format!("{number:06}.trace: ");
            for pair in borders.windows(2) {
                let cut = bytes[..pair[0]].to_vec();
                let without = [&bytes[..pair[0]], &bytes[pair[1]..]].concat();
                let twice = [&bytes[..pair[1]], &bytes[pair[0]..]].concat();
                let is_last = pair[1] == bytes.len();
                let kinds = ["the trace is cut off", "a part of the trace is missing", "something follows its end"];
                let named = [kinds[0], kinds[usize::from(!is_last)], kinds[1 + usize::from(is_last)]];
                for (changed, what) in [cut, without, twice].iter().zip(named) {
                    let (rest, error) = with(&folder, *number, changed);
                    assert!(error.contains(&name) && error.contains(what), "{pair:?}: {what}: {error}");
                    assert!(findings(&rest).is_subset(&whole), "{number} {pair:?}: {what}");
                }
            }
            // A segment in the place of another one.
            let other = segment(&folder, all[usize::from(*number == all[0])]);
            let other = std::fs::read(other).expect("there");
            let (rest, error) = with(&folder, *number, &[&bytes[..borders[0]], &other[borders[0]..]].concat());
            assert!(error.contains("a part of the trace is missing"), "{number}: {error}");
            assert!(findings(&rest).is_subset(&whole), "{number}");
        }
        assert_eq!(findings(&checked(&folder).0), whole, "all is as it was");
    }
}

/// Copies that are left over: by a tool that copied while the recording went on, by hand, by a
/// link.
#[test]
fn a_segment_that_is_there_twice_is_named_and_read_once() {
    for waits in [false, true] {
        let (_scratch, folder, all) = after_a_gap(waits);
        let whole = findings(&checked(&folder).0);
        for number in &all {
            let path = segment(&folder, *number);
            let twins = [folder.join(format!("{number:06}.part")), folder.join(format!("{number:07}.trace"))];
            for twin in twins {
                for linked in [false, true] {
                    match linked {
                        false => _ = std::fs::copy(&path, &twin).expect("copied"),
                        true => std::os::unix::fs::symlink(&path, &twin).expect("linked"),
                    }
                    let (outcomes, error) = checked(&folder);
                    let named = format!("segment {number} is there twice: {}", twin.display());
                    assert!(error.as_ref().is_some_and(|error| error.contains(&named)), "{twin:?}: {error:?}");
                    assert_eq!(findings(&outcomes), whole, "{twin:?}");
                    std::fs::remove_file(&twin).expect("there");
                }
            }
        }
        // A number that nothing can follow, in a header whose checksum is right.
        let path = segment(&folder, *all.last().expect("some"));
        let bytes = std::fs::read(&path).expect("there");
        let mut writer = Vec::new();
        let mut head = Reader::new(&bytes[..]).expect("a trace").segment().expect("a segment");
        head.number = u64::MAX;
        trace::file::Writer::segment(&mut writer, &head).and_then(|mut writer| writer.finish()).expect("written");
        let (_, error) = with(&folder, *all.last().expect("some"), &writer);
        assert!(error.contains("are missing"), "{error}");
        assert_eq!(checked(&folder).1, None, "all is as it was");
    }
}

#[test]
fn other_recordings_in_the_folder_are_named() {
    let (_scratch, folder, all) = after_a_gap(false);
    let (_other_scratch, other, _) = after_a_gap(false);
    let below = folder.join("rank1");
    let part = |folder: &Path| std::fs::read(segment(folder, all[0])).expect("there");
    let mut file = Vec::new();
    trace::file::Writer::new(&mut file).and_then(|mut writer| writer.finish()).expect("written");
    let strangers = [
        (folder.join("rank7.trace"), file.clone(), true),
        (folder.join("notes.txt"), file.clone(), true),
        (below.join("000000.trace"), part(&other), true),
        (below.join("one.trace"), file, true),
        // What is saved of a recording is a part of it.
        (below.join("000000.trace"), part(&folder), false),
        (folder.join("notes.txt"), b"a note".to_vec(), false),
        (below.join("notes.txt"), b"a note".to_vec(), false),
    ];
    for (path, bytes, is_stranger) in strangers {
        std::fs::create_dir_all(&below).expect("a folder");
        std::fs::write(&path, bytes).expect("written");
        let error = checked(&folder).1;
        let named = error.as_ref().is_some_and(|error| error.contains("is no part of this recording"));
        assert!(named == is_stranger && error.is_some() == is_stranger, "{}: {error:?}", path.display());
        if path.starts_with(&below) {
            std::fs::remove_dir_all(&below).expect("there");
        } else {
            std::fs::remove_file(&path).expect("there");
        }
    }
}

/// Who looks on never takes a recording that goes on for one that has lost its end, nor stops it.
#[test]
fn a_recording_that_is_watched_all_the_time_goes_on() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("parts");
    let mut p = Program::new();
    pass_time(&mut p);
    let mut writer = SegmentWriter::create(&folder, TINY).expect("a folder");
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut looks = 0;
            while !ended.load(std::sync::atomic::Ordering::Acquire) {
                let error = recorded::each_record(&folder, |_, _| ()).err().map(|error| error.to_string());
                // Before the first segment is finished nothing can be read.
                let right = error.as_deref().is_none_or(|error| error.contains("no segment of this recording"));
                assert!(right, "{error:?}");
                looks += 1;
            }
            looks
        });
        for record in p.records.iter().cycle().take(400) {
            writer.record(0, record).expect("written");
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        ended.store(true, std::sync::atomic::Ordering::Release);
        assert!(watching.join().expect("no error") > 0);
    });
    writer.finish().expect("written");
    assert_eq!(checked(&folder).1, None);
}
