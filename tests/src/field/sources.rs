//! The projects' own code, from PyPI, and drivers compiled against it: each version once, under
//! `.cache/field`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::run::must;
use crate::{build, packages, product};

/// The folders below an installed package that hold its headers, as the packages lay them out.
const HEADERS: [&str; 11] = [
    "nvidia/cuda_cccl/include",
    "nvidia/cu13/include/cccl",
    "cuda/cccl/headers/include",
    "librmm/include/rapids",
    "librmm/include",
    "rapids_logger/include",
    "cutlass_library/source/include",
    "cutlass_library/source/tools/util/include",
    // Published sources.
    "include",
    "csrc",
    "gptqmodel_ext/awq",
];

/// Where everything of the field suite is kept.
pub fn cache() -> PathBuf {
    product::root().join(".cache/field")
}

/// The folder of a package `NAME==VERSION`, without what it depends on. `NAME==VERSION:sdist` is
/// the published source, unpacked and not built. `NAME==VERSION:PATH/` is what lies below a path of
/// the wheel.
pub fn package(requirement: &str) -> Result<PathBuf, String> {
    assert!(requirement.contains("=="), "'{requirement}' names no version");
    build::once(&cache().join(requirement.replace([':', '/'], "-")), |partial| {
        let _ = std::fs::remove_dir_all(partial);
        let python = Path::new("python3");
        let scripts = product::root().join("tests/field");
        let made = match requirement.split_once(':') {
            None => return packages::install(packages::Place::Folder(partial), &["--no-deps", requirement]),
            // Asked for a source, pip runs the project's set-up. The index says where it lies.
            Some((published, "sdist")) => {
                must(python, [scripts.join("sdist.py").as_os_str(), OsStr::new(published), partial.as_os_str()])
            }
            Some((published, below)) => {
                let script = scripts.join("wheel_part.py");
                let args = [OsStr::new(published), OsStr::new(below), partial.as_os_str()];
                must(python, [script.as_os_str()].into_iter().chain(args))
            }
        };
        made.map(drop)
    })
}

/// Compiles a driver against the headers of packages.
pub fn compiled(driver: &Path, packages: &[PathBuf], arguments: &[String]) -> Result<PathBuf, String> {
    let folders = packages.iter().flat_map(|package| HEADERS.map(|headers| package.join(headers)));
    let headers: Vec<String> = folders.filter(|folder| folder.exists()).map(|f| format!("-I{}", f.display())).collect();
    assert!(!headers.is_empty(), "{}: no package has headers", driver.display());
    // Old releases are not free of warnings with a new compiler.
    let mut args: Vec<&str> = vec!["-w"];
    args.extend(headers.iter().map(String::as_str));
    // What stands in for PyTorch where a project's file is an extension of it.
    let torch = product::root().join("tests/src/field/torch_cpp");
    let torch_headers = format!("-I{}", torch.display());
    args.push(&torch_headers);
    args.extend(arguments.iter().map(String::as_str));
    if !arguments.iter().any(|argument| argument.starts_with("-std=")) {
        args.push("-std=c++17");
    }
    let shared = product::root().join("tests/field/rmm_library.hpp");
    build::cuda_program_with(driver, &[&shared, &torch.join("tensor.hpp")], "shared", &args)
}
