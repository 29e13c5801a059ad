//! The driver without a GPU: `tests/programs/fake/driver.c` with one trampoline for each symbol of
//! the table of `cuda-sys`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cuda_sys::DRIVER_FUNCTIONS;

use crate::{build, product};

/// The folder that holds `libcuda.so.1` (and `libcuda.so` to link with), for `LD_LIBRARY_PATH` and
/// `-L`.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| make(None))
}

/// As [`folder`], of a driver whose symbols all have the version `FAKE_1`, for `dlvsym`.
pub fn versioned_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| make(Some("FAKE_1 { global: cu*; local: *; };\n")))
}

/// A symbol's name without the suffix that changes the meaning of stream 0 alone.
fn plain(name: &str) -> &str {
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

fn make(versions: Option<&str>) -> PathBuf {
    let source = build::programs().join("fake/driver.c");
    let header = build::programs().join("fake/cuda_mini.h");
    let declared = std::fs::read_to_string(&header).expect("cuda_mini.h");
    // Each test is a process of its own, and most come by here.
    let implemented: BTreeSet<&str> =
        declared.split("X(").skip(1).filter_map(|rest| rest.split_once(", ")).map(|found| found.0).collect();
    let has = |name: &str| implemented.contains(name);
    let (mut code, mut names, mut table, mut real) = (String::new(), String::new(), String::new(), String::new());
    for (index, function) in DRIVER_FUNCTIONS.iter().enumerate() {
        let name = function.name;
        let body = if has(plain(name)) { format!("fake_{}", plain(name)) } else { "fake_unsupported".to_owned() };
        let counts_and_jumps = if product::is_aarch64() {
            format!(
                "hint #34\n adrp x16, fake_counters\n ldr x16, [x16, :lo12:fake_counters]\n mov x17, {}\n add x16, x16, x17\n\
                 2: ldxr x17, [x16]\n add x17, x17, 1\n stxr w15, x17, [x16]\n cbnz w15, 2b\n\
                 adrp x16, fake_answered\n ldr w16, [x16, :lo12:fake_answered]\n mov w17, {index}\n cmp w16, w17\n\
                 b.ne 3f\n b fake_given\n 3: b {body}",
                index * 8
            )
        } else {
            format!(
                "mov fake_counters(%rip),%r11\n lock incq {}(%r11)\n cmpl ${index},fake_answered(%rip)\n je fake_given\n jmp {body}",
                index * 8
            )
        };
        let _ = writeln!(
            code,
            ".globl {name}\n.type {name},%function\n{name}:\n {counts_and_jumps}\n.size {name},.-{name}"
        );
        let _ = writeln!(names, "\"{name}\",");
        let _ = writeln!(real, "{},", u8::from(has(plain(name))));
        let _ = writeln!(table, ".quad {name}");
    }
    let assembly = format!(
        ".text\n.balign 16\n{code}\n.section .data.rel,\"aw\"\n.balign 8\n.globl fake_symbols\n.hidden fake_symbols\nfake_symbols:\n\
         {table}\n.section .note.GNU-stack,\"\",%progbits\n"
    );
    let count = DRIVER_FUNCTIONS.len();
    let list = format!(
        "__attribute__((visibility(\"hidden\"))) const char *const fake_names[] = {{{names}}};\n\
         __attribute__((visibility(\"hidden\"))) const unsigned fake_count = {count};\n\
         __attribute__((visibility(\"hidden\"))) const char fake_implemented[] = {{{real}}};\n"
    );
    let symbols = build::generated("symbols.S", &assembly);
    let list = build::generated("names.c", &list);
    // -Bsymbolic: the driver's own table holds its own symbols, whatever is preloaded.
    let mut args: Vec<String> =
        ["-O1", "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-o", "{out}"]
            .map(String::from)
            .into();
    args.push(format!("-I{}", build::programs().join("fake").display()));
    args.extend([&source, &list, &symbols].map(|file| file.display().to_string()));
    if product::is_aarch64() {
        // As a driver that guards its code: jumps into it land on `bti` instructions or fault. What
        // C libraries add at the start of a library has none.
        args.extend(["-mbranch-protection=standard", "-nostartfiles", "-Wl,-z,force-bti"].map(String::from));
    }
    if let Some(versions) = versions {
        args.push(format!("-Wl,--version-script={}", build::generated("versions.map", versions).display()));
    }
    let library = build::cached("libcuda.so.1", Path::new("gcc"), &args, &[&source, &header, &symbols, &list])
        .unwrap_or_else(|e| panic!("the fake driver does not compile: {e}"));
    let folder = library.parent().expect("the library lies in a folder").to_path_buf();
    let _ = std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so"));
    folder
}

/// What a program called, from the file that `FAKE_CUDA_LOG` named: symbol and count.
pub fn calls(log: &Path) -> BTreeMap<&'static str, u64> {
    let bytes = std::fs::read(log).unwrap_or_default();
    let counters = bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("8 bytes")));
    DRIVER_FUNCTIONS.iter().zip(counters).filter(|(_, n)| *n > 0).map(|(f, n)| (f.name, n)).collect()
}
