//! Patterns of suppressions and filters, with ThreadSanitizer's syntax.
//!
//! Owns the matching only. A pattern matches anywhere in a name, `*` stands for any text, and `^`
//! at the beginning and `$` at the end anchor it to the ends of the name.

/// A pattern, ready to match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The texts between the stars; never empty.
    pieces: Vec<String>,
    from_start: bool,
    to_end: bool,
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Self {
        let rest = text.strip_prefix('^');
        let from_start = rest.is_some();
        let rest = rest.unwrap_or(text);
        let cut = rest.strip_suffix('$');
        let to_end = cut.is_some();
        let pieces = cut.unwrap_or(rest).split('*').map(String::from).collect();
        Self { pieces, from_start, to_end }
    }

    /// Reads a pattern that the whole of a name has to match, with or without `^` and `$`.
    pub fn whole(text: &str) -> Self {
        Self { from_start: true, to_end: true, ..Self::new(text) }
    }

    /// Whether the pattern consists of anchors, and perhaps stars: it names nothing, and matches
    /// every name or none. A star alone says so plainly and is no mistake.
    pub fn is_vacuous(text: &str) -> bool {
        let rest = text.strip_prefix('^').unwrap_or(text);
        text != "*" && rest.strip_suffix('$').unwrap_or(rest).bytes().all(|byte| byte == b'*')
    }

    /// Whether the pattern matches a name. An empty name is unknown, and nothing matches it.
    pub fn matches(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let (last, others) = self.pieces.split_last().expect("split gives at least one piece");
        let mut rest = name;
        for (i, piece) in others.iter().enumerate() {
            let at = if i == 0 && self.from_start { rest.starts_with(piece).then_some(0) } else { rest.find(piece) };
            let Some(at) = at else { return false };
            rest = &rest[at + piece.len()..];
        }
        let tied = others.is_empty() && self.from_start;
        match (tied, self.to_end) {
            (true, true) => rest == last,
            (true, false) => rest.starts_with(last.as_str()),
            (false, true) => rest.ends_with(last.as_str()),
            (false, false) => rest.contains(last.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_anywhere_unless_tied() {
        let m = |p: &str, n: &str| Pattern::new(p).matches(n);
        assert!(m("scale", "void scale<float>(float*)"));
        assert!(!m("^scale", "void scale<float>(float*)"));
        assert!(m("^void scale", "void scale<float>(float*)"));
        assert!(m("libfoo.so$", "/usr/lib/libfoo.so"));
        assert!(!m("libfoo$", "/usr/lib/libfoo.so"));
        assert!(m("^main$", "main") && !m("^main$", "main2") && !m("^main$", "domain"));
        assert!(m("", "anything") && m("*", "anything") && !m("*", ""));
    }

    #[test]
    fn whole_names_and_patterns_that_name_nothing() {
        let whole = |p: &str, n: &str| Pattern::whole(p).matches(n);
        for pattern in ["85943be0", "^85943be0", "85943be0$", "^85943be0$", "8594*", "*be0", "8*3*0"] {
            assert!(whole(pattern, "85943be0"), "{pattern}");
            assert!(!whole(pattern, "185943be01") && !whole(pattern, "x"), "{pattern}");
        }
        for part in ["8", "85943be", "943be0", "^8", "0$", ""] {
            assert!(!whole(part, "85943be0"), "{part}");
        }
        for (front, stars, back) in ["", "^"].iter().flat_map(|front| {
            ["", "*", "**"].iter().flat_map(move |stars| ["", "$"].map(|back| (*front, *stars, back)))
        }) {
            let text = format!("{front}{stars}{back}");
            assert_eq!(Pattern::is_vacuous(&text), text != "*", "{text}");
            assert!(!Pattern::is_vacuous(&format!("{front}{stars}x{back}")), "{text}");
        }
    }

    #[test]
    fn stars_stand_for_any_text_and_take_no_byte_twice() {
        let m = |p: &str, n: &str| Pattern::new(p).matches(n);
        assert!(m("void *<float>", "void scale<float>(float*)"));
        assert!(m("^a*b*c$", "a.b.b.c") && m("^a*b*c$", "abc"));
        assert!(!m("^a*b*c$", "acb") && !m("^ab*b$", "ab"));
        assert!(m("**", "x") && m("^*x$", "x"));
        assert!(!m("aa*aa", "aaa") && m("aa*aa", "aaaa"));
    }
}
