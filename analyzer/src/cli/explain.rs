//! `streamsan explain`: what the kernels of a file read and write, or what a kind of finding is.

use super::arguments::Given;
use super::common::{print, unreadable, wrong};
use crate::tools::explain::{Asked, describe};
use report::format::finding_pages::page;
use settings::Options;
use settings::exit_code::Ending;
use settings::nearest::nearest;
use system::file_name::FileName;

/// Show what kernels touch, as far as it is known, or what a kind of finding means
#[derive(clap::Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Print JSON
    #[arg(long = "json", id = "as-json")]
    json: bool,
    /// A trace, a file with code (program, library, cubin, fatbin, PTX), or a kind of finding
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    /// Only kernels whose mangled name contains this
    #[arg(value_name = "KERNEL")]
    kernel: Option<String>,
    #[command(flatten)]
    pub(super) options: Given<{ options::Command::Explain as u16 }>,
}

/// Prints it.
pub(crate) fn main(args: &ExplainArgs, options: &Options) -> Ending {
    // A file of that name comes first.
    if let Some(page) = page(&args.file.to_string()).filter(|_| !args.file.exists()) {
        return print(page);
    }
    detect::launches::image_reader::set_cache(options.cache.as_ref());
    match describe(&args.file, args.kernel.as_deref(), args.json) {
        Ok((Asked::Text(text), torn)) => print(&text).joined(unreadable(&args.file, torn)),
        // The kernel may be in the part that cannot be read.
        Ok((Asked::Nothing(_), torn @ Some(_))) => unreadable(&args.file, torn),
        Ok((Asked::Nothing(names), None)) => wrong(&nothing(&args.file, args.kernel.as_deref(), &names)),
        Err(error) => wrong(&error),
    }
}

/// Kernels that a message names.
const NAMED: usize = 8;

fn nothing(file: &FileName, kernel: Option<&str>, names: &[String]) -> String {
    let Some(kernel) = kernel.filter(|_| !names.is_empty()) else { return format!("{file}: no kernel found") };
    let near = nearest(kernel, names.iter().cloned());
    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    let list: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{file}: no kernel whose name contains '{kernel}'{near}; there are {}{more}", list.join(", "))
}
