//! Lists of recorded launches: what is kept of traces, so that kernels of closed libraries can be
//! replayed without a GPU and without the trace.
//!
//! Owns the form of `tests/replayed/PACKAGE.json`, the package of PyPI that its code comes from,
//! and what a replay of it must show. A list has no code in it: it says where in which library an
//! image lies, and which build that is. [`super::choice`] makes lists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::code::{ImagePlace, Libraries};
use super::{Played, Replayable};
use crate::oracle::JudgedKernel;
use crate::{build, product, run};

/// Launches of one package's kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchList {
    /// `NAME==VERSION` at PyPI.
    pub package: String,
    /// Compute capability (major * 10 + minor) of the device that they were recorded on.
    pub arch: u32,
    /// Libraries of the package, by name.
    pub(super) libraries: BTreeMap<String, Library>,
    /// The launches; those with one image stand together.
    pub(super) launches: Vec<ListedLaunch>,
}

/// One library of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Library {
    /// Its path in the wheel.
    pub path: String,
    /// Its hash as the wheel's `RECORD` has it.
    pub(crate) sha256: String,
    /// Its GNU build id, as the trace has it.
    pub build_id: String,
}

/// One launch, with what its replay shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ListedLaunch {
    /// Mangled name.
    pub kernel: String,
    pub code: ImagePlace,
    /// Why the simulator does not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// Some of its bytes are not predicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_ranges: bool,
    /// What `replay.py` takes: shape, parameters, pointers among them, sizes of their memory.
    #[serde(flatten)]
    pub launch: Map<String, Value>,
}

/// How many launches were run, and of how many every byte was predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those of the list.
    pub listed: usize,
    /// Those that ran.
    pub run: usize,
    /// Those with ranges.
    pub ranges: u64,
}

/// The lists of `tests/replayed`, by their files' names.
pub fn all() -> Vec<(String, PathBuf)> {
    let folder = product::root().join("tests/replayed");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Some((path.file_stem()?.to_string_lossy().into_owned(), path)))
        .collect();
    found.sort();
    found
}

/// Fetches the packages of all lists, unless they are there.
///
/// # Errors
/// A list can not be read, or a package not be fetched.
pub fn fetch() -> Result<(), String> {
    all().iter().try_for_each(|(_, file)| LaunchList::read(file)?.installed().map(drop))
}

impl LaunchList {
    /// Reads a list.
    ///
    /// # Errors
    /// It can not be read, or is no list.
    pub fn read(file: &Path) -> Result<Self, String> {
        let said = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let text = std::fs::read_to_string(file).map_err(|e| said(&e))?;
        let list: Self = serde_json::from_str(&text).map_err(|e| said(&e))?;
        match list.launches.iter().find(|launch| !list.libraries.contains_key(&launch.code.library)) {
            Some(launch) => Err(said(&format!("'{}' is none of its libraries", launch.code.library))),
            None => Ok(list),
        }
    }

    /// How many launches there are, how many kernels, and how many launches that are expected to
    /// have ranges.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let mut kernels: Vec<&str> = self.launches.iter().map(|launch| launch.kernel.as_str()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        let with_ranges = self.launches.iter().filter(|launch| launch.not_run.is_none() && !launch.no_ranges);
        (self.launches.len(), kernels.len(), with_ranges.count())
    }

    /// A part of the list, of so many (numbered from 0). An image is in one part only.
    #[must_use]
    pub fn part(&self, number: usize, of: usize) -> Self {
        let mut images: Vec<&ImagePlace> = self.launches.iter().map(|launch| &launch.code).collect();
        images.sort_unstable();
        images.dedup();
        let is_here = |place: &ImagePlace| images.binary_search(&place).is_ok_and(|at| at % of == number);
        let launches = self.launches.iter().filter(|launch| is_here(&launch.code)).cloned().collect();
        Self { launches, ..self.clone() }
    }

    /// The folder of the package's libraries, which is fetched unless it is there.
    ///
    /// # Errors
    /// There is no such package, or a file of it is another one than the list says.
    pub fn installed(&self) -> Result<PathBuf, String> {
        let starts: String = self.libraries.values().map(|library| format!("-{:.6}", library.sha256)).collect();
        let folder = product::root().join(".cache/replayed").join(format!("{}{starts}", self.package));
        build::once(&folder, |partial| {
            let _ = std::fs::remove_dir_all(partial);
            let script = product::root().join("tests/replayed/fetch.py");
            let mut args = vec![script.into_os_string(), partial.as_os_str().to_owned(), (&self.package).into()];
            for library in self.libraries.values() {
                args.extend([(&library.path).into(), (&library.sha256).into()]);
            }
            run::must(Path::new("python3"), args).map(drop)
        })
    }

    /// Writes what is needed to run the launches into a folder.
    ///
    /// `code` are folders with the libraries; with none the package is fetched.
    ///
    /// # Errors
    /// A library is not there or another build, or the folder can not be written.
    pub fn prepare(&self, code: &[PathBuf], out: &Path) -> Result<Replayable, String> {
        let fetched = if code.is_empty() { vec![self.installed()?] } else { code.to_vec() };
        if let Some(missing) = fetched.iter().find(|folder| !folder.is_dir()) {
            return Err(format!("{}: no such folder", missing.display()));
        }
        let here = Libraries::below(&fetched);
        let mut files = BTreeMap::new();
        for (name, library) in &self.libraries {
            let id = from_hex(&library.build_id).ok_or_else(|| format!("{name}: its build id is no number"))?;
            let found = here.find(name, Path::new(""), Some(&id));
            files.insert(name, found.map_err(|why| format!("{why}: that of {} is needed", self.package))?);
        }
        std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
        let mut images = BTreeMap::<&ImagePlace, String>::new();
        let mut launches = Vec::new();
        for listed in &self.launches {
            let name = format!("image-{}", images.len());
            let known = images.get(&listed.code).cloned();
            let image = known.map_or_else(
                || {
                    let bytes = listed.code.read(&files[&listed.code.library])?;
                    std::fs::write(out.join(&name), bytes).map_err(|e| format!("{}: {e}", out.display()))?;
                    Ok::<_, String>(name)
                },
                Ok,
            )?;
            images.insert(&listed.code, image.clone());
            let mut launch = listed.launch.clone();
            launch.insert("kernel".into(), listed.kernel.clone().into());
            launch.insert("image".into(), image.into());
            launches.push(Value::Object(launch));
        }
        let file = out.join("launches.json");
        std::fs::write(&file, Value::from(launches).to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        let count = self.launches.len();
        let folders = if count == 0 { Vec::new() } else { vec![(self.arch, out.to_owned(), count)] };
        Ok(Replayable { folders, launches: count as u64, left_out: BTreeMap::new() })
    }

    /// Holds a replay against what the list says: no byte was predicted wrongly, every launch ran
    /// but for those that are listed as left out, and every launch has ranges but for those that
    /// are listed without.
    ///
    /// # Errors
    /// What is not so, by kernels.
    pub fn judge(&self, played: &[Played], judged: &[JudgedKernel]) -> Result<Counts, String> {
        let mut wrong = Vec::new();
        for (number, listed) in self.launches.iter().enumerate() {
            let how = played.iter().find(|launch| launch.launch == number);
            match (how.map(|how| &how.failure), &listed.not_run) {
                (None, _) => wrong.push(format!("{}: nothing is said of launch {number}", listed.kernel)),
                (Some(None), _) => {}
                (Some(Some(why)), Some(known)) if why == known => {}
                (Some(Some(why)), _) => wrong.push(format!("{}: does not run: {why}", listed.kernel)),
            }
        }
        let run = played.iter().filter(|launch| launch.failure.is_none()).count();
        let mut counts = Counts { listed: self.launches.len(), run, ranges: 0 };
        for kernel in judged {
            let of = |verdict: &str| kernel.counts.get(verdict).copied().unwrap_or(0);
            let (without, unsound) = (of("open") + of("no-code"), of("unsound") + of("overclaimed"));
            counts.ranges += kernel.counts.values().sum::<u64>() - without - unsound;
            let listed = self.launches.iter().filter(|launch| launch.kernel == kernel.name && launch.no_ranges);
            if without > listed.count() as u64 {
                wrong.push(format!("{}: has no ranges: {:?}", kernel.name, kernel.reasons));
            }
            if unsound > 0 {
                wrong.push(format!("{}: predicted wrongly:\n{}", kernel.name, kernel.wrong.join("\n")));
            }
        }
        let compared: u64 = judged.iter().flat_map(|kernel| kernel.counts.values()).sum();
        if compared != run as u64 {
            wrong.push(format!("{run} launches ran, and {compared} were compared"));
        }
        if wrong.is_empty() { Ok(counts) } else { Err(wrong.join("\n")) }
    }
}

/// The bytes of a text of hexadecimal digits.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(second: Value) -> LaunchList {
        let mut second = second;
        let place = |offset: u64| json!({ "library": "libone.so", "offset": offset, "size": 16 });
        second["kernel"] = "b".into();
        second["code"] = place(16);
        let library = json!({ "path": "one/libone.so", "sha256": "h", "build_id": "ab01" });
        let first = json!({ "kernel": "a", "code": place(0), "grid": [1, 1, 1] });
        serde_json::from_value(json!({
            "package": "one==1", "arch": 90, "libraries": { "libone.so": library }, "launches": [first, second],
        }))
        .expect("a list")
    }

    fn played(failure: Option<&str>) -> Vec<Played> {
        let launch = |launch, kernel: &str, failure: Option<&str>| Played {
            launch,
            kernel: kernel.into(),
            failure: failure.map(str::to_owned),
            seconds: 0.1,
        };
        vec![launch(0, "a", None), launch(1, "b", failure)]
    }

    fn judged(verdicts: &[(&str, &str)]) -> Vec<JudgedKernel> {
        let kernel = |(name, verdict): &(&str, &str)| JudgedKernel {
            name: (*name).into(),
            counts: [((*verdict).to_owned(), 1)].into(),
            ..JudgedKernel::default()
        };
        verdicts.iter().map(kernel).collect()
    }

    #[test]
    fn what_is_not_listed_must_run_and_have_ranges() {
        let plain = list(json!({}));
        let both = |verdict| judged(&[("a", "tight"), ("b", verdict)]);
        let right = Counts { listed: 2, run: 2, ranges: 2 };
        assert_eq!(plain.judge(&played(None), &both("loose")), Ok(right));
        let error = |result: Result<Counts, String>| result.expect_err("wrong");
        assert!(error(plain.judge(&played(None), &both("open"))).contains("b: has no ranges"));
        assert!(error(plain.judge(&played(None), &both("unsound"))).contains("b: predicted wrongly"));
        assert!(error(plain.judge(&played(Some("why")), &judged(&[("a", "tight")]))).contains("does not run: why"));
        assert!(error(plain.judge(&played(None), &judged(&[("a", "tight")]))).contains("1 were compared"));
        assert!(error(plain.judge(&played(None)[..1], &both("tight"))).contains("nothing is said of launch 1"));
    }

    #[test]
    fn what_is_listed_may_be_missing_for_that_reason_only() {
        let refused = list(json!({ "not_run": "not executed: X" }));
        let one = judged(&[("a", "tight")]);
        let counts = Counts { listed: 2, run: 1, ranges: 1 };
        assert_eq!(refused.judge(&played(Some("not executed: X")), &one), Ok(counts));
        assert!(refused.judge(&played(Some("not executed: Y")), &one).is_err());
        // It may do better than it did.
        assert!(refused.judge(&played(None), &judged(&[("a", "tight"), ("b", "tight")])).is_ok());
        let open = list(json!({ "no_ranges": true }));
        let counts = Counts { listed: 2, run: 2, ranges: 1 };
        assert_eq!(open.judge(&played(None), &judged(&[("a", "tight"), ("b", "open")])), Ok(counts));
        assert!(open.judge(&played(None), &judged(&[("a", "open"), ("b", "open")])).is_err());
    }

    #[test]
    fn parts_have_all_launches_once_and_images_stay_together() {
        let list = list(json!({}));
        let parts = [list.part(0, 2), list.part(1, 2)];
        let kernels: Vec<&str> = parts.iter().flat_map(|p| &p.launches).map(|launch| launch.kernel.as_str()).collect();
        assert_eq!(kernels, ["a", "b"]);
        assert_eq!((list.sizes(), parts[0].sizes()), ((2, 2, 2), (1, 1, 1)));
    }

    #[test]
    fn a_package_that_is_missing_or_another_one_is_told_in_one_line() {
        let folder = build::scratch("replay-list");
        let list = list(json!({}));
        let code = [folder.clone()];
        let error = list.prepare(&code, &folder.join("out")).expect_err("it is not there");
        assert_eq!(error, "libone.so is not here: that of one==1 is needed");
        std::fs::copy(std::env::current_exe().expect("a program"), folder.join("libone.so")).expect("a copy");
        let error = list.prepare(&code, &folder.join("out")).expect_err("it is another one");
        assert_eq!(error, "libone.so is another build here: that of one==1 is needed");
        let error = list.prepare(&[folder.join("gone")], &folder.join("out")).expect_err("no such folder");
        assert!(error.ends_with("gone: no such folder"), "{error}");
    }
}
