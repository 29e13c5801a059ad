//! Files for CI systems: what a job shows beside its log.
//!
//! Each format is one file. Paths and links that they share are [`workspace`]'s. Scripts and people
//! are served by the formats one folder up.

pub mod code_quality;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub(crate) mod workspace;

/// A path as part of a URI.
pub(super) fn percent_encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_become_uris() {
        assert_eq!(super::percent_encoded("a b/ü.cu"), "a%20b/%C3%BC.cu");
    }
}
