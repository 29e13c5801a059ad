//! The words that watched work waits for, read when the host touches the bytes of that work.
//!
//! A stream that waits for a value which nobody was seen to write may wait for the host. If the
//! host touches bytes of work behind the wait while the words do not have their values, the work
//! may well be held back; if they have them, nothing holds it back from then on. Only words in
//! memory of the host that CUDA allocated are read, and by the kernel, which answers with an error
//! where the memory is gone or may not be read: a signal handler asks.

use order::AwaitedWord;

/// Words of one watch. Work that waits for more is not judged by them.
const WORDS: usize = 4;

/// What a watch waits for.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedWords {
    list: [Option<AwaitedWord>; WORDS],
}

impl AwaitedWords {
    /// Work that waits for nothing, or for words that cannot be read.
    pub const NONE: Self = Self { list: [None; WORDS] };

    /// These words, if they are not too many and all of them may be read.
    pub fn of(words: impl Iterator<Item = AwaitedWord>, may_be_read: impl Fn(&AwaitedWord) -> bool) -> Self {
        let mut all = Self::NONE;
        for (index, word) in words.enumerate() {
            match all.list.get_mut(index) {
                Some(slot) if may_be_read(&word) => *slot = Some(word),
                _ => return Self::NONE,
            }
        }
        all
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list[0].is_none()
    }

    /// Whether there are words, and each has a value now that ends its wait. For signal handlers,
    /// too.
    pub fn are_met(&self) -> bool {
        let mut words = self.list.iter().flatten().peekable();
        words.peek().is_some() && words.all(|word| read(word).is_some_and(|found| word.is_met_by(found)))
    }
}

/// The value of a word. `None`: it cannot be read.
fn read(word: &AwaitedWord) -> Option<u64> {
    let (mut found, width) = ([0_u8; 8], usize::from(word.width()).min(8));
    let to = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: width };
    let from = libc::iovec { iov_base: word.address as *mut libc::c_void, iov_len: width };
    // SAFETY: copies to a buffer of that size; the kernel checks the other side. By its number,
    // past every wrapper.
    let copied = unsafe {
        libc::syscall(libc::SYS_process_vm_readv, libc::getpid(), &raw const to, 1_u64, &raw const from, 1_u64, 0_u64)
    };
    (copied == width as i64).then(|| u64::from_le_bytes(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use order::{Engine, Policy};
    use trace::{ContextId, Op, StreamId, StreamKind, ThreadId, WaitCompare};

    #[test]
    fn words_are_met_when_all_of_them_have_their_values() {
        let words = [0_u64, 7, 1 << 40];
        let at = |index: usize| (&raw const words[index]) as u64;
        let met = |of: &[(u64, u64, u8, WaitCompare)], readable: u64| {
            let (mut engine, stream) = (Engine::new(Policy::Observed), StreamId(1));
            let (context, kind) = (ContextId(1), StreamKind::NonBlocking);
            engine.apply(&Op::ContextCreate { context, device: 0, handle: 1 }, ThreadId(1));
            engine.apply(&Op::StreamCreate { stream, context, kind, priority: 0, handle: 1 }, ThreadId(1));
            let region = trace::Region::linear(1 << 32, 4);
            let mut last = engine.apply(&Op::Prefetch { stream, region, discard: false }, ThreadId(1));
            for &(address, value, width, compare) in of {
                last = engine.apply(&Op::WaitValue { stream, address, value, width, compare }, ThreadId(1));
            }
            AwaitedWords::of(engine.awaited_words(last.timeline), |word| word.address != readable).are_met()
        };
        use WaitCompare::{And, Equal, GreaterEqual};
        assert!(met(&[(at(1), 7, 4, Equal)], 0) && !met(&[(at(0), 7, 4, Equal)], 0));
        assert!(met(&[(at(1), 3, 4, GreaterEqual), (at(2), 1 << 40, 8, And)], 0));
        assert!(!met(&[(at(2), 1 << 40, 4, GreaterEqual), (at(0), 1, 4, Equal)], 0), "one of two is missing");
        assert!(!met(&[(at(2), 1 << 40, 4, And)], 0), "the upper half does not count");
        assert!(!met(&[(at(1), 7, 4, Equal)], at(1)), "it may not be read");
        assert!(!met(&[(16, 0, 4, GreaterEqual)], 0), "no memory");
        assert!(!met(&[], 0), "nothing is awaited");
        let five: Vec<_> = (0..5).map(|_| (at(1), 7, 4, Equal)).collect();
        assert!(met(&five[..4], 0) && !met(&five, 0), "too many");
    }
}
