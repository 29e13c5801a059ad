//! The files that reports are written to, one for each format.
//!
//! Owns the table of these formats, with their options: what can be written (`cli/outputs.rs`) and
//! what implies `--require-cuda` follow from it. What a format holds is `report::format`'s.

use system::file_name::FileName;

macro_rules! report_files {
    ($($field:ident $option:literal $doc:literal;)+) => {
        /// Where each report is written, if anywhere.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct ReportFiles {
            $(#[doc = $doc] pub $field: Option<FileName>,)+
        }

        impl ReportFiles {
            /// How many there are.
            pub const COUNT: usize = [$($option),+].len();

            /// Each with the option that names it.
            pub fn all(&self) -> [(&'static str, Option<&FileName>); Self::COUNT] {
                [$(($option, self.$field.as_ref())),+]
            }

            /// Each with the option that names it, to be changed.
            pub fn all_mut(&mut self) -> [(&'static str, Option<&mut FileName>); Self::COUNT] {
                [$(($option, self.$field.as_mut())),+]
            }
        }
    };
}

report_files! {
    json "--json" "The JSON report.";
    sarif "--sarif" "SARIF.";
    html "--html" "The page.";
    junit "--junit" "JUnit XML.";
    code_quality "--code-quality" "GitLab's Code Quality JSON.";
    markdown "--markdown" "Markdown.";
    parquet "--parquet" "The findings as Parquet.";
}
