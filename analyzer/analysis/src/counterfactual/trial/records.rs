//! The records that are fed again: kept in memory while a program runs, or read from a trace file
//! (`ingest::recorded`).
//!
//! Owns the interface, the store in memory and its bound. Definitions are not kept, because the
//! second analysis takes over what they define.

/// Bytes of a piece of the store.
const PIECE: usize = 1 << 20;

/// Where the records of one process come from, in their order.
pub trait Records {
    /// Passes all of them to `each`. False: not all can be had.
    fn each(&mut self, each: &mut dyn FnMut(&[u8])) -> bool;
}

/// Records kept in memory, up to a number of bytes.
#[derive(Default)]
pub struct KeptRecords {
    pieces: Vec<Vec<u8>>,
    room: usize,
    overflown: bool,
}

impl KeptRecords {
    /// A store of at most so many bytes.
    pub fn bounded(bytes: usize) -> Self {
        Self { room: bytes, ..Self::default() }
    }

    /// Keeps a record, unless it is a definition. Beyond the bound everything is given up.
    #[inline]
    pub fn keep(&mut self, record: &[u8]) {
        let is_definition = record.first_chunk().is_none_or(|tag| u16::from_le_bytes(*tag) < trace::op::FIRST_OP);
        if is_definition || self.overflown {
            return;
        }
        let needed = record.len() + size_of::<u32>();
        if self.pieces.last().is_none_or(|piece| piece.len() + needed > piece.capacity()) {
            self.grow(needed);
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.extend_from_slice(&(record.len() as u32).to_le_bytes());
            piece.extend_from_slice(record);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let size = needed.max(PIECE);
        if size > self.room {
            *self = Self { overflown: true, ..Self::default() };
            return;
        }
        self.room -= size;
        self.pieces.push(Vec::with_capacity(size));
    }

    /// Whether the records were more than the store may hold.
    pub fn is_overflown(&self) -> bool {
        self.overflown
    }
}

impl Records for KeptRecords {
    fn each(&mut self, each: &mut dyn FnMut(&[u8])) -> bool {
        for piece in &self.pieces {
            let mut rest = &piece[..];
            while let Some((len, after)) = rest.split_first_chunk() {
                let Some((record, next)) = after.split_at_checked(u32::from_le_bytes(*len) as usize) else { break };
                each(record);
                rest = next;
            }
        }
        !self.overflown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tag: u16, len: usize) -> Vec<u8> {
        let mut bytes = tag.to_le_bytes().to_vec();
        bytes.resize(len, tag as u8);
        bytes
    }

    #[test]
    fn all_but_definitions_come_back_in_order() {
        let mut kept = KeptRecords::bounded(4 << 20);
        let all: Vec<Vec<u8>> = (0..60_u16).map(|n| record(n, 2 + usize::from(n) * 1000)).collect();
        all.iter().for_each(|record| kept.keep(record));
        let mut back = Vec::new();
        assert!(kept.each(&mut |bytes| back.push(bytes.to_vec())));
        assert_eq!(back, all[32..]);
    }

    #[test]
    fn what_is_too_much_is_given_up_as_a_whole() {
        let mut kept = KeptRecords::bounded(PIECE + 10);
        for n in 0..200 {
            kept.keep(&record(40, 10_000 + n));
        }
        assert!(kept.is_overflown() && !kept.each(&mut |_| panic!("nothing is left")));
    }
}
