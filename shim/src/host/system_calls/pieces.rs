//! What arguments of functions point to.
//!
//! Owns the ways to say it. Which arguments a call has at all may depend on one of them:
//! [`super::choices`].

use super::opening::{concerns, open_pages, readable, touch};

/// What an argument points to.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    argument: usize,
    size: Size,
    how: How,
}

#[derive(Clone, Copy)]
enum Size {
    Bytes(usize),
    /// As many as another argument says.
    Argument(usize),
    /// As many as another argument says, and some more.
    Beyond(usize, usize),
    /// As many items as another argument says, of so many bytes.
    Items(usize, usize),
    /// A text ends with a zero.
    Text,
    /// Addresses of texts, and a zero.
    Texts,
}

#[derive(Clone, Copy)]
enum How {
    Reads,
    Writes,
    /// Not known, or not all of it.
    Opens,
}

pub(super) const fn of<T>() -> usize {
    size_of::<T>()
}

pub(super) const fn reads(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Reads }
}

pub(super) const fn writes(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Writes }
}

pub(super) const fn opens(argument: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Bytes(bytes), how: How::Opens }
}

pub(super) const fn sized(argument: usize, by: usize) -> Piece {
    Piece { argument, size: Size::Argument(by), how: How::Opens }
}

pub(super) const fn beyond(argument: usize, by: usize, more: usize) -> Piece {
    Piece { argument, size: Size::Beyond(by, more), how: How::Opens }
}

pub(super) const fn items(argument: usize, count: usize, bytes: usize) -> Piece {
    Piece { argument, size: Size::Items(count, bytes), how: How::Opens }
}

pub(super) const fn path(argument: usize) -> Piece {
    Piece { argument, size: Size::Text, how: How::Opens }
}

pub(super) const fn texts(argument: usize) -> Piece {
    Piece { argument, size: Size::Texts, how: How::Opens }
}

/// More than the structures of `ioctl`, `prctl` and options of sockets take.
pub(super) const PAGE: usize = 4096;

/// The sender's address.
pub(super) const PEER: &[Piece] = &[opens(4, of::<libc::sockaddr_storage>()), opens(5, of::<i32>())];
/// The receiver's.
pub(super) const DESTINATION: &[Piece] = &[sized(4, 5)];

impl Piece {
    /// Which argument points there.
    #[cfg(test)]
    pub(super) fn argument(&self) -> usize {
        self.argument
    }

    /// Makes it accessible; an access is recorded where it is certain.
    pub(super) fn open(&self, args: &[usize; 6]) {
        let start = args[self.argument];
        if start == 0 {
            return;
        }
        let len = match self.size {
            Size::Bytes(bytes) => bytes,
            Size::Argument(by) => args[by],
            Size::Beyond(by, more) => args[by].saturating_add(more),
            Size::Items(count, bytes) => args[count].saturating_mul(bytes),
            Size::Text => return open_text(start),
            Size::Texts => return open_texts(start),
        };
        match self.how {
            How::Reads => touch(start as *const _, len, false),
            How::Writes => touch(start as *const _, len, true),
            How::Opens => open_pages(start as u64, len as u64),
        }
    }
}

/// A text, page by page until it ends.
fn open_text(start: usize) {
    /// More than the kernel takes of a path, and of an argument.
    const MOST: usize = 32 * PAGE;
    let mut at = start;
    while at < start.saturating_add(MOST) {
        let Some(end) = at.checked_add(1).and_then(|next| next.checked_next_multiple_of(PAGE)) else { return };
        if !concerns(at as u64, end as u64) || !readable(at, end - at) {
            return;
        }
        // SAFETY: just found readable.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, end - at) };
        if bytes.contains(&0) {
            return;
        }
        at = end;
    }
}

/// A list of texts, as programs are started with.
fn open_texts(start: usize) {
    const MOST: usize = 1 << 16;
    const WORD: usize = of::<usize>();
    for index in 0..MOST {
        let at = start.saturating_add(index * WORD);
        let first = index == 0 || at % PAGE < WORD;
        if first && (!at.is_multiple_of(WORD) || !readable(at, PAGE - at % PAGE)) {
            return;
        }
        // SAFETY: its page was just found readable; aligned.
        match unsafe { *(at as *const usize) } {
            0 => return,
            text => open_text(text),
        }
    }
}
