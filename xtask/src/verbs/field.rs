//! `cargo xtask field`: the table of the field suite.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use tests::field::{Bug, Side};

use crate::columns::Table;

/// Try bugs of public projects on the simulated GPU, and print a table.
///
/// Each is run at the release with the bug, where exactly its races must be reported, and at the
/// release with the fix, where nothing may be (`docs/field.md`). Their code is fetched from PyPI
/// into `.cache/field`. Builds, unless `STREAMSAN_BIN` names a folder of binaries.
#[derive(clap::Args)]
pub struct FieldArgs {
    /// Only bugs with one of these in their names
    names: Vec<String>,
    /// Only list them
    #[arg(long)]
    list: bool,
}

/// Runs and prints.
pub fn run(args: &FieldArgs) -> Result<ExitCode> {
    let is_wanted = |bug: &Bug| args.names.is_empty() || args.names.iter().any(|name| bug.name.contains(name));
    let bugs: Vec<Bug> = Bug::all().into_iter().filter(is_wanted).collect();
    if bugs.is_empty() {
        bail!("no bug has such a name: see --list");
    }
    if args.list {
        let mut table = Table::new(&["bug", "project", "what goes wrong"]);
        for bug in &bugs {
            table.row([bug.name.clone(), bug.project.clone(), bug.title.clone()]);
        }
        print!("{}", table.aligned());
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["bug", "with the bug", "found", "with the fix", "silent", "seconds"]);
    let mut wrong = 0;
    for bug in &bugs {
        let mut seconds = Duration::ZERO;
        let verdicts = [Side::Bug, Side::Fix].map(|side| match bug.check(side) {
            Ok(took) => {
                seconds += took;
                "yes"
            }
            Err(why) => {
                eprintln!("{} ({}): {why}\n", bug.name, bug.release(side));
                wrong += 1;
                "NO"
            }
        });
        table.row([
            bug.name.clone(),
            bug.release(Side::Bug),
            verdicts[0].to_owned(),
            bug.release(Side::Fix),
            verdicts[1].to_owned(),
            format!("{:.1}", seconds.as_secs_f64()),
        ]);
    }
    print!("{}", table.aligned());
    println!("{} bugs, {wrong} wrong", bugs.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
