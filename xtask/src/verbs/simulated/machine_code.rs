//! `cargo xtask machine-code`: corpus and samples in every form of code.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use tests::form::Form;

use super::{cases, run_noting};
use crate::columns::Table;

/// Build every program of the corpus and the samples as PTX alone and as machine code alone, for
/// several architectures, optimised and not (`-G`, `-Xptxas -O0`), and run them on the simulated
/// GPU.
///
/// Counts which get the right verdict and output, with their launches predicted and measured, and
/// which touch no byte that was ruled out and every byte that was claimed. What is known not to run
/// is listed in `tests/corpus/machine_code.txt`. Builds, unless `STREAMSAN_BIN` names a folder of
/// binaries.
#[derive(clap::Args)]
pub struct MachineCodeArgs {
    /// Forms of code: ptx or sass, compute capability times ten, and O2, ptxas-O0 or G.
    #[arg(long, value_name = "FORM", default_values_t = FORMS.map(str::to_owned), value_delimiter = ',')]
    forms: Vec<String>,
    /// Only programs whose names contain this.
    #[arg(value_name = "WORD", default_value = "")]
    word: String,
}

/// The forms of a whole run. (The assembler has no part in PTX.)
const FORMS: [&str; 13] = [
    "ptx-80-O2",
    "ptx-80-G",
    "ptx-90-O2",
    "ptx-90-G",
    "sass-75-O2",
    "sass-80-O2",
    "sass-80-ptxas-O0",
    "sass-80-G",
    "sass-86-O2",
    "sass-89-O2",
    "sass-90-O2",
    "sass-90-ptxas-O0",
    "sass-90-G",
];

/// Runs the tests `machine_code::` and prints what they noted.
pub fn run(args: &MachineCodeArgs) -> Result<ExitCode> {
    for form in &args.forms {
        form.parse::<Form>().map_err(|why| anyhow!(why))?;
    }
    let mut test = cases();
    let word = if args.word.is_empty() { "machine_code::" } else { &args.word };
    test.arg(word).args(["--skip", "corpus::", "--skip", "samples::", "--skip", "schedules::"]);
    test.args(["--skip", "field::", "--skip", "frameworks::", "--skip", "order_rules::"]);
    test.env("MACHINE_CODE_FORMS", args.forms.join(","));
    run_noting(test, "MACHINE_CODE_TABLE", print)
}

/// Lines of the tests: form, program, how it went, and why not. Prints what does not run, and a row
/// for each form.
fn print(noted: &str) {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for line in noted.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(form), Some(name), Some(went)) = (words.next(), words.next(), words.next()) else { continue };
        let column = ["runs", "known", "fails"].iter().position(|&known| known == went).unwrap_or(2);
        counts.entry(form).or_default()[column] += 1;
        if column > 0 {
            println!("{form} {name}: {went} {}", words.next().unwrap_or_default());
        }
    }
    let mut table = Table::new(&["form", "runs", "known not to", "fails"]);
    for (form, [runs, known, fails]) in counts {
        table.row([form.to_owned(), runs.to_string(), known.to_string(), fails.to_string()]);
    }
    print!("{}", table.aligned());
}
