//! `streamsan explain --json` over the kernels of the corpus: its shape is the contract's, and what
//! it says of each pointer is what `corpus/kernels.txt` says, which was written by reading the
//! sources: for the machine code of the compiled programs, for their PTX, and for machine code that
//! `ptxas` makes of that PTX for other architectures.
//!
//! The programs are those that the corpus tests compile. `STREAMSAN_NO_TOOLKIT=1` says that there
//! is no compiler, and skips.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use device_code::image::{CodeRef, EntryKind, find_in_host};
use serde_json::{Map, Value};
use tests::{build, fake, made, product, run};

/// Words of a kernel as `kernels.txt` writes them.
type Words = BTreeMap<String, String>;

/// `streamsan explain --json FILE`: kernel name to what it does, once for each architecture. Checks
/// the shape on the way.
fn explained(file: &Path) -> Result<BTreeMap<String, Words>, String> {
    let ended = run::end(run::streamsan(["explain", "--json"]).arg(file));
    if ended.status.code() != Some(0) {
        return Err(format!("{}: {}", file.display(), ended.err));
    }
    let json: Value = serde_json::from_str(&ended.out).map_err(|e| e.to_string())?;
    let mut all: BTreeMap<String, Words> = BTreeMap::new();
    let top = json.as_object().ok_or("no object")?;
    if top.keys().collect::<Vec<_>>() != ["kernels"] {
        return Err(format!("{}: keys {:?}", file.display(), top.keys()));
    }
    for kernel in json["kernels"].as_array().ok_or("kernels is no list")? {
        let kernel = kernel.as_object().ok_or("a kernel is no object")?;
        let (name, arch, words) = one(kernel).map_err(|e| format!("{}: {e} in {kernel:?}", file.display()))?;
        all.entry(arch).or_default().insert(name, words);
    }
    Ok(all)
}

/// The keys must be these, and those that explain what is not known.
fn keys(map: &Map<String, Value>, needed: &[&str], more: &[&str]) -> Result<(), String> {
    let have: BTreeSet<&str> = map.keys().map(String::as_str).collect();
    let missing = needed.iter().find(|k| !have.contains(*k));
    let extra = have.iter().find(|k| !needed.contains(k) && !more.contains(k));
    if missing.is_some() || extra.is_some() { Err(format!("missing {missing:?}, extra {extra:?}")) } else { Ok(()) }
}

fn one(kernel: &Map<String, Value>) -> Result<(String, String, String), String> {
    let text = |v: &Value| v.as_str().map(str::to_owned).ok_or_else(|| format!("{v} is no text"));
    let truth = |v: &Value| v.as_bool().ok_or_else(|| format!("{v} is no boolean"));
    keys(kernel, &["name", "arch", "params", "indirect"], &["indirect_reason", "indirect_at", "accesses"])?;
    let mut words = Vec::new();
    for p in kernel["params"].as_array().ok_or("params is no list")? {
        let p = p.as_object().ok_or("a word is no object")?;
        let more: &[&str] = if p["extent"] == "unknown" { &["reason", "at"] } else { &[] };
        keys(p, &["offset", "size", "reads", "writes", "atomic", "extent"], more)?;
        let offset = p["offset"].as_u64().ok_or("offset is no number")?;
        if p["size"] != 8 {
            return Err(format!("size {}", p["size"]));
        }
        let mut word = format!("{offset}:");
        for (key, letter) in [("reads", 'r'), ("writes", 'w'), ("atomic", 'a')] {
            word.extend(truth(&p[key])?.then_some(letter));
        }
        match p["extent"].as_str() {
            Some("affine") => {}
            Some("unknown") => word.push('?'),
            _ => return Err(format!("extent {}", p["extent"])),
        }
        words.push(word);
    }
    if truth(&kernel["indirect"])? {
        words.push("indirect".into());
    }
    Ok((text(&kernel["name"])?, text(&kernel["arch"])?, words.join(" ")))
}

/// The table: program to its kernels.
fn table() -> BTreeMap<String, Words> {
    let text = std::fs::read_to_string(product::root().join("tests/corpus/kernels.txt")).expect("the table");
    let mut all: BTreeMap<String, Words> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let mut parts = line.splitn(3, ' ');
        let (Some(program), Some(kernel), Some(words)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("kernels.txt: {line}")
        };
        all.entry(program.to_owned()).or_default().insert(kernel.to_owned(), words.to_owned());
    }
    all
}

/// The compiled program, exactly as the corpus tests make it, so that it is there already.
fn program(file: &Path) -> Result<PathBuf, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
    let link: Vec<&str> = link.iter().map(String::as_str).collect();
    let driver = tests::verdict::needed_field(file, &text, "needs").contains("driver-api");
    build::cuda_program(file, "shared", if driver { &link } else { &[] })
}

/// The PTX in a program that has kernels of its own, as text.
fn ptx_in(program: &Path) -> Result<Option<String>, String> {
    let bytes = std::fs::read(program).map_err(|e| e.to_string())?;
    for host in find_in_host(&bytes).map_err(|e| e.to_string())?.iter().filter(|h| !h.relocatable) {
        let image = host.image.as_ref().map_err(|e| e.to_string())?;
        for entry in image.entries().iter().filter(|e| e.kind == EntryKind::Ptx) {
            if let CodeRef::Ptx(text) = entry.unpack().map_err(|e| e.to_string())?
                && text.contains(".entry")
            {
                return Ok(Some(text.into_owned()));
            }
        }
    }
    Ok(None)
}

/// Gives names that several programs use a suffix, so that their modules make one.
fn renamed(ptx: &str, number: usize) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '%';
    let body = ptx.lines().filter(|l| ![".version", ".target", ".address_size"].iter().any(|d| l.starts_with(d)));
    let body: Vec<&str> = body.collect();
    // Names of the module: what a directive without indentation declares.
    let mut names = BTreeSet::new();
    for line in body.iter().filter(|l| l.starts_with('.')) {
        let line = line.split('=').next().unwrap_or_default();
        let declared = line.split(['(', '[', ';']).next().unwrap_or_default().split_whitespace().last();
        names.extend(declared.filter(|n| n.chars().all(word) && !n.starts_with('.')));
    }
    let mut out = String::new();
    for line in body {
        let mut rest = line;
        while !rest.is_empty() {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            let (this, next) = if end == 0 {
                rest.split_at(rest.chars().next().map_or(1, char::len_utf8))
            } else {
                rest.split_at(end)
            };
            out.push_str(this);
            if names.contains(this) {
                out.push_str(&format!("_{number}"));
            }
            rest = next;
        }
        out.push('\n');
    }
    out
}

#[test]
fn kernels_of_the_corpus_are_explained_rightly() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let table = table();
    let mut wrong = Vec::new();
    let mut merged = String::from(".version 9.0\n.target sm_75\n.address_size 64\n");
    let mut merged_truth = Words::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(product::root().join("tests/corpus/cuda"))
        .expect("the corpus")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "cu"))
        .collect();
    files.sort();
    let names: Vec<String> =
        files.iter().map(|f| f.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    wrong.extend(
        table.keys().filter(|p| !names.contains(p)).map(|p| format!("kernels.txt names {p}, which is not there")),
    );
    for (number, (file, name)) in files.iter().zip(&names).enumerate() {
        let program = program(file).expect("compiles");
        let Some(ptx) = ptx_in(&program).expect("the program's images are whole") else {
            wrong.extend(table.get(name).map(|_| format!("{name} has no kernels")));
            continue;
        };
        let Some(truth) = table.get(name) else {
            wrong.push(format!("kernels.txt says nothing of {name}"));
            continue;
        };
        match explained(&program) {
            Ok(all) => {
                if all.keys().collect::<Vec<_>>() != ["sm_80"] || &all["sm_80"] != truth {
                    wrong.push(format!("{name}: {all:?}\n    instead of {truth:?}"));
                }
            }
            Err(why) => wrong.push(why),
        }
        merged.push_str(&renamed(&ptx, number));
        merged_truth.extend(truth.iter().map(|(k, w)| (format!("{k}_{number}"), w.clone())));
    }
    assert!(merged_truth.len() > 100, "{}", merged_truth.len());

    // The same kernels as PTX, and compiled from it for every generation.
    let folder = build::scratch("explain");
    let text = folder.join("all.ptx");
    std::fs::write(&text, &merged).expect("scratch can be written");
    let mut check = |what: &str, file: &Path| match explained(file) {
        Ok(all) => {
            let have = all.values().next().cloned().unwrap_or_default();
            for (kernel, words) in &merged_truth {
                if have.get(kernel) != Some(words) {
                    wrong.push(format!("{what}: {kernel}: {:?} instead of {words:?}", have.get(kernel)));
                }
            }
        }
        Err(why) => wrong.push(why),
    };
    check("PTX", &text);
    let ptxas = build::toolkit().expect("CUDA's compiler").join("bin/ptxas");
    for arch in ["sm_75", "sm_86", "sm_90", "sm_100", "sm_120"] {
        let args: Vec<String> = [&format!("-arch={arch}"), "-O2", "-o", "{out}", &text.display().to_string()]
            .map(ToString::to_string)
            .into();
        let cubin = build::cached(&format!("all.{arch}.cubin"), &ptxas, &args, &[&text]).expect("ptxas takes it");
        check(arch, &cubin);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A finding names the lines inside its kernels when the code has a line table, and says nothing of
/// them when it has none.
#[test]
fn findings_name_the_lines_inside_their_kernels() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let source = product::root().join("tests/corpus/cuda/stream_pair_unordered.cu");
    let text = std::fs::read_to_string(&source).expect("the source");
    let line_of = |part: &str| text.lines().position(|l| l.contains(part)).expect("a line of the source") as u64 + 1;
    let folder = build::scratch("inside");
    for (options, known) in [(&["-lineinfo"][..], true), (&[], false)] {
        let program = build::cuda_program(&source, "shared", options).expect("compiles");
        let [json, sarif, html] = ["report.json", "report.sarif", "report.html"].map(|name| folder.join(name));
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--json"]);
        command.arg(&json).arg("--sarif").arg(&sarif).arg("--html").arg(&html);
        let ended = run::end(command.arg("--").arg(&program).env_remove("LD_LIBRARY_PATH"));
        let report = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let finding = &report["findings"][0];
        for (side, what) in [("access", "y[i] = "), ("previous", "x[i] = ")] {
            let inside = &finding[side]["inside"];
            if known {
                assert_eq!(inside["line"], line_of(what), "{finding:#}");
                assert!(inside["file"].as_str().is_some_and(|f| f.ends_with("/stream_pair_unordered.cu")), "{inside}");
                assert!(inside["source"].as_str().is_some_and(|s| s.contains(what)), "{inside}");
            } else {
                assert_eq!(*inside, Value::Null);
            }
        }
        let log: Value = serde_json::from_str(&std::fs::read_to_string(&sarif).expect("the log")).expect("JSON");
        let related = log["runs"][0]["results"][0]["relatedLocations"].as_array().expect("locations").clone();
        let ids: BTreeSet<u64> = related.iter().filter_map(|l| l["id"].as_u64()).collect();
        assert_eq!(ids.len(), related.len(), "{related:?}");
        let inside: Vec<(&Value, &Value)> = related
            .iter()
            .filter(|l| l["message"]["text"].as_str().is_some_and(|t| t.contains("in the kernel")))
            .map(|l| (&l["physicalLocation"]["region"]["startLine"], &l["logicalLocations"][0]["fullyQualifiedName"]))
            .collect();
        let lines = inside.iter().map(|i| i.0.as_u64().expect("a line")).collect::<Vec<_>>();
        let wanted = if known { vec![line_of("y[i] = "), line_of("x[i] = ")] } else { vec![] };
        assert_eq!(lines, wanted, "{related:?}");
        for (name, side) in inside.iter().map(|i| i.1).zip(["access", "previous"]) {
            assert_eq!(*name, finding[side]["kernel"]);
        }
        let page = std::fs::read_to_string(&html).expect("the page").replace([' ', '\n'], "");
        assert_eq!(page.contains(&format!("\"line\":{},", line_of("y[i] = "))), known);
        assert_eq!(ended.err.contains("in the kernel, first at stream_pair_unordered.cu:"), known, "{}", ended.err);
    }
}

#[test]
fn summaries_are_kept_where_the_user_says() {
    let folder = build::scratch("kept-summaries");
    let module = product::root().join("kernels/tests/ptx/triton-matmul_host_descriptors-1-90.ptx");
    let count = |place: &Path| std::fs::read_dir(place).map_or(0, |entries| entries.flatten().count());
    let explained = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = run::streamsan(["explain", "--json"]);
        change(command.arg(&module));
        let ended = run::end(&mut command);
        assert_eq!((ended.code(), ended.err.as_str()), (Some(0), ""));
        ended.out
    };
    let anew = explained(&|_| {});
    let kept = folder.join("named");
    for _ in 0..2 {
        assert_eq!(explained(&|c| _ = c.arg("--cache").arg(&kept)), anew);
        assert_eq!(count(&kept), 1);
    }
    // A word on the command line goes before the environment, and that before the place of the
    // desktop's standard.
    let (environment, standard) = (folder.join("environment"), folder.join("standard"));
    let places =
        |c: &mut std::process::Command| _ = c.env("XDG_CACHE_HOME", &standard).env("STREAMSAN_CACHE", &environment);
    assert_eq!(explained(&|c| places(c.arg("--cache=off"))), anew);
    assert_eq!((count(&environment), count(&standard)), (0, 0));
    assert_eq!(explained(&|c| places(c)), anew);
    assert_eq!((count(&environment), count(&standard)), (1, 0));
    assert_eq!(explained(&|c| _ = c.env("XDG_CACHE_HOME", &standard).env_remove("STREAMSAN_CACHE")), anew);
    assert_eq!((count(&environment), count(&standard.join("streamsan"))), (1, 1));
    // A place that is none is no error.
    assert_eq!(explained(&|c| _ = c.arg("--cache=/dev/null/below")), anew);

    // A launch in a trace, by the same kernel of the same file.
    let trace = folder.join("launches.trace");
    made::write(&trace, &made::launches(&module.to_string_lossy(), "matmul_host_descriptors"));
    let checked = |cache: &Path| {
        let json = folder.join("report.json");
        // A trace's code is read where the user says that it lies.
        let mut command = run::streamsan(["check", "--symbol-path", "kernels/tests/ptx", "--json"]);
        let ended = run::end(command.current_dir(product::root()).arg(&json).arg("--cache").arg(cache).arg(&trace));
        (ended.code(), std::fs::read_to_string(&json).expect("written"))
    };
    let anew = checked(Path::new("off"));
    let kept = folder.join("checked");
    for _ in 0..2 {
        assert_eq!(checked(&kept), anew);
        // The kernel, and what its launches were evaluated to.
        assert_eq!(count(&kept), 2);
    }
}

#[test]
fn a_kind_of_finding_is_explained_unless_a_file_has_its_name() {
    let explain = |word: &str, folder: &Path| run::end(run::streamsan(["explain", word]).current_dir(folder));
    let folder = build::scratch("explain_kind");
    let ended = explain("write-after-read", &folder);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.out.starts_with("# write-after-read\n") && ended.out.contains("## Mend it"), "{}", ended.out);
    let ended = explain("write-after-reed", &folder);
    assert!(ended.code() == Some(2) && ended.err.contains("write-after-reed"), "{}", ended.err);
    assert!(ended.err.contains("Did you mean 'write-after-read'? The kinds are read-after-write, "), "{}", ended.err);
    assert!(explain("WRITE-AFTER-READ", &folder).out.starts_with("# write-after-read\n"));
    let file = explain("nosuch.trace", &folder);
    assert!(file.code() == Some(2) && !file.err.contains("kind"), "{}", file.err);
    std::fs::write(folder.join("write-after-read"), "no code").expect("written");
    let ended = explain("write-after-read", &folder);
    assert!(ended.code() == Some(2) && !ended.out.contains("Mend"), "{}", ended.out);
}

/// A recursion with many calls is not followed into each of its copies, which would take minutes.
#[test]
fn a_recursion_with_many_calls_is_explained() {
    let Some(program) = build::cuda_program_if_possible("sim/deep_recursion.cu", "static", &["-w"]) else { return };
    let ended = run::end(run::streamsan(["explain", "--cache=off"]).arg(&program));
    assert!(!ended.hung && ended.code() == Some(0), "{}", ended.err);
    assert!(ended.out.contains("segments"), "{}", ended.out);
    let mut checked = run::streamsan(["run", "--sim", "--"]);
    let ended = run::end(checked.arg(&program).env_remove("LD_LIBRARY_PATH"));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "1023\n"), "{}", ended.err);
}
