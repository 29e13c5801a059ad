//! Which segments are kept: all, or those of the last bytes or minutes; and what is saved of them.
//!
//! Owns the list of finished segments, the deletion of old ones, and the folders of what was saved.
//! A saved segment is a second name (a hard link) of the same file, so that saving costs nothing
//! and deleting the first name loses nothing.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use options::Amount;

/// A finished segment.
struct FinishedSegment {
    name: String,
    bytes: u64,
    at: Instant,
}

/// The finished segments of a recording.
pub(crate) struct KeptSegments {
    folder: PathBuf,
    most: Option<Amount>,
    list: VecDeque<FinishedSegment>,
    bytes: u64,
    saves: u32,
}

impl KeptSegments {
    /// None yet. `most`: what is kept; `None`: all.
    pub(crate) fn new(folder: &Path, most: Option<Amount>) -> Self {
        Self { folder: folder.to_path_buf(), most, list: VecDeque::new(), bytes: 0, saves: 0 }
    }

    /// A segment is finished.
    pub(crate) fn add(&mut self, name: String, bytes: u64) {
        self.list.push_back(FinishedSegment { name, bytes, at: Instant::now() });
        self.bytes += bytes;
    }

    /// Deletes what is too much or too old. `writing`: bytes of the segment that is being written.
    pub(crate) fn prune(&mut self, writing: u64) {
        let is_old = |first: &FinishedSegment, bytes: u64| match self.most {
            None => false,
            Some(Amount::Bytes(most)) => bytes + writing > most,
            Some(Amount::Seconds(most)) => first.at.elapsed() > Duration::from_secs(most),
        };
        while let Some(first) = self.list.front().filter(|first| is_old(first, self.bytes)) {
            // Nobody needs what is gone already.
            let _ = fs::remove_file(self.folder.join(&first.name));
            self.bytes -= first.bytes;
            self.list.pop_front();
        }
    }

    /// Number of finished segments that are kept.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Gives all kept segments a second name in a folder of their own, which is answered.
    pub(crate) fn save(&mut self, reason: &str) -> io::Result<PathBuf> {
        self.saves += 1;
        let word: String = reason.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
        let word = if word.is_empty() { "asked" } else { &word };
        let to = self.folder.join(format!("saved-{}-{word}", self.saves));
        fs::DirBuilder::new().mode(0o700).create(&to)?;
        for segment in &self.list {
            let (from, to) = (self.folder.join(&segment.name), to.join(&segment.name));
            // Not every file system has second names.
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop))?;
        }
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_first_and_what_was_saved_stays() {
        let folder = system::private_file::folder("streamsan-keep-").expect("a folder");
        let mut kept = KeptSegments::new(&folder, Some(Amount::Bytes(30)));
        for n in 0..4 {
            fs::write(folder.join(n.to_string()), [n; 10]).expect("written");
            kept.add(n.to_string(), 10);
            if n == 1 {
                kept.save("a b/c").expect("saved");
            }
            kept.prune(10);
        }
        assert_eq!(names(&folder), ["2", "3", "saved-1-a-b-c"]);
        assert_eq!(names(&folder.join("saved-1-a-b-c")), ["0", "1"]);
        kept.prune(0);
        assert_eq!(names(&folder).len(), 3);
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn without_a_bound_nothing_goes_and_by_age_the_old_do() {
        let folder = system::private_file::folder("streamsan-age-").expect("a folder");
        for (most, left) in [(None, 1), (Some(Amount::Seconds(3600)), 1), (Some(Amount::Seconds(0)), 0)] {
            let mut kept = KeptSegments::new(&folder, most);
            fs::write(folder.join("0"), [0; 10]).expect("written");
            kept.add("0".into(), 10);
            std::thread::sleep(Duration::from_millis(2));
            kept.prune(1 << 40);
            assert_eq!(names(&folder).len(), left);
        }
        fs::remove_dir_all(folder).expect("ours");
    }
}
