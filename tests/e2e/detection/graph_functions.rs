//! Host functions of graphs and streams, with `--host-accesses`: what they touch is ordered as
//! their nodes are, or as they are themselves.

use serde_json::Value;
use tests::{build, run};

/// Runs a program whose cases have allocations of their own sizes, and compares what is found in
/// each with what the program says of it. How many cases there were.
fn check(file: &str, host: impl Fn(&Value) -> bool) -> Option<usize> {
    check_with(file, &[], &[], host)
}

/// The same with more options, and with words for the program.
pub(super) fn check_with(file: &str, options: &[&str], words: &[&str], host: impl Fn(&Value) -> bool) -> Option<usize> {
    let program = build::cuda_program_if_possible(file, "static", &["-w", "-lrt"])?;
    let name = [&[file][..], options, words].concat().join("-").replace('/', "-");
    let json = build::scratch(&name).join("report.json");
    let mut command = run::streamsan(["run", "--sim", "--host-accesses"]);
    command.args(options).arg("--json").arg(&json).arg("--").arg(&program).args(words);
    let ended = run::end(command.env_remove("LD_LIBRARY_PATH"));
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}\n{}", ended.err));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let mut cases = 0;
    for line in ended.out.lines().filter(|line| *line != "done") {
        let (size, rest) = line.split_once(' ').expect("a size");
        let size: u64 = size.parse().unwrap_or_else(|_| panic!("{line}"));
        let found: Vec<_> = findings.iter().filter(|f| f["allocation"]["size"] == size).collect();
        assert_eq!(!found.is_empty(), rest.starts_with("race "), "{line}: {found:#?}\n{}", ended.err);
        assert!(found.iter().all(|f| host(f) && f["confidence"] == "certain"), "{line}: {found:#?}");
        cases += 1;
    }
    assert!(ended.out.ends_with("done\n"), "{}{}", ended.out, ended.err);
    assert!(!ended.err.contains("not seen"), "{}", ended.err);
    Some(cases)
}

#[test]
fn a_host_function_of_a_graph_is_ordered_as_its_node() {
    let cases = check("sim/graph_functions.cu", |f| f["host"] == true);
    assert!(matches!(cases, None | Some(288)), "{cases:?}");
}

/// A function of a graph may tell what is before it in the graph, and no more, to the host and to
/// the functions beside it.
#[test]
fn a_host_function_of_a_graph_tells_of_the_nodes_before_it() {
    let cases = check("sim/graph_messages.cu", |f| f["host"] == true);
    assert!(matches!(cases, None | Some(110)), "{cases:?}");
}

/// With timelines for threads, the locks of a function's thread say whether it may have waited for
/// the host.
#[test]
fn a_host_function_of_a_graph_may_keep_work_from_beginning() {
    let cases = check_with("sim/graph_messages.cu", &["--host-order", "threads"], &["threads"], |f| f["host"] == true);
    assert!(matches!(cases, None | Some(10)), "{cases:?}");
}

/// Whatever the host does beside a host function that it does not wait for is found each time, not
/// only if the function has not ended by chance.
#[test]
fn a_host_function_is_unordered_until_the_host_has_heard_of_it() {
    let cases = check("sim/late_functions.cu", |_| true);
    assert!(matches!(cases, None | Some(108)), "{cases:?}");
}

/// A touch is in the log before what the program orders behind it, whichever thread logs it.
#[test]
fn a_touch_is_logged_before_what_follows_it_on_another_thread() {
    let file = "sim/logged_touches.cu";
    let Some(program) = build::cuda_program_if_possible(file, "static", &["-w"]) else { return };
    for (word, status) in [("", 0), ("late", 66)] {
        let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--"]);
        command.arg(&program).args(Some(word).filter(|word| !word.is_empty()));
        let ended = run::end(command.env_remove("LD_LIBRARY_PATH"));
        assert_eq!((ended.status.code(), &*ended.out), (Some(status), "done\n"), "{word}: {}", ended.err);
        assert_eq!(ended.err.contains("1 finding (1 certain"), word == "late", "{word}: {}", ended.err);
    }
}
