//! The end of a handle.
//!
//! Owns the two halves of a call that destroys one. Before the call the handle's id is looked up;
//! when it has succeeded, the id is forgotten, unless another thread was given the same handle for
//! something new meanwhile. A call that fails leaves the handle as it was.

use crate::handles::HandleTable;
use crate::handles::tables::Handles;
use crate::observe::Cx;

/// Before the call: nothing. After it: the id of what is gone, if that was known.
pub(crate) fn handle_destroyed<V: 'static>(
    cx: &mut Cx<'_>,
    table: impl Fn(&'static Handles) -> &'static HandleTable<u64, V>,
    key: u64,
    id: impl Fn(&V) -> u32,
) -> Option<u32> {
    let table = table(&cx.core()?.handles);
    if cx.is_before() {
        // What the calling thread remembered is there already.
        if cx.token == 0 {
            cx.token = table.get(&key).map_or(0, |known| u64::from(id(&known)));
        }
        return None;
    }
    let gone = Some(cx.token as u32).filter(|gone| *gone != 0)?;
    table.remove_if(&key, |_, known| id(known) == gone);
    Some(gone)
}
