//! The grammar as a whole: commands, options before and behind them, the program's own words.

use std::ffi::OsString;

use super::*;
use settings::exit_code;

fn line(text: &str) -> Result<(Command, Options), String> {
    with(text, "config=off")
}

fn with(text: &str, environment: &str) -> Result<(Command, Options), String> {
    let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    let line = parse(&args).map_err(|ended| match ended {
        Ended::Print(text) => format!("printed {}", text.lines().next().unwrap_or_default()),
        Ended::Wrong(error) => error,
    })?;
    let options = resolve(&line, environment.as_bytes())?;
    Ok((line.command, options))
}

fn refused(text: &str) -> String {
    line(text).expect_err("refused")
}

/// The command as it is shown by `Debug`, which names its words.
fn words(text: &str) -> String {
    format!("{:?}", line(text).expect("words").0)
}

#[test]
fn words_behind_the_program_are_its_own() {
    assert!(words("./app --pedantic -- x").contains(r#"["./app", "--pedantic", "--", "x"]"#));
    assert!(!line("./app --pedantic").unwrap().1.judging.pedantic);
    assert!(line("--pedantic ./app").unwrap().1.judging.pedantic);
    assert!(words("run -- run record").contains(r#"["run", "record"]"#));
    assert!(words("-- check x").starts_with(r#"Run(RunArgs { program: ["check", "x"]"#));
    assert!(words("record -o t -- -x").contains(r#"["-x"]"#));
    assert!(words("--json r.json ./app --json y").contains(r#"["./app", "--json", "y"]"#));
    assert!(words("./app check help").contains(r#"["./app", "check", "help"]"#));
    assert!(words("run ./app -V -h --help").contains(r#"["./app", "-V", "-h", "--help"]"#));
}

#[test]
fn options_may_stand_before_the_command() {
    let (command, options) = line("--pedantic check --latent t").unwrap();
    assert!(matches!(command, Command::Check(_)) && options.judging.pedantic && options.judging.latent);
    // The word nearer to the end holds.
    assert_eq!(line("--error-exitcode 3 check --error-exitcode 4 t").unwrap().1.error_exitcode, 4);
    assert_eq!(refused("--sim check t"), "check does not take '--sim'; run, hunt and record do");
}

#[test]
fn commands_with_files_take_options_anywhere() {
    let (command, options) = line("check a.trace --pedantic b.trace").unwrap();
    assert!(format!("{command:?}").contains(r#"["a.trace", "b.trace"]"#) && options.judging.pedantic);
    for (json, file) in [("--json", r#"Some("-")"#), ("--json=j", r#"Some("j")"#)] {
        let given = words(&format!("explain t saxpy {json}"));
        assert!(given.contains(&format!("AsJson {{ json: {file} }}")), "{given}");
        assert!(given.contains(r#"file: "t", kernel: Some("saxpy")"#), "{given}");
    }
    // What follows without '=' is the file to explain.
    assert!(words("explain --json t").contains(r#"file: "t", kernel: None"#));
    assert!(words("coverage").contains("file: None") && words("coverage t").contains(r#"file: Some("t")"#));
    assert_eq!(line("memory --json m t").unwrap().1.reports.json, Some("m".into()));
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (text, error) in [
        ("check", "check needs FILE...; try 'streamsan help check'"),
        ("dump", "dump needs FILE; try 'streamsan help dump'"),
        ("dump a b", "dump does not take 'b'"),
        ("coverage a b", "coverage does not take 'b'"),
        ("check --sim t", "check does not take '--sim'; run, hunt and record do"),
        ("check --no-stacks t", "check does not take '--no-stacks'; run, hunt and record do"),
        ("dump --pedantic t", "dump does not take '--pedantic'; run, hunt and check do"),
        (
            "record -o t --json r ./a",
            "record does not take '--json'; run, hunt, check, excess and memory do; diff, dump and explain take it without a file",
        ),
        ("--latent --host-order threads ./a", "--latent and --host-order threads exclude each other"),
        ("--symbol-path /nosuch ./a", "--symbol-path: there is no folder '/nosuch'"),
        ("--ring-mib 0 ./a", "option 'ring-mib' takes a number from 1 to 4096, not '0'"),
        ("", "streamsan needs a program to run; try 'streamsan --help'"),
        ("--pedntic ./app", "unknown option '--pedntic'; did you mean '--pedantic'?"),
        ("--jsn x ./app", "unknown option '--jsn'; did you mean '--json'?"),
        ("-x ./app", "unknown option '-x'"),
        ("--json", "option '--json' needs a value"),
        ("run --timeout 5 ./a", "run does not take '--timeout'; hunt does"),
        ("check --only x t", "check does not take '--only'; hunt does"),
        ("hunt --timeout abc d", "'abc' is no value of '--timeout': a whole number is wanted"),
        ("hunt --timeout 0 d", "'0' is no value of '--timeout': a number from 1 to 1000000 is wanted"),
        (
            "doctor --json x",
            "doctor does not take '--json'; run, hunt, check, excess and memory do; diff, dump and explain take it without a file",
        ),
        ("init --quiet", "init does not take '--quiet'; run, hunt, record, check and diff do"),
        ("--config= ./a", "option '--config' needs a value"),
        ("--policy strict ./a", "option 'policy' takes observed or documented, not 'strict'"),
        ("completions tcsh", "'tcsh' is no value of 'SHELL'; there are bash, elvish, fish, powershell, zsh"),
        ("help chek", "there is no command 'chek'; did you mean 'check'?"),
    ] {
        assert_eq!(refused(text), error, "{text}");
        assert!(!error.contains('\n'));
    }
    assert_eq!(arguments::commands::meant("chek").as_deref(), Some("check"));
}

#[test]
fn the_command_line_overrides_the_environment() {
    let (_, options) = with("--error-exitcode=3 ./a", "config=off:error-exitcode=9:sim=1").unwrap();
    assert_eq!((options.error_exitcode, options.sim), (3, true));
    let error = with("./a", "config=off:bogus=1").expect_err("refused");
    assert_eq!(error, "in STREAMSAN_OPTIONS: unknown option 'bogus'");
    // The environment serves all commands.
    assert!(with("check t", "config=off:sim=1").is_ok());
}

#[test]
fn help_fits_a_terminal() {
    let mut all = shown();
    all.build();
    for command in std::iter::once(&all).chain(all.get_subcommands()) {
        let help = command.clone().render_long_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    let help = shown().render_help().to_string();
    for needed in ["--error-exitcode", "--no-stacks", "--json", "Exit codes", "Simulated GPU:", "coverage"] {
        assert!(help.contains(needed), "no {needed} in {help}");
    }
    for code in [exit_code::FINDINGS, exit_code::USAGE, exit_code::INTERNAL, exit_code::NO_CUDA] {
        assert!(help.contains(&format!("{code} ")), "no {code} in {help}");
    }
    assert!(!help.contains("attach-ring") && !help.contains("--no-sim "), "{help}");
    assert_eq!(refused("help check").split_whitespace().take(2).collect::<Vec<_>>(), ["printed", "Check"]);
    assert!(refused("check --version").starts_with("printed streamsan "));
}

#[test]
fn what_the_table_takes_is_what_the_help_shows() {
    let mut all = shown();
    all.build();
    for row in options::ROWS {
        for of in options::Command::ALL {
            let command = all.find_subcommand(of.name()).expect("a command");
            let name = format!("no-{}", row.name);
            let shows = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
            let own = row.switch_of.contains(&of.name()) || row.name == "output" && of == options::Command::Hunt;
            assert_eq!(shows(row.name) || shows(&name), row.commands.has(of) || own, "{} of {}", row.name, of.name());
        }
        for command in row.switch_of {
            let command = all.find_subcommand(command).expect("a command");
            let of_that_name = command.get_arguments().find(|arg| arg.get_long() == Some(row.name)).expect("a switch");
            let needs_no_value = of_that_name.get_num_args().is_none_or(|values| values.min_values() == 0);
            assert!(needs_no_value, "--{} of {}", row.name, command.get_name());
        }
    }
}

#[test]
fn completions_have_every_command_and_option() {
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut shown(), "streamsan", &mut text);
        let text = String::from_utf8_lossy(&text);
        for word in arguments::commands::NAMES.into_iter().chain(["error-exitcode", "no-stacks", "late-first"]) {
            assert!(text.contains(word), "{shell}: no {word}");
        }
        assert!(!text.contains("no-sim ") && !text.contains("option-"), "{shell}: hidden options show: {text}");
    }
}

#[test]
fn the_names_are_those_of_the_commands() {
    let shown = shown();
    let visible: Vec<&str> =
        shown.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name).collect();
    assert_eq!(visible, arguments::commands::NAMES);
}

#[test]
fn options_of_one_command_are_listed() {
    let shown = shown();
    for (option, command) in arguments::commands::OWN {
        let command = shown.find_subcommand(command).expect("a command");
        assert!(command.get_arguments().any(|arg| arg.get_long() == Some(option)), "{option}");
    }
}
