//! Programs of the corpus and the samples in every form of code: PTX or machine code alone, for
//! several architectures, optimised and not. Verdicts and outputs are as always, and what was
//! predicted of a launch must hold all that it touched.
//!
//! By itself a few programs; with `MACHINE_CODE_FORMS=ptx-80-G,sass-90-O2,...` all of them in those
//! forms (`cargo xtask machine-code`), and `MACHINE_CODE_TABLE` names a file that gets a line for
//! each.
//!
//! What does not run in a form stands with the reason in `tests/corpus/machine_code.txt`, and fails
//! when it does.

use std::io::Write as _;
use std::sync::Arc;

use libtest_mimic::Trial;
use tests::form::Form;
use tests::product;
use tests::verdict::{self, OnGpu};

use crate::corpus::Case;
use crate::samples::Sample;
use crate::{expect, programs, trial};

/// Forms and programs of every run.
const FORMS: [(&str, &[&str]); 7] = [
    ("sass-75-O2", &["stencil_halo", "textures_layered", "reduction_shuffle"]),
    ("sass-86-O2", &["stencil_halo", "textures_layered", "reduction_shuffle"]),
    ("sass-89-O2", &["stencil_halo", "textures_layered", "reduction_shuffle"]),
    ("sass-90-O2", &["stencil_halo", "textures_layered", "reduction_shuffle"]),
    ("ptx-80-G", &["stencil_halo", "symbols_constants"]),
    ("sass-80-G", &["stencil_halo", "symbols_constants"]),
    ("sass-90-ptxas-O0", &["stencil_halo", "symbols_constants"]),
];

/// What is tested of a program.
type Check = Arc<dyn Fn(Form, &OnGpu) -> Result<(), String> + Send + Sync>;

/// A program: its name, the architecture that it needs, whether it is known to fail anyway.
struct Program {
    name: String,
    least: u32,
    is_known: bool,
    check: Check,
}

/// A test for each program and form.
pub fn trials() -> Vec<Trial> {
    let corpus = product::root().join("tests/corpus");
    let asked = std::env::var("MACHINE_CODE_FORMS").ok();
    let lacking = std::fs::read_to_string(corpus.join("machine_code.txt")).expect("the list can be read");
    let on_gpu = Arc::new(OnGpu::read(&corpus));
    let all = all(&corpus);
    let forms: Vec<(&str, Option<&[&str]>)> = match &asked {
        Some(list) => list.split(',').map(|form| (form, None)).collect(),
        None => FORMS.into_iter().map(|(form, names)| (form, Some(names))).collect(),
    };
    let mut trials = Vec::new();
    for (form, names) in forms {
        let form: Form = form.parse().unwrap_or_else(|why| panic!("{why}"));
        for Program { name, is_known, check, least } in &all {
            if names.is_some_and(|names| !names.contains(&name.as_str())) || form.arch < *least {
                continue;
            }
            let lines = [format!("{form} {name}:"), format!("{} {name}:", form.arch)];
            let listed = |line: &String| lacking.lines().any(|text| text.starts_with(line));
            let is_known = *is_known || listed(&lines[0]) || !form.is_ptx && listed(&lines[1]);
            let (check, on_gpu, text) = (check.clone(), on_gpu.clone(), format!("{form} {name}"));
            trials.push(trial("machine_code", &format!("{form}::{name}"), move || {
                let result = check(form, &on_gpu);
                note(&text, &result, is_known);
                expect(result, is_known, "tests/corpus/machine_code.txt, or known_failures.txt")
            }));
        }
    }
    trials
}

fn all(corpus: &std::path::Path) -> Vec<Program> {
    let known = verdict::known_failures(corpus);
    let mut all = Vec::new();
    for file in programs(&corpus.join("cuda")) {
        let case = Case::read(&file);
        let (name, is_known) = (case.name.clone(), known.contains_key(&case.name));
        let check: Check = Arc::new(move |form, on_gpu| case.check_form(form, on_gpu));
        all.push(Program { name, least: 0, is_known, check });
    }
    for file in programs(&product::root().join("tests/samples")) {
        let sample = Sample::read(&file);
        if !sample.needs("heavy") {
            let (name, least) = (sample.name.clone(), if sample.needs("sm_90") { 90 } else { 0 });
            let check: Check = Arc::new(move |form, on_gpu| sample.check_form(form, on_gpu));
            all.push(Program { name, least, is_known: false, check });
        }
    }
    all
}

/// Appends a line to the table: form, program, how it went, and why not.
fn note(text: &str, result: &Result<(), String>, known: bool) {
    let Some(table) = std::env::var_os("MACHINE_CODE_TABLE") else { return };
    let went = match (result, known) {
        (Ok(()), _) => "runs".to_owned(),
        (Err(_), true) => "known".to_owned(),
        (Err(why), false) => format!("fails {}", why.lines().next().unwrap_or_default()),
    };
    let file = std::fs::File::options().create(true).append(true).open(table);
    let _ = file.and_then(|mut file| file.write_all(format!("{text} {went}\n").as_bytes()));
}
