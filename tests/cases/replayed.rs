//! Launches of closed libraries (`tests/replayed`), run by themselves on the simulated GPU with the
//! code of the packages from PyPI: no byte may be touched that was ruled out, and what runs and has
//! ranges must go on doing so. `cargo xtask replay` plays whole traces.
//!
//! Needs PyPI the first time: 800 MB. `STREAMSAN_NO_TORCH=1` skips them, as it does other large
//! packages.

use std::path::Path;

use libtest_mimic::Trial;
use tests::frameworks::PATIENCE;
use tests::replay::{self, LaunchList, Replayable};
use tests::{build, oracle, run};

use crate::trial;

/// A list is run in so many parts, each a test.
const PARTS: usize = 3;

/// For each list at least so many launches that are expected to have ranges.
const FLOORS: [(&str, usize); 2] = [("nvidia-cublas", 47), ("nvidia-cudnn-cu13", 37)];

/// Tests of each list.
pub fn trials() -> Vec<Trial> {
    let skipped = std::env::var_os("STREAMSAN_NO_TORCH").is_some_and(|value| value == "1");
    let mut trials = vec![trial("replayed", "no_list_has_shrunk", no_list_has_shrunk)];
    for (name, file) in replay::all() {
        for part in 0..PARTS {
            let (file, list) = (file.clone(), name.clone());
            let test = move || play(&list, &file, part);
            trials.push(trial("replayed", &format!("{name}::{}", part + 1), test).with_ignored_flag(skipped));
        }
    }
    trials
}

/// Runs a part of a list.
fn play(name: &str, file: &Path, part: usize) -> Result<(), String> {
    let list = LaunchList::read(file)?.part(part, PARTS);
    let folder = build::scratch(&format!("replayed-{name}-{part}"));
    let ready = list.prepare(&[], &folder)?;
    let mut command = run::streamsan(Replayable::arguments(&folder));
    let ended = run::end_within(command.env("STREAMSAN_SIM", format!("arch={}", list.arch)), PATIENCE);
    // With 70 it ends where the simulator refused something. The list says which launches that may
    // be.
    if ended.hung || !matches!(ended.status.code(), Some(0 | 70)) {
        return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
    }
    let kernels = oracle::read(&folder.join("compared.json")).map_err(|why| format!("{why}\n{}", ended.err))?;
    let counts = list.judge(&replay::played(&ended.out), &kernels)?;
    if ready.launches == 0 || counts.run == 0 { Err(format!("nothing was run: {counts:?}")) } else { Ok(()) }
}

/// What must run and have ranges is said launch by launch, so a list must not lose any.
fn no_list_has_shrunk() -> Result<(), String> {
    let lists = replay::all();
    for (name, floor) in FLOORS {
        let (_, file) = lists.iter().find(|list| list.0 == name).ok_or_else(|| format!("{name}: no such list"))?;
        let (_, _, with_ranges) = LaunchList::read(file)?.sizes();
        if with_ranges < floor {
            return Err(format!("{name}: {with_ranges} launches with ranges, and {floor} at least are wanted"));
        }
    }
    if lists.len() == FLOORS.len() { Ok(()) } else { Err("a list has no floor".to_owned()) }
}
