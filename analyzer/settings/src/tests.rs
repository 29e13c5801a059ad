//! The table and the struct hold together.

use super::*;

#[test]
fn every_default_of_the_table_is_the_default() {
    let mut options = Options::default();
    // To a hunt `--no-confirm` says more than nothing: that no program runs a second time.
    for row in ROWS.iter().filter(|row| !row.default.is_empty() && row.id != Id::Confirm) {
        options.set(row.id, row.value(row.default.as_bytes()).expect("a default"));
    }
    assert_eq!(options, Options::default());
    options.set(Id::Confirm, Value::Flag(false));
    assert_eq!((options.exact.confirm, options.exact.once), (false, true));
    options.set(Id::Confirm, Value::Flag(true));
    assert_eq!((options.exact.confirm, options.exact.once), (true, false));
}

#[test]
fn every_option_is_stored_somewhere() {
    for row in ROWS {
        let words: &[&str] = match row.kind {
            Kind::Flag => &["yes", "no"],
            Kind::Number { .. } => &["7"],
            Kind::Amount(_) => &["7MiB"],
            Kind::Choice(words) | Kind::Rules(words) => &words[words.len() - 1..],
            _ => &["some"],
        };
        let changes = words.iter().any(|word| {
            let mut options = Options::default();
            options.set(row.id, row.value(word.as_bytes()).expect("a value"));
            options != Options::default()
        });
        assert!(changes, "{}", row.name);
    }
}

#[test]
fn the_environment_is_read_as_the_shim_reads_it() {
    let mut o = Options::default();
    let wrong = o.read_env(b"error-exitcode=0:pedantic=1:json=/tmp/x.json:no-stacks::policy=documented:exact=off");
    assert_eq!(wrong, [""; 0]);
    assert_eq!((o.error_exitcode, o.judging.pedantic, o.stacks), (0, true, false));
    assert_eq!((o.judging.policy, o.exact.kernels.as_deref()), (Policy::Documented, None));
    assert_eq!(
        o.read_env(b"jsn=x:json:pedantic=off"),
        ["unknown option 'jsn'; did you mean 'json'?", "option 'json' needs a value"]
    );
    assert!(!o.judging.pedantic, "a mistake hides nothing behind it");
    assert_eq!(o.read_env(b"no-stack"), ["unknown option 'no-stack'; did you mean 'no-stacks'?"]);
}

#[test]
fn the_shim_gets_what_holds_in_the_end() {
    let told = |environment: &str, words: &[(Id, &[u8])]| {
        let mut o = Options::default();
        o.read_env(environment.as_bytes());
        words.iter().for_each(|(id, text)| o.set(*id, options::find(*id).value(text).expect("a value")));
        String::from_utf8(o.for_shim(environment.as_bytes(), Vec::new())).expect("text")
    };
    assert_eq!(told("", &[]), "");
    assert_eq!(told("stacks=0:json=x", &[]), "stacks=0:json=x");
    assert_eq!(told("stacks=0", &[(Id::Stacks, b"yes")]), "stacks=0:stacks=yes");
    assert_eq!(told("", &[(Id::RingMib, b"8"), (Id::HostOrder, b"threads")]), "ring-mib=8:host-order=threads");
    assert_eq!(told("exact=sort", &[(Id::Exact, b"off")]), "exact=sort:exact=no");
}

#[test]
fn what_excludes_each_other_is_refused() {
    let of = |text: &str| {
        let mut o = Options::default();
        assert_eq!(o.read_env(text.as_bytes()), [""; 0]);
        o.consistent().err().unwrap_or_default()
    };
    assert_eq!(of("latent:host-order=threads"), "--latent and --host-order threads exclude each other");
    assert!(of("off:require-cuda").starts_with("--off and --require-cuda exclude each other"));
    assert_eq!(of("symbol-path=/nosuch"), "--symbol-path: there is no folder '/nosuch'");
    assert_eq!(of("symbol-path=/:latent"), "");
}
