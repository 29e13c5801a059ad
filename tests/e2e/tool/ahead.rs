//! Threads that analyse kernels and launches before their turn change nothing: neither what is
//! found, nor what is kept for later runs, whether there are none of them, one or eight. An
//! analysis that is held back for a program that uses all cores loses nothing.

use std::collections::BTreeMap;
use std::path::Path;

use tests::{build, fake, run};

/// The entries of a cache's folder. (What was being written when the process ended is none.)
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_entry = |entry: &std::fs::DirEntry| entry.path().extension().is_none_or(|ending| ending != "tmp");
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().filter(is_entry);
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file"))
    };
    entries.map(read).collect()
}

#[test]
fn nothing_that_is_found_or_kept_depends_on_who_was_faster() {
    let Some(program) = build::cuda_program_if_possible("sim/many_launches.cu", "shared", &[]) else { return };
    let folder = build::scratch("ahead");
    for (word, code) in [("racy", 66), ("fixed", 0)] {
        let trace = folder.join(format!("{word}.trace"));
        let mut command = run::streamsan(["record", "--sim", "-o"]);
        let ended = run::end(command.arg(&trace).arg("--").arg(&program).arg(word).env_remove("LD_LIBRARY_PATH"));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
        let json = folder.join("report.json");
        let checked = |threads: u32, cache: &Path| {
            let mut command = run::streamsan(["check", "--pedantic", "--json"]);
            command.arg(&json).arg("--cache").arg(cache).arg(&trace);
            let ended = run::end(command.env("STREAMSAN_AHEAD", threads.to_string()));
            assert_eq!(ended.code(), Some(code), "{word}, {threads}: {}", ended.err);
            (ended.err, std::fs::read_to_string(&json).expect("written"))
        };
        let alone = folder.join(format!("{word}-0"));
        let expected = checked(0, &alone);
        let kept = content(&alone);
        assert!(kept.len() >= 5, "{:?}", kept.keys());
        for (turn, threads) in [1, 8, 2].into_iter().enumerate() {
            let cache = folder.join(format!("{word}-{}", turn + 1));
            assert_eq!(checked(threads, &cache), expected, "{word}, {threads}");
            let (found, names) =
                (content(&cache), |of: &BTreeMap<String, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>());
            assert_eq!(names(&found), names(&kept), "{word}, {threads}");
            let differ = found.iter().filter(|(name, bytes)| kept.get(*name) != Some(bytes)).map(|(name, _)| name);
            assert_eq!(differ.collect::<Vec<_>>(), Vec::<&String>::new(), "{word}, {threads}");
            // With what is kept, too.
            assert_eq!(checked(threads, &cache), expected, "{word}, {threads}, kernels kept");
        }
        for threads in [0, 8] {
            let mut command = run::streamsan(["run", "--sim", "--cache=off", "--"]);
            command.arg(&program).arg(word).env("STREAMSAN_AHEAD", threads.to_string());
            let ended = run::end(command.env_remove("LD_LIBRARY_PATH"));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{}", ended.err);
        }
    }
}

#[test]
fn a_program_that_uses_all_cores_is_analysed_to_its_end() {
    let program = build::c_program("all_cores.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda", "-lpthread"]);
    for (word, code, found) in [("racy", 66, "1 finding (1 certain"), ("fixed", 0, "0 findings")] {
        let ended = run::end(run::streamsan(["run", "--"]).arg(&program).arg(word));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{word}: {}", ended.err);
        assert!(ended.err.contains(found) && ended.err.contains("20000 copies and fills"), "{word}: {}", ended.err);
    }
}
