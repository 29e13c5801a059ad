//! Whether a run that made no use of CUDA fails, and why.
//!
//! Owns the rule: what the user said; else a run whose report is written to a file, or which runs
//! under continuous integration, must have checked something. A gate that is attached to nothing
//! would be green for ever.
//!
//! A tool that starts StreamSan and reads the JSON report itself (pytest's plugin) names that file
//! in [`READ_BY_CALLER`]: the user has not asked for it.

use crate::Options;
use std::ffi::OsStr;
use std::fmt;
use system::file_name::FileName;

/// Variables that continuous integration sets: most services, Azure Pipelines, Jenkins, TeamCity.
const VARIABLES: [&str; 4] = ["CI", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION"];

/// The variable that names a file of `--json` that no user has asked for.
const READ_BY_CALLER: &str = "STREAMSAN_JSON_READ_BY_CALLER";

/// Why a run that made no use of CUDA fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CudaRequired {
    /// `--require-cuda`.
    Asked,
    /// This option, with its dashes, writes a report.
    Report(&'static str),
    /// This variable is set.
    Integration(&'static str),
}

impl fmt::Display for CudaRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allow = "--no-require-cuda lets such runs pass";
        match self {
            Self::Asked => f.write_str("--require-cuda asks for it"),
            Self::Report(option) => write!(f, "{option} asks for a report of it; {allow}"),
            Self::Integration(variable) => write!(f, "{variable} is set in the environment; {allow}"),
        }
    }
}

impl Options {
    /// Why a run without CUDA work fails; `None`: it does not.
    pub fn cuda_required(&self) -> Option<CudaRequired> {
        let is_set = |name: &&&str| {
            std::env::var_os(name).is_some_and(|value| !["", "0", "false"].iter().any(|off| value == *off))
        };
        let read_by_caller = std::env::var_os(READ_BY_CALLER);
        self.cuda_required_under(VARIABLES.iter().find(is_set).copied(), read_by_caller.as_deref())
    }

    /// The same, with the variable of an integration that is set, and the JSON that is read by the
    /// caller.
    fn cuda_required_under(
        &self,
        integration: Option<&'static str>,
        read_by_caller: Option<&OsStr>,
    ) -> Option<CudaRequired> {
        let is_callers = |name: &str, file: &FileName| name == "--json" && Some(file.as_os_str()) == read_by_caller;
        match self.require_cuda {
            Some(true) => Some(CudaRequired::Asked),
            Some(false) => None,
            None if self.shim.off => None,
            None => {
                let mut reports = self.reports.all().into_iter();
                let written = reports.find(|(name, file)| file.is_some_and(|file| !is_callers(name, file)));
                let asked = written.map(|(option, _)| CudaRequired::Report(option));
                asked.or(integration.map(CudaRequired::Integration))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_counts_before_files_and_variables() {
        for (text, ci, required) in [
            ("", None, None),
            ("", Some("CI"), Some(CudaRequired::Integration("CI"))),
            ("off", Some("CI"), None),
            ("json=x", None, Some(CudaRequired::Report("--json"))),
            ("quiet:sarif=x:html=y", Some("CI"), Some(CudaRequired::Report("--sarif"))),
            ("junit=x:no-require-cuda", Some("CI"), None),
            ("parquet=x:require-cuda", None, Some(CudaRequired::Asked)),
            ("log-file=x:baseline=b", None, None),
        ] {
            let mut options = Options::default();
            assert_eq!(options.read_env(text.as_bytes()), [""; 0]);
            assert_eq!(options.cuda_required_under(ci, None), required, "{text} {ci:?}");
        }
    }

    #[test]
    fn json_that_the_caller_reads_asks_for_nothing_and_all_else_does() {
        for (text, ci, required) in [
            ("json=mine", None, None),
            ("json=mine:sarif=s", None, Some(CudaRequired::Report("--sarif"))),
            ("sarif=mine", None, Some(CudaRequired::Report("--sarif"))),
            ("json=other", None, Some(CudaRequired::Report("--json"))),
            ("json=mine", Some("CI"), Some(CudaRequired::Integration("CI"))),
            ("json=mine:require-cuda", None, Some(CudaRequired::Asked)),
        ] {
            let mut options = Options::default();
            assert_eq!(options.read_env(text.as_bytes()), [""; 0]);
            assert_eq!(options.cuda_required_under(ci, Some(OsStr::new("mine"))), required, "{text} {ci:?}");
        }
    }

    #[test]
    fn each_reason_names_what_asked_and_what_allows() {
        assert_eq!(CudaRequired::Asked.to_string(), "--require-cuda asks for it");
        for (reason, name) in
            [(CudaRequired::Report("--sarif"), "--sarif"), (CudaRequired::Integration("CI"), "CI is set")]
        {
            let text = reason.to_string();
            assert!(text.contains(name) && text.contains("--no-require-cuda"), "{text}");
        }
    }
}
