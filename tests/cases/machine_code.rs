//! Programs of the corpus and the samples as machine code alone, for several architectures:
//! verdicts and outputs as with PTX. By itself a few programs; with `MACHINE_CODE_ARCHS=75,80,...`
//! all of them for those (`cargo xtask machine-code`), and `MACHINE_CODE_TABLE` names a file that
//! gets a line for each.
//!
//! What does not run for an architecture stands with the reason in `tests/corpus/machine_code.txt`,
//! and fails when it does.

use std::io::Write as _;
use std::sync::Arc;

use libtest_mimic::Trial;
use tests::product;
use tests::verdict::{self, OnGpu};

use crate::corpus::Case;
use crate::samples::Sample;
use crate::{expect, programs, trial};

/// Architectures and programs of every run.
const ARCHS: [u32; 4] = [75, 86, 89, 90];
const PROGRAMS: [&str; 3] = ["stencil_halo", "textures_layered", "reduction_shuffle"];

/// What is tested of a program.
type Check = Arc<dyn Fn(u32, &OnGpu) -> Result<(), String> + Send + Sync>;

/// A test for each program and architecture.
pub fn trials() -> Vec<Trial> {
    let corpus = product::root().join("tests/corpus");
    let asked = std::env::var("MACHINE_CODE_ARCHS").ok();
    let archs = asked.as_ref().map_or(ARCHS.to_vec(), |list| list.split(',').filter_map(|n| n.parse().ok()).collect());
    let known = verdict::known_failures(&corpus);
    let lacking = std::fs::read_to_string(corpus.join("machine_code.txt")).expect("the list can be read");
    let on_gpu = Arc::new(OnGpu::read(&corpus));
    let mut checks: Vec<(String, bool, Check)> = Vec::new();
    for file in programs(&corpus.join("cuda")) {
        let case = Case::read(&file);
        let is_known = known.contains_key(&case.name);
        checks.push((case.name.clone(), is_known, Arc::new(move |arch, on_gpu| case.check_machine(arch, on_gpu))));
    }
    for file in programs(&product::root().join("tests/samples")) {
        let sample = Sample::read(&file);
        if !sample.needs("heavy") {
            let check: Check = Arc::new(move |arch, on_gpu| sample.check_machine(arch, on_gpu));
            checks.push((file.file_stem().expect("a name").to_string_lossy().into_owned(), false, check));
        }
    }
    let mut trials = Vec::new();
    for &arch in &archs {
        for (name, is_known, check) in &checks {
            if asked.is_none() && !PROGRAMS.contains(&name.as_str()) {
                continue;
            }
            let line = format!("{arch} {name}:");
            let is_known = *is_known || lacking.lines().any(|text| text.starts_with(&line));
            let (check, on_gpu, text) = (check.clone(), on_gpu.clone(), format!("{arch} {name}"));
            trials.push(trial("machine_code", &format!("sm_{arch}::{name}"), move || {
                let result = check(arch, &on_gpu);
                note(&text, &result, is_known);
                expect(result, is_known, "tests/corpus/machine_code.txt, or known_failures.txt")
            }));
        }
    }
    trials
}

/// Appends a line to the table: architecture, program, how it went.
fn note(text: &str, result: &Result<(), String>, known: bool) {
    let Some(table) = std::env::var_os("MACHINE_CODE_TABLE") else { return };
    let went = match (result, known) {
        (Ok(()), _) => "runs",
        (Err(_), true) => "known",
        (Err(_), false) => "fails",
    };
    let file = std::fs::File::options().create(true).append(true).open(table);
    let _ = file.and_then(|mut file| file.write_all(format!("{text} {went}\n").as_bytes()));
}
