//! No two public types of a crate have one name: a reader could take one for the other.

use std::collections::BTreeMap;

use super::Violation;
use super::modules::Tree;

/// Finds the types whose names come again.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut named: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for module in &tree.modules {
        for (name, line) in &module.types {
            named.entry(name).or_default().push((&tree.files[module.file], *line));
        }
    }
    let mut found = Vec::new();
    for (name, places) in named.iter().filter(|(_, places)| places.len() > 1) {
        for (at, (file, line)) in places.iter().enumerate() {
            let (other, there) = &places[usize::from(at == 0)];
            let text = format!("{} public types are called `{name}`, see {}:{there}", places.len(), other.display());
            found.push(Violation::new(file, *line, text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::modules::of_texts;
    use super::*;

    #[test]
    fn public_types_of_one_name_are_found() {
        let of = |b: &str| {
            check(&of_texts(&[
                ("lib.rs", "mod a; mod b; pub use a::Range;"),
                ("a.rs", "pub struct Range;"),
                ("b.rs", b),
            ]))
        };
        assert_eq!(of("pub(crate) enum Range {}").len(), 2);
        assert_eq!(of("mod inner { pub(super) type Range = u8; }").len(), 2);
        assert_eq!(of("struct Range;").len(), 0);
        assert_eq!(of("pub use crate::a::Range;").len(), 0);
        assert_eq!(of("#[cfg(test)] mod tests { pub struct Range; }").len(), 0);
    }
}
