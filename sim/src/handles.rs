//! Handles: what programs hold instead of objects.
//!
//! Owns the map from handles to live objects. A handle is looked up and never dereferenced, so a
//! wrong one is an error and not a crash.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use cuda_sys::CUresult;

/// The live objects of one kind. A handle is the object's address (or a number that the owner
/// chose), so it comes back after the object is gone, as real ones do.
pub(crate) struct Handles<T: 'static> {
    live: RwLock<Option<HashMap<usize, Arc<T>>>>,
}

impl<T> Handles<T> {
    /// No objects.
    pub(crate) const fn new() -> Self {
        Handles { live: RwLock::new(None) }
    }

    /// Makes the object known and answers its handle.
    pub(crate) fn insert(&self, object: Arc<T>) -> usize {
        let handle = Arc::as_ptr(&object) as usize;
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.get_or_insert_default().insert(handle, object);
        handle
    }

    /// Makes the object known under a handle that the caller chose, and that no other one has.
    pub(crate) fn insert_as(&self, handle: usize, object: Arc<T>) {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.get_or_insert_default().insert(handle, object);
    }

    /// The object, or `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn get(&self, handle: usize) -> Result<Arc<T>, CUresult> {
        self.find(handle).ok_or(CUresult::ERROR_INVALID_HANDLE)
    }

    /// The object, or `CUDA_ERROR_INVALID_VALUE`, which is what wrong handles of graphs are.
    pub(crate) fn valid(&self, handle: usize) -> Result<Arc<T>, CUresult> {
        self.find(handle).ok_or(CUresult::ERROR_INVALID_VALUE)
    }

    /// The object, if there is one.
    pub(crate) fn find(&self, handle: usize) -> Option<Arc<T>> {
        let live = self.live.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.as_ref()?.get(&handle).cloned()
    }

    /// Forgets the object and answers it.
    pub(crate) fn remove(&self, handle: usize) -> Result<Arc<T>, CUresult> {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.as_mut().and_then(|live| live.remove(&handle)).ok_or(CUresult::ERROR_INVALID_HANDLE)
    }

    /// All objects, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let live = self.live.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        live.as_ref().map(|live| live.values().cloned().collect()).unwrap_or_default()
    }

    /// Forgets the objects that do not pass the test.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let mut live = self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(live) = live.as_mut() {
            live.retain(|_, object| keep(object));
        }
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles::new()
    }
}

/// The handle of an object that was inserted.
pub(crate) fn handle_of<T>(object: &Arc<T>) -> usize {
    Arc::as_ptr(object) as usize
}
