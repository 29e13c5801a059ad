//! What can be wrong with a code image.

/// Why a code image could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes start like nothing that a driver loads.
    #[error("neither a fatbin, nor a cubin, nor PTX text (first bytes {0:02x?})")]
    Unrecognised(Vec<u8>),
    /// A fatbin wrapper: the image is elsewhere in the process, at this address.
    #[error("a fatbin wrapper: the image itself is at address {0:#x}")]
    Wrapper(u64),
    /// The image ends before its headers say.
    #[error("{what} needs {needed} bytes but only {have} are there")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Bytes needed, from the start of the image or entry.
        needed: u64,
        /// Bytes there.
        have: u64,
    },
    /// A header field holds a value that no known tool writes.
    #[error("{what} has the unknown value {value:#x}")]
    Unknown {
        /// Name of the field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// Decompression failed.
    #[error("damaged {how} data: {why}")]
    Compressed {
        /// `LZ4` or `zstd`.
        how: &'static str,
        /// The decoder's message.
        why: String,
    },
    /// The image claims to be larger than [`MAX_UNPACKED`](super::MAX_UNPACKED).
    #[error("an entry of {0} bytes unpacked is over the limit")]
    TooLarge(u64),
    /// The ELF structure is damaged.
    #[error("damaged ELF: {0}")]
    Elf(String),
    /// PTX that is not text.
    #[error("PTX is not UTF-8 text (byte {0})")]
    PtxText(usize),
}
