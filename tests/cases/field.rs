//! Bugs of public projects (`tests/field`): at the release with the bug exactly its races are
//! reported, at the one with the fix nothing is.
//!
//! Needs PyPI the first time. `STREAMSAN_NO_TORCH=1` skips those that run on PyTorch, of which 530
//! MB are fetched.

use libtest_mimic::Trial;
use tests::field::{Bug, Side};

use crate::trial;

/// Two tests of each bug.
pub fn trials() -> Vec<Trial> {
    let no_torch = std::env::var_os("STREAMSAN_NO_TORCH").is_some_and(|value| value == "1");
    let mut trials = Vec::new();
    for bug in Bug::all() {
        for (side, name) in [(Side::Bug, "bug"), (Side::Fix, "fix")] {
            let skipped = bug.needs_torch() && no_torch;
            let bug = bug.clone();
            let name = format!("{}::{name}", bug.name);
            trials.push(trial("field", &name, move || bug.check(side).map(drop)).with_ignored_flag(skipped));
        }
    }
    trials
}
