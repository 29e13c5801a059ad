//! Compiles programs, once for each content: outputs lie in a cache folder under a hash of sources
//! and command. What CUDA's compiler makes outlives the target folder.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::product;
pub use crate::runs::scratch;

/// Where compiled programs are kept, beside the target folder's profiles, for the product's
/// processor.
pub fn cache() -> PathBuf {
    let name = if product::is_aarch64() { "e2e-aarch64" } else { "e2e" };
    let folder = product::profile_folder().parent().expect("a target folder").join(name);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// `tests/programs`.
pub fn programs() -> PathBuf {
    product::root().join("tests/programs")
}

/// Where programs with code for a GPU are kept: CUDA's compiler takes two seconds for each, and a
/// fresh checkout has them all to compile. `scripts/test` throws away what is not used any more.
fn compiled() -> PathBuf {
    let name = if product::is_aarch64() { "compiled-aarch64" } else { "compiled" };
    product::root().join(".cache").join(name)
}

/// Lets Python keep what it compiles: packages as large as PyTorch take it some seconds each time.
/// The sources' own folders stay as they are.
pub fn keep_bytecode(command: &mut Command) -> &mut Command {
    let folder = product::root().join(".cache/bytecode");
    command.env_remove("PYTHONDONTWRITEBYTECODE").env("PYTHONPYCACHEPREFIX", folder)
}

/// The version of the compilers: of CUDA's what `scripts/toolkit` installed, by the names of its
/// stamps (their times are those of the checkout, and each has hundreds of programs to compile), of
/// the system's size and time of its file.
fn compilers() -> (BTreeSet<OsString>, Option<(PathBuf, u64, i64)>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let gcc = std::env::split_paths(&path).map(|folder| folder.join("g++")).find_map(|file| {
        let of = std::fs::metadata(&file).ok()?;
        Some((file, of.size(), of.mtime()))
    });
    (installed_versions(&product::root().join(".toolkit")), gcc)
}

/// The names of the stamps in a folder that `scripts/toolkit` filled.
fn installed_versions(toolkit: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(toolkit).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with(".ready-")).collect()
}

/// A source and the files that it includes by quoted names, and these, as far as they are found
/// beside what includes them.
fn with_included(file: &Path, found: &mut BTreeSet<PathBuf>) {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    if !found.insert(file.clone()) {
        return;
    }
    let text = std::fs::read(&file).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let name = line.trim_start().strip_prefix('#').and_then(|line| line.trim_start().strip_prefix("include"));
        let Some(name) = name.and_then(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()) else { continue };
        let beside = file.with_file_name(name);
        if beside.is_file() {
            with_included(&beside, found);
        }
    }
}

/// The standard of C++ for a program of these sources, and what its headers may leave out.
///
/// - C++14 where it suffices: CUDA's compiler is done in two thirds of the time that its own
///   choice, C++17, takes, for the headers that it always includes bring less of the system's.
///   CUDA's libraries of C++ (CCCL) want C++17.
/// - These libraries without half precision, where the program has none: a fifth less.
/// - Cooperative groups without these libraries, where the program names none: a third of the time.
///   The headers then use traits of their own, and the code for the GPU is the same.
fn dialect(texts: &[Vec<u8>]) -> Vec<&'static str> {
    const LIBRARIES: [&str; 3] = ["<cub/", "<thrust/", "<cuda/"];
    const GROUPS: [&str; 1] = ["<cooperative_groups"];
    // The headers of these types.
    const HALF: [&str; 2] = ["fp16", "bf16"];
    let mention = |names: &[&str]| {
        let mentions =
            |text: &Vec<u8>| names.iter().any(|name| text.windows(name.len()).any(|at| at == name.as_bytes()));
        texts.iter().any(mentions)
    };
    let libraries = mention(&LIBRARIES);
    let mut options = vec![if libraries { "-std=c++17" } else { "-std=c++14" }];
    options.extend((libraries && !mention(&HALF)).then_some("-DCCCL_DISABLE_FP16_SUPPORT"));
    options.extend((!libraries && mention(&GROUPS)).then_some("-D_CG_LIMIT_INCLUDED_DEPENDENCIES"));
    options
}

/// The command that compiles; where `COMPILE_TIMES` names a list, one that adds to it what
/// compiling took (`scripts/processor-time`).
fn compiling(compiler: &Path, args: &[String]) -> Command {
    let mut command = if std::env::var_os("COMPILE_TIMES").is_some() {
        let mut timed = Command::new(product::root().join("scripts/processor-time"));
        timed.arg("--compiles").arg(compiler);
        timed
    } else {
        Command::new(compiler)
    };
    command.args(args);
    command
}

/// Runs a compiler unless this very output is there. `{out}` in the arguments is the output;
/// `inputs` are what it depends on (CUDA's: beside what these include). CUDA's compiler gets the
/// options of [`dialect`], but for the standard where the arguments name one; in a script, `{std}`
/// stands for these options.
pub fn cached(name: &str, compiler: &Path, args: &[String], inputs: &[&Path]) -> Result<PathBuf, String> {
    let mut hash = DefaultHasher::new();
    let is_nvcc = compiler.ends_with("nvcc");
    let is_cuda = is_nvcc || args.iter().any(|arg| arg.contains("/nvcc'"));
    let mut files: Vec<PathBuf> = inputs.iter().map(|input| input.to_path_buf()).collect();
    if is_cuda {
        compilers().hash(&mut hash);
        let mut included = BTreeSet::new();
        inputs.iter().for_each(|input| with_included(input, &mut included));
        files.extend(included);
    }
    let read = |file: &PathBuf| std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()));
    let texts: Vec<Vec<u8>> = files.iter().map(read).collect::<Result<_, _>>()?;
    texts.hash(&mut hash);
    let mut args = args.to_vec();
    if is_cuda {
        let is_standard = |option: &str| option.starts_with("-std=");
        let has_standard = args.iter().any(|arg| is_standard(arg));
        let options: Vec<&str> =
            dialect(&texts).into_iter().filter(|option| !(has_standard && is_standard(option))).collect();
        args.iter_mut().for_each(|arg| *arg = arg.replace("{std}", &options.join(" ")));
        if is_nvcc {
            args.extend(options.into_iter().map(str::to_owned));
        }
    }
    (name, compiler, &args).hash(&mut hash);
    let folder = if is_cuda { compiled() } else { cache() }.join(format!("{:016x}", hash.finish()));
    let made = once(&folder.join(name), |partial| {
        let args: Vec<String> = args.iter().map(|a| a.replace("{out}", &partial.to_string_lossy())).collect();
        let made = compiling(compiler, &args).output().map_err(|e| format!("{}: {e}", compiler.display()))?;
        if made.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        Err(format!("{} {}: {said}", compiler.display(), args.join(" ")))
    })?;
    // It is still asked for. (What cannot be marked is compiled again some day.)
    let _ = File::open(&folder).and_then(|folder| folder.set_modified(SystemTime::now()));
    Ok(made)
}

/// Makes a file unless it is there: once, whichever processes and threads ask for it at a time.
/// `make` gets the name to write to.
pub fn once(file: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    if file.exists() {
        return Ok(file.to_path_buf());
    }
    let name = file.file_name().expect("a file").to_string_lossy();
    let _held = lock(&file.with_file_name(format!("{name}.lock")))?;
    if !file.exists() {
        let partial = file.with_file_name(format!("partial.{name}"));
        make(&partial)?;
        std::fs::rename(&partial, file).map_err(|e| e.to_string())?;
    }
    Ok(file.to_path_buf())
}

/// Waits for other processes and threads that hold the lock. It is given back when the file is
/// dropped.
pub fn lock(file: &Path) -> Result<File, String> {
    let open = || {
        std::fs::create_dir_all(file.parent().expect("a file lies in a folder"))?;
        let lock = File::options().create(true).write(true).truncate(false).open(file)?;
        lock.lock()?;
        Ok(lock)
    };
    open().map_err(|error: std::io::Error| format!("{}: {error}", file.display()))
}

/// Keeps generated source under a name that says its content, so that what is compiled from it is
/// found again.
pub fn generated(name: &str, text: &str) -> PathBuf {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    let folder = cache().join(format!("{:016x}", hash.finish()));
    once(&folder.join(name), |partial| std::fs::write(partial, text).map_err(|error| error.to_string()))
        .expect("the target folder can be written")
}

/// Compiles a C program of `tests/programs` with the given extra arguments.
pub fn c_program(source: &str, extra: &[&str]) -> PathBuf {
    let file = programs().join(source);
    let stem = file.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let library = extra.contains(&"-shared");
    let name = if library { format!("lib{stem}.so") } else { stem };
    let include = format!("-I{}", programs().join("fake").display());
    let mut args: Vec<String> =
        ["-O1", "-g", "-Wall", "-pthread", "-fno-omit-frame-pointer", "-fPIC"].map(String::from).into();
    args.extend([include, "-o".into(), "{out}".into(), file.display().to_string()]);
    args.extend(extra.iter().map(|s| (*s).to_owned()));
    args.push("-ldl".into());
    let header = programs().join("fake/cuda_mini.h");
    let common = programs().join("common.h");
    cached(&name, Path::new("gcc"), &args, &[&file, &header, &common]).unwrap_or_else(|e| panic!("{e}"))
}

/// CUDA's compiler: root folder of the toolkit of `scripts/toolkit`, or of `CUDA_HOME`. The error
/// says what to do.
pub fn toolkit() -> Result<&'static Path, &'static str> {
    static TOOLKIT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = TOOLKIT.get_or_init(|| {
        if let Some(home) = std::env::var_os("CUDA_HOME").map(PathBuf::from)
            && home.join("bin/nvcc").exists()
        {
            return Ok(home);
        }
        install_toolkit()
    });
    found.as_deref().map_err(String::as_str)
}

/// Runs `scripts/toolkit`, which installs where it finds nothing: one at a time.
fn install_toolkit() -> Result<PathBuf, String> {
    let _held = lock(&cache().join("toolkit.lock"))?;
    let ran = Command::new(product::root().join("scripts/toolkit")).output().map_err(|e| e.to_string())?;
    if !ran.status.success() {
        return Err(format!("scripts/toolkit: {}", String::from_utf8_lossy(&ran.stderr)));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&ran.stdout).trim()))
}

/// The toolkit that `scripts/toolkit` installs, whatever CUDA the machine has: for tests that rest
/// on one version of the compiler's or the disassembler's output.
pub fn installed_toolkit() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| install_toolkit().unwrap_or_else(|said| panic!("{said}")))
}

/// Compiles a source with the installed toolkit's nvcc (`-cubin`, `-ptx` and the like), once for
/// each content and options. Panics with what nvcc says.
pub fn nvcc(source: &Path, options: &[&str]) -> PathBuf {
    let stem = source.file_stem().expect("a file name").to_string_lossy();
    let mut args: Vec<String> = ["-O2", "-Wno-deprecated-gpu-targets"].map(String::from).into();
    args.extend(options.iter().map(|option| (*option).to_owned()));
    args.extend(["-o".to_owned(), "{out}".to_owned(), source.display().to_string()]);
    let compiled = cached(&format!("{stem}.bin"), &installed_toolkit().join("bin/nvcc"), &args, &[source]);
    compiled.unwrap_or_else(|said| panic!("{said}"))
}

/// Compiles a CUDA program of several sources separately, and links their device code: in one go,
/// or (`library`) with all sources but the first in a static library. The runtime is the static
/// one. `gencode` says for which devices.
pub fn separate_program(file: &Path, parts: &[PathBuf], library: bool, gencode: &str) -> Result<PathBuf, String> {
    let toolkit = toolkit().map_err(str::to_owned)?;
    let nvcc = format!("'{}' -O2 -g {{std}} {gencode}", toolkit.join("bin/nvcc").display());
    let folders = [toolkit.join("lib"), toolkit.join("lib64"), product::root().join(".toolkit/lib")];
    let folders: String = folders.iter().map(|folder| format!(" -L'{}'", folder.display())).collect();
    let main = file.display();
    let parts_text: String = parts.iter().map(|part| format!(" '{}'", part.display())).collect();
    let script = if library {
        format!(
            "made='{{out}}'.parts; rm -rf \"$made\"; mkdir \"$made\"; cd \"$made\"; \
             {nvcc} -dc '{main}' -o main.o; mkdir library; (cd library; {nvcc} -dc {parts_text}; ar rc ../libparts.a *.o); \
             {nvcc} -dlink main.o libparts.a -o linked.o; \
             g++ main.o linked.o libparts.a -o '{{out}}' {folders} -lcudart_static -ldl -lrt -pthread; rm -r \"$made\""
        )
    } else {
        format!("{nvcc} -rdc=true '{main}' {parts_text} -o '{{out}}' {folders}")
    };
    let name = file.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let sources: Vec<&Path> = std::iter::once(file).chain(parts.iter().map(PathBuf::as_path)).collect();
    cached(&name, Path::new("sh"), &["-ec".into(), script], &sources)
}

/// Compiles a program of `tests/corpus/separate` as its line `link` says: how, then the other
/// sources.
pub fn corpus_separate(file: &Path, link: &str) -> Result<PathBuf, String> {
    let mut words = link.split_whitespace();
    let library = match words.next() {
        Some("separate") => false,
        Some("library") => true,
        _ => return Err(format!("{}: cannot read 'link: {link}'", file.display())),
    };
    let folder = file.parent().expect("a source lies in a folder");
    let parts: Vec<PathBuf> = words.map(|part| folder.join(part)).collect();
    separate_program(file, &parts, library, "-arch=sm_80")
}

/// Compiles a CUDA program. `cudart` is `static` or `shared`.
pub fn cuda_program(file: &Path, cudart: &str, extra: &[&str]) -> Result<PathBuf, String> {
    cuda_program_with(file, &[], cudart, extra)
}

/// A CUDA program of `tests/programs`, compiled; nothing where `STREAMSAN_NO_TOOLKIT=1` says that
/// there is no compiler.
///
/// # Panics
/// It does not compile.
pub fn cuda_program_if_possible(source: &str, cudart: &str, extra: &[&str]) -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|value| value == "1") {
        return None;
    }
    Some(cuda_program(&programs().join(source), cudart, extra).unwrap_or_else(|e| panic!("{e}")))
}

/// As [`cuda_program`], of a program that includes other files that may change.
pub fn cuda_program_with(file: &Path, included: &[&Path], cudart: &str, extra: &[&str]) -> Result<PathBuf, String> {
    let toolkit = toolkit().map_err(str::to_owned)?;
    let name = file.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let mut args: Vec<String> = ["-O2", "-g", "-arch=sm_80", "-cudart", cudart].map(String::from).into();
    for folder in [toolkit.join("lib"), toolkit.join("lib64"), product::root().join(".toolkit/lib")] {
        args.push(format!("-L{}", folder.display()));
    }
    args.extend(["-o".into(), "{out}".into(), file.display().to_string()]);
    args.extend(extra.iter().map(|s| (*s).to_owned()));
    let inputs: Vec<&Path> = [file].into_iter().chain(included.iter().copied()).collect();
    cached(&name, &toolkit.join("bin/nvcc"), &args, &inputs)
}

/// Compiles a CUDA program in two steps, with these options (`-Xcompiler=...`) for the first and
/// the others for the second.
pub fn sanitized_program(file: &Path, extra: &[&str]) -> Result<PathBuf, String> {
    let toolkit = toolkit().map_err(str::to_owned)?;
    let nvcc = format!("'{}' -O2 -g {{std}} -arch=sm_80 -cudart shared", toolkit.join("bin/nvcc").display());
    let folders = [toolkit.join("lib"), toolkit.join("lib64"), product::root().join(".toolkit/lib")];
    let folders: String = folders.iter().map(|folder| format!(" -L'{}'", folder.display())).collect();
    let (compile, link): (Vec<&str>, Vec<&str>) = extra.iter().partition(|option| option.starts_with("-Xcompiler"));
    let script = format!(
        "made='{{out}}'.o; {nvcc} {} -c '{}' -o \"$made\"; {nvcc} \"$made\" -o '{{out}}' {folders} {}",
        compile.join(" "),
        file.display(),
        link.join(" "),
    );
    let name = file.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    cached(&name, Path::new("sh"), &["-ec".into(), script], &[file, &asked_inline()])
}

/// What the assembler reads so that instrumented code asks in line.
pub fn asked_inline() -> PathBuf {
    product::root().join("include/streamsan_inline.s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_bring_what_a_program_names() {
        let [groups, atomics, half] = ["cooperative_groups.h", "cuda/atomic", "cuda_fp16.h"]
            .map(|name| format!("#include <{name}>").into_bytes());
        assert_eq!(dialect(std::slice::from_ref(&half)), ["-std=c++14"]);
        let limited = ["-std=c++14", "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"];
        assert_eq!(dialect(std::slice::from_ref(&groups)), limited);
        let without_half = ["-std=c++17", "-DCCCL_DISABLE_FP16_SUPPORT"];
        assert_eq!(dialect(std::slice::from_ref(&atomics)), without_half);
        // It may be another file that names it.
        assert_eq!(dialect(&[groups.clone(), half.clone()]), limited);
        assert_eq!(dialect(&[groups, atomics.clone()]), without_half);
        assert_eq!(dialect(&[atomics, half]), ["-std=c++17"]);
    }

    #[test]
    fn a_toolkit_that_was_installed_again_is_the_same_and_another_version_is_not() {
        let [first, again, newer] = ["first", "again", "newer"].map(|name| scratch(&format!("toolkit-{name}")));
        for (folder, stamp, day) in [(&first, ".ready-13.0", 1), (&again, ".ready-13.0", 2), (&newer, ".ready-13.1", 1)]
        {
            let file = File::create(folder.join(stamp)).expect("a stamp");
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(day * 86_400)).expect("a time");
            std::fs::create_dir(folder.join("lib")).expect("a folder");
        }
        let versions = installed_versions(&first);
        assert_eq!(versions, BTreeSet::from([".ready-13.0".into()]));
        assert_eq!(versions, installed_versions(&again));
        assert_ne!(versions, installed_versions(&newer));
    }
}
