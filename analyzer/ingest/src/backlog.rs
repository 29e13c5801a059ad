//! The records that a program has made and the analysis has not taken yet.
//!
//! Owns the queue between the thread that empties the ring and the one that analyses, and its
//! bound. While the bound is not reached the program does not wait for the analysis. Beyond it the
//! ring is left alone until there is room, and fills. Does not know what a record means.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use trace::ring::RingError;

/// Bytes of a piece of the queue.
const PIECE: usize = 1 << 20;
/// Bytes of all pieces, at most; and the part of the machine's memory that they may take.
const MOST: u64 = 1 << 30;
const PART: u64 = 16;
/// The same where records are written and not analysed.
const RECORDED: usize = 16 << 20;

/// Bytes of memory that this process may use: the machine's, or fewer in a container.
fn memory() -> u64 {
    // SAFETY: the calls take numbers.
    let [pages, size] = unsafe { [libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)] };
    let all = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0));
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = |file| std::fs::read_to_string(file).ok()?.trim().parse().ok();
    limits.into_iter().filter_map(limit).fold(all, u64::min)
}

/// Records in a row.
#[derive(Default)]
pub(crate) struct Piece {
    /// Each with its length before it.
    bytes: Vec<u8>,
    /// When everything that came before this time is here or was taken before.
    pub(crate) began: Option<u64>,
}

impl Piece {
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// The records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk()?;
            let (record, next) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            rest = next;
            Some(record)
        })
    }
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// The last piece has come, and why, if that was too soon.
    ended: Option<Result<(), RingError>>,
    /// Nobody takes pieces any more.
    closed: bool,
    /// One that was used.
    spare: Option<Vec<u8>>,
}

/// The queue.
pub(crate) struct Backlog {
    state: Mutex<State>,
    changed: Condvar,
    most: usize,
    is_roomy: Arc<AtomicBool>,
}

impl Backlog {
    /// One for an analysis, with the bound of this machine.
    pub(crate) fn of_analysis() -> Self {
        Self::bounded((memory() / PART).min(MOST) as usize)
    }

    /// One for what is only written to a file: a disk that is too slow is too slow in the end.
    pub(crate) fn of_recording() -> Self {
        Self::bounded(RECORDED)
    }

    fn bounded(most: usize) -> Self {
        let is_roomy = Arc::new(AtomicBool::new(true));
        Self { state: Mutex::default(), changed: Condvar::new(), most: most.max(PIECE), is_roomy }
    }

    /// The end that fills the queue.
    pub(crate) fn filler(&self) -> Filler<'_> {
        Filler { backlog: self, piece: Piece::default() }
    }

    /// The next piece, for which this waits; or the end, and why it came too soon.
    pub(crate) fn take(&self, used: Piece) -> Result<Piece, Option<RingError>> {
        let mut state = self.lock();
        state.bytes -= used.bytes.len();
        self.judge_room(&state);
        let mut spare = used.bytes;
        spare.clear();
        state.spare = Some(spare);
        self.changed.notify_all();
        loop {
            if let Some(piece) = state.pieces.pop_front() {
                return Ok(piece);
            }
            if let Some(ended) = state.ended.take() {
                state.ended = Some(Ok(()));
                return Err(ended.err());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the analysis may be held back: it is not at its end, and three quarters of the room
    /// are left. (As of the last change.)
    pub(crate) fn is_roomy(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_roomy)
    }

    /// Nothing is taken any more: whoever fills the queue need not go on.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn judge_room(&self, state: &State) {
        let is_roomy = state.ended.is_none() && !state.closed && state.bytes <= self.most / 4;
        self.is_roomy.store(is_roomy, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What fills the queue. When it is dropped, the queue has come to its end.
pub(crate) struct Filler<'a> {
    backlog: &'a Backlog,
    piece: Piece,
}

impl Filler<'_> {
    /// Adds a record. Waits where the bound is reached.
    #[inline]
    pub(crate) fn put(&mut self, record: &[u8]) {
        if self.piece.bytes.len() + record.len() > PIECE && !self.piece.bytes.is_empty() {
            self.hand_on();
        }
        self.piece.push(record);
    }

    /// All that came before this time was put. False: nobody takes it.
    pub(crate) fn round(&mut self, began: u64) -> bool {
        self.piece.began = Some(began);
        self.hand_on();
        !self.backlog.lock().closed
    }

    /// The end has come too soon.
    pub(crate) fn fail(&mut self, error: RingError) {
        self.backlog.lock().ended = Some(Err(error));
    }

    fn hand_on(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        let mut state = self.backlog.lock();
        while !state.closed && state.bytes > 0 && state.bytes + piece.bytes.len() > self.backlog.most {
            state = self.backlog.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return;
        }
        state.bytes += piece.bytes.len();
        self.backlog.judge_room(&state);
        match state.pieces.back_mut().filter(|last| last.bytes.len() + piece.bytes.len() <= PIECE) {
            Some(last) => {
                last.bytes.extend_from_slice(&piece.bytes);
                last.began = piece.began.or(last.began);
                self.piece.bytes = piece.bytes;
                self.piece.bytes.clear();
            }
            None => {
                state.pieces.push_back(piece);
                self.piece.bytes = state.spare.take().unwrap_or_default();
            }
        }
        drop(state);
        self.backlog.changed.notify_all();
    }
}

impl Drop for Filler<'_> {
    fn drop(&mut self) {
        self.hand_on();
        let mut state = self.backlog.lock();
        state.ended.get_or_insert(Ok(()));
        self.backlog.judge_room(&state);
        drop(state);
        self.backlog.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn record(number: u32) -> Vec<u8> {
        number.to_le_bytes().repeat(1 + number as usize % 50)
    }

    #[test]
    fn records_come_out_in_their_order_and_the_times_behind_them() {
        let backlog = Backlog::bounded(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut filler = backlog.filler();
                for number in 0..100_000 {
                    filler.put(&record(number));
                    if number % 7 == 0 {
                        assert!(filler.round(number.into()));
                    }
                }
            });
            let (mut piece, mut next) = (Piece::default(), 0);
            loop {
                piece = match backlog.take(piece) {
                    Ok(piece) => piece,
                    Err(error) => {
                        assert!(error.is_none());
                        break;
                    }
                };
                for bytes in piece.records() {
                    assert_eq!(bytes, record(next));
                    next += 1;
                }
                assert!(piece.began.is_none_or(|began| began < next.into()), "{:?} {next}", piece.began);
            }
            assert_eq!(next, 100_000);
        });
    }

    #[test]
    fn whoever_fills_waits_at_the_bound_and_no_longer_than_somebody_takes() {
        let backlog = Backlog::bounded(2 * PIECE);
        let large = vec![7; PIECE / 2];
        std::thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let mut filler = backlog.filler();
                let put = |_: &u32| {
                    filler.put(&large);
                    filler.round(0)
                };
                (0..100).take_while(put).count()
            });
            std::thread::sleep(Duration::from_millis(50));
            assert!(backlog.lock().bytes <= 2 * PIECE && !filling.is_finished());
            backlog.close();
            assert!(filling.join().expect("it ends") < 100);
        });
    }

    #[test]
    fn a_record_larger_than_the_bound_passes_alone() {
        let backlog = Backlog::bounded(PIECE);
        let large = vec![7; 3 * PIECE];
        std::thread::scope(|scope| {
            scope.spawn(|| backlog.filler().put(&large));
            let piece = backlog.take(Piece::default()).expect("a piece");
            assert!(piece.records().eq([&large[..]]));
        });
    }

    #[test]
    fn there_is_room_until_a_quarter_is_used_and_none_at_the_end() {
        let backlog = Backlog::bounded(4 * PIECE);
        let is_roomy = || backlog.is_roomy().load(Ordering::Relaxed);
        let mut filler = backlog.filler();
        filler.put(&vec![7; PIECE / 4 * 3]);
        assert!(filler.round(1) && is_roomy());
        filler.put(&vec![7; PIECE / 2]);
        assert!(filler.round(2) && !is_roomy());
        let piece = backlog.take(Piece::default()).expect("a piece");
        backlog.take(piece).expect("a piece");
        assert!(is_roomy());
        drop(filler);
        assert!(!is_roomy());
    }

    #[test]
    fn a_failure_comes_behind_what_was_read_before() {
        let backlog = Backlog::bounded(PIECE);
        let mut filler = backlog.filler();
        filler.put(b"one");
        filler.fail(RingError::Foreign);
        drop(filler);
        let piece = backlog.take(Piece::default()).expect("a piece");
        assert!(piece.records().eq([&b"one"[..]]));
        assert!(matches!(backlog.take(piece), Err(Some(RingError::Foreign))));
    }
}
