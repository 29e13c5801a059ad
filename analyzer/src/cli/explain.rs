//! `streamsan explain`: what the kernels of a file read and write, or what a kind of finding is.

use super::arguments::Takes;
use super::arguments::as_json::AsJson;
use super::common::{print, unreadable, wrong};
use crate::tools::explain::{Asked, describe};
use report::format::finding_pages::{kinds, page};
use settings::Options;
use settings::exit_code::Ending;
use settings::nearest::nearest;
use system::file_name::FileName;

/// Show what kernels touch, as far as it is known, or what a kind of finding means
#[derive(clap::Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    json: AsJson,
    /// A trace, a file with code (program, library, cubin, fatbin, PTX), or a kind of finding
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    /// Only kernels whose mangled name contains this
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
    #[command(flatten)]
    _options: Takes<{ options::Command::Explain as u16 }>,
}

/// Prints it.
pub(crate) fn main(args: &ExplainArgs, options: &Options) -> Ending {
    // A file of that name comes first.
    if !args.file.exists() {
        match kind(&args.file.to_string(), args.json.is_asked()) {
            Some(Ok(page)) => return print(page),
            Some(Err(error)) => return wrong(&error),
            None => {}
        }
    }
    detect::launches::image_reader::set_cache(options.cache.as_ref());
    match describe(&args.file, args.kernel.as_deref(), args.json.is_asked()) {
        Ok((Asked::Text(text), torn)) => {
            let inputs = std::slice::from_ref(&args.file);
            args.json.print(&text, inputs).joined(unreadable(&args.file, torn))
        }
        // The kernel may be in the part that cannot be read.
        Ok((Asked::Nothing(_), torn @ Some(_))) => unreadable(&args.file, torn),
        Ok((Asked::Nothing(names), None)) => wrong(&nothing(&args.file, args.kernel.as_deref(), &names)),
        Err(error) => wrong(&error),
    }
}

/// The page of a kind of finding, or what is wrong with a word that was meant to be one; `None`: it
/// looks like the name of a file.
fn kind(word: &str, json: bool) -> Option<Result<&'static str, String>> {
    let name = word.to_lowercase();
    if let Some(page) = page(&name) {
        return Some(if json { Err(format!("{name} is a kind of finding: its page is no JSON")) } else { Ok(page) });
    }
    if word.contains(['/', '.']) {
        return None;
    }
    let beginning = kinds().find(|kind| name.len() > 3 && kind.starts_with(&name)).map(str::to_owned);
    let near = beginning.or_else(|| nearest(&name, kinds().map(str::to_owned)));
    let near = near.map_or_else(|| ".".to_owned(), |near| format!(". Did you mean '{near}'?"));
    let all: Vec<&str> = kinds().collect();
    Some(Err(format!("there is neither a file nor a kind of finding '{word}'{near} The kinds are {}", all.join(", "))))
}

/// Kernels that a message names.
const NAMED: usize = 8;

fn nothing(file: &FileName, kernel: Option<&str>, names: &[String]) -> String {
    let Some(kernel) = kernel.filter(|_| !names.is_empty()) else { return format!("{file}: no kernel found") };
    let names: Vec<String> = names.iter().map(|name| symbols::demangle(name)).collect();
    let near = nearest(kernel, names.iter().cloned());
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    let list: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{file}: no kernel whose name contains '{kernel}'{near}; there are {}{more}", list.join(", "))
}
