//! The tests of a build folder, as CTest lists them.
//!
//! Owns the question (`ctest --show-only=json-v1`) and what its answer means: commands, working
//! folders, environments, limits of time, what is disabled. What CTest does besides is not done:
//! expressions that the output must match are not looked for, fixtures and locks are not observed;
//! the order is CTest's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::target::Target;
use report::program::Checked;

/// The file that a build folder with tests has.
pub(crate) const FILE: &str = "CTestTestfile.cmake";

/// The tests of a build folder; `prefix` stands before their names. The error is a line for the
/// user.
pub(crate) fn tests(folder: &Path, prefix: &str) -> Result<Vec<Target>, String> {
    let wrong = |why: &str| format!("ctest in {}: {why}", folder.display());
    let mut ctest = Command::new("ctest");
    ctest.arg("--show-only=json-v1").current_dir(folder).stdin(Stdio::null());
    let said = ctest.output().map_err(|error| wrong(&error.to_string()))?;
    let list: Value = serde_json::from_slice(&said.stdout).map_err(|_| {
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        wrong(text.lines().next().unwrap_or("its answer cannot be read"))
    })?;
    let tests = list["tests"].as_array().ok_or_else(|| wrong("its answer has no list of tests"))?;
    Ok(tests.iter().map(|test| target(test, folder, prefix)).collect())
}

fn target(test: &Value, folder: &Path, prefix: &str) -> Target {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let name = format!("{prefix}{}", test["name"].as_str().unwrap_or("test"));
    let command: Vec<OsString> = words(&test["command"]).into_iter().map(OsString::from).collect();
    let mut target = Target::new("ctest", name, command, folder.to_path_buf());
    unwrap(&mut target);
    if target.command.is_empty() {
        target.left_out = Some((Checked::NotChecked, "CTest knows no command for it: is it built?".to_owned()));
    }
    for property in test["properties"].as_array().into_iter().flatten() {
        let value = &property["value"];
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        match property["name"].as_str().unwrap_or_default() {
            "WORKING_DIRECTORY" => target.folder = PathBuf::from(value.as_str().unwrap_or_default()),
            "ENVIRONMENT" => words(value).iter().for_each(|word| {
                if let Some((name, value)) = word.split_once('=') {
                    target.environment.push((name.to_owned(), Some(value.into())));
                }
            }),
            "TIMEOUT" => {
                let seconds = number.filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
                target.limit = seconds.map(|seconds| Duration::from_secs(seconds.ceil() as u64));
            }
            "SKIP_RETURN_CODE" => target.skip_code = number.map(|code| code as i32),
            "WILL_FAIL" if value.as_bool() == Some(true) => target.any_code = true,
            "PASS_REGULAR_EXPRESSION" => target.any_code = true,
            "DISABLED" if value.as_bool() == Some(true) => {
                target.left_out = Some((Checked::Skipped, "disabled in CTest".to_owned()));
            }
            _ => {}
        }
    }
    // Behind ENVIRONMENT, wherever they stand.
    for property in test["properties"].as_array().into_iter().flatten() {
        if property["name"] == "ENVIRONMENT_MODIFICATION" {
            words(&property["value"]).iter().for_each(|word| modify(&mut target, word));
        }
    }
    target
}

/// The program of a test that runs under StreamSan (`streamsan_add_test`,
/// `streamsan_discover_tests`) is watched once, by the hunt, with the test's options.
fn unwrap(target: &mut Target) {
    let is = |word: Option<&OsString>, name: &str| {
        word.is_some_and(|word| Path::new(word).file_name() == Some(name.as_ref()))
    };
    let words = &target.command;
    let (launcher, program) = if is(words.first(), "streamsan-launch") {
        let count = words.get(1).and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0_usize);
        let rest = &words[2.min(words.len())..];
        rest.split_at(count.min(rest.len()))
    } else if is(words.first(), "streamsan") && words.get(1).is_some_and(|word| word == "run") {
        let Some(split) = words.iter().position(|word| word == "--") else {
            let why = "it runs under streamsan without '--' in front of its program: write one";
            target.left_out = Some((Checked::NotChecked, why.to_owned()));
            return;
        };
        (&words[..split], &words[split + 1..])
    } else {
        return;
    };
    (target.options, target.command) = (launcher.get(2..).unwrap_or_default().to_vec(), program.to_vec());
}

/// `NAME=OPERATION:VALUE`.
fn modify(target: &mut Target, word: &str) {
    let Some((name, (operation, value))) = word.split_once('=').and_then(|(n, rest)| Some((n, rest.split_once(':')?)))
    else {
        return;
    };
    let old = target.variable(name).filter(|old| !old.is_empty());
    let joined = |first: Option<OsString>, between: &str, last: Option<OsString>| match (first, last) {
        (Some(mut first), Some(last)) => {
            first.push(between);
            first.push(last);
            Some(first)
        }
        (first, last) => first.or(last),
    };
    let new = Some(OsString::from(value));
    let value = match operation {
        "set" => new,
        "unset" => None,
        "reset" => {
            target.environment.retain(|(known, _)| known != name);
            return;
        }
        "string_append" => joined(old, "", new),
        "string_prepend" => joined(new, "", old),
        "path_list_append" => joined(old, ":", new),
        "path_list_prepend" => joined(new, ":", old),
        "cmake_list_append" => joined(old, ";", new),
        "cmake_list_prepend" => joined(new, ";", old),
        _ => return,
    };
    target.environment.push((name.to_owned(), value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_ctest_says_is_understood() {
        let test = json!({
            "name": "sum", "command": ["/b/sum", "-n", "3"],
            "properties": [
                { "name": "ENVIRONMENT_MODIFICATION", "value": ["P=path_list_append:/y", "Q=unset:", "E=string_prepend:x"] },
                { "name": "ENVIRONMENT", "value": ["P=/x", "Q=1", "E=a=b"] },
                { "name": "TIMEOUT", "value": 1.5 },
                { "name": "SKIP_RETURN_CODE", "value": 77 },
                { "name": "WORKING_DIRECTORY", "value": "/b/run" },
            ],
        });
        let t = target(&test, Path::new("/b"), "b/");
        assert_eq!((t.name.as_str(), t.shown().as_str()), ("b/sum", "/b/sum -n 3"));
        assert_eq!((t.folder.as_path(), t.limit), (Path::new("/b/run"), Some(Duration::from_secs(2))));
        assert_eq!((t.skip_code, t.any_code, t.left_out.clone()), (Some(77), false, None));
        assert_eq!(t.variable("P").as_deref(), Some("/x:/y".as_ref()));
        assert_eq!((t.variable("Q"), t.variable("E").as_deref()), (None, Some("xa=b".as_ref())));
    }

    #[test]
    fn tests_under_streamsan_are_watched_once() {
        let of = |words: &[&str]| {
            let t = target(&json!({ "name": "a", "command": words, "properties": [] }), Path::new("/b"), "");
            (t.options.clone(), t.shown(), t.left_out.is_some())
        };
        let options = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            of(&["/x/streamsan", "run", "--sim", "--json", "f", "--", "/b/t", "--", "1"]),
            (options(&["--sim", "--json", "f"]), "/b/t -- 1".to_owned(), false)
        );
        assert_eq!(
            of(&[
                "/y/streamsan-launch",
                "4",
                "/x/streamsan",
                "run",
                "--sim",
                "--require-cuda",
                "/b/t",
                "--gtest_filter=a"
            ]),
            (options(&["--sim", "--require-cuda"]), "/b/t --gtest_filter=a".to_owned(), false)
        );
        assert_eq!(of(&["/b/streamsan_test", "run"]), (Vec::new(), "/b/streamsan_test run".to_owned(), false));
        assert!(of(&["streamsan", "run", "/b/t"]).2);
        assert_eq!(of(&["streamsan-launch"]).1, "");
    }

    #[test]
    fn what_is_disabled_or_not_built_is_left_out_and_named() {
        let disabled = json!({ "name": "a", "command": ["a"], "properties": [{ "name": "DISABLED", "value": true }] });
        let unbuilt = json!({ "name": "b", "properties": [] });
        let of = |test| target(&test, Path::new("/b"), "").left_out.map(|(outcome, _)| outcome);
        assert_eq!((of(disabled), of(unbuilt)), (Some(Checked::Skipped), Some(Checked::NotChecked)));
        let fails = json!({ "name": "c", "command": ["c"], "properties": [{ "name": "WILL_FAIL", "value": true }] });
        assert!(target(&fails, Path::new("/b"), "").any_code);
    }
}
