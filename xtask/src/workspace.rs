//! Where things are: the repository, its sources, what cargo builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::command;

/// The root of the repository: the folder above that has `xtask/`, or where this was built. (On a
/// machine without Rust the program is carried there.)
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let here = std::env::current_dir().unwrap_or_default();
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
        here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").exists()).unwrap_or(built).to_path_buf()
    })
}

/// What cargo builds into.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The folder of the product's binaries: `STREAMSAN_BIN`, or a release that is built now.
pub fn binaries() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("STREAMSAN_BIN") {
        return std::fs::canonicalize(&folder).with_context(|| format!("STREAMSAN_BIN={}", folder.display()));
    }
    command::run(Command::new(root().join("scripts/build")).arg("-q").stdout(std::io::stderr()))?;
    Ok(target().join("release"))
}

/// The root of CUDA's compiler, which `scripts/toolkit` installs.
pub fn toolkit() -> Result<PathBuf> {
    Ok(command::output(&mut Command::new(root().join("scripts/toolkit")))?.trim().into())
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

/// The files of one folder, relative to the root, whose names end in `.EXTENSION`, as whole paths,
/// sorted.
pub fn files_in(folder: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let listed = root().join(folder);
    let entries = std::fs::read_dir(&listed).with_context(|| listed.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut found: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    found.sort();
    Ok(found)
}

/// The folders of the crates, relative to the root: those that hold a manifest and a `src/`.
pub fn crates() -> Result<Vec<PathBuf>> {
    let manifests = files("toml")?.into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let folders = manifests.filter_map(|path| path.parent().map(Path::to_path_buf));
    Ok(folders.filter(|folder| root().join(folder).join("src").is_dir()).collect())
}

/// A file's name without its extension.
pub fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
