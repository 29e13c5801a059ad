//! No cycle of modules crosses folders.
//!
//! Files are units, and all files of a folder are one unit unless asked otherwise. `x.rs` belongs
//! to the folder `x/` when there is one. The root of a crate (`lib.rs`, `main.rs`) is a unit of its
//! own. Re-exports are followed to what they name, so a `mod.rs` that only gathers its children
//! takes no part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Violation;
use super::modules::{References, Tree};
use crate::workspace;

/// References between units: from and to, with the place and the name of each.
type Edges = BTreeMap<(usize, usize), Vec<(usize, usize, String)>>;

/// Finds the cycles of a crate. Each reference that would have to go is a violation.
pub fn check(tree: &Tree, by_module: bool) -> Vec<Violation> {
    let references = tree.references();
    let folders: Vec<PathBuf> = tree.files.iter().map(|file| folder_of(file)).collect();
    let mut names: Vec<PathBuf> = folders.clone();
    names.sort();
    names.dedup();
    let folder_unit: Vec<usize> =
        folders.iter().map(|folder| names.binary_search(folder).expect("listed above")).collect();
    let file_unit: Vec<usize> = (0..tree.files.len()).collect();
    // Cycles of the modules themselves, as far as they cross folders.
    let crossing: Vec<Vec<usize>> = components(tree.files.len(), &edges(&references, &file_unit))
        .into_iter()
        .filter(|files| files.iter().any(|&file| folder_unit[file] != folder_unit[files[0]]))
        .collect();
    let mut found = Vec::new();
    if by_module {
        let edges = edges(&references, &file_unit);
        let name = |unit: usize| tree.files[unit].display().to_string();
        for units in crossing {
            describe(tree, &units, &edges, &name, "modules", &mut found);
        }
        return found;
    }
    let edges = edges(&references, &folder_unit);
    for units in components(names.len(), &edges) {
        let inside = |files: &Vec<usize>| files.iter().all(|&file| units.contains(&folder_unit[file]));
        let kind = match crossing.iter().filter(|files| inside(files)).map(Vec::len).sum() {
            0 => "folders (its modules are in no cycle)".to_owned(),
            files => format!("folders ({files} modules are in cycles themselves)"),
        };
        let name = |unit: usize| names[unit].display().to_string();
        describe(tree, &units, &edges, &name, &kind, &mut found);
    }
    found
}

/// The folder that a file belongs to.
fn folder_of(file: &Path) -> PathBuf {
    let own = file.with_extension("");
    if file.ends_with("src/lib.rs") || file.ends_with("src/main.rs") {
        file.to_path_buf()
    } else if workspace::root().join(&own).is_dir() {
        own
    } else {
        file.parent().unwrap_or(Path::new("")).to_path_buf()
    }
}

fn edges(references: &References, unit: &[usize]) -> Edges {
    let mut edges = Edges::new();
    for (&(from, to), names) in references {
        if unit[from] != unit[to] {
            let places = names.iter().map(|(name, &line)| (from, line, format!("{name}\0{to}")));
            edges.entry((unit[from], unit[to])).or_default().extend(places);
        }
    }
    edges
}

/// The strongly connected components of more than one unit.
fn components(units: usize, edges: &Edges) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); units];
    for &(from, to) in edges.keys() {
        next[from].push(to);
    }
    let reach = |start: usize| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(unit) = open.pop() {
            open.extend(next[unit].iter().copied().filter(|&to| seen.insert(to)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..units).map(reach).collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for unit in 0..units {
        let together: Vec<usize> =
            reached[unit].iter().copied().filter(|&other| reached[other].contains(&unit)).collect();
        if together.len() > 1 && !done.contains(&unit) {
            done.extend(together.iter().copied());
            found.push(together);
        }
    }
    found
}

/// Lists a cycle: the fewest references (nearly) whose removal would leave layers.
fn describe(
    tree: &Tree,
    units: &[usize],
    edges: &Edges,
    name: &dyn Fn(usize) -> String,
    kind: &str,
    found: &mut Vec<Violation>,
) {
    let layers = layers(units, edges);
    let weight = |edge: &(usize, usize)| edges.get(edge).map_or(0, Vec::len);
    let rank = |unit: usize| layers.iter().position(|&other| other == unit).unwrap_or(usize::MAX);
    let listed: Vec<String> = layers.iter().map(|&unit| name(unit)).collect();
    let text = format!("a cycle of {} {kind}; nearest to layers, from the top: {}", units.len(), listed.join(", "));
    found.push(Violation::new(&tree.files[0], 1, text));
    let mut back: Vec<(usize, usize)> = edges.keys().copied().filter(|&(from, to)| rank(from) > rank(to)).collect();
    back.retain(|&(from, to)| units.contains(&from) && units.contains(&to));
    back.sort_by_key(|edge| weight(edge));
    for (from, to) in back {
        let forth = weight(&(to, from));
        for (file, line, named) in &edges[&(from, to)] {
            let (item, target) = named.split_once('\0').unwrap_or((named, "0"));
            let target = &tree.files[target.parse::<usize>().unwrap_or(0)];
            let text = format!(
                "`{item}` of {}: {} uses {}, which uses it {forth} times",
                target.display(),
                name(from),
                name(to)
            );
            found.push(Violation::new(&tree.files[*file], *line, text));
        }
    }
}

/// Orders units so that few references lead upwards: improves an order by moving single units.
fn layers(units: &[usize], edges: &Edges) -> Vec<usize> {
    let weight = |from, to| edges.get(&(from, to)).map_or(0, |places| places.len()) as i64;
    let mut order = units.to_vec();
    // Users first.
    order.sort_by_key(|&unit| units.iter().map(|&other| weight(other, unit) - weight(unit, other)).sum::<i64>());
    for _ in 0..order.len() {
        let mut changed = false;
        for at in 0..order.len() {
            let unit = order[at];
            // What moving the unit past each neighbour gains.
            let (mut best, mut place, mut gain) = (0, at, 0);
            for to in (0..at).rev() {
                gain += weight(unit, order[to]) - weight(order[to], unit);
                if gain > best {
                    (best, place) = (gain, to);
                }
            }
            gain = 0;
            for (to, &other) in order.iter().enumerate().skip(at + 1) {
                gain += weight(other, unit) - weight(unit, other);
                if gain > best {
                    (best, place) = (gain, to);
                }
            }
            if place != at {
                order.remove(at);
                order.insert(place, unit);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::modules::of_texts;
    use super::*;

    /// Violations in a crate whose folder `a` uses `b::B`; `b` holds two files.
    fn found(b: &str, other: &str, by_module: bool) -> Vec<String> {
        let tree = of_texts(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod leaf; mod user; pub use leaf::Leaf;"),
            ("a/leaf.rs", "pub struct Leaf;"),
            ("a/user.rs", "use crate::b::B; pub fn f(_: B) {}"),
            ("b/mod.rs", "mod other; mod own; pub use own::B;"),
            ("b/own.rs", b),
            ("b/other.rs", other),
        ]);
        check(&tree, by_module).into_iter().map(|violation| violation.text).collect()
    }

    const B: &str = "pub struct B;";

    #[test]
    fn layers_have_no_cycle() {
        assert_eq!(found(B, "", false), [""; 0]);
        assert_eq!(found(B, "use super::own::B; impl B {}", false), [""; 0]);
        assert_eq!(found(B, "#[cfg(test)] mod tests { use crate::a::Leaf; fn f(_: Leaf) {} }", false), [""; 0]);
    }

    #[test]
    fn folders_that_use_each_other_are_found_through_every_way_to_name_something() {
        for other in [
            "use crate::a::Leaf; fn f(_: Leaf) {}",
            "fn f(_: crate::a::Leaf) {}",
            "use super::super::a::Leaf as L; fn f(_: L) {}",
            "use crate::a::{self}; fn f(_: a::Leaf) {}",
            "use crate::a::*; fn f(_: Leaf) {}",
            "fn f() { println!(\"{}\", size_of::<crate::a::Leaf>()) }",
        ] {
            let found = found(B, other, false);
            assert_eq!(found.len(), 2, "{other}: {found:?}");
            assert!(found[0].contains("its modules are in no cycle"), "{found:?}");
        }
    }

    #[test]
    fn a_cycle_of_modules_is_one_in_both_readings() {
        let own = "pub struct B; fn f() { crate::a::user_of() }";
        assert!(found(own, "", true).is_empty(), "what is not there leads nowhere");
        let own = "use crate::a::f; pub struct B; fn g() { f(B) }";
        let tree = of_texts(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod user; pub use user::f;"),
            ("a/user.rs", "use crate::b::B; pub fn f(_: B) {}"),
            ("b/mod.rs", "mod own; pub use own::B;"),
            ("b/own.rs", own),
        ]);
        for by_module in [false, true] {
            assert_eq!(check(&tree, by_module).len(), 2);
        }
    }
}
