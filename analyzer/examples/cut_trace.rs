//! What segments cost: `cut_trace TRACE FOLDER MIB [PAIRS]` writes the records of a trace anew, as
//! one file and as segments of so many MiB, in turns, and compares time and size.
//!
//!     cargo run --release -p analyzer --example long_trace 20000000 /tmp/long.trace train
//!     cargo run --release -p analyzer --example cut_trace /tmp/long.trace /tmp/cut 16
//!     target/release/streamsan check /tmp/cut/parts
//!
//! The files of the last turn stay. What is measured is the work of the thread that records, beside
//! the program: compression, and keeping what lives.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::time::Instant;

use ingest::segments::writer::{SegmentLimits, SegmentWriter};
use trace::file::{LATE, Reader, Writer};

/// Passes all records to `each`, and answers the seconds that it took for them.
fn pass(trace: &str, mut each: impl FnMut(u32, &[u8])) -> f64 {
    let mut reader = Reader::new(BufReader::new(File::open(trace).expect("a trace"))).expect("a trace");
    let (mut frame, mut seconds) = (Default::default(), 0.0);
    while reader.next_frame(&mut frame).expect("whole") {
        let began = Instant::now();
        if frame.process & LATE == 0 {
            for record in frame.records() {
                each(frame.process, record.expect("whole"));
            }
        }
        seconds += began.elapsed().as_secs_f64();
    }
    seconds
}

fn size(path: &Path) -> u64 {
    match path.is_dir() {
        true => path.read_dir().expect("a folder").map(|entry| size(&entry.expect("an entry").path())).sum(),
        false => path.metadata().expect("there").len(),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, trace, folder, mib, rest @ ..] = &args[..] else { panic!("usage: cut_trace TRACE FOLDER MIB [PAIRS]") };
    let pairs: usize = rest.first().map_or(5, |n| n.parse().expect("a number"));
    let limits = SegmentLimits::of(mib.parse().expect("a number"), None);
    let (file, parts) = (Path::new(folder).join("whole.trace"), Path::new(folder).join("parts"));
    std::fs::create_dir_all(folder).expect("a folder");
    let mut ratios = Vec::new();
    for _ in 0..pairs {
        let mut writer = Writer::new(BufWriter::new(File::create(&file).expect("created"))).expect("header");
        let mut records = 0_u64;
        let whole = pass(trace, |process, bytes| {
            records += 1;
            writer.record(process, bytes).expect("written");
        });
        writer.finish().expect("written");
        let _ = std::fs::remove_dir_all(&parts);
        let mut writer = SegmentWriter::create(&parts, limits).expect("a folder");
        let cut = pass(trace, |process, bytes| writer.record(process, bytes).expect("written"));
        writer.finish().expect("written");
        let each = |seconds: f64| seconds * 1e9 / records as f64;
        println!("{records} records: {:.1} ns each in one file, {:.1} ns in segments", each(whole), each(cut));
        ratios.push(cut / whole);
    }
    ratios.sort_by(f64::total_cmp);
    let count = parts.read_dir().expect("there").count() - 1;
    let (one, many) = (size(&file), size(&parts));
    println!(
        "ratio {:.3} ({:.3} to {:.3}); {count} segments, {one} bytes in one file, {many} in segments ({:+.2} %)",
        ratios[pairs / 2],
        ratios[0],
        ratios[pairs - 1],
        (many as f64 / one as f64 - 1.0) * 100.0
    );
}
