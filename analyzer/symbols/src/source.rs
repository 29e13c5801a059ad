//! The text of source lines.
//!
//! Owns the reading of source files, once each. A missing file is remembered as missing. Of a
//! trace, only files are read that [`RecordedFiles`] lets us read, and those that debug information
//! of a file here has named.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use system::local_files::{self, RecordedFiles};

/// Larger files are generated, or no source at all.
const LARGEST: u64 = 16 << 20;
/// Longest text given of one line, in characters.
const LONGEST_LINE: usize = 200;

/// Source files read so far.
#[derive(Default)]
pub(crate) struct Sources {
    recorded_files: RecordedFiles,
    /// Named by debug information of a file here.
    trusted: HashSet<String>,
    directory: Option<PathBuf>,
    files: HashMap<String, Option<SourceFile>>,
    /// Lines from the trace.
    recorded: HashMap<String, HashMap<u32, String>>,
}

struct SourceFile {
    text: String,
    /// Byte offset of each line's start.
    lines: Vec<u32>,
}

impl Sources {
    /// Sources of a recording with these files.
    pub(crate) fn of(recorded_files: RecordedFiles) -> Self {
        Self { recorded_files, ..Self::default() }
    }

    /// Debug information of a file here names this source.
    pub(crate) fn trust(&mut self, file: &str) {
        if !self.trusted.contains(file) {
            self.trusted.insert(file.to_string());
            self.files.remove(file);
        }
    }

    /// Sets the folder for relative paths.
    pub(crate) fn set_directory(&mut self, directory: PathBuf) {
        self.directory = Some(directory);
        self.files.clear();
    }

    /// Adds a line as it was when the trace was recorded. It has precedence over the file.
    pub(crate) fn record(&mut self, file: &str, line: u32, text: String) {
        self.recorded.entry(file.to_string()).or_default().insert(line, text);
    }

    /// The text of line `line` (from 1), without indentation; `None` when there is no such file or
    /// line, or it is blank.
    pub(crate) fn line(&mut self, file: &str, line: u32) -> Option<String> {
        if let Some(text) = self.recorded.get(file).and_then(|lines| lines.get(&line)) {
            return Some(text.clone());
        }
        if !self.files.contains_key(file) {
            let read = self.read(file);
            self.files.insert(file.to_string(), read);
        }
        let source = self.files.get(file)?.as_ref()?;
        let index = (line as usize).checked_sub(1)?;
        let start = *source.lines.get(index)? as usize;
        let end = source.lines.get(index + 1).map_or(source.text.len(), |end| *end as usize);
        let text = source.text[start..end].trim();
        (!text.is_empty()).then(|| text.chars().take(LONGEST_LINE).collect())
    }

    fn read(&self, file: &str) -> Option<SourceFile> {
        if file.is_empty() || file.starts_with('<') {
            // `<string>`, `<frozen importlib._bootstrap>` and the like.
            return None;
        }
        let path = Path::new(file);
        let path = match &self.directory {
            Some(directory) if path.is_relative() => directory.join(path),
            _ => path.to_path_buf(),
        };
        if !self.trusted.contains(file) && !self.recorded_files.may_read(&path) {
            return None;
        }
        let opened = local_files::open(&path).ok()?;
        if opened.metadata().ok()?.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        opened.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Some(SourceFile { text, lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_missing_ones_are_not() {
        let directory = std::env::temp_dir().join(format!("streamsan-sources-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("create");
        std::fs::write(directory.join("a.c"), b"int a;\n\n  b();\xff\n\tlast").expect("write");
        let mut sources = Sources::default();
        assert_eq!(sources.line("a.c", 1), None, "relative to nothing");
        sources.set_directory(directory.clone());
        assert_eq!(sources.line("a.c", 1).as_deref(), Some("int a;"));
        assert_eq!(sources.line("a.c", 2), None);
        assert_eq!(sources.line("a.c", 3).as_deref(), Some("b();\u{fffd}"));
        assert_eq!(sources.line("a.c", 4).as_deref(), Some("last"));
        assert_eq!(sources.line("a.c", 5), None);
        assert_eq!(sources.line("a.c", 0), None);
        assert_eq!(sources.line("b.c", 1), None);
        assert_eq!(sources.line("<string>", 1), None);
        assert_eq!(sources.line("/dev/zero", 1), None);
        assert_eq!(sources.line("", 1), None);
        std::fs::remove_dir_all(directory).expect("remove");
    }
}
