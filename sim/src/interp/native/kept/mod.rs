//! Compiled code on disk, beside the summaries of kernels, so that a program's second run does not
//! compile again.
//!
//! A file holds the code of one program (in the interpreter's sense: a module of PTX, or a kernel
//! of machine code). Its name is a hash of all that its code was made of (`key`). In it is one
//! entry for each region and kind of code (`form`); of packs one for each shape of block, because
//! what is supposed of registers follows from that. `folder` says which files are trusted, reads
//! and writes them, `writer` when. What cannot be read, understood or written counts as missing,
//! without a message: code is compiled.
//!
//! Does not know how code is made (`compiler`), or when it is wanted (`making`).

mod folder;
mod form;
mod key;
mod writer;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

pub(super) use form::{Entry, KeptForm, PacksState, Place};

use super::compiler::Tools;
use crate::interp::program::Program;
use folder::Folder;

/// Entries of packs that are kept for one region: the shapes of blocks that were used last.
const MOST_SHAPES: usize = 4;

static FOLDER: OnceLock<Option<Folder>> = OnceLock::new();

/// Keeps code in a folder from now on; None: nowhere. Only the first call of a process counts.
/// Without one nothing is kept.
pub(crate) fn keep_in(folder: Option<PathBuf>) {
    let _ = FOLDER.set(folder.and_then(Folder::new));
}

/// The code of one program that is on disk, or will be.
pub(super) struct Kept {
    name: u128,
    folder: &'static Folder,
    /// What was there when the program was first looked at.
    places: HashSet<Place>,
    found: Mutex<HashMap<Place, Vec<u8>>>,
    /// What was made since it was last written.
    fresh: Mutex<BTreeMap<Place, Vec<u8>>>,
}

impl Kept {
    /// What is kept of a program. None where nothing is kept.
    pub(super) fn of(program: &Program, tools: &Tools) -> Option<Arc<Kept>> {
        let folder = FOLDER.get()?.as_ref()?;
        let name = key::of(program, tools)?;
        let bytes = folder.read(name).unwrap_or_default();
        let found: HashMap<Place, Vec<u8>> =
            form::entries(&bytes).into_iter().flatten().map(|(place, body)| (place, body.to_vec())).collect();
        let places = found.keys().copied().collect();
        Some(Arc::new(Kept { name, folder, places, found: Mutex::new(found), fresh: Mutex::default() }))
    }

    /// Where regions begin of which something was there.
    pub(super) fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().map(|place| place.pc)
    }

    /// Whether there was something for a place.
    pub(super) fn has(&self, place: Place) -> bool {
        self.places.contains(&place)
    }

    /// What was there for a place: the first time that it is asked for.
    pub(super) fn take(&self, place: Place) -> Option<Entry> {
        if !self.has(place) {
            return None;
        }
        let body = self.found.lock().ok()?.remove(&place)?;
        Entry::decoded(&body)
    }

    /// Keeps what was made for a place, instead of what was there.
    pub(super) fn note(self: &Arc<Self>, place: Place, entry: &Entry) {
        if let Ok(mut fresh) = self.fresh.lock() {
            fresh.insert(place, entry.encoded());
        }
        writer::wake(self);
    }

    /// Writes what was made. Others may have written meanwhile: what they have is left there.
    fn write(&self) {
        let fresh = self.fresh.lock().map(|mut fresh| std::mem::take(&mut *fresh)).unwrap_or_default();
        if fresh.is_empty() {
            return;
        }
        let there = self.folder.read(self.name).unwrap_or_default();
        let there = form::entries(&there).into_iter().flatten();
        let mut all: BTreeMap<Place, &[u8]> = there.collect();
        all.extend(fresh.iter().map(|(&place, body)| (place, body.as_slice())));
        drop_shapes(&mut all, |place| fresh.contains_key(place));
        self.folder.write(self.name, &form::file(&all));
    }
}

/// Leaves out shapes of blocks where there are too many: first those that were not used now.
fn drop_shapes(all: &mut BTreeMap<Place, &[u8]>, now: impl Fn(&Place) -> bool) {
    let mut shapes: HashMap<u32, Vec<Place>> = HashMap::new();
    for place in all.keys().filter(|place| place.form == KeptForm::Packs) {
        shapes.entry(place.pc).or_default().push(*place);
    }
    for mut places in shapes.into_values().filter(|places| places.len() > MOST_SHAPES) {
        places.sort_by_key(|place| !now(place));
        for place in places.drain(MOST_SHAPES..) {
            all.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_used_now_stay() {
        let place = |pc, x| Place { pc, form: KeptForm::Packs, shape: [x, 1, 1] };
        let mut all: BTreeMap<Place, &[u8]> = (0..6).map(|x| (place(3, x), &[][..])).collect();
        all.insert(place(4, 9), &[]);
        all.insert(Place { pc: 3, form: KeptForm::Lanes, shape: [0; 3] }, &[]);
        drop_shapes(&mut all, |place| place.shape[0] == 5);
        assert_eq!(all.len(), 6);
        assert!(all.contains_key(&place(3, 5)) && all.contains_key(&place(4, 9)));
    }
}
