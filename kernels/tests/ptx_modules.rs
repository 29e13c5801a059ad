//! PTX that Triton and Numba made of our own kernels (`tests/programs/ptx`, by `cargo xtask
//! ptx-census`; debug information cut off). All of it parses, nothing in it is taken to touch
//! anything, and each kernel does through its pointers what `ptx/words.txt` says.
//!
//! Each line of that file has a file, a kernel, then `offset:` with r(eads), w(rites), a(tomic),
//! and `?` when the number of bytes is not known; `indirect:` when addresses come from no
//! parameter. The file was checked by reading the sources. `PTX_WORDS=print` prints what is found,
//! to update it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use device_code::ptx::parse;
use kernels::ir::{Addr, Op, Reason};
use kernels::{Summary, WordExtent, lower_ptx};

fn words(summary: &Summary) -> String {
    let mut out = String::new();
    for w in summary.words() {
        let _ = write!(out, " {}:", w.offset);
        for (is, letter) in [(w.reads, 'r'), (w.writes, 'w'), (w.atomic, 'a')] {
            out.extend(is.then_some(letter));
        }
        if w.extent == WordExtent::Unknown {
            out.push('?');
        }
    }
    let i = summary.indirect();
    if i.any() {
        out.push_str(" indirect:");
        for (is, letter) in [(i.reads, 'r'), (i.writes, 'w'), (i.atomic, 'a')] {
            out.extend(is.then_some(letter));
        }
    }
    out
}

#[test]
fn kernels_of_triton_and_numba_do_what_their_sources_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let entries = std::fs::read_dir(&folder).expect("the folder").filter_map(|e| Some(e.ok()?.path()));
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "ptx")).collect();
    files.sort();
    let mut found = String::new();
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(file).expect("a text");
        let module = parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        for kernel in lower_ptx::kernel_names(&module) {
            let function = lower_ptx::lower(&module, kernel).unwrap_or_else(|e| panic!("{name}: {kernel}: {e}"));
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                let anything = match &inst.op {
                    Op::ClobberAll => true,
                    Op::Mem(m) => matches!(m.addr, Addr::Unknown(why) if why != Reason::Local),
                    _ => false,
                };
                let line = text.lines().nth(inst.at as usize - 1).unwrap_or_default();
                assert!(!anything, "{name}: line {} may touch anything: {line}", inst.at);
            }
            let _ = writeln!(found, "{name} {kernel}{}", words(&Summary::new(&function)));
        }
    }
    if std::env::var_os("PTX_WORDS").is_some_and(|v| v == "print") {
        print!("{found}");
    }
    let wanted = std::fs::read_to_string(folder.join("words.txt")).expect("words.txt");
    let wanted: Vec<&str> = wanted.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), wanted);
    assert!(files.len() > 15);
}
