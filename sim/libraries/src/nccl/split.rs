//! Splitting a communicator: every rank says a colour and a key, and those of one colour make a new
//! communicator, in the order of their keys.
//!
//! The ranks tell each other in the parent's file. Whoever comes first of a colour makes the new
//! file, and tells which it is. Owns the host's part of this: a rank waits here for all others, as
//! NCCL does. Inside a group all of the group's splits are told before the first one waits.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::communicator::{CommHandle, Communicator, INTERNAL_ERROR};
use super::shared::UniqueId;

/// What `ncclCommSplit` takes for "not in any".
const NO_COLOUR: i32 = -1;

/// The words of a rank in the parent's file.
#[derive(Clone, Copy)]
enum Word {
    /// How many splits it has told of.
    Told,
    Colour,
    Key,
    /// How many new files it has told of, counted as splits.
    Made,
    Process,
    File,
    NumberLow,
    NumberHigh,
    /// How many splits it is through with.
    Through,
}

/// Words that a rank has.
pub(super) const WORDS: usize = 16;

/// One rank's part of a split that has been told.
struct Split {
    parent: Arc<Communicator>,
    colour: i32,
    number: u32,
    to: *mut CommHandle,
}

thread_local! {
    /// How many groups are open, and the splits that were called in them.
    static OPEN: RefCell<(u32, Vec<Split>)> = const { RefCell::new((0, Vec::new())) };
}

fn word(comm: &Communicator, rank: usize, which: Word) -> &'static AtomicU32 {
    comm.shared().split_word(rank, which as usize)
}

/// Waits until a word of a rank is that high.
fn wait(comm: &Communicator, rank: usize, which: Word, value: u32) {
    let word = word(comm, rank, which);
    while word.load(Ordering::Acquire) < value {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Splits a communicator; the new one is at `to` afterwards, or at the end of the group.
///
/// # Safety
/// `to` is writable until then.
pub(super) unsafe fn split(parent: Arc<Communicator>, colour: i32, key: i32, to: *mut CommHandle) -> Result<(), i32> {
    let own = |which| word(&parent, parent.rank, which);
    let number = own(Word::Told).load(Ordering::Relaxed) + 1;
    // What was told of the split before must have been read by all.
    (0..parent.ranks).for_each(|rank| wait(&parent, rank, Word::Through, number - 1));
    own(Word::Colour).store(colour as u32, Ordering::Relaxed);
    own(Word::Key).store(key as u32, Ordering::Relaxed);
    own(Word::Told).store(number, Ordering::Release);
    let split = Split { parent, colour, number, to };
    let now = OPEN.with_borrow_mut(|(depth, splits)| {
        if *depth == 0 {
            return Some(split);
        }
        splits.push(split);
        None
    });
    // SAFETY: the caller's promise.
    now.map_or(Ok(()), |split| unsafe { finish(vec![split]) })
}

/// A group opens.
pub(super) fn begin_group() {
    OPEN.with_borrow_mut(|(depth, _)| *depth += 1);
}

/// A group closes: the outermost one ends the splits that were called in it.
pub(super) fn end_group() -> Result<(), i32> {
    let splits = OPEN.with_borrow_mut(|(depth, splits)| {
        *depth = depth.saturating_sub(1);
        if *depth == 0 { std::mem::take(splits) } else { Vec::new() }
    });
    // SAFETY: who called `split` promised it.
    unsafe { finish(splits) }
}

/// # Safety
/// The places of the results are writable.
unsafe fn finish(splits: Vec<Split>) -> Result<(), i32> {
    // In three rounds, so that ranks of one thread do not wait for each other in a circle.
    let mut members = Vec::new();
    for split in &splits {
        members.push(split.members());
        split.make(members.last().map_or(&[][..], Vec::as_slice))?;
    }
    for (split, members) in splits.iter().zip(&members) {
        let joined = split.join(members)?;
        // SAFETY: the caller's promise.
        unsafe { split.to.write(joined.map_or(std::ptr::null(), |comm| Arc::into_raw(Arc::new(comm)))) };
    }
    for split in &splits {
        word(&split.parent, split.parent.rank, Word::Through).store(split.number, Ordering::Release);
    }
    Ok(())
}

impl Split {
    /// The ranks of this colour, in the new order.
    fn members(&self) -> Vec<usize> {
        let comm = &self.parent;
        let mut all = Vec::new();
        for rank in 0..comm.ranks {
            wait(comm, rank, Word::Told, self.number);
            let told = |which| word(comm, rank, which).load(Ordering::Relaxed) as i32;
            if told(Word::Colour) == self.colour {
                all.push((told(Word::Key), rank));
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(_, rank)| rank).collect()
    }

    /// The first of a colour makes the file.
    fn make(&self, members: &[usize]) -> Result<(), i32> {
        let comm = &self.parent;
        if self.colour == NO_COLOUR || members.first() != Some(&comm.rank) {
            return Ok(());
        }
        let (process, file, number) = UniqueId::new().ok_or(INTERNAL_ERROR)?.parts();
        let own = |which| word(comm, comm.rank, which);
        own(Word::Process).store(process, Ordering::Relaxed);
        own(Word::File).store(file as u32, Ordering::Relaxed);
        own(Word::NumberLow).store(number as u32, Ordering::Relaxed);
        own(Word::NumberHigh).store((number >> 32) as u32, Ordering::Relaxed);
        own(Word::Made).store(self.number, Ordering::Release);
        Ok(())
    }

    fn join(&self, members: &[usize]) -> Result<Option<Communicator>, i32> {
        let comm = &self.parent;
        let (Some(&first), false) = (members.first(), self.colour == NO_COLOUR) else { return Ok(None) };
        wait(comm, first, Word::Made, self.number);
        let told = |which| word(comm, first, which).load(Ordering::Relaxed);
        let number = u64::from(told(Word::NumberHigh)) << 32 | u64::from(told(Word::NumberLow));
        let id = UniqueId::of(told(Word::Process), told(Word::File) as i32, number);
        let rank = members.iter().position(|&rank| rank == comm.rank).ok_or(INTERNAL_ERROR)?;
        Communicator::join(&id, members.len() as i32, rank as i32, comm.device).map(Some)
    }
}
