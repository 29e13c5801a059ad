//! The options of a hunt, as each of its programs gets them.
//!
//! Owns which options go on to `streamsan run`: those about running and detection. What fails the
//! run and what is written is the hunt's own. The programs get all of them as words, for their
//! working folders may hold other configuration files.

use std::ffi::OsString;

use options::{Id, Kind, ROWS};

use crate::options::Options;

/// The words for `streamsan run`.
pub fn words(options: &Options) -> Vec<OsString> {
    let mut words = Vec::new();
    for row in ROWS {
        for value in values(options, row.id) {
            let value = match row.kind {
                // Programs run in other folders.
                Kind::File | Kind::Folders | Kind::PathOrOff(_) if value != "off" => absolute(&value),
                _ => value,
            };
            words.push(format!("--{}={value}", row.name).into());
        }
    }
    words
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// What an option is to be set to; nothing where the default holds, or where the hunt itself acts
/// on it.
fn values(o: &Options, id: Id) -> Vec<String> {
    let flag = |on: bool| vec![if on { "yes" } else { "no" }.to_owned()];
    let some = |value: Option<String>| value.into_iter().collect();
    match id {
        Id::Stacks => flag(o.stacks),
        Id::Soname => flag(o.soname),
        Id::HostWrites => flag(o.shim.host_writes),
        Id::HostAccesses => flag(o.shim.host_accesses),
        Id::HostInPlace => flag(o.shim.host_in_place),
        Id::HostSample => vec![o.shim.host_sample.to_string()],
        Id::RingMib => vec![o.shim.ring_mib.to_string()],
        Id::LaunchBlocking => flag(o.shim.launch_blocking),
        Id::TorchAllocator => vec![if o.torch_async { "async" } else { "native" }.to_owned()],
        Id::Cache => some(o.cache.clone()),
        Id::Sim => flag(o.sim),
        Id::SimSchedule => some(o.sim_options.schedule.map(str::to_owned)),
        Id::SimPredict => flag(o.sim_options.predict),
        Id::SimSeed => some(o.sim_options.seed.map(|seed| seed.to_string())),
        Id::Pedantic => flag(o.pedantic),
        Id::Policy => vec![if o.policy == order::Policy::Documented { "documented" } else { "observed" }.to_owned()],
        Id::Latent => flag(o.latent),
        Id::PageableCopies => flag(o.pageable_copies),
        Id::HostOrder => vec![if o.host_threads { "threads" } else { "merged" }.to_owned()],
        Id::Hints => flag(o.hints),
        Id::DefaultStream => some(o.assumptions.default_stream.map(|kind| kind.word().to_owned())),
        Id::Without => o.assumptions.without.clone(),
        Id::Forbid => o.forbid.clone(),
        Id::SymbolPath => o.symbol_path.clone(),
        Id::Library => o.library.clone(),
        Id::Exact => match o.exact.kernels.as_deref() {
            None => flag(false),
            Some("") => flag(true),
            Some(kernels) => vec![kernels.to_owned()],
        },
        Id::Confirm if o.exact.confirm || o.exact.once => flag(o.exact.confirm),
        Id::SanitizerLibrary => some(o.exact.library.clone()),
        Id::ExactPatch => some(o.exact.patch.clone()),
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
