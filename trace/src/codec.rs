//! The little-endian primitives that ops are encoded and decoded with.
//!
//! The encoder writes into a caller's buffer and never allocates: it runs inside the program under
//! test. The decoder borrows from its input and answers every damage with a [`DecodeError`], never
//! with a panic: what it reads may come from a crashed program.

use crate::id::*;
use crate::op::region::Region;

/// Why a record could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record ends before its fields do.
    #[error("record ends after {have} bytes, {need} more are needed")]
    Truncated {
        /// Bytes that were left.
        have: usize,
        /// Bytes that the next field needs.
        need: usize,
    },
    /// A field holds a value that the format does not know.
    #[error("field `{field}` holds the unknown value {value}")]
    BadValue {
        /// Name of the field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
    /// A record of a newer minor writer: skip it.
    #[error("record tag {0} is unknown to this version")]
    UnknownTag(u16),
    /// Text that is not UTF-8 is replaced, but a string length beyond the record is damage.
    #[error("a length of {0} bytes runs past the end of its record")]
    BadLength(u64),
}

/// Writes fields one after the other. When the buffer is too small it stops writing and remembers:
/// see [`Encoder::finish`].
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    at: usize,
    overflow: bool,
}

impl<'a> Encoder<'a> {
    /// Starts at the beginning of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, at: 0, overflow: false }
    }

    /// Appends raw bytes.
    #[inline(always)]
    pub fn raw(&mut self, bytes: &[u8]) {
        match self.buffer.get_mut(self.at..self.at + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.at += bytes.len();
            }
            None => self.overflow = true,
        }
    }

    /// Number of bytes written, or `None` when the buffer was too small.
    pub fn finish(self) -> Option<usize> {
        (!self.overflow).then_some(self.at)
    }
}

/// Reads fields one after the other.
#[derive(Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes `n` bytes.
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if n > self.rest.len() {
            return Err(DecodeError::Truncated { have: self.rest.len(), need: n - self.rest.len() });
        }
        let (head, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(head)
    }

    /// Bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// A field of an op.
pub trait Field<'a>: Sized + core::fmt::Debug {
    /// Appends the field.
    fn put(&self, to: &mut Encoder<'_>);
    /// Number of bytes that [`Field::put`] appends.
    fn encoded_len(&self) -> usize;
    /// Reads the field back.
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError>;
    /// Adds the field, under its name, to the text of its op.
    fn show(&self, name: &'static str, to: &mut core::fmt::DebugStruct<'_, '_>) {
        to.field(name, self);
    }
}

macro_rules! int_fields {
    ($($int:ty),*) => {$(
        impl<'a> Field<'a> for $int {
            #[inline(always)]
            fn put(&self, to: &mut Encoder<'_>) {
                to.raw(&self.to_le_bytes());
            }
            fn encoded_len(&self) -> usize {
                size_of::<$int>()
            }
            #[inline(always)]
            fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                let (have, need) = (from.rest.len(), size_of::<$int>());
                let (bytes, rest) = from.rest.split_first_chunk().ok_or(DecodeError::Truncated { have, need })?;
                from.rest = rest;
                Ok(<$int>::from_le_bytes(*bytes))
            }
        }
    )*};
}
int_fields!(u8, u16, u32, u64, i32, i64);

macro_rules! id_fields {
    ($($id:ty),*) => {$(
        impl<'a> Field<'a> for $id {
            #[inline(always)]
            fn put(&self, to: &mut Encoder<'_>) {
                self.0.put(to);
            }
            fn encoded_len(&self) -> usize {
                Field::encoded_len(&self.0)
            }
            #[inline(always)]
            fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                Ok(Self(Field::get(from)?))
            }
        }
    )*};
}
id_fields!(
    StreamId,
    EventId,
    ContextId,
    ThreadId,
    StackId,
    KernelId,
    ImageId,
    PyCodeId,
    CallId,
    TimelineId,
    SyncId,
    HostFuncId,
    GraphExecId,
    GraphId,
    CaptureId,
    PoolId,
    ArrayId
);

impl<'a> Field<'a> for bool {
    fn put(&self, to: &mut Encoder<'_>) {
        u8::from(*self).put(to);
    }
    fn encoded_len(&self) -> usize {
        1
    }
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(u8::get(from)? != 0)
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, to: &mut Encoder<'_>) {
        (<[u8]>::len(self) as u32).put(to);
        to.raw(self);
    }
    fn encoded_len(&self) -> usize {
        4 + <[u8]>::len(self)
    }
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let len = u32::get(from)?;
        from.raw(len as usize).map_err(|_| DecodeError::BadLength(u64::from(len)))
    }
}

impl<'a> Field<'a> for [u32; 3] {
    #[inline(always)]
    fn put(&self, to: &mut Encoder<'_>) {
        self.iter().for_each(|v| v.put(to));
    }
    fn encoded_len(&self) -> usize {
        12
    }
    #[inline(always)]
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok([u32::get(from)?, u32::get(from)?, u32::get(from)?])
    }
}

impl<'a> Field<'a> for Region {
    fn put(&self, to: &mut Encoder<'_>) {
        self.start.put(to);
        self.width.put(to);
        self.height.put(to);
        self.depth.put(to);
        self.pitch.put(to);
        self.slice_pitch.put(to);
        self.array.put(to);
    }
    fn encoded_len(&self) -> usize {
        4 * 8 + 2 * 4 + Field::encoded_len(&self.array)
    }
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            start: Field::get(from)?,
            width: Field::get(from)?,
            height: Field::get(from)?,
            depth: Field::get(from)?,
            pitch: Field::get(from)?,
            slice_pitch: Field::get(from)?,
            array: Field::get(from)?,
        })
    }
}

/// A string field. Bytes that are not UTF-8 (paths may hold any) are shown replaced, never refused.
/// What opens a file takes [`Text::path`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text, with bytes that are not UTF-8 replaced.
    pub fn lossy(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }
}

impl Text<'_> {
    /// The text as the path that it is: paths are bytes.
    pub fn path(&self) -> &std::path::Path {
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(self.0);
        std::path::Path::new(path)
    }
}

impl core::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.lossy())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn put(&self, to: &mut Encoder<'_>) {
        self.0.put(to);
    }
    fn encoded_len(&self) -> usize {
        Field::encoded_len(&self.0)
    }
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self(Field::get(from)?))
    }
}

/// A counted list of fixed-size items, decoded lazily so that neither side allocates.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct List<'a, T> {
    bytes: ListBytes<'a, T>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ListBytes<'a, T> {
    Items(&'a [T]),
    Encoded { count: u32, bytes: &'a [u8] },
}

impl<'a, T> List<'a, T> {
    /// A list to be encoded.
    pub fn new(items: &'a [T]) -> Self {
        Self { bytes: ListBytes::Items(items) }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self.bytes {
            ListBytes::Items(items) => items.len(),
            ListBytes::Encoded { count, .. } => count as usize,
        }
    }

    /// Whether the list has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Item + 'a> List<'a, T> {
    /// The items, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + 'a {
        let (items, bytes): (&'a [T], &'a [u8]) = match self.bytes {
            ListBytes::Items(items) => (items, &[]),
            ListBytes::Encoded { bytes, .. } => (&[], bytes),
        };
        let decoded = bytes.chunks_exact(T::SIZE).map(T::load);
        items.iter().copied().chain(decoded)
    }
}

impl<T: Item + core::fmt::Debug> core::fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(feature = "serde")]
impl<T: Item + serde::Serialize> serde::Serialize for List<'_, T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

/// An item of fixed encoded size.
pub trait Item: Copy {
    /// Encoded bytes of one item.
    const SIZE: usize;
    /// Appends one item.
    fn store(&self, to: &mut Encoder<'_>);
    /// Reads one item from exactly `SIZE` bytes.
    fn load(bytes: &[u8]) -> Self;
}

impl<'a, T: Item + core::fmt::Debug + 'a> Field<'a> for List<'a, T> {
    fn put(&self, to: &mut Encoder<'_>) {
        (List::len(self) as u32).put(to);
        self.iter().for_each(|item| item.store(to));
    }
    fn encoded_len(&self) -> usize {
        4 + List::len(self) * T::SIZE
    }
    fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let count = u32::get(from)?;
        let len = (count as usize).checked_mul(T::SIZE).ok_or(DecodeError::BadLength(u64::from(count)))?;
        let bytes = from.raw(len).map_err(|_| DecodeError::BadLength(len as u64))?;
        Ok(Self { bytes: ListBytes::Encoded { count, bytes } })
    }
}

/// Implements [`Item`] for a struct of integer fields, in declaration order.
#[macro_export]
macro_rules! item {
    ($name:ty { $($field:ident : $int:ty),* $(,)? }) => {
        impl $crate::codec::Item for $name {
            const SIZE: usize = 0 $(+ size_of::<$int>())*;
            fn store(&self, to: &mut $crate::codec::Encoder<'_>) {
                $($crate::codec::Field::put(&self.$field, to);)*
            }
            fn load(bytes: &[u8]) -> Self {
                let mut from = $crate::codec::Decoder::new(bytes);
                Self { $($field: $crate::codec::Field::get(&mut from).unwrap_or_default(),)* }
            }
        }
    };
}

macro_rules! int_items {
    ($($int:ty),*) => {$(
        impl Item for $int {
            const SIZE: usize = size_of::<$int>();
            fn store(&self, to: &mut Encoder<'_>) {
                self.put(to);
            }
            fn load(bytes: &[u8]) -> Self {
                <$int>::get(&mut Decoder::new(bytes)).unwrap_or_default()
            }
        }
    )*};
}
int_items!(u32, u64);
