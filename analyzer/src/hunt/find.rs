//! The programs of a folder.
//!
//! Owns the walk and its order: tests that CTest lists, executables that use CUDA, files of tests
//! for pytest, each sorted by name. Hidden folders and those that hold other people's programs
//! (environments of Python, what CMake compiles for itself) are passed over, and links to folders
//! are not followed.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::links::CudaLinks;
use super::target::{self, Target};
use super::{ctest, pytest};

/// What was found.
#[derive(Default)]
pub(crate) struct Found {
    /// The programs.
    pub(crate) targets: Vec<Target>,
    /// What the user should know of the search, a line each.
    pub(crate) notes: Vec<String>,
    /// Folders and programs that could not be read: what is in them was not checked.
    pub(crate) unread: Vec<String>,
}

/// The files of a folder that may matter.
#[derive(Default)]
struct Files {
    /// Build folders, each the uppermost of its tree.
    builds: Vec<PathBuf>,
    executables: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
    tests: Vec<PathBuf>,
    /// Folders and programs that can not be read, and why.
    unread: Vec<String>,
}

/// Folders that hold no tests of the project.
const PASSED_OVER: [&str; 4] = ["CMakeFiles", "__pycache__", "node_modules", "site-packages"];

/// Looks for programs. `root` is an absolute path.
pub(crate) fn find(root: &Path) -> Found {
    let mut files = Files::default();
    walk(root, false, &mut files);
    let mut found = Found::default();
    let mut listed: Vec<&Path> = Vec::new();
    for build in &files.builds {
        let prefix = match build.strip_prefix(root) {
            Ok(inner) if files.builds.len() > 1 && !inner.as_os_str().is_empty() => format!("{}/", inner.display()),
            _ => String::new(),
        };
        match ctest::tests(build, &prefix) {
            Ok(tests) if tests.is_empty() => {}
            Ok(tests) => {
                listed.push(build);
                found.targets.extend(tests);
            }
            Err(why) => found.notes.push(format!("{why}; executables there are taken as they are, without arguments")),
        }
    }
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let mut links = CudaLinks::new(files.libraries);
    let mut seen = BTreeSet::new();
    files.executables.sort();
    for file in &files.executables {
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        // What is a test is among CTest's tests, and the rest is what tests need.
        let is_listed = listed.iter().any(|build| file.starts_with(build));
        if is_listed || Some(&real) == own.as_ref() || !seen.insert(real) {
            continue;
        }
        if let Err(error) = std::fs::File::open(file) {
            files.unread.push(unread(file, &error));
            continue;
        }
        if !links.is_program(file) {
            continue;
        }
        let folder = file.parent().unwrap_or(root).to_path_buf();
        found.targets.push(Target::new("executable", name(root, file), vec![file.into()], folder));
    }
    files.tests.sort();
    for file in &files.tests {
        let is_word = |target: &Target| target.command.iter().any(|word| Path::new(word) == file);
        let text = std::fs::read(file).unwrap_or_else(|error| {
            files.unread.push(unread(file, &error));
            Vec::new()
        });
        if !found.targets.iter().any(is_word) && pytest::mentions_cuda(&text) {
            found.targets.push(pytest::target(root, &name(root, file)));
        }
    }
    target::number(&mut found.targets);
    found.unread = files.unread;
    found
}

fn name(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned()
}

/// What could not be read, for the user.
fn unread(path: &Path, error: &std::io::Error) -> String {
    format!("{} could not be read: {error}", path.display())
}

/// `built`: a folder above is a build folder.
fn walk(folder: &Path, built: bool, files: &mut Files) {
    let entries = std::fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return files.unread.push(unread(folder, &error)),
    };
    let mut entries: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    entries.sort();
    let has = |name: &str| entries.iter().any(|path| path.file_name().is_some_and(|own| own == name));
    if has("pyvenv.cfg") {
        return;
    }
    let is_build = has(ctest::FILE);
    if is_build && !built {
        files.builds.push(folder.to_path_buf());
    }
    for path in entries {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let own = match path.symlink_metadata() {
            Ok(own) => own,
            // A folder whose files may be listed and not be opened.
            Err(error) => {
                files.unread.push(unread(&path, &error));
                continue;
            }
        };
        if own.is_dir() {
            if !name.starts_with('.') && !PASSED_OVER.contains(&name.as_str()) {
                walk(&path, built || is_build, files);
            }
            continue;
        }
        let meta = match path.metadata() {
            Ok(meta) => meta,
            Err(error) => {
                // A link to nothing hides no program.
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    files.unread.push(unread(&path, &error));
                }
                continue;
            }
        };
        if !meta.is_file() {
            continue;
        }
        if pytest::is_test(&name) {
            files.tests.push(path);
        } else if name.ends_with(".so") || name.contains(".so.") {
            files.libraries.push(path);
        } else if meta.permissions().mode() & 0o111 != 0 && meta.size() > 64 {
            files.executables.push(path);
        }
    }
}
