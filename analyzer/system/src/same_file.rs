//! Whether two names lead to one file, through links and in other spellings.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whether two names lead to one file, which may not be there yet. Devices and pipes can take
/// several outputs.
pub fn same_file(one: &Path, other: &Path) -> bool {
    let special = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    let same_inode = || match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    !special(one)
        && (one.as_os_str() == other.as_os_str()
            || place(one).is_some_and(|one| Some(one) == place(other))
            || same_inode())
}

/// The place of a file, or its later place if it is not there yet: behind all links, also those
/// whose target is missing.
fn place(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(there) = path.canonicalize() {
            return Some(there);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match std::fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Some(folder.canonicalize().ok()?.join(path.file_name()?)),
        }
    }
    None
}

/// Links that are followed, as the kernel does.
const LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_to_nothing_yet_are_followed() {
        let folder = std::env::temp_dir().join(format!("streamsan-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).expect("a folder");
        let at = |name: &str| folder.join(name);
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at(name)).expect("a link");
        link("real", "relative");
        link(at("real").to_str().expect("a path"), "absolute");
        link("relative", "twice");
        link("../real", "below/up");
        link("round", "round");
        link("other", "elsewhere");
        link(".", "dot");
        let names = ["real", "relative", "absolute", "twice", "below/up", "dot/real", "dot/twice"];
        for there in [false, true] {
            if there {
                std::fs::write(at("real"), "").expect("written");
            }
            for one in names {
                for other in names {
                    assert!(same_file(&at(one), &at(other)), "{one} {other} {there}");
                }
                for other in ["elsewhere", "other", "round", "below/real", "none"] {
                    assert!(!same_file(&at(one), &at(other)) && !same_file(&at(other), &at(one)), "{one} {other}");
                }
            }
        }
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
