//! The shim and the command load where old C libraries are: nothing in them needs a function that
//! glibc 2.17 lacks.
//!
//! The build of the tests links with this machine's C library, which gives functions of old the
//! versions of today. What decides is whether a function *has* an older version;
//! `scripts/build --portable` then links with that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use tests::product;

/// The oldest C library that is promised.
const FLOOR: (u32, u32) = (2, 17);

/// What was a macro or inline function of the headers before it was a symbol: every older
/// libc_nonshared.a has it.
const ALWAYS_LINKABLE: &[&str] =
    &["stat", "fstat", "lstat", "fstatat", "stat64", "fstat64", "lstat64", "fstatat64", "mknod", "atexit"];

struct Symbol {
    name: String,
    version: Option<(u32, u32)>,
    weak: bool,
    defined: bool,
}

/// The dynamic symbols of a library that are the C library's.
fn symbols(path: &Path) -> Vec<Symbol> {
    let out = Command::new("objdump").arg("-T").arg(path).output().expect("objdump");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let parse = |line: &str| {
        let (_, rest) = line.split_once("GLIBC_")?;
        let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = number.split('.').filter_map(|part| part.parse().ok());
        Some((parts.next()?, parts.next()?))
    };
    let symbol = |line: &str| {
        let flags = line.get(17..24)?;
        Some(Symbol {
            name: line.split_whitespace().last()?.to_string(),
            version: parse(line),
            weak: flags.contains('w'),
            defined: !line.contains("*UND*"),
        })
    };
    text.lines().filter(|line| line.starts_with("0")).filter_map(symbol).collect()
}

#[test]
fn the_product_needs_no_function_younger_than_the_promised_c_library() {
    let libc: Vec<&str> =
        vec!["libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "ld-linux-x86-64.so.2"];
    let folder = ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"]
        .into_iter()
        .map(Path::new)
        .find(|f| f.join("libc.so.6").exists());
    let folder = folder.expect("a C library");
    let mut oldest: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for library in libc.iter().map(|name| folder.join(name)).filter(|path| path.exists()) {
        for symbol in symbols(&library).into_iter().filter(|s| s.defined) {
            let Some(version) = symbol.version else { continue };
            let known = oldest.entry(symbol.name).or_insert(version);
            *known = version.min(*known);
        }
    }
    assert!(oldest["memcpy"] <= (2, 14) && oldest["memfd_create"] == (2, 27), "the library tells its versions");
    let product =
        ["streamsan", "libstreamsan.so", "libstreamsan_threads.so", "libstreamsan_host.so", "libstreamsan_mpi.so"];
    for name in product {
        let needed = symbols(&product::bin().join(name));
        assert!(needed.iter().any(|s| !s.defined && ["memcpy", "dlsym"].contains(&&*s.name)), "{name}");
        let young: BTreeSet<&str> = needed
            .iter()
            .filter(|s| !s.defined && !s.weak && s.version.is_some_and(|v| v > FLOOR))
            .filter(|s| oldest.get(&s.name).is_none_or(|v| *v > FLOOR))
            .map(|s| s.name.as_str())
            .filter(|symbol| !ALWAYS_LINKABLE.contains(symbol))
            .collect();
        assert!(
            young.is_empty(),
            "{name} needs {young:?}: call by number (libc::syscall), or look it up when it is there"
        );
    }
}
