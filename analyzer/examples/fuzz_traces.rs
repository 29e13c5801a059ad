//! Changes trace files at random and reads them with everything that reads traces: `fuzz_traces
//! SECONDS SEED TRACE...`.
//!
//!     cargo run --release -p analyzer --example fuzz_traces 600 1 tests/recorded/*.trace
//!
//! A quarter of the time bytes of the file are changed, half of these in a file of the current
//! version, whose checksums, chain and end mark must show every change. Otherwise records are
//! changed and framed again, so that decoding, analysis, symbols, code readers, reports, time line
//! and memory get input that no shim would write: the chain is then whole, and the end mark there
//! or not. A panic, a change that goes unnoticed, or a file that takes longer than ten seconds is
//! kept in the current folder and ends the run with 1. Memory is limited to 8 GB.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use analysis::AnalysisOptions;
use analyzer::tools;
use ingest::progress::Progress;
use ingest::recorded;
use report::format::feed;
use report::format::{code_quality, csan, github, html, json, junit, markdown, parquet, sarif, short, text};
use report::model::Report;
use settings::Judging;
use trace::file::{LATE, Reader, Writer};

const SLOW: Duration = Duration::from_secs(10);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Numbers that break arithmetic, and ordinary ones.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => u64::MAX - self.next() % 3,
            1 => self.next() % 4,
            2 => 1 << self.below(64),
            3 => (1 << self.below(64)) - 1,
            _ => self.next(),
        }
    }
}

type Records = Vec<(u32, Vec<u8>)>;

fn records(bytes: &[u8]) -> Records {
    let mut list = Vec::new();
    let mut reader = Reader::new(bytes).expect("a whole trace to begin with");
    while reader.frame(|process, record| list.push((process, record.to_vec()))).expect("a whole trace") {}
    list
}

fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => {
                let word = random.number().to_le_bytes();
                let len = word.len().min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&word[..len]);
            }
            3 => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => drop(bytes.drain(at..(at + random.below(64)).min(bytes.len()))),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

fn change_records(list: &mut Records, other: &Records, random: &mut Random) {
    for _ in 0..=random.below(12) {
        if list.is_empty() {
            return;
        }
        let at = random.below(list.len());
        match random.below(8) {
            0 => drop(list.remove(at)),
            1 => {
                let again = list[at].clone();
                list.insert(random.below(list.len()), again);
            }
            2 => {
                let to = random.below(list.len());
                list.swap(at, to);
            }
            3 if !other.is_empty() => {
                let (_, foreign) = &other[random.below(other.len())];
                list.insert(at, (0, foreign.clone()));
            }
            4 => list[at].0 = [0, 1, 7, LATE, LATE | 1][random.below(5)],
            _ => change_record(&mut list[at].1, random),
        }
    }
}

/// Changes a number in place: most fields are numbers.
fn change_record(record: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(record.len());
    match random.below(6) {
        0 => record.truncate(at),
        1 if !record.is_empty() => record[at] ^= 1 << random.below(8),
        2 => record.extend(random.number().to_le_bytes()),
        _ => {
            let width = [1, 2, 4, 8][random.below(4)];
            let word = random.number().to_le_bytes();
            let len = width.min(record.len() - at);
            record[at..at + len].copy_from_slice(&word[..len]);
        }
    }
}

/// Frames records as a file of the current version, which is cut off before its end mark or not.
fn frame(list: &Records, is_cut: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("into memory");
    for (process, record) in list.iter().filter(|(process, _)| process & LATE == 0) {
        writer.record(*process, record).expect("into memory");
    }
    writer.flush().expect("into memory");
    for (process, record) in list.iter().filter(|(process, _)| process & LATE != 0) {
        writer.late(process & !LATE, [record.clone()]).expect("into memory");
    }
    if !is_cut {
        writer.finish().expect("into memory");
    }
    drop(writer);
    bytes
}

/// Reads a trace with everything that reads traces. Returns the number of findings, and whether the
/// trace seemed whole.
fn read(path: &str, round: u64) -> (usize, bool) {
    let options = AnalysisOptions {
        judging: Judging {
            pedantic: round & 1 != 0,
            latent: round & 2 != 0,
            hints: round & 4 != 0,
            host_threads: round & 8 != 0 && round & 2 == 0,
            ..Judging::default()
        },
        ..AnalysisOptions::default()
    };
    let (outcomes, error) = recorded::check(
        path,
        options,
        Some(&analysis::ipc::Across::new(false)),
        &[],
        (0, &mut Progress::new(1)),
        &mut drop,
    );
    let report = Report::merge(outcomes, options.judging.pedantic);
    let mut bytes = feed(&report, &mut text::Text::new(text::Style::default(), 50)).len();
    bytes += feed(&report, &mut json::Json::default()).len();
    bytes += feed(&report, &mut html::Html::default()).len();
    bytes += feed(&report, &mut csan::Csan::default()).len();
    bytes += feed(&report, &mut parquet::Parquet::default()).len();
    bytes += feed(&report, &mut short::Short::new(round & 16 != 0)).len();
    let place = || github::Workspace::new("/work");
    bytes += feed(&report, &mut sarif::Sarif::new(place())).len();
    bytes += feed(&report, &mut github::Annotations::new(place())).len();
    bytes += feed(&report, &mut code_quality::CodeQuality::new(place())).len();
    bytes += feed(&report, &mut markdown::Markdown::new(place(), 50)).len();
    bytes += feed(&report, &mut junit::Junit::new(junit::Origin::here())).len();
    assert!(bytes > 0);
    if round.is_multiple_of(4) {
        let _ = recorded::dump(path, std::io::sink());
        let _ = tools::timeline::draw(std::path::Path::new(path), &[], std::io::sink());
        let mut memory = tools::memory::read(std::path::Path::new(path));
        drop((memory.text(), memory.json()));
        drop(tools::snapshot::snapshot(&mut memory));
    }
    (report.findings.len(), error.is_none())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, seed, files @ ..] = &args[..] else { panic!("usage: fuzz_traces SECONDS SEED TRACE...") };
    let (seconds, seed): (u64, u64) = (seconds.parse().expect("a number"), seed.parse().expect("a number"));
    let limit = libc::rlimit { rlim_cur: 8 << 30, rlim_max: 8 << 30 };
    // SAFETY: a valid rlimit.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    let files: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).expect("a trace")).collect();
    let parsed: Vec<Records> = files.iter().map(|bytes| records(bytes)).collect();
    let whole: Vec<Vec<u8>> = parsed.iter().map(|list| frame(list, false)).collect();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let path = std::env::temp_dir().join(format!("fuzz-{}.trace", std::process::id()));
    let path = path.to_string_lossy().into_owned();
    let (began, mut printed) = (Instant::now(), Instant::now());
    let (mut runs, mut findings, mut slowest) = (0_u64, 0_u64, Duration::ZERO);
    std::panic::set_hook(Box::new(|_| {}));
    while began.elapsed() < Duration::from_secs(seconds) {
        let which = random.below(files.len());
        // Whether it is whole, where its version shows that.
        let (bytes, is_whole) = if random.below(4) == 0 {
            let is_current = random.below(2) == 0;
            let from = if is_current { &whole[which] } else { &files[which] };
            let mut bytes = from.clone();
            change_bytes(&mut bytes, &mut random);
            let is_same = bytes == *from;
            (bytes, is_current.then_some(is_same))
        } else {
            let mut list = parsed[which].clone();
            let other = &parsed[random.below(parsed.len())];
            change_records(&mut list, other, &mut random);
            let is_cut = random.below(4) == 0;
            (frame(&list, is_cut), Some(!is_cut))
        };
        std::fs::write(&path, &bytes).expect("the temporary folder can be written");
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| read(&path, runs)));
        let took = start.elapsed();
        slowest = slowest.max(took);
        let wrong = match done {
            Err(_) => Some("PANIC"),
            Ok(_) if took > SLOW => Some("SLOW"),
            Ok((_, seems_whole)) if is_whole.is_some_and(|is_whole| is_whole != seems_whole) => Some("UNNOTICED"),
            Ok((found, _)) => {
                findings += found as u64;
                None
            }
        };
        if let Some(wrong) = wrong {
            let kept = format!("fuzz-found-{seed}-{runs}.trace");
            std::fs::write(&kept, &bytes).expect("the folder can be written");
            println!("{wrong} in round {runs}: {kept}");
            std::process::exit(1);
        }
        runs += 1;
        if printed.elapsed() > Duration::from_secs(30) {
            printed = Instant::now();
            println!("{} s: {runs} files, {findings} findings, slowest {slowest:?}", began.elapsed().as_secs());
            let _ = std::io::stdout().flush();
        }
    }
    let _ = std::fs::remove_file(&path);
    println!("{runs} files in {} s, {findings} findings, slowest {slowest:?}: no panic", began.elapsed().as_secs());
}
