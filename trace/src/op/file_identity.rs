//! What identifies a file of code: the shim looks it up when the code is loaded, and the analyzer
//! again before it reads the file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use crate::codec::Text;
use crate::id::ImageId;
use crate::op::Op;

/// What identifies a file as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileIdentity {
    /// Its device.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last changed: seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl FileIdentity {
    /// That of the file with these metadata.
    pub fn new(meta: &Metadata) -> Self {
        let modified = (meta.mtime(), meta.mtime_nsec() as u32);
        Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified }
    }

    /// The definition that an image was loaded from this file.
    pub fn op(self, id: ImageId, path: Text<'_>) -> Op<'_> {
        let Self { device, inode, size, modified: (modified, nanoseconds) } = self;
        Op::ImageFile { id, path, device, inode, size, modified, nanoseconds }
    }

    /// That of the file of an [`Op::ImageFile`]; `None` of any other op.
    pub fn recorded(op: &Op<'_>) -> Option<Self> {
        let Op::ImageFile { device, inode, size, modified, nanoseconds, .. } = *op else { return None };
        Some(Self { device, inode, size, modified: (modified, nanoseconds) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_holds_all_that_identifies_a_file() {
        let identity = FileIdentity { device: 1, inode: 2, size: 3, modified: (-4, 5) };
        let others = [
            FileIdentity { device: u64::MAX, ..identity },
            FileIdentity { inode: 7, ..identity },
            FileIdentity { size: 0, ..identity },
            FileIdentity { modified: (4, 5), ..identity },
            FileIdentity { modified: (-4, 999_999_999), ..identity },
        ];
        for each in others.into_iter().chain([identity]) {
            let op = each.op(ImageId(9), Text(b"/a"));
            let mut bytes = vec![0; op.encoded_len()];
            op.encode(&mut crate::Encoder::new(&mut bytes));
            let read = Op::decode(op.tag(), &bytes).expect("an op");
            assert_eq!(FileIdentity::recorded(&read), Some(each));
        }
        assert_eq!(FileIdentity::recorded(&Op::HostThreads {}), None);
    }

    #[test]
    fn a_file_that_was_written_again_is_another_one() {
        let file = std::env::temp_dir().join(format!("file-identity-{}", std::process::id()));
        std::fs::write(&file, b"one").expect("writable");
        let look = || FileIdentity::new(&std::fs::metadata(&file).expect("there"));
        let first = look();
        assert_eq!(look(), first);
        std::fs::write(&file, b"other").expect("writable");
        assert_ne!(look(), first);
        std::fs::remove_file(&file).expect("ours");
    }
}
