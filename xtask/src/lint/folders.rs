//! No folder below `src/` has more source files beside each other than a reader takes in at once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Violation;

/// The most source files of a folder.
const FILES: usize = 15;

/// Finds the folders that hold too many of the files.
pub fn check(files: impl Iterator<Item = PathBuf>) -> Vec<Violation> {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in files {
        let Some(folder) = file.parent().filter(|folder| folder.iter().any(|part| part == "src")) else { continue };
        *counts.entry(folder.to_path_buf()).or_default() += 1;
    }
    let large = counts.into_iter().filter(|(_, count)| *count > FILES);
    large.map(|(folder, count)| Violation::new(&folder, 1, format!("{count} source files, at most {FILES}"))).collect()
}
