//! The simulated GPU's schedules: over many seeds no clean program of the corpus computes anything
//! but what it computes in order, and every racy one computes something else at least once.
//!
//! What a program computes is what it prints, how it exits, and what its memory holds when it is
//! freed or the program ends (`STREAMSAN_SIM_RESULTS`): the programs need not check anything
//! themselves. Two runs are compared with one in which every operation is finished before the next
//! is asked for.
//!
//! `SCHEDULES_SEEDS=n` tries n seeds instead of 8; `SCHEDULES_TABLE=FILE` appends a line for each
//! program. `cargo xtask schedules` does both.
//! Races that no order of whole operations can show stand, with the reason, in
//! `corpus/schedules.txt`; one that shows must leave the list.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libtest_mimic::Trial;
use tests::{build, fake, product, run, runs};

use crate::{programs, trial};

/// Seeds that are tried when nobody says how many.
const SEEDS: u64 = 8;

struct Case {
    name: String,
    file: PathBuf,
    racy: bool,
    driver_api: bool,
}

impl Case {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the program can be read");
        let field = |name: &str| {
            let start = format!("// {name}: ");
            text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
        };
        let expect = field("expect");
        assert!(expect == "clean" || expect.starts_with("race"), "{}: 'expect: {expect}'", file.display());
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            file: file.to_path_buf(),
            racy: expect != "clean",
            driver_api: field("needs").contains("driver-api"),
        }
    }

    fn compile(&self) -> Result<PathBuf, String> {
        let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        build::cuda_program(&self.file, "shared", if self.driver_api { &link } else { &[] })
    }

    fn check(&self, seeds: u64, excuse: Option<&str>) -> Result<(), String> {
        let program = self.compile()?;
        let folder = build::scratch(&format!("schedules-{}", self.name));
        let reference = Outcome::of(&program, &folder, "schedule=in-order")?;
        if reference.code != Some(0) {
            return Err(format!("in order it ends with {:?}\n{}", reference.code, reference.err));
        }
        let mut schedules = vec!["schedule=eager".to_owned(), "schedule=late-first".to_owned()];
        schedules.extend((0..seeds).map(|seed| format!("schedule=random:seed={seed}")));
        let mut wrong = Vec::new();
        for schedule in &schedules {
            let outcome = Outcome::of(&program, &folder, schedule)?;
            // How the eager schedule ends is luck: it counts only against a clean program.
            if let Some(how) = outcome.differs(&reference)
                && !(self.racy && schedule == "schedule=eager")
            {
                wrong.push((schedule.clone(), how));
            }
        }
        self.tell(&wrong, seeds, excuse);
        match (self.racy, wrong.first(), excuse) {
            (false, Some((schedule, how)), _) => {
                Err(format!("a clean program computes something else: {schedule}: {how}"))
            }
            (true, None, None) => Err(format!("the race never shows: {seeds} seeds and late-first")),
            (true, Some((schedule, _)), Some(_)) => {
                Err(format!("shows with {schedule}: take it off corpus/schedules.txt"))
            }
            _ => Ok(()),
        }
    }

    fn tell(&self, wrong: &[(String, String)], seeds: u64, excuse: Option<&str>) {
        let Some(table) = std::env::var_os("SCHEDULES_TABLE") else { return };
        let random: Vec<_> = wrong.iter().filter(|(schedule, _)| schedule.contains("seed=")).collect();
        let first = random.first().map_or("", |(schedule, _)| schedule.rsplit('=').next().unwrap_or_default());
        let late = if wrong.iter().any(|(schedule, _)| schedule.contains("late")) { "wrong" } else { "right" };
        let mut hows: Vec<&str> = wrong.iter().map(|(_, how)| how.as_str()).collect();
        hows.sort_unstable();
        hows.dedup();
        let remark = excuse.map_or_else(|| hows.join(" or "), str::to_owned);
        let kind = if self.racy { "race" } else { "clean" };
        let line =
            format!("{:28} {kind:5} {:>5} of {seeds:<5} {first:>5}  {late:10} {remark}\n", self.name, random.len());
        let file = std::fs::File::options().create(true).append(true).open(table);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("SCHEDULES_TABLE can be written");
    }
}

/// What a program computed.
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
    memory: Vec<String>,
}

impl Outcome {
    fn of(program: &Path, folder: &Path, schedule: &str) -> Result<Self, String> {
        let results = folder.join("results");
        let _ = std::fs::remove_file(&results);
        let mut command = run::command(program);
        command.env("LD_LIBRARY_PATH", libraries()).env("STREAMSAN_SIM", schedule);
        command.env("STREAMSAN_SIM_RESULTS", &results);
        let ended = run::end(&mut command);
        if ended.hung {
            return Err(format!("{schedule}: hangs\n{}", ended.err));
        }
        let text = std::fs::read_to_string(&results).unwrap_or_default();
        let mut memory: Vec<String> = text.lines().map(str::to_owned).collect();
        memory.sort();
        Ok(Self { code: ended.status.code(), out: ended.out, err: ended.err, memory })
    }

    /// What is not as in another run.
    fn differs(&self, other: &Self) -> Option<String> {
        let what = [
            (self.code != other.code, format!("exit code {:?}", self.code)),
            (self.out != other.out, "output".to_owned()),
            (self.memory != other.memory, "memory".to_owned()),
        ];
        what.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

/// The simulator's libraries under the names that programs ask for.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = runs::kept("schedules-libraries");
        for (name, built) in
            [("libcuda.so.1", "libstreamsan_sim.so"), ("libcudart.so.13", "libstreamsan_sim_cudart.so")]
        {
            std::os::unix::fs::symlink(product::bin().join(built), folder.join(name)).expect("a link");
        }
        folder
    })
}

/// Races that whole operations in another order cannot show, with the reason.
fn excuses(corpus: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(corpus.join("schedules.txt")).expect("schedules.txt");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(':').unwrap_or_else(|| panic!("'{line}' has no reason"));
            (name.trim().to_owned(), reason.trim().to_owned())
        })
        .collect()
}

/// A test of each program of the corpus.
pub fn trials() -> Vec<Trial> {
    let corpus = product::root().join("tests/corpus");
    let excuses = excuses(&corpus);
    let seeds =
        std::env::var("SCHEDULES_SEEDS").ok().map_or(SEEDS, |n| n.parse().expect("SCHEDULES_SEEDS is a number"));
    let cases: Vec<Case> = programs(&corpus.join("cuda")).iter().map(|file| Case::read(file)).collect();
    for name in excuses.keys() {
        assert!(
            cases.iter().any(|case| case.name == *name),
            "schedules.txt names '{name}', which is not in the corpus"
        );
    }
    let trials = cases.into_iter().map(|case| {
        let excuse = excuses.get(&case.name).cloned();
        let name = case.name.clone();
        trial("schedules", &name, move || case.check(seeds, excuse.as_deref()))
    });
    trials.collect()
}
