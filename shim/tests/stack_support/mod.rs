//! What the tests of stack capture share: the probe library, compiled programs, and names for
//! addresses (by `nm`).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Directory with the probe library: built together with this test where `STREAMSAN_BIN` says that
/// everything is, else freshly.
pub fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let exe = std::env::current_exe().expect("own path");
        let profile = exe.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST");
        let examples = profile.join("examples");
        if std::env::var_os("STREAMSAN_BIN").is_none() || !examples.join("libstack_probe.so").is_file() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--package", "shim", "--example", "stack_probe", "--target-dir"]);
            cargo.arg(profile.parent().expect("target")).current_dir(env!("CARGO_MANIFEST_DIR"));
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().expect("cargo").success(), "the probe does not build");
        }
        assert!(examples.join("libstack_probe.so").is_file(), "no probe in {}", examples.display());
        examples
    })
}

/// A directory of this test's own.
pub fn scratch(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("streamsan-stack-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("create");
    directory
}

/// Compiles `programs/SOURCE` to `OUT` and gives its path.
pub fn compile(source: &str, out: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stack_programs").join(source);
    let compiler = if source.extension().is_some_and(|e| e == "c") { "cc" } else { "c++" };
    let mut command = Command::new(compiler);
    command.arg(&source).arg("-o").arg(out).args(flags).arg("-L").arg(probe());
    command.arg(format!("-Wl,-rpath,{}", probe().display())).args(["-lstack_probe", "-lpthread", "-ldl"]);
    assert!(command.status().expect("compiler").success(), "{} does not compile", source.display());
    out.to_path_buf()
}

/// Runs a program and asserts that it ended well.
pub fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("start");
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{status}\n{text}\n{}", String::from_utf8_lossy(&stderr));
    text
}

/// One capture as printed by `probe_print`.
#[derive(Default, Debug)]
pub struct Capture {
    /// (start, end, bias, path)
    pub modules: Vec<(u64, u64, u64, String)>,
    /// Return addresses.
    pub frames: Vec<u64>,
    /// The same up to Python's interpreter.
    pub cut: Vec<u64>,
    /// (code, check, offset)
    pub python: Vec<(u64, u64, u32)>,
    /// (file, name, first line) by (code, check).
    pub codes: HashMap<(u64, u64), (String, String, u32)>,
}

/// All captures in a program's output, and its other lines.
pub fn parse(output: &str) -> (Vec<Capture>, Vec<String>) {
    let (mut captures, mut other) = (Vec::new(), Vec::new());
    let mut now = Capture::default();
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    for line in output.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        match fields[..] {
            ["module", start, end, bias, path, _] => {
                now.modules.push((hex(start), hex(end), hex(bias), path.to_string()));
            }
            ["frame", address] => now.frames.push(hex(address)),
            ["cut", address] => now.cut.push(hex(address)),
            ["code", code, check, first, _, _, file, name] => {
                now.codes.insert((hex(code), hex(check)), (file.into(), name.into(), hex(first) as u32));
            }
            ["python", code, check, offset] => now.python.push((hex(code), hex(check), hex(offset) as u32)),
            ["end"] => captures.push(std::mem::take(&mut now)),
            _ => other.push(line.to_string()),
        }
    }
    (captures, other)
}

impl Capture {
    /// Names of the functions, innermost first; `?` where there is no symbol.
    pub fn names(&self) -> Vec<String> {
        self.frames.iter().map(|address| self.name(address - 1)).collect()
    }

    fn name(&self, address: u64) -> String {
        let Some((_, _, bias, path)) = self.modules.iter().rev().find(|m| m.0 <= address && address < m.1) else {
            return "?".to_string();
        };
        let address = address - bias;
        let symbols = symbols(path);
        let after = symbols.partition_point(|(at, _, _)| *at <= address);
        match after.checked_sub(1).map(|at| &symbols[at]) {
            Some((at, size, name)) if address < at + size => name.clone(),
            _ => "?".to_string(),
        }
    }

    /// Names of the functions of the program itself: those that begin with `at_`.
    pub fn own_names(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name == "main" || name.starts_with("at_")).collect()
    }

    /// Names of the Python functions, innermost first.
    pub fn python_names(&self) -> Vec<&str> {
        self.python.iter().map(|(code, check, _)| self.codes[&(*code, *check)].1.as_str()).collect()
    }
}

/// (address, size, name)
type Symbols = Arc<Vec<(u64, u64, String)>>;

/// Functions of an object file, by address, names without parameters.
fn symbols(path: &str) -> Symbols {
    static KNOWN: Mutex<BTreeMap<String, Symbols>> = Mutex::new(BTreeMap::new());
    // Held while a file is read, so that it is read once.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(known.entry(path.to_string()).or_insert_with(|| Arc::new(read_symbols(path))))
}

fn read_symbols(path: &str) -> Vec<(u64, u64, String)> {
    let mut all = Vec::new();
    for flags in [&["-S", "-C", "--defined-only"][..], &["-S", "-C", "--defined-only", "-D"]] {
        let Ok(output) = Command::new("nm").args(flags).arg(path).output() else { continue };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let fields: Vec<_> = line.splitn(4, ' ').collect();
            if let [address, size, kind, name] = fields[..]
                && "tTwWi".contains(kind)
                && let (Ok(address), Ok(size)) = (u64::from_str_radix(address, 16), u64::from_str_radix(size, 16))
            {
                let name = name.split('(').next().unwrap_or(name);
                // Parts that the compiler split off belong to their function.
                all.push((address, size, name.split('.').next().unwrap_or(name).to_string()));
            }
        }
    }
    all.sort();
    all
}
