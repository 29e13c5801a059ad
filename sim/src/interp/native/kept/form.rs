//! How code is written down in a file: entries by their places, and what an entry holds. Nothing is
//! believed of bytes that are read: each length is checked, and what makes no sense is no entry.
//! Whether the file may be trusted at all is `folder`'s.

use std::collections::{BTreeMap, HashMap};

use crate::interp::env::Env;
use crate::interp::native::compiler::Piece;
use crate::interp::native::outside::Outside;
use crate::interp::native::pack::class::Class;
use crate::interp::native::pack::width::Width;

/// A kind of code that a region has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(in crate::interp::native) enum KeptForm {
    Lanes,
    UpToJoin,
    Packs,
}

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::interp::native) struct Place {
    /// Where the region begins.
    pub pc: u32,
    pub form: KeptForm,
    /// The launch's block, of packs.
    pub shape: [u32; 3],
}

impl Place {
    pub(in crate::interp::native) fn of(pc: u32, form: KeptForm) -> Place {
        Place { pc, form, shape: [0; 3] }
    }

    /// Of packs in a launch.
    pub(in crate::interp::native) fn packs(pc: u32, env: &Env<'_>) -> Place {
        Place { pc, form: KeptForm::Packs, shape: env.launch.block }
    }
}

/// What was found out about the packs of a region while they ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::interp::native) struct PacksState {
    pub renewed: u32,
    /// Registers of which nothing is supposed, and branches for which there is code. In order.
    pub varying: Vec<usize>,
    pub parting: Vec<u32>,
}

/// What is kept for a place.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::interp::native) struct Entry {
    /// None: there is no such code.
    pub piece: Option<Piece>,
    /// Lanes of a pack.
    pub width: Width,
    pub packs: PacksState,
}

/// Writes numbers one behind the other.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Sink {
    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn list<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut put: impl FnMut(&mut Sink, T)) {
        self.word(items.len() as u32);
        items.for_each(|item| put(self, item));
    }

    fn class(&mut self, (register, class): (usize, Class)) {
        let (kind, step) = match class {
            Class::Unknown => (0, 0),
            Class::Uniform => (1, 0),
            Class::Affine(step) => (2, step),
            Class::Halves(step) => (3, step),
            Class::Varying => (4, 0),
        };
        self.word(register as u32);
        self.word(kind);
        self.0.extend(step.to_le_bytes());
    }
}

/// Reads what a [`Sink`] has written.
struct Source<'b>(&'b [u8]);

impl<'b> Source<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (own, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(own)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn list<T, C: FromIterator<T>>(&mut self, mut get: impl FnMut(&mut Source<'b>) -> Option<T>) -> Option<C> {
        let count = self.word()?;
        // As many as are there: a wrong number asks for no memory.
        (0..count).map(|_| get(self)).collect()
    }

    fn class(&mut self) -> Option<(usize, Class)> {
        let (register, kind) = (self.word()? as usize, self.word()?);
        let step = i64::from_le_bytes(self.bytes(8)?.try_into().ok()?);
        let class = match kind {
            0 => Class::Unknown,
            1 => Class::Uniform,
            2 => Class::Affine(step),
            3 => Class::Halves(step),
            4 => Class::Varying,
            _ => return None,
        };
        Some((register, class))
    }
}

impl Entry {
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut to = Sink::default();
        to.word(self.width.lanes() as u32);
        to.word(self.packs.renewed);
        to.list(self.packs.varying.iter(), |to, &register| to.word(register as u32));
        to.list(self.packs.parting.iter(), |to, &pc| to.word(pc));
        to.word(u32::from(self.piece.is_some()));
        if let Some(piece) = &self.piece {
            to.word(piece.sites);
            to.word(u32::from(piece.local));
            to.list(piece.places.iter(), |to, &(at, outside)| {
                let (kind, index) = outside.numbers();
                [at, kind, index].into_iter().for_each(|word| to.word(word));
            });
            to.list(piece.exits.iter(), |to, exit| {
                let ordered: BTreeMap<usize, Class> =
                    exit.iter().map(|(&register, &class)| (register, class)).collect();
                to.list(ordered.into_iter(), Sink::class);
            });
            to.list(piece.supposed.iter(), |to, &supposed| to.class(supposed));
            to.word(piece.code.len() as u32);
            to.0.extend(&piece.code);
        }
        to.0
    }

    pub(super) fn decoded(bytes: &[u8]) -> Option<Entry> {
        let mut from = Source(bytes);
        let lanes = from.word()? as usize;
        let width = Width::of_lanes(lanes);
        let renewed = from.word()?;
        let varying = from.list(|from| from.word().map(|register| register as usize))?;
        let parting = from.list(Source::word)?;
        let piece = match from.word()? {
            0 => None,
            1 => {
                let (sites, local) = (from.word()?, from.word()? != 0);
                let places = from.list(|from| {
                    let at = from.word()?;
                    Some((at, Outside::of_numbers(from.word()?, from.word()?)?))
                })?;
                let exits = from.list(|from| from.list::<_, HashMap<usize, Class>>(Source::class))?;
                let supposed = from.list(Source::class)?;
                let length = from.word()? as usize;
                let code = from.bytes(length)?.to_vec();
                Some(Piece { code, places, sites, local, exits, supposed })
            }
            _ => return None,
        };
        let whole = from.0.is_empty() && width.lanes() == lanes;
        whole.then_some(Entry { piece, width, packs: PacksState { renewed, varying, parting } })
    }
}

/// The entries of a file in its form. None where it is not one.
pub(super) fn entries(bytes: &[u8]) -> Option<impl Iterator<Item = (Place, &[u8])>> {
    let mut from = Source(bytes);
    let all: Vec<(Place, &[u8])> = from.list(|from| {
        let pc = from.word()?;
        let form = match from.word()? {
            0 => KeptForm::Lanes,
            1 => KeptForm::UpToJoin,
            2 => KeptForm::Packs,
            _ => return None,
        };
        let shape = [from.word()?, from.word()?, from.word()?];
        let length = from.word()? as usize;
        Some((Place { pc, form, shape }, from.bytes(length)?))
    })?;
    from.0.is_empty().then(|| all.into_iter())
}

/// A file with these entries.
pub(super) fn file(entries: &BTreeMap<Place, &[u8]>) -> Vec<u8> {
    let mut to = Sink::default();
    to.list(entries.iter(), |to, (place, body)| {
        to.word(place.pc);
        to.word(place.form as u32);
        place.shape.into_iter().for_each(|side| to.word(side));
        to.word(body.len() as u32);
        to.0.extend(*body);
    });
    to.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::native::outside::Keeper;

    fn entry() -> Entry {
        let piece = Piece {
            code: (0..40).collect(),
            places: vec![(8, Outside::Function(-77)), (20, Outside::Keeper(Keeper::Find)), (30, Outside::Exit(1))],
            sites: 3,
            local: true,
            exits: vec![HashMap::new(), HashMap::from([(4, Class::Affine(-8)), (9, Class::Halves(2))])],
            supposed: vec![(1, Class::Uniform), (2, Class::Varying)],
        };
        let packs = PacksState { renewed: 1, varying: vec![5, 6], parting: vec![70] };
        Entry { piece: Some(piece), width: Width::of_lanes(16), packs }
    }

    #[test]
    fn entries_come_back() {
        let none = Entry { piece: None, ..entry() };
        for entry in [entry(), none] {
            assert_eq!(Entry::decoded(&entry.encoded()), Some(entry));
        }
        let (first, second) = (entry().encoded(), vec![1, 2, 3]);
        let place = |pc, form| Place { pc, form, shape: [32, pc, 1] };
        let all = BTreeMap::from([(place(7, KeptForm::Lanes), &first[..]), (place(7, KeptForm::Packs), &second[..])]);
        let file = file(&all);
        assert_eq!(entries(&file).unwrap().collect::<BTreeMap<_, _>>(), all);
    }

    #[test]
    fn half_of_an_entry_is_none() {
        let whole = entry().encoded();
        for length in 0..whole.len() {
            assert_eq!(Entry::decoded(&whole[..length]), None, "{length}");
        }
        assert_eq!(Entry::decoded(&[&whole[..], &[0]].concat()), None);
        let all = BTreeMap::from([(Place { pc: 1, form: KeptForm::Lanes, shape: [0; 3] }, &whole[..])]);
        let file = file(&all);
        for length in 0..file.len() {
            assert!(entries(&file[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn changed_bytes_do_no_harm() {
        let whole = entry().encoded();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                // Whatever comes of it: it asks for no more memory than there is, and ends.
                let _ = Entry::decoded(&changed);
            }
        }
    }
}
