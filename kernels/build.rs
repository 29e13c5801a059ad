//! Hands the crate a hash of its own sources and of those of `device-code` (`KERNELS_SOURCES`):
//! summaries kept on disk are good for the code that made them only.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn files(folder: &Path, out: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.insert(path);
        }
    }
}

fn main() {
    let mut paths = BTreeSet::new();
    for folder in ["src", "../device-code/src"] {
        files(Path::new(folder), &mut paths);
        println!("cargo::rerun-if-changed={folder}");
    }
    // The versions of what it is built with, too.
    paths.extend(["Cargo.toml".into(), "../Cargo.lock".into()]);
    let mut hash = DefaultHasher::new();
    for path in &paths {
        path.hash(&mut hash);
        std::fs::read(path).unwrap_or_default().hash(&mut hash);
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=KERNELS_SOURCES={:016x}", hash.finish());
}
