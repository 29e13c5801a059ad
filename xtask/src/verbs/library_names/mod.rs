//! `cargo xtask library-names`: the names that packages want of CUDA's libraries, and those that
//! the stand-ins have.
//!
//! Owns fetching packages and the table; `symbols` reads the files.

mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::symbols::{Kind, Library, Name};
use crate::columns::Table;
use crate::{command, environment, workspace};

/// Packages that call CUDA's libraries.
const USERS: [&str; 11] = [
    "torch",
    "cupy-cuda13x",
    "jax-cuda13-plugin",
    "jax-cuda13-pjrt",
    "numba-cuda",
    "triton",
    "warp-lang",
    "onnxruntime-gpu",
    "taichi",
    "drjit",
    "bitsandbytes",
];

/// Packages that are CUDA's libraries, for `--libraries`.
const LIBRARIES: [&str; 11] = [
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
    "nvidia-cufft",
    "nvidia-cufile",
    "nvidia-curand",
    "nvidia-cusolver",
    "nvidia-cusparse",
    "nvidia-cusparselt-cu13",
    "nvidia-cuda-cupti",
    "nvidia-nccl-cu13",
    "nvidia-nvshmem-cu13",
];

/// How names begin, and the list in `sim/libraries/refused` for those without a stand-in. The first
/// that fits counts.
const LISTS: [(&str, &str); 13] = [
    ("cublasLt", "cublaslt"),
    ("cublas", "cublas"),
    ("cudnn", "cudnn"),
    ("cufft", "cufft"),
    ("cuFile", "cufile"),
    ("cupti", "cupti"),
    ("curand", "curand"),
    ("cusolver", "cusolver"),
    ("cusparseLt", "cusparselt"),
    ("cusparse", "cusparse"),
    ("nccl", "nccl"),
    ("nvml", "nvml"),
    ("nvshmem", "nvshmem"),
];

/// Compare the names that packages want of CUDA's libraries with those that the stand-ins have.
///
/// Fetches the newest release of each package from PyPI (`NAME==VERSION`: that one) and reads its
/// shared libraries: a package that has one of CUDA's libraries itself counts with all names of
/// that library. Fails when a name is missing. A package is deleted when it has been read; the
/// largest takes 2 GB. Run it weekly, and before a release.
#[derive(clap::Args)]
pub struct LibraryNamesArgs {
    /// CUDA's libraries, too: 3 GB
    #[arg(long)]
    libraries: bool,
    /// Add functions that are missing to the lists in `sim/libraries/refused`
    #[arg(long)]
    write: bool,
    /// The folder of the stand-ins; otherwise the product is built
    #[arg(long)]
    stand_ins: Option<PathBuf>,
    /// Packages; otherwise those that call CUDA's libraries
    packages: Vec<String>,
}

/// Fetches, compares, prints.
pub fn run(args: &LibraryNamesArgs) -> Result<ExitCode> {
    let folder = match &args.stand_ins {
        Some(folder) => folder.clone(),
        None => workspace::binaries()?.join("sim"),
    };
    let stand_ins = stand_ins(&folder)?;
    let mut packages: Vec<&str> = args.packages.iter().map(String::as_str).collect();
    if packages.is_empty() {
        packages.extend(USERS);
    }
    packages.extend(LIBRARIES.iter().filter(|_| args.libraries));
    let mut table = Table::new(&["package", "version", "libraries", "names", "missing"]);
    let mut missing: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
    let mut failed = false;
    for package in packages {
        let found = match Package::fetch(package) {
            Ok(found) => found,
            Err(error) => {
                failed = true;
                table.row([package.to_owned(), format!("{error:#}"), String::new(), String::new(), String::new()]);
                continue;
            }
        };
        let wanted: BTreeSet<Name> =
            found.libraries.iter().flat_map(|library| wanted(library, &stand_ins)).cloned().collect();
        let lacking: Vec<&Name> = wanted.iter().filter(|name| !has(&stand_ins, name)).collect();
        let numbers = [found.libraries.len(), wanted.len(), lacking.len()].map(|number| number.to_string());
        table.row([package.to_owned(), found.version].into_iter().chain(numbers));
        for name in lacking {
            missing.entry(name.clone()).or_default().insert(package.to_owned());
        }
    }
    print!("{}", table.aligned());
    for (name, packages) in &missing {
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        println!("{name}: missing, for {}", packages.join(", "));
    }
    if args.write {
        add(missing.keys())?;
    }
    Ok(if missing.is_empty() && !failed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The libraries that programs find under `--sim`, by name.
fn stand_ins(folder: &Path) -> Result<BTreeMap<String, Library>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("libstreamsan") {
            let library = symbols::read(&path)?.with_context(|| format!("{}: not a library", path.display()))?;
            found.insert(name, library);
        }
    }
    if found.is_empty() {
        bail!("{}: no stand-ins", folder.display());
    }
    Ok(found)
}

/// The names that a library wants of those that have stand-ins; if it is such a library, what it
/// has.
fn wanted<'a>(library: &'a Library, stand_ins: &'a BTreeMap<String, Library>) -> impl Iterator<Item = &'a Name> {
    let needs: Vec<&String> = library.needs.iter().filter(|name| stand_ins.contains_key(*name)).collect();
    let is_wanted = move |name: &&Name| match &name.file {
        Some(file) => stand_ins.contains_key(file),
        // Names without a version do not say whose they are.
        None => needs.iter().any(|needed| is_of(&name.name, needed)),
    };
    let is_one = stand_ins.contains_key(&library.soname);
    let own = library.has.iter().filter(move |name| is_one && is_of(&name.name, &library.soname));
    library.wants.iter().filter(is_wanted).chain(own)
}

/// Whether a name is one of a library's, by how both begin.
fn is_of(name: &str, soname: &str) -> bool {
    let library = soname.strip_prefix("lib").unwrap_or(soname).split(['.', '_']).next().unwrap_or_default();
    let begins = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_uppercase()))
    };
    match library {
        "cuda" => begins("cu"),
        "cudart" => begins("cuda") || begins("__cuda"),
        "cufile" => begins("cuFile"),
        "nvidia-ml" => begins("nvml"),
        "nccl" | "nvshmem" => name.starts_with(library),
        "cublas" | "cusparse" => {
            begins(library) && !name.strip_prefix(library).is_some_and(|rest| rest.starts_with("Lt"))
        }
        _ => begins(library),
    }
}

fn has(stand_ins: &BTreeMap<String, Library>, name: &Name) -> bool {
    let of_file = name.file.as_ref().and_then(|file| stand_ins.get(file));
    let mut libraries = stand_ins.iter().filter(|(soname, _)| name.file.is_none() && is_of(&name.name, soname));
    let is_there = |library: &Library| {
        library.has.iter().any(|own| {
            own.name == name.name && (name.version.is_none() || own.version.is_none() || own.version == name.version)
        })
    };
    of_file.is_some_and(is_there) || libraries.any(|(_, library)| is_there(library))
}

/// Adds functions to the lists of those that only refuse.
fn add<'a>(missing: impl Iterator<Item = &'a Name>) -> Result<()> {
    let mut lists: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for name in missing.filter(|name| name.kind != Kind::Data) {
        match LISTS.iter().find(|(prefix, _)| name.name.starts_with(prefix)) {
            Some((_, list)) => _ = lists.entry(list).or_default().insert(name.name.clone()),
            None => eprintln!("{}: there is no list for it", name.name),
        }
    }
    for (list, mut names) in lists {
        let path = workspace::root().join(format!("sim/libraries/refused/{list}.txt"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        names.extend(text.lines().map(str::to_owned));
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// A release of a package.
struct Package {
    version: String,
    libraries: Vec<Library>,
}

impl Package {
    fn fetch(package: &str) -> Result<Package> {
        let folder = workspace::root().join(format!(".cache/library-names-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let read = Self::read(package, &folder);
        std::fs::remove_dir_all(&folder)?;
        read
    }

    fn read(package: &str, folder: &Path) -> Result<Package> {
        let place = folder.to_string_lossy();
        environment::pip_download(&["--no-deps", "--only-binary", ":all:", "-d", &place, package])?;
        let mut files = std::fs::read_dir(folder)?;
        let wheel = files.next().context("nothing was fetched")??.path();
        let name = workspace::stem(&wheel);
        let version = name.split('-').nth(1).unwrap_or_default().to_owned();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (zip, unpacked) = (text(&wheel), folder.join("unpacked"));
        let mut unpack = command::python(Path::new("python3"), ["-m", "zipfile", "-e", &zip, &text(&unpacked)]);
        command::run(&mut unpack)?;
        std::fs::remove_file(&wheel)?;
        let (mut libraries, mut folders) = (Vec::new(), vec![unpacked]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name().to_string_lossy().contains(".so") {
                    libraries.extend(symbols::read(&entry.path())?);
                }
            }
        }
        Ok(Package { version, libraries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_the_library_that_they_begin_with() {
        let owners = |name: &str| {
            let sonames = [
                "libcuda.so.1",
                "libcudart.so.13",
                "libcublas.so.13",
                "libcublasLt.so.13",
                "libcusparse.so.12",
                "libcusparseLt.so.0",
                "libcufile.so.0",
                "libnvidia-ml.so.1",
                "libnccl.so.2",
                "libnvshmem_host.so.3",
            ];
            sonames.into_iter().filter(|soname| is_of(name, soname)).collect::<Vec<_>>()
        };
        for (name, expected) in [
            ("cuInit", vec!["libcuda.so.1"]),
            ("cudaMalloc", vec!["libcudart.so.13"]),
            ("__cudaRegisterFatBinary", vec!["libcudart.so.13"]),
            ("cublasCreate_v2", vec!["libcublas.so.13"]),
            ("cublasLtCreate", vec!["libcublasLt.so.13"]),
            ("cusparseLtInit", vec!["libcusparseLt.so.0"]),
            ("cusparseSpMM", vec!["libcusparse.so.12"]),
            ("nvmlInit_v2", vec!["libnvidia-ml.so.1"]),
            ("ncclCommResume", vec!["libnccl.so.2"]),
            ("nvshmem_selected_device_transport", vec!["libnvshmem_host.so.3"]),
            ("curl_easy_init", vec![]),
            ("cudf_version", vec![]),
        ] {
            // cuFile's names begin as the driver's do.
            assert_eq!(owners(name), expected, "{name}");
        }
    }

    fn library(soname: &str, needs: &[&str], wants: &[(&str, Option<&str>)], has: &[(&str, Option<&str>)]) -> Library {
        let names = |list: &[(&str, Option<&str>)], of_file: bool| {
            let name = |&(name, version): &(&str, Option<&str>)| Name {
                name: name.into(),
                version: version.map(str::to_owned),
                file: version.filter(|_| of_file).map(str::to_owned),
                kind: Kind::Function,
            };
            list.iter().map(name).collect()
        };
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        Library { soname: soname.into(), needs, wants: names(wants, true), has: names(has, false) }
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_there_or_another_librarys() {
        let versioned = Some("libcufft.so.12");
        let fft = library("libcufft.so.12", &[], &[], &[("cufftPlan1d", versioned)]);
        let nccl = library("libnccl.so.2", &[], &[], &[("ncclAllReduce", Some("libnccl.so.2"))]);
        let stand_ins: BTreeMap<_, _> = [fft, nccl].into_iter().map(|it| (it.soname.clone(), it)).collect();
        let missing = |user: &Library| -> Vec<String> {
            let wanted = wanted(user, &stand_ins).filter(|name| !has(&stand_ins, name));
            wanted.map(|name| name.name.clone()).collect()
        };
        let all = [
            ("cufftPlan1d", versioned),
            ("cufftPlan9d", versioned),
            ("cufftPlan1d", Some("libcufft.so.99")),
            ("ncclAllReduce", None),
            ("ncclCommResume", None),
            ("printf", None),
        ];
        let user = library("", &["libcufft.so.12", "libnccl.so.2", "libc.so.6"], &all, &[]);
        assert_eq!(missing(&user), ["cufftPlan9d", "ncclCommResume"]);
        let other = library("", &["libc.so.6"], &all[3..], &[]);
        assert_eq!(missing(&other), [""; 0]);
        let own =
            library("libnccl.so.2", &[], &[], &[("ncclAllReduce", None), ("ncclPutSignal", None), ("inner", None)]);
        assert_eq!(missing(&own), ["ncclPutSignal"]);
    }
}
