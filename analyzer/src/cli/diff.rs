//! `streamsan diff`: what is new in one report, and what has gone since another.
//!
//! Findings are recognised by their fingerprints. Both files are reports of `--json`, or baselines.
//! What a report has set aside (suppressed, known from a baseline) is known, and neither new nor
//! gone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::arguments::Takes;
use super::arguments::as_json::AsJson;
use super::common::{print, wrong};
use report::escape::harmless;
use report::gate::baseline::check_version;
use report::words::counted;
use settings::Options;
use settings::exit_code::{Ending, Reason};
use system::file_name::FileName;

/// Compare two reports: findings that are new, gone, and kept
#[derive(clap::Args, Debug)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    json: AsJson,
    /// The older report (--json), or a baseline
    #[arg(value_name = "OLD", required = true)]
    old: String,
    /// The newer report
    #[arg(value_name = "NEW", required = true)]
    new: String,
    #[command(flatten)]
    _options: Takes<{ options::Command::Diff as u16 }>,
}

/// The findings of a report by fingerprint.
#[derive(Default)]
struct Findings {
    shown: BTreeMap<String, Value>,
    set_aside: BTreeMap<String, Value>,
    /// Why the run was not fully checked, if it was not.
    doubt: Option<String>,
}

/// Where the coverage of a report says that its run was not fully checked.
const DOUBTS: [&str; 7] = ["unread", "unjudged", "mispredicted", "unchecked", "disabled", "not_simulated", "lost"];

/// The first reason why the run of a report was not fully checked. A baseline has none.
fn doubt(report: &Value) -> Option<String> {
    DOUBTS.iter().find_map(|key| match &report["coverage"][key] {
        Value::Array(lines) => Some(lines.first()?.as_str()?.to_owned()),
        Value::Object(lost) => Some(format!("lost: {}", lost.keys().next()?)),
        _ => None,
    })
}

impl Findings {
    fn read(file: &str) -> Result<Self, String> {
        let text = system::local_files::read_named(file).map_err(|error| format!("{file}: {error}"))?;
        let report: Value =
            serde_json::from_slice(&text).map_err(|error| format!("{file}: this is no report: {error}"))?;
        let shown =
            report["findings"].as_array().ok_or(format!("{file}: this is no report: it has no list of findings"))?;
        check_version(&report).map_err(|error| format!("{file}: {error}"))?;
        let keyed = |finding: &Value| Some((finding["fingerprint"].as_str()?.to_owned(), finding.clone()));
        let unnamed = || format!("{file}: this is no report: a finding has no fingerprint");
        let by_name = |list: &[Value]| list.iter().map(keyed).collect::<Option<BTreeMap<_, _>>>().ok_or_else(unnamed);
        Ok(Self {
            shown: by_name(shown)?,
            set_aside: by_name(report["set_aside"].as_array().map_or(&[], Vec::as_slice))?,
            doubt: doubt(&report),
        })
    }

    fn has(&self, fingerprint: &str) -> bool {
        self.shown.contains_key(fingerprint) || self.set_aside.contains_key(fingerprint)
    }
}

/// Compares them: `--error-exitcode` when there are new ones; otherwise 70 when the newer run was
/// not fully checked.
pub(crate) fn main(args: &DiffArgs, options: &Options) -> Ending {
    let (old, new) = match (Findings::read(&args.old), Findings::read(&args.new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) | (_, Err(error)) => return wrong(&error),
    };
    for (report, file, so) in [(&old, &args.old, "new"), (&new, &args.new, "gone")] {
        if let Some(why) = &report.doubt {
            let why = harmless(why);
            system::say!("NOTE: {file}: not fully checked ({why}): a finding may seem {so} that is not");
        }
    }
    let split = |from: &Findings, there: &Findings, known: bool| -> Vec<Value> {
        from.shown.iter().filter(|(name, _)| there.has(name) == known).map(|(_, finding)| finding.clone()).collect()
    };
    let (added, kept, gone) = (split(&new, &old, false), split(&new, &old, true), split(&old, &new, false));
    // Of the older report; the newer run has found it, and its suppressions or baseline know it.
    let is_aside = |name: &String| new.set_aside.contains_key(name) && !new.shown.contains_key(name);
    let aside: Vec<Value> =
        old.shown.iter().filter(|(name, _)| is_aside(name)).map(|(_, finding)| finding.clone()).collect();
    let mut printed = Ending::default();
    if args.json.is_asked() {
        let lists = json!({ "new": added, "gone": gone, "kept": kept, "set_aside": aside });
        let inputs = [&args.old, &args.new].map(FileName::from);
        printed = args.json.print(&format!("{lists:#}\n"), &inputs);
    } else if !options.quiet || !added.is_empty() {
        let mut text = String::new();
        for (title, list) in [("NEW", &added), ("GONE", &gone), ("KEPT", &kept), ("ASIDE", &aside)] {
            if title == "NEW" || !options.quiet {
                list.iter().for_each(|finding| text.push_str(&format!("{title:<4} {}\n", line(finding))));
            }
        }
        let findings = counted(added.len() as u64, "new finding", "new findings");
        let also = if aside.is_empty() { String::new() } else { format!(", {} set aside", aside.len()) };
        text.push_str(&format!("streamsan: DIFF: {findings}, {} gone, {} kept{also}\n", gone.len(), kept.len()));
        printed = print(&text);
    }
    let fails = options.error_exitcode != 0 && !added.is_empty();
    // What the older run did not find is new, if anything; what the newer one did not, may be
    // there.
    printed.and(fails, Reason::Findings(options.error_exitcode)).and(new.doubt.is_some(), Reason::Incomplete)
}

/// A finding in one line.
fn line(finding: &Value) -> String {
    let text = |value: &Value| harmless(value.as_str().unwrap_or_default()).into_owned();
    let access = side(&finding["access"]);
    let (hazard, confidence) = (text(&finding["hazard"]), text(&finding["confidence"]));
    // A broken rule has one side.
    let after = match &finding["previous"] {
        Value::Null => String::new(),
        previous => format!(" after {}", side(previous)),
    };
    format!("{hazard} ({confidence}): {access}{after} [{}]", text(&finding["fingerprint"]))
}

/// `copy at file.cu:12`, of a report or of a baseline, which has it as text.
fn side(side: &Value) -> String {
    let text = |value: &Value| harmless(value.as_str().unwrap_or_default()).into_owned();
    if side.is_string() {
        return text(side);
    }
    let what = match text(&side["kernel"]) {
        kernel if kernel.is_empty() => text(&side["call"]),
        kernel => kernel,
    };
    let has_line = |frame: &&Value| frame["kind"] != "folded" && frame["file"].is_string();
    let frame = side["stack"].as_array().into_iter().flatten().find(has_line);
    let place = frame.map(|frame| {
        let file = text(&frame["file"]);
        let file = file.rsplit('/').next().unwrap_or_default().to_owned();
        frame["line"].as_u64().map_or(file.clone(), |line| format!("{file}:{line}"))
    });
    let what = if what.is_empty() { text(&side["operation"]) } else { what };
    place.map_or(what.clone(), |place| format!("{what} at {place}"))
}
