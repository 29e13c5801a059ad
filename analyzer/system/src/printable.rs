//! Text that anything may print: which characters would mislead a terminal or a reader of lines,
//! and how they are spelt out.
//!
//! Owns the characters. Which texts are spelt out is decided where they are printed or, of reports,
//! in `report::escape`.

/// Whether a terminal or a line-based reader treats a character as anything but a printable one.
/// Tabs stay.
pub fn is_harmful(c: char) -> bool {
    let is_control = c.is_control() && c != '\t';
    // Line and paragraph separators, direction marks and overrides, the byte order mark.
    is_control
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}')
}

/// Prints a message as one line of standard error, for [`crate::say`].
pub fn say(message: std::fmt::Arguments<'_>) {
    eprintln!("streamsan: {}", harmless(&message.to_string()));
}

/// Prints a message of the tool as one line, in which harmful characters are spelt out: it may name
/// a program, a file or an option of any text.
#[macro_export]
macro_rules! say {
    ($($message:tt)*) => { $crate::printable::say(format_args!($($message)*)) };
}

/// The text with harmful characters as Rust writes them in a string: `\n`, `\u{1b}`.
pub fn harmless(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}
