//! Which bytes a texture or surface instruction touches, for a tool that wants to know.
//!
//! Owns the list, which is a thread's: an instruction runs on one thread. Only texels that count
//! towards the result are on it: not the neighbours to which a filter gives no weight, nor the
//! border.

use std::cell::RefCell;

use crate::interp::AccessKind;

/// Bytes that were touched: how, the first address, how many.
pub(crate) type Noted = (AccessKind, u64, u32);

thread_local! {
    static LIST: RefCell<Option<Vec<Noted>>> = const { RefCell::new(None) };
}

/// Runs an instruction and answers what it touched, too.
pub(crate) fn noting<R>(run: impl FnOnce() -> R) -> (R, Vec<Noted>) {
    LIST.with_borrow_mut(|list| *list = Some(Vec::new()));
    let result = run();
    (result, LIST.take().unwrap_or_default())
}

/// Whether somebody wants to know.
pub(super) fn is_wanted() -> bool {
    LIST.with_borrow(Option::is_some)
}

/// Takes note of bytes.
pub(super) fn note(kind: AccessKind, at: u64, bytes: u64) {
    LIST.with_borrow_mut(|list| {
        if let Some(list) = list {
            list.push((kind, at, bytes as u32));
        }
    });
}
