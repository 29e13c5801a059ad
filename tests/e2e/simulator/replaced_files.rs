//! Programs whose files are replaced while they run, by a build say: their code is read all the
//! same, and where it cannot be, the run is not green.

use std::path::{Path, PathBuf};

use tests::{build, run};

fn compiled(extra: &[&str]) -> Option<PathBuf> {
    build::cuda_program_if_possible("sim/replaced.cu", "shared", extra)
}

/// Where the code is, when its file is replaced, and the ways in which it is: all of the racy
/// program, the last one of the ordered program as well.
const CASES: [(&str, &str, &[&str]); 5] = [
    ("self", "early", &["keep", "delete", "rename", "write", "link", "other"]),
    ("self", "late", &["delete", "other"]),
    ("library", "early", &["rename", "link", "delete"]),
    ("library", "late", &["other"]),
    ("module", "early", &["keep", "link", "delete"]),
];

/// Runs a copy of the program; `library`: its kernels are in a copy of that.
fn end(folder: &Path, program: &Path, library: Option<&Path>, options: &[&str], words: &[&str]) -> run::Ended {
    let (copy, of_library) = (folder.join("program"), folder.join("library.so"));
    for (from, to) in [(Some(program), &copy), (library, &of_library)] {
        let _ = std::fs::remove_file(to);
        from.map(|from| std::fs::copy(from, to).expect("copied"));
    }
    std::fs::write(folder.join("decoy"), "no code").expect("writable");
    let mut command = run::streamsan([&["run", "--sim"], options].concat());
    command.arg("--").arg(&copy);
    if library.is_some() {
        command.arg(&of_library);
    }
    run::end(command.args(words).env_remove("LD_LIBRARY_PATH").current_dir(folder))
}

#[test]
fn code_is_read_from_files_that_were_replaced() {
    let Some(program) = compiled(&["-ldl"]) else { return };
    let library = compiled(&["-shared", "-Xcompiler", "-fPIC", "-ldl"]).expect("as the program");
    let folder = build::scratch("replaced");
    for (place, when, ways) in CASES {
        let rests = ways.iter().map(|way| (way, "racy", 66));
        for (way, rest, code) in rests.chain(ways.last().map(|way| (way, "ordered", 0))) {
            let (library, name) = match place {
                "library" => (Some(&*library), &[][..]),
                name => (None, &[name][..]),
            };
            let ended = end(&folder, &program, library, &[], &[name, &[*way, when, rest]].concat());
            let what = format!("{place} {way} {when} {rest}: {}", ended.err);
            assert_eq!(ended.out, "done\n", "{what}");
            // The analyzer may have come too late to a file that went away in the middle.
            let is_named = ended.err.contains("ERROR: not checked: kernels of ");
            if when == "late" && ended.code() == Some(70) && is_named {
                continue;
            }
            assert_eq!(ended.code(), Some(code), "{what}");
            assert!(rest != "racy" || ended.err.contains("1 certain"), "{what}");
            // Its functions have names, or the report says why not.
            let has_names = ended.err.contains("  work  ");
            let file = if library.is_some() { "library.so" } else { "program" };
            let is_said = ended.err.contains("names of functions in ") && ended.err.contains(file);
            let may_miss = library.is_some() && when == "early" && *way != "keep";
            assert!(rest != "racy" || has_names || may_miss && is_said, "{what}");
            assert!(has_names != is_said || rest == "ordered", "{what}");
        }
    }
}

#[test]
fn code_that_does_not_fit_into_the_ring_is_named() {
    let Some(program) = compiled(&["-ldl"]) else { return };
    let folder = build::scratch("replaced-large");
    for (place, way) in [("memory", "keep"), ("large", "keep"), ("large", "delete"), ("large", "other")] {
        for (rest, code) in [("racy", 66), ("ordered", 0)] {
            let words = [place, way, "early", rest];
            let fits = end(&folder, &program, None, &[], &words);
            assert_eq!(fits.code(), Some(code), "{words:?}: {}", fits.err);
            let lost = end(&folder, &program, None, &["--ring-mib", "1"], &words);
            // The simulated GPU measures what kernels touch whose code is not known.
            let code = Some(code).filter(|code| *code != 0).unwrap_or(70);
            assert_eq!((lost.code(), lost.out.as_str()), (Some(code), "done\n"), "{words:?}: {}", lost.err);
            let named = "ERROR: lost, and not checked: Image larger than half the ring (raise ring-mib): 1";
            assert!(lost.err.contains(named), "{words:?}: {}", lost.err);
        }
    }
}

#[test]
fn a_trace_holds_the_code_of_files_that_were_replaced() {
    let Some(program) = compiled(&["-ldl"]) else { return };
    let folder = build::scratch("replaced-trace");
    for (way, when) in [("delete", "early"), ("other", "late")] {
        let trace = folder.join("t.trace");
        let options = ["-o", trace.to_str().expect("UTF-8")];
        let ended = end(&folder, &program, None, &options, &["self", way, when, "racy"]);
        if when == "late" && ended.code() == Some(70) {
            continue;
        }
        assert_eq!(ended.code(), Some(66), "{way}: {}", ended.err);
        let checked = run::end(run::streamsan(["check"]).arg(&trace));
        assert_eq!(checked.code(), Some(66), "{way} {when}: {}", checked.err);
        assert!(checked.err.contains("1 certain"), "{way} {when}: {}", checked.err);
    }
}
