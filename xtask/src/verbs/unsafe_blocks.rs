//! `cargo xtask unsafe`: how much unsafe code each crate has.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::columns::Table;
use crate::workspace;

/// Count the unsafe blocks and functions of each crate's sources.
///
/// A block without a reason beside it is an error of clippy; this checks that each crate takes that
/// lint.
#[derive(clap::Args)]
pub struct UnsafeBlocksArgs {}

/// Prints a row for each crate.
pub fn run(_: &UnsafeBlocksArgs) -> Result<ExitCode> {
    let mut table = Table::new(&["crate", "blocks", "functions"]);
    let sources = workspace::files("rs")?;
    for folder in workspace::crates()? {
        let (mut blocks, mut functions) = (0, 0);
        for file in sources.iter().filter(|file| file.starts_with(folder.join("src"))) {
            let text = std::fs::read_to_string(workspace::root().join(file))?;
            // Comments do not count; an `unsafe extern` block of declarations does not either.
            for code in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
                blocks += words(code, &[UNSAFE, "{"], |_| true);
                let is_name = |next: char| next.is_ascii_alphabetic() || next == '_';
                functions += words(code, &[UNSAFE, "fn "], is_name);
                functions += words(code, &[UNSAFE, "extern \"C\" fn "], is_name);
            }
        }
        table.row([folder.display().to_string(), blocks.to_string(), functions.to_string()]);
        let manifest = std::fs::read_to_string(workspace::root().join(&folder).join("Cargo.toml"))?;
        let is_member = !manifest.contains("[workspace]");
        if is_member && !manifest.contains("[lints]\nworkspace = true") {
            bail!("{} does not take the workspace's lints", folder.display());
        }
    }
    print!("{}", table.aligned());
    let manifest = std::fs::read_to_string(workspace::root().join("Cargo.toml")).context("Cargo.toml")?;
    if !manifest.contains("undocumented_unsafe_blocks = \"deny\"") {
        bail!("clippy's undocumented_unsafe_blocks is no error any more");
    }
    println!("each has its reason beside it: clippy's undocumented_unsafe_blocks is an error");
    Ok(ExitCode::SUCCESS)
}

/// Apart from what follows it, so that this file does not count itself.
const UNSAFE: &str = "unsafe ";

/// How often a text stands in a line: not as the end of a longer word, and before such a character.
fn words(line: &str, text: &[&str], before: impl Fn(char) -> bool) -> usize {
    let text = text.concat();
    let is_word = |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let goes_on = |at: usize| line[at + text.len()..].chars().next().is_none_or(&before);
    line.match_indices(&text).filter(|&(at, _)| !is_word(at) && goes_on(at)).count()
}
