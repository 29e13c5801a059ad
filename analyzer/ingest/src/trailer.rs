//! The trailer of a recording: what it adds at its end so that the trace can be read on another
//! machine. These are symbols, source lines, and the code of kernels that were launched from files.
//!
//! Owns the choice of what is added. Everything is read when the process has ended, so it costs the
//! program nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use trace::codec::Text;
use trace::{ImageId, ImageSource, Op, Origin, Record};

use detect::launches::image_reader::selected;
use detect::launches::images::ImageFile;
use symbols::Symbolizer;

/// Maximum size of the code added for one process, in bytes, so that the trace stays a trace.
const MAX_CODE: usize = 512 << 20;

/// The definitions of one process that decide what to add.
#[derive(Default)]
pub(crate) struct Late {
    symbols: Symbolizer,
    images: BTreeMap<ImageId, (ImageFile, u64, u64)>,
    launched: BTreeSet<ImageId>,
    archs: BTreeSet<u32>,
}

impl Late {
    /// Observes a record on its way into the trace.
    pub(crate) fn observe(&mut self, bytes: &[u8]) {
        // Nearly all records are ops, which their tag shows.
        if !matches!(bytes, [tag, 0, ..] if *tag < 32) {
            return;
        }
        let Ok(Record { op, .. }) = Record::decode(bytes) else { return };
        match op {
            Op::Image { id, source: ImageSource::File, path, offset, size, .. } => {
                self.images.insert(id, (ImageFile::named(path.path()), offset, size));
            }
            Op::ImageFile { id, .. } => {
                if let Some((file, ..)) = self.images.get_mut(&id) {
                    file.identify(&op);
                }
            }
            Op::Kernel { image, .. } => drop(self.launched.insert(image)),
            Op::Device { arch, .. } => drop(self.archs.insert(arch)),
            _ => self.symbols.define(&op),
        }
    }

    /// Hands the records to add to `write`. They are made before it is called.
    pub(crate) fn write<E>(self, write: impl FnOnce(Vec<Vec<u8>>) -> Result<(), E>) -> Result<(), E> {
        write(self.records())
    }

    /// The records to add.
    pub(crate) fn records(mut self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        self.symbols.export(|op| records.extend(encoded(op, 1 << 16)));
        // Code for one kind of device. With several kinds, the files are needed.
        let arch = if self.archs.len() == 1 { self.archs.first().copied() } else { None };
        let mut total = 0;
        for (id, (file, offset, size)) in self.images.iter().filter(|(id, _)| self.launched.contains(id)) {
            let code = arch.and_then(|arch| selected(file, *offset, *size, arch));
            let Some(code) = code.filter(|code| total + code.len() <= MAX_CODE) else { continue };
            total += code.len();
            let op = Op::Image {
                id: *id,
                source: ImageSource::Inline,
                path: Text(file.path().as_os_str().as_bytes()),
                offset: 0,
                size: code.len() as u64,
                bytes: &code,
            };
            records.extend(encoded(&op, Origin::encoded_len(&op)));
        }
        records
    }
}

/// A record without origin; `None` when it is larger than `most` bytes (a name of absurd length).
fn encoded(op: &Op<'_>, most: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; most];
    let len = Record { origin: Origin::default(), op: *op }.encode(&mut buffer)?;
    buffer.truncate(len);
    buffer.shrink_to_fit();
    Some(buffer)
}
