//! Every program of `tests/corpus/cuda` and `tests/corpus/separate` on the simulated GPU: does
//! `streamsan --sim` say what the program's header says?
//!
//! They are built as `nvcc` does it by itself, with NVIDIA's static runtime inside; the samples and
//! the schedules have the shared one. Each runs twice: its PTX, then its machine code for 8.0.
//!
//! With its launches measured (`--exact`) each must get the same verdict, and what was predicted of
//! a launch must hold all that it touched.
//!
//! What is known not to work yet stands in `known_failures.txt`, and a program there that gets the
//! right verdict fails. It must also show what it shows on a real GPU (`on_gpu.txt`): the same
//! pairs, or the same output; exceptions stand, with the reason, in `differs_from_gpu.txt`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::Value;
use tests::form::Form;
use tests::verdict::{self, OnGpu, Verdict};
use tests::{build, fake, oracle, product, run};

use crate::{expect, programs, trial};

/// What a program's header promises.
pub struct Case {
    pub name: String,
    file: PathBuf,
    verdict: Verdict,
    driver_api: bool,
    /// How it is compiled separately, with other sources; `None`: in one piece.
    link: Option<String>,
    /// Being right takes seeing accesses of the CPU.
    sees_host: bool,
}

impl Case {
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the corpus can be read");
        let field = |name: &str| verdict::needed_field(file, &text, name);
        let link = verdict::field(&text, "link");
        let needs = if link.is_some() { String::new() } else { field("needs") };
        let kind = if link.is_some() { "separate_" } else { "" };
        Self {
            name: format!("{kind}{}", file.file_stem().expect("a name").to_string_lossy()),
            file: file.to_path_buf(),
            verdict: Verdict::read(file, &field("expect"), &field("pair")),
            link,
            driver_api: needs.contains("driver-api"),
            sees_host: needs.split_whitespace().any(|word| word == "host"),
        }
    }

    /// Compiles and runs the program's code of that kind (`ptx`, `sass`). The error says what is
    /// not as it should be.
    fn check(&self, code: &str, options: &[&str], on_gpu: &OnGpu) -> Result<(), String> {
        let program = self.compiled()?;
        let folder = build::scratch(&format!("corpus-{code}-{}{}", self.name, options.concat()));
        let (report, ended) = self.run(&program, &format!("code={code}"), options, &folder)?;
        // With more options it may show more.
        if options.is_empty() { on_gpu.judge(&format!("cuda/{}", self.name), &report, &ended.out) } else { Ok(()) }
    }

    /// Measures its launches. The error says what is not as it should be, or was predicted wrongly.
    fn measure(&self, code: &str) -> Result<(), String> {
        let folder = build::scratch(&format!("corpus-{code}-{}-measured", self.name));
        let compared = folder.join("compared.json");
        let options = ["--exact=all", "--exact-compare", &*compared.to_string_lossy()];
        let (report, ended) = self.run(&self.compiled()?, &format!("code={code}"), &options, &folder)?;
        let launches = &report["coverage"]["launches"];
        if launches["measured"] != launches["total"] {
            return Err(format!("not all launches were measured: {launches}\n{}", ended.err));
        }
        oracle::judge(&compared).map(|_| ())
    }

    fn compiled(&self) -> Result<PathBuf, String> {
        let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let extra = if self.driver_api { link.as_slice() } else { &[] };
        match &self.link {
            Some(link) => build::corpus_separate(&self.file, link),
            None => build::cuda_program(&self.file, "static", extra),
        }
    }

    /// The same of one form of its code. Its launches are measured besides.
    pub fn check_form(&self, form: Form, on_gpu: &OnGpu) -> Result<(), String> {
        let mut extra = form.options();
        if self.driver_api {
            extra.extend([format!("-L{}", fake::folder().display()), "-lcuda".to_owned()]);
        }
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
        let program = build::cuda_program(&self.file, "static", &extra)?;
        let folder = build::scratch(&format!("corpus-{form}-{}", self.name));
        let (report, ended) = self.run(&program, &form.simulator(), &[], &folder)?;
        on_gpu.judge(&format!("cuda/{}", self.name), &report, &ended.out)?;
        let compared = folder.join("compared.json");
        let options = ["--exact=all", "--exact-compare", &*compared.to_string_lossy()];
        self.run(&program, &form.simulator(), &options, &folder)?;
        oracle::judge(&compared).map(|_| ())
    }

    /// Runs the program on the device that `simulated` describes, and judges the report.
    fn run(
        &self,
        program: &Path,
        simulated: &str,
        options: &[&str],
        folder: &Path,
    ) -> Result<(Value, run::Ended), String> {
        let json = folder.join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0"]);
        command.env("STREAMSAN_SIM", simulated);
        command.args(options).arg("--json").arg(&json).arg("--").arg(program).env_remove("LD_LIBRARY_PATH");
        let ended = run::end(&mut command);
        if ended.hung {
            return Err(format!("hangs\n{}\n{}", ended.out, ended.err));
        }
        if ended.status.code() != Some(0) {
            return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        self.verdict.judge(&report).map_err(|why| format!("{why}\n{}", ended.err))?;
        Ok((report, ended))
    }
}

/// Two tests of each program, two with its launches measured, and another of those whose race takes
/// seeing the CPU.
pub fn trials() -> Vec<Trial> {
    let corpus = product::root().join("tests/corpus");
    let known = verdict::known_failures(&corpus);
    let on_gpu = Arc::new(OnGpu::read(&corpus));
    let files = ["cuda", "separate"].into_iter().flat_map(|folder| programs(&corpus.join(folder)));
    let cases: Vec<Arc<Case>> = files.map(|file| Arc::new(Case::read(&file))).collect();
    for name in known.keys() {
        assert!(
            cases.iter().any(|case| case.name == *name),
            "known_failures.txt names '{name}', which is not in the corpus"
        );
    }
    let mut trials = Vec::new();
    for case in cases {
        if case.sees_host {
            // What is known not to be seen by default is seen with this.
            let (case, on_gpu) = (case.clone(), on_gpu.clone());
            let name = format!("{}::host_accesses", case.name);
            trials.push(trial("corpus", &name, move || case.check("ptx", &["--host-accesses"], &on_gpu)));
        }
        let is_known = known.contains_key(&case.name);
        for (code, name) in [("ptx", case.name.clone()), ("sass", format!("{}::machine_code", case.name))] {
            let (case, measured, on_gpu) = (case.clone(), case.clone(), on_gpu.clone());
            let test = move || expect(case.check(code, &[], &on_gpu), is_known, "known_failures.txt");
            trials.push(trial("corpus", &name, test));
            let case = measured.clone();
            let test = move || expect(case.measure(code), is_known, "known_failures.txt");
            trials.push(trial("corpus", &format!("{name}::measured"), test));
        }
    }
    trials
}
