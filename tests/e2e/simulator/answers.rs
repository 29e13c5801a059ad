//! `gpu/answers` on the simulated GPU: driver and runtime must answer what those of a real GPU
//! answered (`answers.h200.txt`), question by question: errors of wrong arguments, attributes, what
//! a capture allows, what stays broken after a fault.
//!
//! Where the simulator answers something else stands, with the reason, in `answers_differ.txt`; a
//! question there that is answered alike fails. Needs CUDA's compiler (`scripts/toolkit`).
//! `STREAMSAN_NO_TOOLKIT=1` says that there is none, and skips it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tests::{build, fake, product, run};

/// Questions and answers by section; whether more was asked than answered.
type Sections = BTreeMap<String, (Vec<(String, String)>, bool)>;

fn read(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut now = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            now = name.trim_end_matches(']').to_owned();
            sections.insert(now.clone(), (Vec::new(), false));
            continue;
        }
        let section = sections.get_mut(&now).expect("a section comes first");
        let line = line.trim();
        if line == "(more was asked)" {
            section.1 = true;
        } else if let Some((question, answer)) = line.rsplit_once(": ") {
            section.0.push((question.to_owned(), answer.to_owned()));
        } else {
            section.0.push((line.to_owned(), String::new()));
        }
    }
    sections
}

fn answered_here(folder: &Path) -> Sections {
    let toolkit = build::toolkit().unwrap_or_else(|e| panic!("{e}"));
    let source = folder.join("answers.cu");
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("tests/gpu/programs/answers")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "h" || e == "cu"))
        .collect();
    inputs.sort();
    // The device that was asked is of this kind.
    let mut args: Vec<String> = ["-O2", "-arch=sm_90", "-cudart", "shared"].map(String::from).into();
    for library in
        [toolkit.join("lib"), toolkit.join("lib64"), product::root().join(".toolkit/lib"), fake::folder().to_path_buf()]
    {
        args.push(format!("-L{}", library.display()));
    }
    args.extend(["-o".into(), "{out}".into(), source.display().to_string(), "-lcuda".into()]);
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let program = build::cached("answers", &toolkit.join("bin/nvcc"), &args, &inputs).unwrap_or_else(|e| panic!("{e}"));
    let libraries = build::scratch("answers-libraries");
    for (name, built) in [("libcuda.so.1", "libstreamsan_sim.so"), ("libcudart.so.13", "libstreamsan_sim_cudart.so")] {
        std::os::unix::fs::symlink(product::bin().join(built), libraries.join(name)).expect("a link");
    }
    let ended = run::end(run::command(&program).env("LD_LIBRARY_PATH", libraries).env("STREAMSAN_SIM", "arch=90"));
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", ended.out, ended.err);
    read(&ended.out)
}

#[test]
fn the_simulated_gpu_answers_as_a_real_one() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let folder = product::root().join("tests/gpu/programs/answers");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (there, here) = (read(&text("answers.h200.txt")), answered_here(&folder));
    let listed = text("answers_differ.txt");
    let excuses: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.rsplit_once(" -- ").unwrap_or_else(|| panic!("'{line}' has no reason")).0)
        .collect();
    let (mut wrong, mut used, mut compared) = (Vec::new(), BTreeSet::new(), 0);
    assert!(there.keys().eq(here.keys()), "other sections: {:?} {:?}", there.keys(), here.keys());
    for (section, (wanted, more)) in &there {
        let got = &here[section].0;
        let counts_fit = if *more { got.len() >= wanted.len() } else { got.len() == wanted.len() };
        if !counts_fit {
            wrong.push(format!("[{section}] {} answers instead of {}", got.len(), wanted.len()));
        }
        for ((question, answer), (asked, said)) in wanted.iter().zip(got) {
            compared += 1;
            // What has only been made ready for a question is named by its outcome here or there
            // alone.
            assert_eq!(question, asked, "[{section}] another question");
            if answer == said {
                continue;
            }
            let key = format!("{section}: {question}");
            match excuses.get(key.as_str()) {
                Some(known) => drop(used.insert(*known)),
                None => wrong.push(format!("{key}: {said} instead of {answer}")),
            }
        }
    }
    assert!(compared > 1000, "only {compared} answers compared");
    wrong.extend(excuses.difference(&used).map(|key| format!("{key}: alike now, take it off answers_differ.txt")));
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}
