//! The set-up of `--exact`: checks, before the program runs, that everything the shim will need is
//! there.
//!
//! Owns the places where NVIDIA's library is looked for. Loads nothing of it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use settings::ExactOptions;
use system::file_name::FileName;

/// NVIDIA's library.
const LIBRARY: &str = "libsanitizer-public.so";

/// The patch, beside `libstreamsan.so`.
const PATCH: &str = "exact.fatbin";

/// Percentage of a run on the simulated GPU that goes into measuring when nobody asked for it.
const SHARE: u32 = 33;

/// The options of the shim for exact mode, complete with paths; nothing without `--exact` and
/// `--confirm`. A simulated GPU measures by itself, and needs no library. `unasked`: it measures
/// though neither was given. The error is one line for the user.
pub(crate) fn shim_options(
    options: &ExactOptions,
    beside: &Path,
    simulated: bool,
    unasked: bool,
) -> Result<Vec<Vec<u8>>, String> {
    if unasked {
        return Ok(vec![b"exact=1".into(), format!("exact-share={SHARE}").into()]);
    }
    let asked = match (&options.kernels, options.confirm) {
        (None, false) => return Ok(Vec::new()),
        (None, true) => "--confirm",
        (Some(_), _) => "--exact",
    };
    // A comparison also needs the launches that the code decides.
    let every = if options.compare.is_some() { "all" } else { "1" };
    let kernels = options.kernels.as_deref().map(|k| format!("exact={}", if k.is_empty() { every } else { k }));
    let mut words: Vec<Vec<u8>> = kernels.into_iter().map(String::into_bytes).collect();
    if options.confirm {
        words.push(b"confirm=1".into());
    }
    if !simulated {
        words.extend(of_nvidia(options, asked, beside)?);
    }
    match words.iter().find(|word| word.contains(&b':')) {
        Some(word) => Err(format!("{asked} can not pass on '{}': it contains a colon", FileName::of_bytes(word))),
        None => Ok(words),
    }
}

/// What patching needs: the patch, and NVIDIA's library.
fn of_nvidia(options: &ExactOptions, asked: &str, beside: &Path) -> Result<[Vec<u8>; 2], String> {
    let patch = options.patch.as_ref().map_or_else(|| beside.join(PATCH), |patch| patch.to_path_buf());
    if !patch.is_file() {
        return Err(format!(
            "{asked} needs {}, which scripts/patch makes (or name it with --exact-patch)",
            patch.display()
        ));
    }
    let library = match &options.library {
        Some(path) if path.is_file() => path.to_path_buf(),
        Some(path) => return Err(format!("--sanitizer-library: there is no file {path}")),
        None => find().ok_or_else(|| {
            format!(
                "{asked} needs NVIDIA's {LIBRARY} (part of the CUDA toolkit; or pip install nvidia-cuda-sanitizer-api): name it \
                 with --sanitizer-library FILE"
            )
        })?,
    };
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let word = |name: &str, path: &Path| [name.as_bytes(), absolute(path).as_os_str().as_bytes()].concat();
    Ok([word("sanitizer-library=", &library), word("exact-patch=", &patch)])
}

/// The library in the toolkit (`CUDA_HOME`, `/usr/local/cuda*`), in `LD_LIBRARY_PATH`, or in the
/// packages of the Python in use.
fn find() -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut toolkits: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    toolkits.push("/usr/local/cuda".into());
    toolkits.extend(newest_first("/usr/local", "cuda-"));
    for toolkit in toolkits {
        folders.extend(["compute-sanitizer", "extras/Sanitizer", "lib64", "lib"].map(|f| toolkit.join(f)));
    }
    folders.extend(std::env::split_paths(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
    let python = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter();
    for root in python.chain(["/usr/local".into(), "/usr".into()]) {
        for version in newest_first(root.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = version.join(packages).join("nvidia");
                folders.extend(["cu13/lib", "cuda_sanitizer_api/lib"].map(|f| nvidia.join(f)));
            }
        }
    }
    folders.into_iter().map(|folder| folder.join(LIBRARY)).find(|path| path.is_file())
}

/// Entries of a folder whose name begins with `prefix`, the highest name first.
fn newest_first(folder: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path()).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_one_line() {
        let folder = std::env::temp_dir().join(format!("streamsan-exact-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut options = ExactOptions::default();
        assert_eq!(shim_options(&options, &folder, false, false), Ok(Vec::new()));
        assert_eq!(shim_options(&options, &folder, true, true), Ok(vec![b"exact=1".into(), b"exact-share=33".into()]));
        options.kernels = Some(String::new());
        assert_eq!(shim_options(&options, &folder, true, false), Ok(vec![b"exact=1".into()]));
        let error = shim_options(&options, &folder, false, false).unwrap_err();
        assert!(error.contains("exact.fatbin, which scripts/patch makes"), "{error}");
        std::fs::write(folder.join(PATCH), b"x").expect("a file");
        options.library = Some("/nowhere/lib.so".into());
        let error = shim_options(&options, &folder, false, false).unwrap_err();
        assert_eq!(error, "--sanitizer-library: there is no file /nowhere/lib.so");
        let library = folder.join("lib.so");
        std::fs::write(&library, b"x").expect("a file");
        options.library = Some(library.into());
        let words = shim_options(&options, &folder, false, false).expect("complete");
        assert_eq!(words[0], b"exact=1");
        assert!(words[1].starts_with(b"sanitizer-library=/") && words[2].starts_with(b"exact-patch=/"), "{words:?}");
        options.kernels = Some("sort".into());
        assert_eq!(shim_options(&options, &folder, false, false).expect("complete")[0], b"exact=sort");
        (options.kernels, options.compare) = (Some(String::new()), Some("file".into()));
        assert_eq!(shim_options(&options, &folder, false, false).expect("complete")[0], b"exact=all");
        (options.kernels, options.confirm) = (None, true);
        assert_eq!(shim_options(&options, &folder, false, false).expect("complete")[0], b"confirm=1");
        options.library = Some("/nowhere/lib.so".into());
        options.patch = Some("/nowhere/patch".into());
        let error = shim_options(&options, &folder, false, false).unwrap_err();
        assert!(error.starts_with("--confirm needs /nowhere/patch"), "{error}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
