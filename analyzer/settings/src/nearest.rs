//! The name that was perhaps meant.

use options::ROWS;

/// The word that differs least from `word`, if it is near enough to be meant.
pub fn nearest(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let limit = (word.len() / 3).max(1) + 1;
    let ranked = names.map(|n| (distance(word, &n), n)).min_by_key(|(d, _)| *d)?;
    (ranked.0 <= limit && ranked.0 < ranked.1.len()).then_some(ranked.1)
}

/// `; did you mean '--json'?` for a name that no option has, with dashes if it was written so;
/// empty where none is near.
pub fn hint(written: &str) -> String {
    let names = ROWS.iter().flat_map(|row| {
        let negated = row.is_switch().then(|| format!("no-{}", row.name));
        [Some(row.name.to_string()), negated].into_iter().flatten()
    });
    let found = nearest(written.trim_start_matches('-'), names.chain(["help".into(), "version".into()]));
    let dashes = if written.starts_with('-') { "--" } else { "" };
    found.map_or_else(String::new, |name| format!("; did you mean '{dashes}{name}'?"))
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let kept = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = kept.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name() {
        assert_eq!(hint("--pedantik"), "; did you mean '--pedantic'?");
        assert_eq!(hint("--no-stack"), "; did you mean '--no-stacks'?");
        assert_eq!(hint("jsno"), "; did you mean 'json'?");
        assert_eq!((hint("--zzzzzzzz"), hint("-x")), (String::new(), String::new()));
    }
}
