//! `streamsan fleet`: hands over to the Python package, which checks many traces on many machines.
//!
//! Owns the way from here to `streamsan.fleet`: which Python, where the package lies, and the line
//! for those who lack it. What the words mean is the package's.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::common::wrong;
use settings::exit_code::Ending;

/// Check the traces of many machines, on Ray or here, and ask the results (a Python package)
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct FleetArgs {
    /// check SOURCE... --out DATASET, report DATASET, queries; --help
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

const INSTALL: &str =
    "'fleet' is in the Python package: pip install 'FILE.whl[fleet]', with the wheel of scripts/package";

/// Becomes Python. A package or a dependency that is missing is one line, and code 2.
pub(crate) fn main(args: &FleetArgs) -> Ending {
    // Python searches the current folder first: its files may be anybody's, and are not imported.
    let script = format!(
        "import sys\n\
         sys.path[:] = [path for path in sys.path if path]\n\
         try:\n    from streamsan.fleet.__main__ import main\n\
         except ImportError as error:\n    sys.stderr.write(f\"streamsan: {{error}}; {}\\n\")\n    sys.exit(2)\n\
         sys.exit(main(sys.argv[1:]))",
        INSTALL.replace('"', "\\\"")
    );
    let mut python = Command::new("python3");
    python.arg("-c").arg(script).args(&args.words);
    let own = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_path_buf));
    if let Some(folder) = own {
        if let Some(package) = package(&folder) {
            let before = std::env::var_os("PYTHONPATH").unwrap_or_default();
            let mut paths: Vec<PathBuf> =
                std::env::split_paths(&before).filter(|p| !p.as_os_str().is_empty()).collect();
            paths.push(package);
            if let Ok(joined) = std::env::join_paths(paths) {
                python.env("PYTHONPATH", joined);
            }
        }
        // The analyzer that was asked is the one that checks.
        if std::env::var_os("STREAMSAN_BIN").is_none() {
            python.env("STREAMSAN_BIN", folder);
        }
    }
    let error = python.exec();
    wrong(&format!("python3: {error}; {INSTALL}"))
}

/// The folder that holds the package: an installed one has this program in its `bin`, a source
/// folder has it in `target/PROFILE`.
fn package(folder: &Path) -> Option<PathBuf> {
    let candidates = [folder.join("../.."), folder.join("../../python")];
    candidates
        .into_iter()
        .find(|path| path.join("streamsan/fleet/__main__.py").exists())
        .and_then(|p| p.canonicalize().ok())
}
