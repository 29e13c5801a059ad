//! Options whose value is one of a few words: what fails a run, and how reports look.

/// The weakest finding that fails a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum FailOn {
    /// Only certain ones.
    Certain,
    /// Certain and likely ones.
    #[default]
    Likely,
    /// All that are not latent.
    Possible,
    /// Certain and likely ones, latent ones too (with `--pedantic`: all).
    Latent,
}

impl FailOn {
    /// The word of the option.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
            Self::Latent => "latent",
        }
    }
}

/// How the report on stderr, or in `--log-file`, is written. Files of other formats have an option
/// each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people; under GitHub Actions followed by annotations.
    Text,
    /// One line for each finding.
    Short,
    /// GitHub's annotations, coverage and summary.
    Github,
    /// As PyTorch's CUDA Sanitizer words it.
    Csan,
}

/// When to colour text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
