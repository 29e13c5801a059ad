//! `docs/reference/order-rules.md` against the tests: every rule that it lists names tests that
//! exist, and no test of the engine is missing from it.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("order lies in the repository")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// What stands between backquotes.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2)
}

/// Whether a test that the page names is there; `None`: this is no name of a test.
fn exists(name: &str) -> Option<bool> {
    let (group, rest) = name.split_once('/')?;
    let function = |folder: &str| {
        let (file, function) = rest.split_once("::")?;
        let source = std::fs::read_to_string(root().join(format!("{folder}/{file}.rs"))).unwrap_or_default();
        Some(source.contains(&format!("fn {function}(")))
    };
    match group {
        "order" => function("order/tests"),
        "analyzer" => function("analyzer/tests"),
        "kernels" => function("kernels/tests"),
        "e2e" => Some(root().join(format!("tests/e2e/{rest}.rs")).exists()),
        "gpu" => Some(read("tests/gpu/programs/order_rules.cu").contains(&format!("{{\"{rest}\", "))),
        "two" => {
            let names = |e| read(&format!("tests/gpu/programs/two_gpus.{e}")).contains(&format!("\"{rest}\""));
            Some(["cu", "py"].into_iter().any(names))
        }
        "corpus" => Some(root().join(format!("tests/corpus/cuda/{rest}.cu")).exists()),
        _ => None,
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = read("docs/reference/order-rules.md");
    let named: Vec<(&str, bool)> = quoted(&page).filter_map(|name| Some((name, exists(name)?))).collect();
    assert!(named.len() > 150, "only {} names were found", named.len());
    let missing: Vec<&str> = named.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
    assert_eq!(missing, [""; 0], "named in docs/reference/order-rules.md, but not there");
}

#[test]
fn every_test_of_the_engine_is_on_the_page() {
    let page = read("docs/reference/order-rules.md");
    let named: BTreeSet<&str> = quoted(&page).collect();
    let mut missing = Vec::new();
    for file in [
        "bounds",
        "csan",
        "devices",
        "events",
        "gap",
        "graphs",
        "host",
        "left_values",
        "legacy",
        "memory",
        "programmatic",
        "property",
        "property_threads",
        "requests",
        "threads",
        "values",
        "what_waits",
    ] {
        let source = read(&format!("order/tests/{file}.rs"));
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if line.trim() != "#[test]" {
                continue;
            }
            let function =
                lines.next().and_then(|l| l.trim().strip_prefix("fn ")?.split('(').next()).unwrap_or_default();
            let name = format!("order/{file}::{function}");
            if !named.contains(name.as_str()) {
                missing.push(name);
            }
        }
    }
    assert_eq!(missing, [""; 0], "not in docs/reference/order-rules.md");
}

/// The classes that CUDA's functions were put into.
#[test]
fn every_class_of_functions_has_a_row() {
    let page = read("docs/reference/order-rules.md");
    let numbers = [("A", 5), ("B", 6), ("C", 7), ("D", 1), ("E", 3)];
    for class in numbers.iter().flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}"))) {
        assert!(page.contains(&format!("\n| {class} ")), "no row for {class}");
    }
}
