//! What differs between two runs of one program, levelled, so that the rest can be compared.
//!
//! Owns the rules. Equal addresses stay equal: each is replaced by the number of its first
//! appearance.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Replaces the folder that is written to by `OUT`, those of the builds by `BIN`, and dates by
/// `DATE`.
pub fn fixed(bytes: &[u8], out: &Path, bins: &[&Path]) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(bytes).replace(&*out.to_string_lossy(), "OUT");
    for bin in bins {
        text = text.replace(&*bin.to_string_lossy(), "BIN");
    }
    dates(&text).into_bytes()
}

/// `2026-11-23T10:00:00Z` becomes `DATE`.
fn dates(text: &str) -> String {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let is_date = |at: &[u8]| {
        at.len() >= SHAPE.len()
            && SHAPE.iter().zip(at).all(|(shape, c)| if *shape == b'd' { c.is_ascii_digit() } else { shape == c })
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_date(rest.as_bytes()) {
            out.push_str("DATE");
            rest = rest[SHAPE.len()..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            rest = rest.strip_prefix('Z').unwrap_or(rest);
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// XML as a tree, a line for each element and text: the order of attributes, white space between
/// elements and the spelling of characters mean nothing.
pub fn xml(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut reader = Reader::from_reader(bytes);
    let (mut lines, mut text) = (Vec::new(), String::new());
    loop {
        let event = reader.read_event()?;
        match &event {
            Event::Text(part) => text.push_str(&String::from_utf8_lossy(part)),
            Event::GeneralRef(name) => text.push_str(&format!("&{};", String::from_utf8_lossy(name))),
            _ => {
                let whole = plain(text.trim());
                if !whole.is_empty() {
                    lines.push(whole);
                }
                text.clear();
            }
        }
        match &event {
            Event::Eof => return Ok(lines.join("\n").into_bytes()),
            Event::Start(element) | Event::Empty(element) => {
                let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
                let mut attributes = element
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute?;
                        let value = plain(&String::from_utf8_lossy(&attribute.value));
                        Ok(format!("{}={value:?}", String::from_utf8_lossy(attribute.key.as_ref())))
                    })
                    .collect::<Result<Vec<_>>>()?;
                attributes.sort();
                lines.push(format!("<{name} {}>", attributes.join(" ")));
                if matches!(event, Event::Empty(_)) {
                    lines.push(format!("</{name}>"));
                }
            }
            Event::End(element) => lines.push(format!("</{}>", String::from_utf8_lossy(element.name().as_ref()))),
            _ => {}
        }
    }
}

/// Characters that need no escape, as themselves.
fn plain(text: &str) -> String {
    text.replace("&apos;", "'").replace("&#39;", "'").replace("&quot;", "\"").replace("&gt;", ">")
}

/// Levels what a live run has besides: addresses, ids of processes and threads, handles.
pub fn run(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(c) = rest.chars().next() {
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if len == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let word = &rest[..len];
        let is_address = word.strip_prefix("0x").is_some_and(|digits| digits.len() >= 5);
        // Handles and addresses in decimal, as CSAN's wording and JSON have them.
        let is_large = len >= 12 && word.bytes().all(|b| b.is_ascii_digit());
        let is_id = word.bytes().all(|b| b.is_ascii_digit()) && ID_WORDS.iter().any(|before| out.ends_with(before));
        match (is_address || is_large, is_id) {
            (true, _) => {
                let next = names.len();
                out.push_str(&format!("ADDRESS{}", names.entry(word).or_insert(next)));
            }
            (_, true) => out.push_str("ID"),
            _ => out.push_str(word),
        }
        rest = &rest[len..];
    }
    out.into_bytes()
}

/// What stands in front of the id of a process or a thread.
const ID_WORDS: [&str; 14] = [
    "host thread ",
    "of thread ",
    "process ",
    "pid=",
    "pid\": ",
    "pid\":",
    "tid=",
    "tid\": ",
    "tid\":",
    "\"thread\": ",
    "\"parent\": ",
    "\"id\": ",
    "id=\"",
    "Process ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_addresses_stay_equal() {
        let text = run(b"0x7f0011 0x7f0022 0x7f0011, host thread 12 (app), 12 bytes");
        assert_eq!(String::from_utf8(text).unwrap(), "ADDRESS0 ADDRESS1 ADDRESS0, host thread ID (app), 12 bytes");
    }

    #[test]
    fn xml_is_compared_as_a_tree() {
        let text = |bytes: &[u8]| String::from_utf8(xml(bytes).unwrap()).unwrap();
        assert_eq!(text(b"<a x='1' y='2'>\n  <b/> t</a>"), text(b"<a y=\"2\" x=\"1\"><b></b>t\n</a>"));
        assert_eq!(text(b"<a>b&apos;s &quot;c&quot;</a>"), text(b"<a>b's \"c\"</a>"));
        assert_ne!(text(b"<a x='1'/>"), text(b"<a x='2'/>"));
    }

    #[test]
    fn dates_and_folders_are_levelled() {
        let text = fixed(b"/a/b/x at 2026-11-23T10:00:00.25Z, /c/y", Path::new("/a/b"), &[Path::new("/c")]);
        assert_eq!(String::from_utf8(text).unwrap(), "OUT/x at DATE, BIN/y");
    }
}
