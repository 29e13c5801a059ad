//! Finds CUDA's headers and runs the C compiler over them. Contains no checks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The headers of one CUDA version.
pub struct Headers {
    /// The folder that holds `cuda.h`.
    pub include: PathBuf,
    /// `CUDA_VERSION`: 13050 is 13.5.
    pub version: u32,
}

/// All headers on this machine, oldest first: the toolkit's (`scripts/toolkit`) and those that
/// `cargo xtask cuda-headers` fetched. Empty, with a word on stderr, where there are none; a
/// failure in CI.
pub fn headers() -> Vec<Headers> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    let mut found = Vec::new();
    for folder in children(&root.join(".toolkit/venv/lib")) {
        found.push(folder.join("site-packages/nvidia/cu13/include"));
    }
    found.extend(children(&root.join(".cache/cuda-headers")));
    let mut headers: Vec<Headers> = found.into_iter().filter_map(open).collect();
    headers.sort_by_key(|h| h.version);
    headers.dedup_by_key(|h| h.version);
    if headers.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "no CUDA headers: run scripts/toolkit before the tests");
        eprintln!("SKIPPED: no CUDA headers on this machine; scripts/toolkit installs them");
    }
    headers
}

fn children(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn open(include: PathBuf) -> Option<Headers> {
    let text = std::fs::read_to_string(include.join("cuda.h")).ok()?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("#define CUDA_VERSION"))?;
    Some(Headers { version: line.trim().parse().ok()?, include })
}

impl Headers {
    /// The preprocessed text of one header, every ABI version of every function declared.
    pub fn preprocess(&self, header: &str) -> String {
        let output = Command::new("gcc")
            .args(["-E", "-P", "-xc", "-D__CUDA_API_VERSION_INTERNAL", "-D__attribute__(x)="])
            .arg(format!("-I{}", self.include.display()))
            .arg(self.include.join(header))
            .output()
            .expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("headers are text")
    }

    /// Compiles `lines` as C after the headers and returns, for each line with an error, its index
    /// and the message.
    pub fn check(&self, headers: &[&str], lines: &[String]) -> Vec<(usize, String)> {
        let mut program = String::from("#include <stddef.h>\n");
        for header in headers {
            program.push_str(&format!("#include <{header}>\n"));
        }
        let first = program.lines().count() + 1;
        program.push_str(&lines.join("\n"));
        program.push('\n');
        // Tests run at the same time: each program is a file of its own.
        static PROGRAMS: AtomicU32 = AtomicU32::new(0);
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("check-{}-{number}.c", std::process::id()));
        std::fs::write(&path, program).expect("the scratch folder is writable");
        let output = Command::new("gcc")
            .args(["-fsyntax-only", "-w", "-std=gnu11", "-D__CUDA_API_VERSION_INTERNAL"])
            .arg(format!("-I{}", self.include.display()))
            .arg(&path)
            .env("LC_ALL", "C")
            .output()
            .expect("gcc runs");
        let _ = std::fs::remove_file(&path);
        let prefix = format!("{}:", path.display());
        let errors = String::from_utf8_lossy(&output.stderr);
        let mut found = Vec::new();
        for line in errors.lines().filter(|line| line.contains("error:")) {
            let rest = line.strip_prefix(&prefix).unwrap_or_else(|| panic!("outside of the checks: {line}"));
            let number: usize = rest.split(':').next().and_then(|n| n.parse().ok()).expect("gcc names the line");
            found.push((number - first, line.split("error: ").nth(1).unwrap_or("").to_owned()));
        }
        found
    }
}

/// A C prototype: name, parameter types; types in Rust's spelling.
pub struct Prototype {
    pub name: String,
    pub parameters: Vec<String>,
}

/// All functions in preprocessed text whose result is `result` and whose name begins with `prefix`.
pub fn prototypes(text: &str, result: &str, prefix: &str) -> Vec<Prototype> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&format!("{result} {prefix}")) {
        let rest = &text[at + result.len() + 1..];
        let Some(open) = rest.find('(') else { continue };
        let name = rest[..open].trim();
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let mut depth = 0;
        let mut parameters = vec![String::new()];
        for c in rest[open..].chars() {
            match c {
                '(' if depth == 0 => {}
                ',' if depth == 1 => {
                    parameters.push(String::new());
                    continue;
                }
                ')' if depth == 1 => break,
                _ => parameters.last_mut().expect("never empty").push(c),
            }
            depth += i32::from(c == '(') - i32::from(c == ')');
        }
        if parameters.len() == 1 && matches!(parameters[0].trim(), "" | "void") {
            parameters.clear();
        }
        let parameters = parameters.iter().map(|parameter| rust_type(parameter)).collect();
        found.push(Prototype { name: name.to_owned(), parameters });
    }
    found
}

/// `const CUgraphNode *from` -> `*const CUgraphNode`.
fn rust_type(parameter: &str) -> String {
    let mut text = parameter.trim().to_owned();
    let mut pointers = 0;
    if let Some(bracket) = text.find('[') {
        text.truncate(bracket);
        pointers += 1;
    }
    pointers += text.matches('*').count();
    let text = text.replace('*', " ");
    let mut words: Vec<&str> = text.split_whitespace().filter(|w| !matches!(*w, "struct" | "enum")).collect();
    words.pop(); // The parameter's name: CUDA's headers name them all.
    let constant = words.first() == Some(&"const");
    words.retain(|w| *w != "const");
    let base = words.join(" ");
    let base = match base.as_str() {
        "int" => "c_int",
        "unsigned int" | "unsigned" => "c_uint",
        "unsigned long long" | "cuuint64_t" => "u64",
        "cuuint32_t" => "u32",
        "size_t" => "usize",
        "char" => "c_char",
        "unsigned char" => "u8",
        "unsigned short" => "u16",
        "float" => "f32",
        "void" => "c_void",
        other => other,
    };
    let mut spelling = base.to_owned();
    for level in 0..pointers {
        spelling = format!("{}{spelling}", if level == 0 && constant { "*const " } else { "*mut " });
    }
    spelling
}
