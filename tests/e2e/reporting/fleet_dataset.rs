//! `streamsan fleet`: the dataset of many traces, on this machine and on Ray, asked on DuckDB and
//! on Spark.
//!
//! Owns what must hold whatever goes wrong: each trace is one row, and each finding is there once.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tests::run::{Ended, command, end, end_within};
use tests::{build, made, product};

/// Python with what fleet needs, or nothing where Python's packages are not wanted.
fn environment() -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let folder = product::xtask("fleet").unwrap_or_else(|error| panic!("{error}"));
    Some(folder.join("venv/bin"))
}

fn with_python(bin: &Path, program: impl AsRef<Path>) -> Command {
    let mut command = command(program.as_ref());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display())).env("PYTHONPATH", product::root().join("python"));
    command.env("STREAMSAN_BIN", product::bin()).env("RAY_USAGE_STATS_ENABLED", "0").env_remove("RAY_ADDRESS");
    command
}

fn fleet(bin: &Path, words: &[&str]) -> Ended {
    let mut command = with_python(bin, product::streamsan());
    end_within(command.arg("fleet").args(words), Duration::from_secs(110))
}

fn recorded(name: &str) -> PathBuf {
    product::root().join("tests/recorded").join(format!("{name}.trace"))
}

/// Two jobs of two hosts with five ranks each: of the job `007` four ranks of a host race; the
/// other is quiet but for one trace that is torn and one that is none.
fn traces(folder: &Path) {
    for (job, name) in [("007", "triton_step"), ("a b", "triton_step_waited")] {
        for host in ["h1", "h2"] {
            let host = folder.join(job).join(host);
            std::fs::create_dir_all(&host).expect("a folder");
            for rank in 0..5 {
                let name = if rank == 4 { "triton_step_waited" } else { name };
                std::fs::copy(recorded(name), host.join(format!("rank{rank}.trace"))).expect("copied");
            }
        }
    }
    std::fs::write(folder.join("a b/h2/rank0.trace"), "no trace").expect("written");
    let whole = std::fs::read(recorded("triton_step")).expect("a trace");
    std::fs::write(folder.join("a b/h2/rank1.trace"), &whole[..whole.len() / 2]).expect("written");
}

/// The whole dataset, without what differs between runs.
fn rows(bin: &Path, dataset: &Path) -> Value {
    let script = "import json, sys\nfrom streamsan.fleet import report\nc = report.opened(sys.argv[1])\n\
        f = c.execute('SELECT job, machine, trace, pid, fingerprint, occurrences FROM findings ORDER BY ALL').fetchall()\n\
        t = c.execute('SELECT job, machine, trace, program, status, findings FROM traces ORDER BY ALL').fetchall()\n\
        print(json.dumps([f, t]))";
    let ended = end(with_python(bin, bin.join("python")).args(["-c", script]).arg(dataset));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    serde_json::from_str(&ended.out).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn one_is_not_several() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_one");
    let (input, out) = (folder.join("in"), folder.join("out"));
    std::fs::create_dir_all(input.join("job/h1")).expect("a folder");
    std::fs::copy(recorded("triton_step"), input.join("job/h1/rank0.trace")).expect("copied");
    let check = ["check", text(&input), "--out", text(&out), "--date", "2026-11-23"];
    for more in ["", ", 1 task was there already"] {
        let ended = fleet(&bin, &check);
        assert_eq!(ended.code(), Some(66), "{}", ended.err);
        let ending = format!("1 trace checked, 0 not read whole, 2 rows of findings{more}\n");
        assert!(ended.err.contains("1 trace in 1 task\n") && ended.err.contains(&ending), "{}", ended.err);
    }
}

#[test]
fn each_trace_is_a_row_and_duckdb_and_spark_agree() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_dataset");
    let (input, out) = (folder.join("in"), folder.join("out"));
    traces(&input);
    let monday = ["check", text(&input), "--out", text(&out), "--date", "2026-11-23"];
    let ended = fleet(&bin, &monday);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("20 traces checked, 2 not read whole, 16 rows of findings"), "{}", ended.err);
    let first = rows(&bin, &out);
    assert_eq!((first[0].as_array().map(Vec::len), first[1].as_array().map(Vec::len)), (Some(16), Some(20)));

    // Done again, by request or not, it holds the same: no row twice.
    let ended = fleet(&bin, &monday);
    assert!(ended.err.contains("4 tasks were there already"), "{}", ended.err);
    let ended = fleet(&bin, &[&monday[..], &["--again"]].concat());
    assert!(!ended.err.contains("already"), "{}", ended.err);
    assert_eq!(rows(&bin, &out), first);

    // On Tuesday the same job is clean: Monday's rows stay, and its findings are gone.
    let tuesday = folder.join("tuesday/007/h1");
    std::fs::create_dir_all(&tuesday).expect("a folder");
    std::fs::copy(recorded("triton_step_waited"), tuesday.join("rank0.trace")).expect("copied");
    let source = folder.join("tuesday");
    let ended = fleet(&bin, &["check", text(&source), "--out", text(&out), "--date", "2026-11-24"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let both = rows(&bin, &out);
    assert_eq!((both[0].as_array().map(Vec::len), both[1].as_array().map(Vec::len)), (Some(16), Some(21)));
    let page = folder.join("page.html");
    let report = fleet(&bin, &["report", text(&out), "--json", "--html", text(&page)]);
    let report: Value = serde_json::from_str(&report.out).expect("JSON");
    assert_eq!(report["since"], "2026-11-24");
    let states: Vec<&Value> = report["findings"].as_array().expect("a list").iter().map(|f| &f["state"]).collect();
    assert_eq!(states, ["gone", "gone"]);
    assert_eq!((&report["findings"][0]["ranks"], &report["findings"][0]["hosts"]), (&json!(8), &json!(2)));
    let unread: Vec<&Value> = report["unread"].as_array().expect("a list").iter().map(|t| &t["error"]).collect();
    assert_eq!(unread[0], "this is not a StreamSan trace");
    assert!(unread[1].as_str().is_some_and(|text| text.contains("ends in the middle")), "{unread:?}");
    assert!(std::fs::read_to_string(page).expect("a page").contains("a b/h2/rank0.trace"));

    // The same on a day before: both are new; on one after: nobody looked.
    for (since, state) in [("2026-11-23", "2 new"), ("2026-11-25", "2 unchecked")] {
        let told = fleet(&bin, &["report", text(&out), "--since", since]);
        assert!(told.out.contains(state), "{since}: {}", told.out);
    }

    if Command::new("java").arg("-version").output().is_err() {
        eprintln!("skipped: no 'java' is installed, so Spark was not asked");
        return;
    }
    let mut spark = with_python(&bin, bin.join("python"));
    spark.arg(product::root().join("tests/fleet/answers.py")).arg(&out).arg("2026-11-23");
    let ended = end_within(&mut spark, Duration::from_secs(110));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let counts: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!((&counts["findings 2026-11-24"], &counts["unread 2026-11-24"]), (&json!(2), &json!(2)));
}

#[test]
fn a_worker_that_is_killed_costs_no_row() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_killed");
    let (input, calm) = (folder.join("in"), folder.join("calm"));
    traces(&input);
    fleet(&bin, &["check", text(&input), "--out", text(&calm), "--quiet"]);
    let expected = rows(&bin, &calm);

    // An analyzer that kills its worker (or itself) with SIGKILL at the first task of 007/h1.
    let fake = folder.join("bin");
    std::fs::create_dir(&fake).expect("a folder");
    let stamp = folder.join("killed");
    let script = |kill: &str| {
        format!(
            "#!/bin/sh\ncase \"$*\" in *007/h1*) if mkdir '{}' 2>/dev/null; then kill -9 {kill}; sleep 60; fi;; esac\nexec '{}' \"$@\"\n",
            stamp.display(),
            product::streamsan().display()
        )
    };
    for (engine, kill) in [("local", "$$"), ("ray", "$PPID $$")] {
        let _ = std::fs::remove_dir(&stamp);
        std::fs::write(fake.join("streamsan"), script(kill)).expect("written");
        std::fs::set_permissions(fake.join("streamsan"), std::fs::Permissions::from_mode(0o755)).expect("executable");
        let out = folder.join(engine);
        let mut check = with_python(&bin, bin.join("python"));
        check.args(["-m", "streamsan.fleet", "check", text(&input), "--out", text(&out), "--engine", engine]);
        let ended = end_within(check.env("STREAMSAN_BIN", &fake), Duration::from_secs(110));
        assert_eq!(ended.code(), Some(66), "{engine}: {}", ended.err);
        assert!(stamp.exists() && ended.err.contains("1 retry"), "{engine}: {}", ended.err);
        assert_eq!(rows(&bin, &out), expected, "{engine}");
    }
}

/// Recordings of a host each: whole, with a segment missing, with only its end and what was saved
/// before; and ranks with numbers for names, which are none.
fn recordings(folder: &Path) {
    let write = |name: &str, there: &[u64], keeps: bool| {
        made::write_segments(&folder.join(name), &made::crossing(), 3, there, keeps);
    };
    write("job/h1/rank0", &[0, 1, 2], false);
    write("job/h2/rank1", &[0, 2], false);
    write("job/h3/rank2", &[1, 2], true);
    write("job/h3/rank2/saved-1-fault", &[0, 1], true);
    write("job/h3/rank2/saved-2-signal", &[1, 2], true);
    std::fs::create_dir_all(folder.join("job/h4")).expect("a folder");
    for name in ["job/h4/000000.trace", "job/h4/000001.trace"] {
        made::write(&folder.join(name), &made::crossing());
    }
}

#[test]
fn a_recording_in_segments_is_one_trace_wherever_it_lies() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_recordings");
    let (input, out) = (folder.join("in"), folder.join("out"));
    recordings(&input);
    let layout = ["--layout", "{job}/{host}/rank{rank}"];
    let ended = fleet(&bin, &[&["check", text(&input), "--out", text(&out)][..], &layout].concat());
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("4 traces checked, 1 not read whole"), "{}", ended.err);
    assert!(ended.err.contains("2 files that do not fit the layout"), "{}", ended.err);
    let told = fleet(&bin, &["report", text(&out)]);
    assert!(told.out.contains("job/h2/rank1 (missing): segment 1 is missing"), "{}", told.out);
    assert!(told.out.contains("2 of 4 traces read whole, 1 in part"), "{}", told.out);

    // The same from a file system that is none of this machine's.
    let mut remote = with_python(&bin, bin.join("python"));
    let ended = end(remote.arg(product::root().join("tests/fleet/remote.py")).arg(&input).arg("memory://x"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let answer: Value = serde_json::from_str(&ended.out).expect("JSON");
    let traces = json!([
        ["job/h1/rank0", "job", "h1", null, "ok", 3, 1],
        ["job/h2/rank1", "job", "h2", null, "missing", 2, 1],
        ["job/h3/rank2", "job", "h3", null, "part", 2, 1],
        ["job/h3/rank2/saved-1-fault", "job", "h3", null, "ok", 2, 0],
        ["job/h4/000000.trace", "job", "h4", null, "ok", null, 1],
        ["job/h4/000001.trace", "job", "h4", null, "ok", null, 1]
    ]);
    assert_eq!((&answer["codes"], &answer["traces"]), (&json!([66, 66]), &traces), "{answer:#}");
    assert!(answer["again"].as_str().is_some_and(|said| said.contains("4 tasks were there already")), "{answer:#}");
    assert_eq!(answer["findings"].as_array().map(Vec::len), Some(5), "{answer:#}");
}

#[test]
fn a_trace_that_no_analyzer_survives_is_a_row_and_its_neighbours_keep_theirs() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_deadly");
    let input = folder.join("in");
    traces(&input);
    let fake = folder.join("bin");
    std::fs::create_dir(&fake).expect("a folder");
    let program = product::streamsan();
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *007/h1/rank2*) kill -9 $$;; esac\nexec '{}' \"$@\"\n", program.display());
    std::fs::write(fake.join("streamsan"), script).expect("written");
    std::fs::set_permissions(fake.join("streamsan"), std::fs::Permissions::from_mode(0o755)).expect("executable");
    let out = folder.join("out");
    let mut check = with_python(&bin, bin.join("python"));
    check.args(["-m", "streamsan.fleet", "check", text(&input), "--out", text(&out)]);
    let ended = end(check.env("STREAMSAN_BIN", &fake));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    assert!(ended.err.contains("20 traces checked, 3 not read whole, 14 rows of findings"), "{}", ended.err);
    let told = fleet(&bin, &["report", text(&out)]);
    assert!(told.out.contains("007/h1/rank2.trace (failed): the analyzer ended with signal 9"), "{}", told.out);
}

#[test]
fn what_is_missing_is_one_line_and_code_2() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_wrong");
    let nothing = folder.join("nothing");
    let cases: [(&[&str], &str); 4] = [
        (&["check", text(&nothing), "--out", "x"], "there is nothing there"),
        (&["report", text(&folder)], "no dataset of 'streamsan fleet check'"),
        (&["report", text(&folder), "--", "--pedantic"], "only 'fleet check' takes words behind '--'"),
        (&["check", text(product::root()), "--out", "x", "--layout", "{node}/*"], "--layout knows {job}"),
    ];
    for (words, line) in cases {
        let ended = fleet(&bin, words);
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        assert!(ended.err.contains(line) && ended.err.lines().count() == 1, "{}", ended.err);
    }
    // A Python without the packages.
    let mut bare = command(product::streamsan());
    let ended = end(bare.env("PATH", "/usr/bin:/bin").env_remove("PYTHONPATH").args(["fleet", "report", "x"]));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.err.contains("pip install fsspec pyarrow duckdb"), "{}", ended.err);
}

/// Writes datasets whose names and texts are an attacker's: the folder of the day or of the job,
/// the trace, the error, the host. One process writes all of them: Python takes a second to start.
const HOSTILE: &str = r"
import json, os, sys
from urllib.parse import quote
import pyarrow as pa
import pyarrow.parquet as pq

day = sys.argv[2]
for root, field, value in json.load(open(sys.argv[1])):
    row = dict(task='t', machine='h', rank='0', trace='x.trace', bytes=1, program='p', segments=None, status='damaged', error='torn',
               findings=0, attempts=1, seconds=1.0, checked_at='2026-01-01T00:00:00')
    names = dict(date=day, job='j')
    (names if field in names else row)[field] = value
    folder = os.path.join(root, 'traces', 'date=' + quote(names['date'], safe=''), 'job=' + quote(names['job'], safe=''))
    os.makedirs(folder)
    pq.write_table(pa.Table.from_pylist([row]), os.path.join(folder, 't.parquet'))
";

#[test]
fn what_a_dataset_holds_is_data_whoever_made_it() {
    let Some(bin) = environment() else { return };
    let folder = build::scratch("fleet_hostile");
    let (secret, written) = (folder.join("secret.csv"), folder.join("written.csv"));
    std::fs::write(&secret, "a\nKEY\n").expect("written");
    let (secret, written) = (text(&secret), text(&written));
    let values = [
        format!("9' AS since; COPY (SELECT 42) TO '{written}'; CREATE OR REPLACE VIEW asked AS SELECT '9"),
        format!("9' AS since, (SELECT a FROM read_csv('{secret}')) AS more, '"),
        format!("x'); COPY (SELECT 42) TO '{written}'; --"),
        "\u{1b}[2J\r::error::owned".to_owned(),
        "a\n::error::owned\nstreamsan: SUMMARY: 0 findings".to_owned(),
        "\u{202e}drowssap".to_owned(),
        "$(touch owned) `touch owned` ; touch owned".to_owned(),
        "-o".to_owned(),
    ];
    let mut datasets = Vec::new();
    for field in ["date", "job", "trace", "machine", "error", "status", "rank"] {
        for value in &values {
            datasets.push(json!([folder.join(format!("set{}", datasets.len() + 1)), field, value]));
        }
    }
    let (made, list) = (datasets.len(), folder.join("sets.json"));
    std::fs::write(&list, Value::from(datasets).to_string()).expect("written");
    let mut write = with_python(&bin, bin.join("python"));
    let ended = end(write.args(["-c", HOSTILE, text(&list), "2026-11-23"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    // One process asks all of them, too.
    let script = "import sys\nfrom streamsan.fleet import __main__\n\
        for n in range(1, int(sys.argv[2]) + 1):\n\
        \x20   print('BEGIN', n, flush=True)\n\
        \x20   code = __main__.main(['report', f'{sys.argv[1]}/set{n}'])\n\
        \x20   print('END', code, flush=True)\n";
    let mut ask = with_python(&bin, bin.join("python"));
    ask.args(["-c", script, text(&folder), &made.to_string()]).current_dir(&folder);
    let ended = end_within(&mut ask, Duration::from_secs(110));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let dates = values.len();
    // A folder that names no day is refused by that name; all else is told.
    let refused = (0..dates).map(|_| "END 2").chain((dates..made).map(|_| "END 0"));
    let codes: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("END ")).collect();
    assert_eq!(codes, refused.collect::<Vec<_>>(), "{}\n{}", ended.out, ended.err);
    for said in [&ended.out, &ended.err] {
        let harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(harmful) && !said.contains("KEY"), "{said}");
        assert!(!said.lines().any(|line| line.starts_with("::") || line.starts_with("streamsan: SUMMARY")), "{said}");
    }
    assert!(!Path::new(written).exists() && !folder.join("owned").exists());
    // Whatever it is asked, it reads the dataset alone.
    let script = "import sys\nfrom streamsan.fleet import report\nc = report.opened(sys.argv[1])\n\
        for text in sys.argv[2:]:\n\
        \x20   try:\n        c.execute(text).fetchall()\n        print('DONE', text)\n\
        \x20   except Exception as error: print(type(error).__name__)\n";
    let (reads, writes) = (format!("SELECT * FROM read_csv('{secret}')"), format!("COPY (SELECT 42) TO '{written}'"));
    let mut ask = with_python(&bin, bin.join("python"));
    ask.args(["-c", script, text(&folder.join(format!("set{made}"))), "SELECT * FROM traces", &reads, &writes]);
    ask.args(["SET enable_external_access = true", "INSTALL httpfs"]);
    let ended = end(&mut ask);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 5, "{} {}", ended.out, ended.err);
    assert_eq!(lines[0], "DONE SELECT * FROM traces");
    assert!(!lines[1..].iter().any(|line| line.starts_with("DONE")), "{lines:?}");
}
