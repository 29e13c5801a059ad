//! `cargo xtask machine-code`: corpus and samples as machine code for several architectures.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;

use super::{cases, run_noting};
use crate::columns::Table;

/// Build every program of the corpus and the samples as machine code without PTX, for several
/// architectures, run them on the simulated GPU, and count which get the right verdict and output.
///
/// What is known not to run is listed in `tests/corpus/machine_code.txt`. Takes 4 minutes of two
/// cores for each architecture. Builds, unless `STREAMSAN_BIN` names a folder of binaries.
#[derive(clap::Args)]
pub struct MachineCodeArgs {
    /// Compute capabilities, times ten. (90: what is refused there is listed in part only.)
    #[arg(long, default_values_t = [75, 80, 86, 89], value_delimiter = ',')]
    archs: Vec<u32>,
    /// Only programs whose names contain this.
    #[arg(value_name = "WORD", default_value = "")]
    word: String,
}

/// Runs the tests `machine_code::` and prints what they noted.
pub fn run(args: &MachineCodeArgs) -> Result<ExitCode> {
    let archs: Vec<String> = args.archs.iter().map(u32::to_string).collect();
    let mut test = cases();
    let word = if args.word.is_empty() { "machine_code::" } else { &args.word };
    test.arg(word).args(["--skip", "corpus::", "--skip", "samples::", "--skip", "schedules::"]);
    test.args(["--skip", "field::", "--skip", "frameworks::", "--skip", "order_rules::"]);
    test.env("MACHINE_CODE_ARCHS", archs.join(","));
    run_noting(test, "MACHINE_CODE_TABLE", print)
}

/// Lines of the tests: architecture, program, how it went. Prints what does not run, and a row for
/// each architecture.
fn print(noted: &str) {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for line in noted.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[arch, name, went] = words.as_slice() else { continue };
        let column = ["runs", "known", "fails"].iter().position(|&known| known == went).unwrap_or(2);
        counts.entry(arch).or_default()[column] += 1;
        if column > 0 {
            println!("sm_{arch} {name}: {went}");
        }
    }
    let mut table = Table::new(&["machine code", "runs", "known not to", "fails"]);
    for (arch, [runs, known, fails]) in counts {
        table.row([format!("sm_{arch}"), runs.to_string(), known.to_string(), fails.to_string()]);
    }
    print!("{}", table.aligned());
}
