//! The pages of the documentation on kinds of findings.
//!
//! Owns the list of kinds that have a page. The pages are those of `docs/findings`.

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
}
