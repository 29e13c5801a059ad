//! No folder below `src/` has more source files beside each other than a reader takes in at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Violation;

/// The most source files of a folder.
const FILES: usize = 15;

/// Folders that are tables: files of one form, one a group of CUDA's functions or types, which are
/// looked up by name.
const TABLES: [&str; 2] = ["cuda-sys/src/types", "cuda-sys/src/driver_api"];

/// Finds the folders that hold too many of the files.
pub fn check(files: impl Iterator<Item = PathBuf>) -> Vec<Violation> {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in files {
        let Some(folder) = file.parent().filter(|folder| folder.iter().any(|part| part == "src")) else { continue };
        *counts.entry(folder.to_path_buf()).or_default() += 1;
    }
    let large = counts.into_iter().filter(|(folder, count)| *count > FILES && !is_table(folder));
    large.map(|(folder, count)| Violation::new(&folder, 1, format!("{count} source files, at most {FILES}"))).collect()
}

fn is_table(folder: &Path) -> bool {
    TABLES.iter().any(|table| folder == Path::new(table))
}
