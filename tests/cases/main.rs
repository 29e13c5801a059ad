//! End-to-end tests that are lists of cases: each CUDA program of a folder is a test, under the
//! name of its list, and so is each side of each bug of the field suite.
//!
//! `cargo test -p tests --test cases corpus::` runs one list, `cases stencil` what has that word in
//! its name. Needs CUDA's compiler (`scripts/toolkit`). `STREAMSAN_NO_TOOLKIT=1` says that there is
//! none, and skips all.

mod corpus;
mod field;
mod frameworks;
mod inside;
mod machine_code;
mod order_rules;
mod replayed;
mod samples;
mod schedules;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Trial};
use tests::runs;

/// The beginning of a list's names, and what makes its tests.
type List = (&'static str, fn() -> Vec<Trial>);

fn main() {
    let arguments = Arguments::from_args();
    // cargo-nextest runs a process for each test, which needs not know all lists.
    let one = arguments.filter.as_deref().filter(|_| arguments.exact);
    let lists: [List; 9] = [
        ("corpus::", corpus::trials),
        ("field::", field::trials),
        ("frameworks::", frameworks::trials),
        ("inside::", inside::trials),
        ("machine_code::", machine_code::trials),
        ("replayed::", replayed::trials),
        ("samples::", samples::trials),
        ("schedules::", schedules::trials),
        ("order_rules::", order_rules::trials),
    ];
    let wanted = lists.iter().filter(|(name, _)| one.is_none_or(|one| one.starts_with(name)));
    let mut trials: Vec<Trial> = wanted.flat_map(|(_, list)| list()).collect();
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|value| value == "1") {
        trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect();
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The CUDA programs of a folder, sorted.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    files.sort();
    files
}

/// A test of a list.
fn trial(list: &str, name: &str, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(format!("{list}::{name}"), move || Ok(runs::test(test)?))
}

/// What a test gives that may be listed as failing: it must fail then.
fn expect(result: Result<(), String>, known: bool, list: &str) -> Result<(), String> {
    match (result, known) {
        (Ok(()), true) => Err(format!("right now: take it off {list}")),
        (Err(_), true) => Ok(()),
        (result, false) => result,
    }
}
