//! A choice of launches that were replayed, written down as lists.
//!
//! Owns which launches stay: one of each kernel, the fastest; of kernels that the simulator does
//! not run one for each reason; the fastest kernels first, until the time is used up. What the
//! packages are called and what their files' hashes are is read from what pip has left beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Played;
use super::list::{LaunchList, Library, ListedLaunch};

/// A launch that may stay.
#[derive(Clone, Debug)]
pub struct Choice {
    arch: u32,
    seconds: f64,
    launch: ListedLaunch,
    build_id: String,
}

impl Choice {
    /// The launches of a folder whose code lies in a library, with how they went.
    ///
    /// # Errors
    /// The folder can not be read.
    pub fn of(folder: &Path, arch: u32, played: &[Played]) -> Result<Vec<Self>, String> {
        let file = folder.join("launches.json");
        let said = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|e| said(&e))?;
        let launches: Vec<Value> = serde_json::from_str(&text).map_err(|e| said(&e))?;
        let mut all = Vec::new();
        for how in played {
            let Some(mut launch) = launches.get(how.launch).cloned() else { continue };
            let Some(fields) = launch.as_object_mut() else { continue };
            fields.remove("image");
            let (Some(build_id), true) = (fields.remove("build_id"), fields.contains_key("code")) else { continue };
            let mut launch: ListedLaunch = serde_json::from_value(launch).map_err(|e| said(&e))?;
            launch.code.library = launch.code.name().to_owned();
            launch.not_run.clone_from(&how.failure);
            let build_id = build_id.as_str().unwrap_or_default().to_owned();
            all.push(Self { arch, seconds: how.seconds, launch, build_id });
        }
        Ok(all)
    }
}

/// Chooses launches that take so many seconds in all, and makes a list for each package of the
/// folders with code.
///
/// # Errors
/// No package there has a library.
pub fn write(choices: Vec<Choice>, seconds: f64, code: &[PathBuf]) -> Result<Vec<LaunchList>, String> {
    let mut lists = BTreeMap::<(String, u32), LaunchList>::new();
    for choice in chosen(choices, seconds) {
        let name = choice.launch.code.library.clone();
        let (package, library) = packaged(&name, &choice.build_id, code)?;
        let list = lists.entry((package.clone(), choice.arch)).or_insert_with(|| LaunchList {
            package,
            arch: choice.arch,
            libraries: BTreeMap::new(),
            launches: Vec::new(),
        });
        list.libraries.insert(name, library);
        list.launches.push(choice.launch);
    }
    for list in lists.values_mut() {
        let key = |launch: &ListedLaunch| (launch.code.clone(), launch.kernel.clone());
        list.launches.sort_by_key(key);
    }
    Ok(lists.into_values().collect())
}

fn chosen(mut choices: Vec<Choice>, seconds: f64) -> Vec<Choice> {
    choices.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (mut kernels, mut reasons, mut left) = (BTreeSet::new(), BTreeSet::new(), seconds);
    let mut stays = |choice: &Choice| match &choice.launch.not_run {
        Some(why) => reasons.insert(why.clone()),
        None if left < choice.seconds => false,
        None => {
            let is_new = kernels.insert(choice.launch.kernel.clone());
            left -= if is_new { choice.seconds } else { 0.0 };
            is_new
        }
    };
    choices.retain(|choice| stays(choice));
    choices
}

/// The package that a library is from, by what pip has written down.
fn packaged(name: &str, build_id: &str, code: &[PathBuf]) -> Result<(String, Library), String> {
    for folder in code {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(package) = entry.file_name().to_string_lossy().strip_suffix(".dist-info").map(str::to_owned)
            else {
                continue;
            };
            let record = std::fs::read_to_string(entry.path().join("RECORD")).unwrap_or_default();
            for line in record.lines() {
                let mut fields = line.split(',');
                let (Some(path), Some(hash)) = (fields.next(), fields.next()) else { continue };
                if path.rsplit('/').next() == Some(name)
                    && let Some(sha256) = hash.strip_prefix("sha256=")
                    && let Some((package, version)) = package.split_once('-')
                {
                    let (path, sha256, build_id) = (path.to_owned(), sha256.to_owned(), build_id.to_owned());
                    return Ok((
                        format!("{}=={version}", package.replace('_', "-")),
                        Library { path, sha256, build_id },
                    ));
                }
            }
        }
    }
    Err(format!("{name}: pip has put it into none of these folders"))
}

impl LaunchList {
    /// Takes down what a replay of the list has shown.
    pub fn expect(&mut self, played: &[Played], without_ranges: &BTreeSet<String>) {
        for (number, listed) in self.launches.iter_mut().enumerate() {
            let how = played.iter().find(|launch| launch.launch == number);
            listed.not_run = how.and_then(|how| how.failure.clone());
            listed.no_ranges = listed.not_run.is_none() && without_ranges.contains(&listed.kernel);
        }
    }

    /// Writes the list, a line for each launch.
    ///
    /// # Errors
    /// The file can not be written.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let json = |value: &dyn Fn() -> serde_json::Result<String>| value().map_err(|e| said(&e));
        let libraries = json(&|| serde_json::to_string_pretty(&self.libraries))?;
        let launches: Vec<String> =
            self.launches.iter().map(|one| json(&|| serde_json::to_string(one))).collect::<Result<_, _>>()?;
        let text = format!(
            "{{\n\"package\": \"{}\",\n\"arch\": {},\n\"libraries\": {libraries},\n\"launches\": [\n{}\n]\n}}\n",
            self.package,
            self.arch,
            launches.join(",\n")
        );
        std::fs::write(file, text).map_err(|e| said(&e))
    }
}
