//! The programs of `tests/samples` on the simulated GPU: each must print what a real GPU prints
//! (`tests/samples/expected`) and get the verdict of its header. Those with a line `racy:` are run
//! a second time with the argument `racy`, which leaves out one piece of synchronisation; what they
//! compute then is nobody's business, the verdict is, and the kind of its causes where a line
//! `cause:` names it.
//!
//! With its launches measured (`--exact`) each must get the same verdict, and what was predicted of
//! a launch must hold all that it touched.
//!
//! A program that takes long to compile (`needs: heavy`) is run with `STREAMSAN_HEAVY=1` only.
//! `python3 tests/gpu check --samples` runs the same programs on a real GPU.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::Value;
use tests::form::Form;
use tests::verdict::{self, OnGpu, Verdict};
use tests::{build, fake, oracle, product, run};

use crate::{expect, programs, trial};

#[derive(Clone)]
pub struct Sample {
    pub name: String,
    file: PathBuf,
    /// The line `needs:`, by words.
    needs: Vec<String>,
    clean: Verdict,
    racy: Option<Verdict>,
    /// The kind that every cause of the racy twin has.
    cause: Option<String>,
}

impl Sample {
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the sample can be read");
        let field = |name: &str| verdict::needed_field(file, &text, name);
        let pair = field("pair");
        let clean = Verdict::read(file, &field("expect"), &pair);
        assert!(clean.hazard.is_none(), "{}: samples are clean without the argument `racy`", file.display());
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            file: file.to_path_buf(),
            needs: field("needs").split_whitespace().map(str::to_owned).collect(),
            clean,
            racy: verdict::field(&text, "racy").map(|expect| Verdict::read(file, &expect, &pair)),
            cause: verdict::field(&text, "cause"),
        }
    }

    pub fn needs(&self, word: &str) -> bool {
        self.needs.iter().any(|need| need == word)
    }

    fn compiled(&self, more: &[String]) -> Result<PathBuf, String> {
        let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
        let mut extra: Vec<&str> = Vec::new();
        if self.needs("driver-api") {
            extra.extend(link.iter().map(String::as_str));
        }
        if self.needs("sm_90") {
            // The last one counts.
            extra.push("-arch=sm_90");
        }
        extra.extend(more.iter().map(String::as_str));
        build::cuda_program(&self.file, "shared", &extra)
    }

    /// Measures its launches. The error says what was predicted wrongly, or found wrongly.
    fn measure(&self, form: Option<Form>, racy: bool) -> Result<(), String> {
        let name = form.map_or_else(String::new, |form| form.to_string());
        let folder = build::scratch(&format!("sample-{}-{racy}-{name}-measured", self.name));
        let (json, compared) = (folder.join("report.json"), folder.join("compared.json"));
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--exact=all", "--exact-compare"]);
        let program = self.compiled(&form.map_or_else(Vec::new, Form::options))?;
        command.arg(&compared).arg("--json").arg(&json).arg("--").arg(program);
        if let Some(form) = form {
            command.env("STREAMSAN_SIM", form.simulator());
        }
        let ended = run::end(command.args(racy.then_some("racy")).env_remove("LD_LIBRARY_PATH"));
        if ended.hung || ended.status.code() != Some(0) {
            return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        let verdict = if racy { self.racy.as_ref().expect("a racy twin") } else { &self.clean };
        verdict.judge(&report).map_err(|why| format!("{why}\n{}", ended.err))?;
        oracle::judge(&compared).map(|_| ())
    }

    /// Compiles and runs the program. The error says what is not as it should be.
    fn check(&self, racy: bool, on_gpu: &OnGpu) -> Result<(), String> {
        self.judge(&self.compiled(&[])?, None, racy, on_gpu)
    }

    /// The same of one form of its code, and of its twin. Their launches are measured besides.
    pub fn check_form(&self, form: Form, on_gpu: &OnGpu) -> Result<(), String> {
        let program = self.compiled(&form.options())?;
        for racy in [false, true].into_iter().filter(|racy| !racy || self.racy.is_some()) {
            self.judge(&program, Some(form), racy, on_gpu)?;
            self.measure(Some(form), racy)?;
        }
        Ok(())
    }

    fn judge(&self, program: &Path, form: Option<Form>, racy: bool, on_gpu: &OnGpu) -> Result<(), String> {
        let name = form.map_or_else(String::new, |form| form.to_string());
        let folder = build::scratch(&format!("sample-{}-{racy}-{name}", self.name));
        let json = folder.join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--json"]);
        command.arg(&json).arg("--").arg(program).env_remove("LD_LIBRARY_PATH");
        if let Some(form) = form {
            command.env("STREAMSAN_SIM", form.simulator());
        }
        if racy {
            command.arg("racy");
        }
        let ended = run::end(&mut command);
        if ended.hung {
            return Err(format!("hangs\n{}\n{}", ended.out, ended.err));
        }
        if ended.status.code() != Some(0) {
            return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        let verdict = if racy { self.racy.as_ref().expect("a racy twin") } else { &self.clean };
        verdict.judge(&report).map_err(|why| format!("{why}\n{}", ended.err))?;
        let twin = if racy { "-racy" } else { "" };
        on_gpu.judge(&format!("sample/{}{twin}", self.name), &report, &ended.out)?;
        let kinds: Vec<&str> =
            report["causes"].as_array().ok_or("no causes")?.iter().filter_map(|cause| cause["kind"].as_str()).collect();
        if racy {
            let wrong = self.cause.as_ref().is_some_and(|kind| kinds.is_empty() || kinds.iter().any(|is| is != kind));
            return if wrong { Err(format!("its causes are {kinds:?}\n{}", ended.err)) } else { Ok(()) };
        }
        if !kinds.is_empty() {
            return Err(format!("is clean, and has causes: {kinds:?}\n{}", ended.err));
        }
        let expected = self.file.with_file_name(format!("expected/{}.txt", self.name));
        let wanted = std::fs::read_to_string(&expected).map_err(|e| format!("{}: {e}", expected.display()))?;
        if ended.out == wanted {
            Ok(())
        } else {
            Err(format!("prints\n{}instead of\n{wanted}{}", ended.out, ended.err))
        }
    }
}

/// A test of each program, and one of each racy twin; the same with their launches measured.
pub fn trials() -> Vec<Trial> {
    let folder = product::root().join("tests/samples");
    let on_gpu = Arc::new(OnGpu::read(&product::root().join("tests/corpus")));
    let mut known = verdict::known_failures(&folder);
    let heavy = std::env::var_os("STREAMSAN_HEAVY").is_some_and(|value| value == "1");
    let mut trials = Vec::new();
    for file in programs(&folder) {
        let sample = Sample::read(&file);
        let skip = sample.needs("heavy") && !heavy;
        let twins = if sample.racy.is_some() { vec![false, true] } else { vec![false] };
        for racy in twins {
            let (sample, measured) = (sample.clone(), sample.clone());
            let name = if racy { format!("{}-racy", sample.name) } else { sample.name.clone() };
            let is_known = known.remove(&name).is_some();
            let on_gpu = on_gpu.clone();
            let test = move || expect(sample.check(racy, &on_gpu), is_known, "known_failures.txt");
            trials.push(trial("samples", &name, test).with_ignored_flag(skip));
            let sample = measured;
            let test = move || expect(sample.measure(None, racy), is_known, "known_failures.txt");
            trials.push(trial("samples", &format!("{name}::measured"), test).with_ignored_flag(skip));
        }
    }
    assert!(known.is_empty(), "known_failures.txt names what is not there: {known:?}");
    trials
}
