//! The findings of many ranks and runs together: Parquet files, asked with DuckDB.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::run::{end, streamsan};
use tests::{build, made, product};

/// The answer of DuckDB: a list of rows.
fn ask(python: &Path, folder: &Path, query: &str) -> Value {
    let script = "import duckdb, json, sys\nprint(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";
    let out = Command::new(python).args(["-c", script, query]).current_dir(folder).output().expect("python");
    assert!(out.status.success(), "{query}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// `streamsan check --parquet FILE WORDS`.
fn checked(file: &Path, words: &[PathBuf], code: i32) {
    let mut command = streamsan(["check", "--parquet"]);
    let ended = end(command.arg(file).arg("--json").arg(file.with_extension("json")).args(words));
    assert_eq!(ended.code(), Some(code), "{}", ended.err);
}

#[test]
fn duckdb_asks_across_ranks_and_runs() {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let validators = product::xtask("validators").unwrap_or_else(|error| panic!("{error}"));
    let python = validators.join("venv/bin/python");

    let folder = build::scratch("fleet");
    let ranks = folder.join("ranks");
    std::fs::create_dir(&ranks).expect("a folder");
    for rank in 0..3 {
        made::write(&ranks.join(format!("rank{rank}.trace")), &made::crossing());
    }
    let recorded = |name: &str| product::root().join("tests/recorded").join(format!("{name}.trace"));
    checked(&folder.join("monday.parquet"), &[ranks, recorded("triton_step")], 66);
    checked(&folder.join("tuesday.parquet"), &[recorded("triton_step")], 66);
    checked(&folder.join("wednesday.parquet"), &[recorded("triton_step_waited")], 0);

    // A row for each finding and process; a clean run is a file without rows, with the same
    // columns.
    let rows = ask(
        &python,
        &folder,
        "SELECT filename, count(*) FROM read_parquet('*.parquet', filename = true) GROUP BY 1 ORDER BY 1",
    );
    assert_eq!(rows, json!([["monday.parquet", 5], ["tuesday.parquet", 2]]));
    let columns = "SELECT count(*), count(DISTINCT name) FROM parquet_schema('*.parquet') WHERE num_children IS NULL";
    let columns = ask(&python, &folder, columns);
    assert_eq!(columns[0][0].as_i64(), columns[0][1].as_i64().map(|n| n * 3), "{columns}");

    // How near the run was is the same in each of its rows.
    let near = ask(&python, &folder, "SELECT DISTINCT split_part(fidelity, ':', 1) FROM 'monday.parquet'");
    assert_eq!(near, json!([["code"]]));

    // Which races come up in more than one rank, and how often.
    let query = "SELECT hazard, confidence, count(DISTINCT trace), sum(occurrences)::INT FROM 'monday.parquet' \
                 GROUP BY fingerprint, hazard, confidence ORDER BY 3 DESC, 4 DESC";
    let rows = ask(&python, &folder, query);
    let expected = json!([
        ["write-after-write", "certain", 3, 3],
        ["read-after-write", "certain", 1, 3],
        ["write-after-write", "certain", 1, 2]
    ]);
    assert_eq!(rows, expected);

    // What came up on both days, with its lines; the other columns as JSON has them.
    let query = "SELECT DISTINCT access_kernel, parse_filename(access_file), access_line, previous_call, previous_line, memory_line, \
                 memory_size, verdict, latent, mend_torch FROM 'monday.parquet' JOIN 'tuesday.parquet' USING (fingerprint, hazard, access_kernel, \
                 access_file, access_line, previous_call, previous_line, memory_line, memory_size, verdict, latent, mend_torch) \
                 WHERE hazard = 'read-after-write'";
    let rows = ask(&python, &folder, query);
    let mend = "torch.cuda.default_stream().wait_stream(stream_2)  # before this access, triton_step.py:20";
    assert_eq!(rows, json!([["scale", "triton_step.py", 20, "cudaMemcpyAsync", 18, 12, 40448, "fails", false, mend]]));

    // The same numbers as in the JSON of the same run.
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("monday.json")).expect("written")).expect("JSON");
    let counts: i64 = report["findings"].as_array().expect("a list").iter().filter_map(|f| f["count"].as_i64()).sum();
    let sum = ask(&python, &folder, "SELECT sum(occurrences)::INT, count(DISTINCT fingerprint) FROM 'monday.parquet'");
    assert_eq!(sum, json!([[counts, report["summary"]["findings"]]]));
    assert_eq!(
        report["findings"][0]["occurrences"].as_array().map(Vec::len),
        report["findings"][0]["processes"].as_array().map(Vec::len)
    );
}
