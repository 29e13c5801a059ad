//! PyTorch on the simulated GPU, from its wheel alone.
//!
//! The wheel wants a dozen of NVIDIA's libraries, two gigabytes, of which a driver that adds,
//! copies and waits calls nothing. Stand-ins with their names and symbols take their place: a call
//! of one says so and aborts. The CUDA runtime and driver are the simulator's. Kernels are machine
//! code, which is read for the bytes that it touches but not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::sources::cache;
use crate::run::must;
use crate::{build, packages};

const TORCH: &str = "torch==2.11.0";

/// What PyTorch and the projects import.
const PACKAGES: [&str; 33] = [
    "numpy==2.3.5",
    "sympy==1.14.0",
    "mpmath==1.3.0",
    "typing_extensions==4.15.0",
    "filelock==3.20.0",
    "networkx==3.5",
    "jinja2==3.1.6",
    "markupsafe==3.0.3",
    "fsspec==2025.10.0",
    "packaging==25.0",
    "setuptools==80.9.0",
    "psutil==7.1.3",
    "pyyaml==6.0.3",
    "tqdm==4.67.1",
    "regex==2025.11.3",
    "requests==2.32.5",
    "urllib3==2.5.0",
    "idna==3.11",
    "certifi==2025.11.12",
    "charset-normalizer==3.4.4",
    "safetensors==0.6.2",
    "huggingface-hub==0.36.0",
    "hf-xet==1.2.0",
    "importlib-metadata==8.7.0",
    "zipp==3.23.0",
    "pillow==12.0.0",
    "einops==0.8.1",
    "pydantic==2.12.4",
    "pydantic-core==2.41.5",
    "annotated-types==0.7.0",
    "typing-inspection==0.4.2",
    "py-cpuinfo==9.0.0",
    "expecttest==0.3.0",
];

/// Versions of symbols that are not named as their library is.
const OTHERS: [(&str, &str); 6] = [
    ("libcudnn.so.9", "cudnn"),
    ("libnccl.so.2", "nccl"),
    ("libcusparseLt.so.0", "cusparseLt"),
    ("libcufile.so.0", "cuFile"),
    ("libnvshmem_host.so.3", "nvshmem"),
    ("libcupti.so.13", "cupti"),
];

/// An environment with PyTorch in it.
pub struct Torch(PathBuf);

impl Torch {
    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.0.join("bin/python")
    }

    /// The folder of the stand-ins.
    pub fn stand_ins(&self) -> PathBuf {
        self.0.join("stand-ins")
    }
}

/// Makes the environment, unless it is there.
pub fn environment() -> Result<Torch, String> {
    // A Python environment cannot be moved to another name, so what says that it is complete is a
    // file beside it.
    let folder = cache().join("torch-2.11.0-2");
    build::once(&cache().join("torch-2.11.0-2.ready"), |stamp| {
        let _ = std::fs::remove_dir_all(&folder);
        packages::environment(&folder)?;
        let torch = Torch(folder.clone());
        let wanted: Vec<&str> = ["--no-deps", TORCH].into_iter().chain(PACKAGES).collect();
        packages::install(packages::Place::Environment(&folder), &wanted)?;
        let lib = must(&torch.python(), ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])?;
        make_stand_ins(&Path::new(lib.trim()).join("torch/lib"), &torch.stand_ins())?;
        std::fs::write(stamp, "").map_err(|error| error.to_string())
    })?;
    Ok(Torch(folder))
}

/// A library that is wanted: its versions, each with the symbols of that version. Symbols without
/// one stand under the empty version.
type Wanted = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Makes a library for each one of NVIDIA's that PyTorch's are linked with, but for runtime and
/// driver.
fn make_stand_ins(libraries: &Path, out: &Path) -> Result<(), String> {
    std::fs::create_dir_all(out).map_err(|error| error.to_string())?;
    for (library, versions) in wanted(libraries)? {
        let mut source = String::from(
            "#include <stdio.h>\n#include <stdlib.h>\nstatic int no(const char *name) {\n  \
             fprintf(stderr, \"%s: NVIDIA's library is not here, only a stand-in\\n\", name);\n  abort();\n}\n",
        );
        let mut script = String::new();
        for (version, symbols) in &versions {
            for symbol in symbols {
                writeln!(source, "int {symbol}(void) {{ return no(\"{symbol}\"); }}").expect("a string");
            }
            if !version.is_empty() {
                let names: String = symbols.iter().map(|symbol| format!(" {symbol};")).collect();
                writeln!(script, "{version} {{ global:{names} }};").expect("a string");
            }
        }
        let (source_file, script_file) = (out.join("stand_in.c"), out.join("stand_in.map"));
        std::fs::write(&source_file, source).map_err(|error| error.to_string())?;
        std::fs::write(&script_file, &script).map_err(|error| error.to_string())?;
        let mut args = vec!["-shared".to_owned(), "-fPIC".to_owned(), "-w".to_owned()];
        args.push(format!("-Wl,-soname,{library}"));
        if !script.is_empty() {
            args.push(format!("-Wl,--version-script={}", script_file.display()));
        }
        args.extend(["-o".to_owned(), out.join(&library).display().to_string(), source_file.display().to_string()]);
        must(Path::new("gcc"), args)?;
    }
    Ok(())
}

/// Reads from PyTorch's libraries what they want of NVIDIA's.
fn wanted(libraries: &Path) -> Result<Wanted, String> {
    let entries = std::fs::read_dir(libraries).map_err(|error| format!("{}: {error}", libraries.display()))?;
    let files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let mut wanted = Wanted::new();
    // By symbol: the version that is asked for, or none.
    let mut undefined: BTreeSet<(String, String)> = BTreeSet::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "so")) {
        let name = file.to_string_lossy();
        let dynamic = must(Path::new("readelf"), ["-dW", &name])?;
        for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
            let library = line.split(['[', ']']).nth(1).unwrap_or_default();
            if is_nvidias(library) {
                wanted.entry(library.to_owned()).or_default();
            }
        }
        let mut library = String::new();
        for line in must(Path::new("readelf"), ["-VW", &name])?.lines() {
            let after = |key: &str| line.split_once(key).and_then(|(_, rest)| rest.split_whitespace().next());
            if let Some(file) = after(" File: ") {
                library = file.to_owned();
            } else if let Some(version) = after("Name: ")
                && is_nvidias(&library)
            {
                wanted.entry(library.clone()).or_default().entry(version.to_owned()).or_default();
            }
        }
        for line in must(Path::new("nm"), ["-D", "--undefined-only", "--with-symbol-versions", &name])?.lines() {
            let symbol = line.split_whitespace().last().unwrap_or_default();
            let (symbol, version) = symbol.split_once('@').unwrap_or((symbol, ""));
            undefined.insert((symbol.to_owned(), version.trim_start_matches('@').to_owned()));
        }
    }
    for (symbol, version) in undefined {
        if version.is_empty() {
            let library = OTHERS.iter().find(|(_, prefix)| symbol.starts_with(prefix));
            if let Some(versions) = library.and_then(|(library, _)| wanted.get_mut(*library)) {
                versions.entry(version).or_default().insert(symbol);
            }
            continue;
        }
        for versions in wanted.values_mut() {
            if let Some(symbols) = versions.get_mut(&version) {
                symbols.insert(symbol.clone());
            }
        }
    }
    Ok(wanted)
}

/// Whether a library is one of NVIDIA's that a stand-in replaces.
fn is_nvidias(library: &str) -> bool {
    let simulated = ["libcudart.", "libcuda."].iter().any(|name| library.starts_with(name));
    ["libcu", "libnv", "libnccl"].iter().any(|name| library.starts_with(name)) && !simulated
}
