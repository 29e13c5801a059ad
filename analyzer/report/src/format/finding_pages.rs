//! The pages of the documentation on kinds of findings.
//!
//! Owns the list of kinds that have a page, and where readers find the pages. The pages are those
//! of `docs/findings`.

use crate::model::{GateStatus, Report};
use crate::words::FindingKind;

macro_rules! pages {
    ($($kind:literal),* $(,)?) => {
        /// Kinds and their pages.
        const PAGES: &[(&str, &str)] =
            &[$(($kind, include_str!(concat!("../../../../docs/findings/", $kind, ".md")))),*];
    };
}

pages![
    "read-after-write",
    "write-after-write",
    "write-after-read",
    "race-inside-kernel",
    "stale-graph-memory",
    "uninitialized-read",
    "freed-without-record_stream",
    "freed-while-used",
    "forbidden-default-stream",
    "forbidden-sync",
    "forbidden-unnamed-stream",
];

/// The kinds that have a page.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(kind, _)| *kind)
}

/// The page of a kind, in Markdown.
pub fn page(kind: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == kind).map(|(_, page)| *page)
}

/// Where the documentation is as a site (`scripts/site`), told when the product is built.
const SITE: Option<&str> = option_env!("STREAMSAN_SITE");

/// The repository that the product was released from, as `owner/name`, told when it is built.
const REPOSITORY: Option<&str> = option_env!("STREAMSAN_REPOSITORY");

/// Where the documentation is. Without its site, the repository has the pages; a build that was
/// told of neither names no address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Documentation {
    Site(&'static str),
    Repository(&'static str),
}

impl Documentation {
    /// That of this build.
    pub(crate) fn of_build() -> Option<Self> {
        Self::of(SITE, REPOSITORY)
    }

    fn of(site: Option<&'static str>, repository: Option<&'static str>) -> Option<Self> {
        let told = |text: &&str| !text.is_empty();
        let site = site.filter(told).map(Self::Site);
        site.or_else(|| repository.filter(told).map(Self::Repository))
    }

    /// The address of its first page.
    pub(crate) fn home(self) -> String {
        match self {
            Self::Site(site) => site.to_owned(),
            Self::Repository(name) => format!("https://github.com/{name}"),
        }
    }

    /// The address of the page of a kind.
    pub(crate) fn page(self, kind: &str) -> String {
        match self {
            Self::Site(site) => format!("{}/findings/{kind}/", site.trim_end_matches('/')),
            Self::Repository(_) => {
                format!("{}/blob/v{}/docs/findings/{kind}.md", self.home(), env!("CARGO_PKG_VERSION"))
            }
        }
    }
}

/// The kinds of what a report shows, each once, and how to read the page of each.
pub(crate) fn further(report: &Report) -> Vec<(String, Option<String>)> {
    let documentation = Documentation::of_build();
    let findings = report.shown().map(|f| match f.kind {
        FindingKind::FreedWithoutRecordStream | FindingKind::FreedWhileUsed => f.kind.name(),
        _ => f.rule(),
    });
    let breaches = report.breaches.iter().filter(|b| b.standing == GateStatus::New).map(|b| b.kind.name());
    let mut named: Vec<&str> = Vec::new();
    for kind in findings.chain(breaches).filter(|kind| page(kind).is_some()) {
        if !named.contains(&kind) {
            named.push(kind);
        }
    }
    let command = |kind| (format!("streamsan explain {kind}"), documentation.map(|all| all.page(kind)));
    named.into_iter().map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings");
        let names = std::fs::read_dir(folder).expect("the pages").flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> =
            names.map(|name| name.to_string_lossy().trim_end_matches(".md").to_owned()).collect();
        names.sort_unstable();
        let mut listed: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(names, listed);
        assert!(page("read-after-write").is_some_and(|page| page.starts_with("# read-after-write\n")));
        assert_eq!(page("deadlock"), None);
    }

    #[test]
    fn pages_are_on_the_site_or_else_in_the_repository() {
        let of =
            |site, repository| Documentation::of(site, repository).map(|all| (all.home(), all.page("forbidden-sync")));
        let site = of(Some("https://docs.example/streamsan/"), Some("acme/tools")).expect("a site");
        assert_eq!(site.0, "https://docs.example/streamsan/");
        assert_eq!(site.1, "https://docs.example/streamsan/findings/forbidden-sync/");
        for without in [None, Some("")] {
            let (home, page) = of(without, Some("acme/tools")).expect("a repository");
            assert_eq!(home, "https://github.com/acme/tools");
            let version = env!("CARGO_PKG_VERSION");
            assert_eq!(page, format!("https://github.com/acme/tools/blob/v{version}/docs/findings/forbidden-sync.md"));
        }
        assert_eq!(of(None, None), None);
        assert_eq!(of(Some(""), Some("")), None);
    }
}
