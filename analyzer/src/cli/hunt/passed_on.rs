//! The options of a hunt, as each of its programs gets them.
//!
//! Owns which options go on to `streamsan run`: those about running and detection. What fails the
//! run and what is written is the hunt's own. The programs get all of them as words, for their
//! working folders may hold other configuration files.

use std::ffi::{OsStr, OsString};

use options::{Id, Kind, ROWS};

use settings::Options;
use system::file_name::FileName;

/// The words for `streamsan run`.
pub(crate) fn words(options: &Options) -> Vec<OsString> {
    let mut words = Vec::new();
    for row in ROWS {
        for value in values(options, row.id) {
            let value = match row.kind {
                // Programs run in other folders.
                Kind::File | Kind::Folders | Kind::PathOrOff(_) if value != "off" => absolute(&value),
                _ => value,
            };
            let mut word = OsString::from(format!("--{}=", row.name));
            word.push(value);
            words.push(word);
        }
    }
    words
}

fn absolute(path: &OsStr) -> OsString {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), Into::into)
}

/// What an option is to be set to; nothing where the default holds, or where the hunt itself acts
/// on it.
fn values(o: &Options, id: Id) -> Vec<OsString> {
    let word = |text: &str| vec![OsString::from(text)];
    let flag = |on: bool| word(if on { "yes" } else { "no" });
    let named = |name: &Option<FileName>| name.iter().map(OsString::from).collect();
    let words = |list: &[String]| list.iter().map(OsString::from).collect();
    match id {
        Id::Stacks => flag(o.stacks),
        Id::Soname => flag(o.soname),
        Id::HostWrites => flag(o.shim.host_writes),
        Id::HostAccesses => flag(o.shim.host_accesses),
        Id::HostInPlace => flag(o.shim.host_in_place),
        Id::HostSample => word(&o.shim.host_sample.to_string()),
        Id::RingMib => word(&o.shim.ring_mib.to_string()),
        Id::LaunchBlocking => flag(o.shim.launch_blocking),
        Id::TorchAllocator => word(if o.torch_async { "async" } else { "native" }),
        Id::Cache => named(&o.cache),
        Id::Sim => flag(o.sim),
        Id::SimSchedule => o.sim_options.schedule.map(OsString::from).into_iter().collect(),
        Id::SimPredict => flag(o.sim_options.predict),
        Id::SimSeed => o.sim_options.seed.map(|seed| seed.to_string().into()).into_iter().collect(),
        Id::Inside => match o.inside.as_deref() {
            None => Vec::new(),
            Some("") => flag(true),
            Some(kernels) => word(kernels),
        },
        Id::Initcheck => flag(o.initcheck),
        Id::Pedantic => flag(o.judging.pedantic),
        Id::Policy => word(if o.judging.policy == order::Policy::Documented { "documented" } else { "observed" }),
        Id::Latent => flag(o.judging.latent),
        Id::PageableCopies => flag(o.judging.pageable_copies),
        Id::HostOrder => word(if o.judging.host_threads { "threads" } else { "merged" }),
        Id::Hints => flag(o.judging.hints),
        Id::DefaultStream => o.assumptions.default_stream.map(|kind| kind.word().into()).into_iter().collect(),
        Id::Without => words(&o.assumptions.without),
        Id::Forbid => words(&o.forbid),
        Id::SymbolPath => o.symbol_path.iter().map(OsString::from).collect(),
        Id::Library => words(&o.library),
        Id::Exact => match o.exact.kernels.as_deref() {
            None => flag(false),
            Some("") => flag(true),
            Some(kernels) => word(kernels),
        },
        Id::Confirm if o.exact.confirm || o.exact.once => flag(o.exact.confirm),
        Id::SanitizerLibrary => named(&o.exact.library),
        Id::ExactPatch => named(&o.exact.patch),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use options::{Command, Group};

    #[test]
    fn what_is_about_running_and_detection_goes_on_and_arrives() {
        for row in ROWS.iter().filter(|row| row.commands.has(Command::Hunt)) {
            // Filters are the gate's, and a program's own report shows all.
            let is_filter = row.name.starts_with("only-") || row.name.starts_with("ignore-");
            let own = matches!(row.group, Group::Gate | Group::Output) || is_filter || row.id == Id::Config;
            let text = match row.kind {
                Kind::Flag if row.default == "yes" => "no",
                Kind::Flag => "yes",
                Kind::Number { .. } => "7",
                Kind::Rules(words) => words[0],
                Kind::Choice(words) => words.iter().find(|word| **word != row.default).expect("a choice"),
                _ => "/some",
            };
            let mut options = Options::default();
            options.set(row.id, row.value(text.as_bytes()).expect("a value"));
            let there = words(&options) != words(&Options::default());
            assert_eq!(there, !own, "{}", row.name);
            let mut arrived = Options::default();
            for word in words(&options) {
                let word = word.into_string().expect("text");
                let (name, value) = word.trim_start_matches("--").split_once('=').expect("a value");
                let row = options::named(name.as_bytes()).expect("an option");
                assert!(row.commands.has(Command::Run), "{name}");
                arrived.set(row.id, row.value(value.as_bytes()).expect("a value"));
            }
            assert!(own || arrived == options, "{}: {arrived:?}", row.name);
        }
    }

    #[test]
    fn files_are_named_for_every_working_folder() {
        let options = Options { cache: Some("kept".into()), symbol_path: vec!["a".into()], ..Options::default() };
        let words = words(&options);
        let here = std::env::current_dir().expect("a folder");
        assert!(words.contains(&format!("--cache={}/kept", here.display()).into()), "{words:?}");
        assert!(words.contains(&format!("--symbol-path={}/a", here.display()).into()), "{words:?}");
    }
}
