//! Whether a run that made no use of CUDA fails, and why.
//!
//! Owns the rule: what the user said; else a run whose report is written to a file, or which runs
//! under continuous integration, must have checked something. A gate that is attached to nothing
//! would be green for ever.

use crate::Options;
use std::fmt;

/// Variables that continuous integration sets: most services, Azure Pipelines, Jenkins, TeamCity.
const VARIABLES: [&str; 4] = ["CI", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION"];

/// Why a run that made no use of CUDA fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CudaRequired {
    /// `--require-cuda`.
    Asked,
    /// This option writes a report.
    Report(&'static str),
    /// This variable is set.
    Integration(&'static str),
}

impl fmt::Display for CudaRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allow = "--no-require-cuda lets such runs pass";
        match self {
            Self::Asked => f.write_str("--require-cuda asks for it"),
            Self::Report(option) => write!(f, "--{option} asks for a report of it; {allow}"),
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
        self.cuda_required_under(VARIABLES.iter().find(is_set).copied())
    }

    fn cuda_required_under(&self, integration: Option<&'static str>) -> Option<CudaRequired> {
        let reports = [
            ("json", &self.json),
            ("sarif", &self.sarif),
            ("html", &self.html),
            ("junit", &self.junit),
            ("parquet", &self.parquet),
            ("code-quality", &self.code_quality),
            ("markdown", &self.markdown),
        ];
        match self.require_cuda {
            Some(true) => Some(CudaRequired::Asked),
            Some(false) => None,
            None if self.shim.off => None,
            None => {
                let written = reports.iter().find(|(_, file)| file.is_some());
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
            ("json=x", None, Some(CudaRequired::Report("json"))),
            ("quiet:sarif=x:html=y", Some("CI"), Some(CudaRequired::Report("sarif"))),
            ("junit=x:no-require-cuda", Some("CI"), None),
            ("parquet=x:require-cuda", None, Some(CudaRequired::Asked)),
            ("log-file=x:baseline=b", None, None),
        ] {
            let mut options = Options::default();
            assert_eq!(options.read_env(text.as_bytes()), [""; 0]);
            assert_eq!(options.cuda_required_under(ci), required, "{text} {ci:?}");
        }
    }

    #[test]
    fn each_reason_names_what_asked_and_what_allows() {
        assert_eq!(CudaRequired::Asked.to_string(), "--require-cuda asks for it");
        for (reason, name) in
            [(CudaRequired::Report("sarif"), "--sarif"), (CudaRequired::Integration("CI"), "CI is set")]
        {
            let text = reason.to_string();
            assert!(text.contains(name) && text.contains("--no-require-cuda"), "{text}");
        }
    }
}
