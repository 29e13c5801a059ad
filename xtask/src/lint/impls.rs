//! The methods of a type stand in at most five files. A type whose methods are spread over more is
//! one object that looks like several modules: each method may touch every field, and no import
//! tells which do.
//!
//! Implementations of traits do not count: they follow the trait.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::modules::{Target, Tree};

/// Most files with methods of one type.
const FILES: usize = 5;

/// Types that may have more: the file of the type, and its name. Both are the parameter of families
/// of functions, one file a family, as the recipe for an instruction describes it: a method of a
/// family calls those that make operands, and none of another family.
const FAMILIES: [(&str, &str); 2] = [
    // What a PTX instruction is compiled in.
    ("sim/exec/src/compile/function.rs", "Scope"),
    // What native code of an instruction is made in.
    ("sim/native/src/values.rs", "Values"),
];

/// Finds the types whose methods are spread over too many files.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut places: BTreeMap<(usize, &str), BTreeMap<usize, usize>> = BTreeMap::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for (path, line) in &module.impls {
            let (Some(Target::Item(home)), Some(name)) = (tree.resolve(at, path), path.last()) else { continue };
            places.entry((home, name)).or_default().entry(module.file).or_insert(*line);
        }
    }
    let mut found = Vec::new();
    for ((home, name), files) in places {
        let home = &tree.files[tree.modules[home].file];
        let is_family = FAMILIES.iter().any(|(file, family)| home.ends_with(file) && *family == name);
        if files.len() <= FILES || is_family {
            continue;
        }
        let text = format!("methods of `{name}` stand in {} files, and {FILES} are allowed", files.len());
        let first: BTreeSet<_> = files.iter().map(|(&file, &line)| (&tree.files[file], line)).collect();
        found.extend(first.into_iter().map(|(file, line)| Violation::new(file, line, &text)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::modules::of_texts;
    use super::*;

    /// A crate with a type `Thing` in `thing.rs` and `count` more files with this text.
    fn spread(count: usize, text: &str) -> Vec<Violation> {
        let names: Vec<String> = (0..count).map(|at| format!("m{at}.rs")).collect();
        let root = names
            .iter()
            .fold("mod thing;".to_owned(), |all, name| format!("{all} mod {};", name.trim_end_matches(".rs")));
        let mut texts =
            vec![("lib.rs", root.as_str()), ("thing.rs", "pub struct Thing<'a>(&'a u8); impl Thing<'_> {}")];
        texts.extend(names.iter().map(|name| (name.as_str(), text)));
        check(&of_texts(&texts))
    }

    #[test]
    fn methods_in_more_than_five_files_are_found() {
        let methods = "use crate::thing::Thing; impl<'a> Thing<'a> { fn f(&self) {} } impl Thing<'_> {}";
        assert_eq!(spread(FILES - 1, methods).len(), 0);
        assert_eq!(spread(FILES, methods).len(), FILES + 1, "one for each file");
        assert_eq!(spread(FILES, "impl crate::thing::Thing<'_> {}").len(), FILES + 1);
    }

    #[test]
    fn other_implementations_do_not_count() {
        for text in [
            "use crate::thing::Thing; trait Show {} impl Show for Thing<'_> {}",
            "struct Thing; impl Thing {}",
            "use crate::thing::Thing; #[cfg(test)] mod tests { impl super::Thing<'_> {} }",
            "use crate::thing::Thing; #[cfg(test)] impl Thing<'_> {}",
        ] {
            assert_eq!(spread(FILES + 1, text).len(), 0, "{text}");
        }
    }
}
