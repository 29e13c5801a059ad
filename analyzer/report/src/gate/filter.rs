//! Filters: which findings are wanted at all (`--only-kernel`, `--ignore-stream` and the like).
//!
//! Owns what a filter looks at. Findings that are left out are counted, and the report says so: a
//! filter is a blind spot that the user has chosen.

use super::pattern::Pattern;
use crate::model::{Finding, Side};
use settings::Filters;
use symbols::frame::FrameKind;

/// What a filter looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Kernel,
    Stream,
    Module,
}

/// One filter, and how many findings it has left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filter {
    field: Field,
    only: bool,
    patterns: Vec<Pattern>,
    /// As it was given, for the report: `--ignore-kernel 'fill'`.
    pub(crate) text: String,
    /// Findings left out.
    pub(crate) left_out: u64,
}

/// The given filters, ready to be applied. The error is a line for the user.
pub(crate) fn ready(filters: &Filters) -> Result<Vec<Filter>, String> {
    let all = [
        (Field::Kernel, true, &filters.only_kernel, "only-kernel"),
        (Field::Kernel, false, &filters.ignore_kernel, "ignore-kernel"),
        (Field::Stream, true, &filters.only_stream, "only-stream"),
        (Field::Stream, false, &filters.ignore_stream, "ignore-stream"),
        (Field::Module, true, &filters.only_module, "only-module"),
        (Field::Module, false, &filters.ignore_module, "ignore-module"),
    ];
    let given = all.into_iter().filter(|(_, _, patterns, _)| !patterns.is_empty());
    for (_, _, patterns, name) in given.clone() {
        if let Some(pattern) = patterns.iter().find(|pattern| Pattern::is_vacuous(pattern)) {
            return Err(format!("--{name}: the pattern '{pattern}' names nothing; '*' stands for all names"));
        }
    }
    Ok(given
        .map(|(field, only, patterns, name)| {
            let text: Vec<String> = patterns.iter().map(|p| format!("--{name} '{p}'")).collect();
            let patterns = patterns.iter().map(|p| Pattern::new(p)).collect();
            Filter { field, only, patterns, text: text.join(" "), left_out: 0 }
        })
        .collect())
}

impl Filter {
    /// Whether the finding stays.
    pub(crate) fn keeps(&self, finding: &Finding) -> bool {
        self.keeps_sides(&[&finding.access, &finding.previous])
    }

    /// Whether what has these sides stays.
    pub(crate) fn keeps_sides(&self, sides: &[&Side]) -> bool {
        sides.iter().any(|side| self.names(side)) == self.only
    }

    fn names(&self, side: &Side) -> bool {
        let any = |text: &str| self.patterns.iter().any(|p| p.matches(text));
        match self.field {
            Field::Kernel => side.kernel.as_deref().is_some_and(any),
            Field::Stream => any(&side.stream.long),
            Field::Module => {
                let named = |f: &symbols::frame::Frame| {
                    f.module.as_deref().is_some_and(any) || f.file.as_deref().is_some_and(any)
                };
                let mut shown = side.stack.iter().filter(|f| f.kind != FrameKind::Folded);
                // Every stack ends in the program itself, so ignoring a library means the calls
                // that the library itself has made.
                if self.only { shown.any(named) } else { shown.next().is_some_and(named) }
            }
        }
    }
}
