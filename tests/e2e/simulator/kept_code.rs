//! Compiled code on disk: a second run takes it from there and computes the same; what is damaged,
//! foreign or not to be trusted is not executed; and where nothing can be kept programs run as
//! ever.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::{build, product, run};

fn program() -> Option<PathBuf> {
    // Elsewhere nothing is compiled.
    if product::is_aarch64() {
        return None;
    }
    build::cuda_program_if_possible("sim/kept_code.cu", "shared", &[])
}

/// A folder that is not there yet.
fn folder(name: &str) -> PathBuf {
    let folder = build::scratch(&format!("kept-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("entry").path()).collect()
}

/// A run on the simulator: what came out, and how many pieces of code were compiled and found.
struct Ran {
    ended: run::Ended,
    compiled: usize,
    kept: usize,
    /// Where code was.
    addresses: BTreeSet<String>,
}

fn command(program: &Path, cache: &Path, argument: &str) -> Command {
    let libraries = product::bin().join("sim");
    let mut command = run::command(program);
    command.env("LD_LIBRARY_PATH", &libraries).env("STREAMSAN_CACHE", cache).env("STREAMSAN_SIM_PERF", "1");
    command.env_remove("STREAMSAN_SIM").args((!argument.is_empty()).then_some(argument));
    command
}

fn ran(ended: run::Ended) -> Ran {
    let process = ended.err.lines().find_map(|line| line.strip_prefix("process "));
    let map = PathBuf::from(format!("/tmp/perf-{}.map", process.unwrap_or_else(|| panic!("{}", ended.err))));
    let names = std::fs::read_to_string(&map).unwrap_or_default();
    let _ = std::fs::remove_file(&map);
    let kept = names.lines().filter(|line| line.ends_with(" kept")).count();
    let addresses = names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    Ran { compiled: names.lines().count() - kept, kept, addresses, ended }
}

fn run_with(program: &Path, cache: &Path, change: impl FnOnce(&mut Command)) -> Ran {
    let mut command = command(program, cache, "");
    change(&mut command);
    ran(run::end(&mut command))
}

fn runs(program: &Path, cache: &Path) -> Ran {
    run_with(program, cache, |_| {})
}

impl Ran {
    /// The right output, and nothing else said.
    fn is_right(&self, out: &str) -> &Self {
        assert_eq!((self.ended.code(), self.ended.out.as_str()), (Some(0), out), "{}", self.ended.err);
        assert_eq!(self.ended.err.lines().count(), 1, "{}", self.ended.err);
        self
    }

    fn all_compiled(&self) -> &Self {
        assert!(self.compiled > 0 && self.kept == 0, "{} compiled, {} kept", self.compiled, self.kept);
        self
    }

    fn all_kept(&self) -> &Self {
        assert!(self.compiled == 0 && self.kept > 0, "{} compiled, {} kept", self.compiled, self.kept);
        self
    }
}

/// What the interpreter prints.
fn interpreted(program: &Path) -> String {
    let ran = run_with(program, Path::new("off"), |command| _ = command.env("STREAMSAN_SIM", "compile=off"));
    assert_eq!((ran.compiled, ran.kept), (0, 0));
    ran.ended.out
}

/// Runs until nothing new is compiled: when lanes part is a matter of chance.
fn settled(program: &Path, cache: &Path, out: &str) {
    for _ in 0..4 {
        if runs(program, cache).is_right(out).compiled == 0 {
            return;
        }
    }
    panic!("each run compiles something new");
}

#[test]
fn a_second_run_takes_code_from_disk() {
    let (Some(program), cache) = (program(), folder("second")) else { return };
    let out = interpreted(&program);
    let (first, second) = (runs(&program, &cache), runs(&program, &cache));
    first.is_right(&out).all_compiled();
    second.is_right(&out);
    assert!(second.kept > 0 && second.compiled < first.compiled, "{} and {}", second.kept, second.compiled);
    settled(&program, &cache, &out);
    let found = files(&cache);
    assert!(found.iter().all(|file| file.extension().is_some_and(|end| end == "native")), "{found:?}");
    // A seed's schedule does not depend on it.
    let seeded = |cache: &Path| {
        let results = build::scratch("kept-results").join("list");
        let _ = std::fs::remove_file(&results);
        let ran = run_with(&program, cache, |command| {
            command.env("STREAMSAN_SIM", "schedule=random:seed=5").env("STREAMSAN_SIM_RESULTS", &results);
        });
        ran.is_right(&out);
        (ran.kept > 0, std::fs::read_to_string(results).expect("the list of results"))
    };
    let (kept, fresh) = (seeded(&cache), seeded(&folder("seeded")));
    assert_eq!((kept.0, fresh.0), (true, false));
    assert_eq!(kept.1, fresh.1);
}

#[test]
fn faults_are_told_from_code_on_disk() {
    let (Some(program), cache) = (program(), folder("fault")) else { return };
    let faulty = || ran(run::end(&mut command(&program, &cache, "fault")));
    let told = |ran: &Ran| {
        assert_eq!(ran.ended.code(), Some(1), "{}", ran.ended.err);
        let lines = ran.ended.err.lines().filter(|line| !line.starts_with("process "));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let first = faulty();
    first.all_compiled();
    let text = told(&first);
    assert!(
        ["scatter", "block (128,0,0), thread (0,0,0)", "PTX line"].iter().all(|part| text.contains(part)),
        "{text}"
    );
    let second = faulty();
    assert!(second.kept > 0, "nothing kept");
    assert_eq!(told(&second), text);
}

#[test]
fn damaged_code_is_not_executed() {
    let (Some(program), cache) = (program(), folder("damaged")) else { return };
    let out = interpreted(&program);
    settled(&program, &cache, &out);
    let all = files(&cache);
    let file = all.first().expect("a file");
    assert_eq!(all.len(), 1);
    let whole = std::fs::read(file).expect("it is read");
    let middle = whole.len() / 2;
    let mut changed = whole.clone();
    changed[middle] ^= 1;
    for bad in [changed, whole[..middle].to_vec(), Vec::new(), vec![0; 1 << 20]] {
        std::fs::write(file, bad).expect("it is written");
        runs(&program, &cache).is_right(&out).all_compiled();
        // It was written anew.
        let again = runs(&program, &cache);
        assert!(again.is_right(&out).kept > 0);
    }
}

#[test]
fn code_of_another_version_is_not_taken() {
    let (Some(program), cache) = (program(), folder("version")) else { return };
    let out = interpreted(&program);
    settled(&program, &cache, &out);
    // The same library as another build of it: its build id is another one.
    let other = build::scratch("kept-version-sim");
    let _ = std::fs::remove_dir_all(&other);
    std::fs::create_dir_all(&other).expect("a folder");
    let here = product::bin().join("sim");
    for entry in files(&here) {
        let real = entry.canonicalize().expect("a library");
        std::os::unix::fs::symlink(real, other.join(entry.file_name().expect("a name"))).expect("a link");
    }
    let library = other.join("libcuda.so.1");
    let mut bytes = std::fs::read(&library).expect("the simulator");
    let head = [4u32, 20, 3].map(u32::to_le_bytes).concat();
    let note = [&head[..], b"GNU\0"].concat();
    let at = bytes.windows(16).position(|window| window == note).expect("a build id") + 16;
    bytes[at] ^= 0xff;
    std::fs::remove_file(&library).expect("the link");
    std::fs::write(&library, bytes).expect("the other one");
    let changed = run_with(&program, &cache, |command| _ = command.env("LD_LIBRARY_PATH", &other));
    changed.is_right(&out).all_compiled();
    assert_eq!(files(&cache).len(), 2);
    settled(&program, &cache, &out);
}

#[test]
fn several_processes_share_the_folder() {
    let (Some(program), cache) = (program(), folder("several")) else { return };
    let out = interpreted(&program);
    let start = |_| {
        let mut command = command(&program, &cache, "");
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("it starts")
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for child in children {
        ran(run::end_of(child)).is_right(&out);
    }
    assert_eq!(files(&cache).len(), 1, "nothing is left beside the file");
    settled(&program, &cache, &out);
    runs(&program, &cache).is_right(&out).all_kept();
}

#[test]
fn a_child_process_keeps_nothing() {
    let (Some(program), cache) = (program(), folder("fork")) else { return };
    let out = interpreted(&program);
    for _ in 0..2 {
        ran(run::end(&mut command(&program, &cache, "fork"))).is_right(&out);
    }
    assert_eq!(files(&cache).len(), 1);
    assert!(runs(&program, &cache).is_right(&out).kept > 0);
}

#[test]
fn it_can_be_switched_off() {
    let (Some(program), cache) = (program(), folder("off")) else { return };
    let out = interpreted(&program);
    let home = folder("home");
    let at_home = |command: &mut Command| _ = command.env("XDG_CACHE_HOME", &home);
    for _ in 0..2 {
        run_with(&program, Path::new("off"), at_home).is_right(&out).all_compiled();
    }
    assert!(files(&home).is_empty());
    // By the command's option, as for summaries.
    let streamsan = |word: &str| {
        // What is measured is interpreted.
        let mut command = run::streamsan(["run", "--sim", "--sim-predict", "--cache", word, "--"]);
        command.arg(&program).env_remove("LD_LIBRARY_PATH").env_remove("STREAMSAN_SIM").env("XDG_CACHE_HOME", &home);
        let ended = run::end(command.env("STREAMSAN_SIM_PERF", "1"));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), out.as_str()), "{}", ended.err);
        ran(ended)
    };
    streamsan("off").all_compiled();
    assert!(files(&home).is_empty());
    streamsan(&cache.display().to_string()).all_compiled();
    assert!(streamsan(&cache.display().to_string()).kept > 0);
    // By default it is in the home of caches.
    let default = |command: &mut Command| _ = command.env("XDG_CACHE_HOME", &home).env_remove("STREAMSAN_CACHE");
    run_with(&program, &cache, default).is_right(&out).all_compiled();
    assert!(run_with(&program, &cache, default).is_right(&out).kept > 0);
    assert_eq!(files(&home.join("streamsan")).len(), 1);
}

#[test]
fn what_others_may_write_is_not_executed() {
    let (Some(program), cache) = (program(), folder("others")) else { return };
    let out = interpreted(&program);
    settled(&program, &cache, &out);
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode is changed");
    };
    let file = files(&cache).pop_first().expect("a file");
    let written = || std::fs::metadata(&file).and_then(|about| about.modified()).expect("its age");
    let age = written();
    mode(&cache, 0o777);
    runs(&program, &cache).is_right(&out).all_compiled();
    assert_eq!(written(), age, "nothing is written there either");
    mode(&cache, 0o700);
    mode(&file, 0o666);
    runs(&program, &cache).is_right(&out).all_compiled();
    // What was compiled stands there now, with a mode that is right.
    assert!(runs(&program, &cache).is_right(&out).kept > 0);
}

#[test]
fn programs_run_where_nothing_can_be_kept() {
    let Some(program) = program() else { return };
    let out = interpreted(&program);
    for _ in 0..2 {
        runs(&program, Path::new("/dev/null/below")).is_right(&out).all_compiled();
        runs(&program, Path::new("/proc/self")).is_right(&out).all_compiled();
    }
}

/// A launch takes as many threads as there are processors.
fn one_processor(command: &mut Command) {
    let narrow = || {
        // SAFETY: plain calls between `fork` and `exec`, on a local.
        unsafe {
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all);
            let first = (0..libc::CPU_SETSIZE as usize).find(|&one| libc::CPU_ISSET(one, &all)).unwrap_or(0);
            libc::CPU_ZERO(&mut all);
            libc::CPU_SET(first, &mut all);
            match libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const all) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        }
    };
    // SAFETY: the function allocates nothing and takes no lock.
    unsafe { command.pre_exec(narrow) };
}

/// An address of one process in code would be another one in the next.
#[test]
fn code_holds_no_addresses() {
    let Some(program) = program() else { return };
    let caches = [folder("first-place"), folder("second-place")];
    let both = caches.each_ref().map(|cache| {
        run_with(&program, cache, |command| {
            // All of it, and blocks one after the other: both compile the same.
            command.env("STREAMSAN_SIM", "compile=always:schedule=in-order");
            one_processor(command);
        })
    });
    for ran in &both {
        ran.all_compiled();
    }
    assert!(both[0].addresses.is_disjoint(&both[1].addresses), "the system loads programs at fixed addresses");
    let contents = caches.each_ref().map(|cache| {
        let all = files(cache);
        all.iter()
            .map(|file| (file.file_name().map(ToOwned::to_owned), std::fs::read(file).expect("it is read")))
            .collect()
    });
    let [first, second]: [Vec<_>; 2] = contents;
    assert!(first.len() == 1 && first[0].1.len() > 10_000);
    assert!(first == second, "code depends on where the process is loaded");
}
