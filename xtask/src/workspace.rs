//! Where things are in the repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// The files below the root whose names end in `.EXTENSION`, as paths relative to it, sorted. Build
/// folders and hidden ones are left out.
pub fn files(extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let listed = root().join(&folder);
        for entry in std::fs::read_dir(&listed).with_context(|| listed.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || name == "target" || name == "dist" || name == "__pycache__" {
                continue;
            }
            let path = folder.join(&*name);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The folders of the crates, relative to the root: those that hold a manifest and a `src/`.
pub fn crates() -> Result<Vec<PathBuf>> {
    let manifests = files("toml")?.into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let folders = manifests.filter_map(|path| path.parent().map(Path::to_path_buf));
    Ok(folders.filter(|folder| root().join(folder).join("src").is_dir()).collect())
}
