//! Registers that the warps of a block hand to each other (`setmaxnreg`). Owns how many each warp
//! has and how many are in the block's pool, and says what is a misuse; executes nothing.
//!
//! The PTX ISA ("setmaxnreg") has a pool for each block: who lowers its count fills it, and who
//! raises its count waits until it has enough. It leaves undefined what becomes of a count that is
//! lowered to more than there is, or raised to less, and of warps of one warp group that ask for
//! different ones. Here these end the launch with their names.

/// Warps of a warp group.
const GROUP: usize = 4;

/// Registers of a multiprocessor.
const OF_MULTIPROCESSOR: u32 = 65_536;

/// Registers are handed out to a thread by so many.
pub(crate) const UNIT: u32 = 8;

/// What a warp that asks for another count gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has the count.
    Granted,
    /// The pool has too few.
    Wait,
    /// What is wrong.
    Misuse(String),
}

/// Registers of each thread at the start of a kernel: `most` of it (`.maxnreg`), or what is left
/// for each thread of a block of at most so many threads (`.maxntid`) if so many blocks are to fit
/// (`.minnctapersm`); in both cases no more than the largest count that it asks for itself. Without
/// bounds the assembler ignores `setmaxnreg` (ptxas 13.0 says so), without a count nothing changes.
pub(crate) fn at_start(
    most: Option<u32>,
    threads: Option<u32>,
    blocks: Option<u32>,
    largest: Option<u32>,
) -> Option<u32> {
    let largest = largest?;
    if let Some(most) = most {
        return Some(most.min(largest).next_multiple_of(UNIT));
    }
    let threads = threads?.checked_mul(blocks?).filter(|&threads| threads > 0)?;
    Some((OF_MULTIPROCESSOR / threads / UNIT * UNIT).clamp(UNIT, largest.max(UNIT)))
}

/// The registers of a block.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    /// Of each thread of each warp. Empty: nobody keeps count.
    held: Vec<u32>,
    /// The counts that each warp has asked for and got.
    asked: Vec<Vec<u32>>,
    /// In the pool: those of so many threads, one each, a warp being one thread here.
    free: u32,
}

impl Registers {
    /// Of a block of so many warps, whose threads have so many at the start.
    pub(crate) fn new(warps: usize, at_start: Option<u32>) -> Registers {
        match at_start {
            Some(count) => Registers { held: vec![count; warps], asked: vec![Vec::new(); warps], free: 0 },
            None => Registers::default(),
        }
    }

    /// A warp wants its threads to have another count.
    pub(crate) fn ask(&mut self, warp: usize, count: u32, more: bool) -> Answer {
        let Some(&held) = self.held.get(warp) else { return Answer::Granted };
        if more && count < held {
            return Answer::Misuse(format!(".inc asks for {count} registers, and the thread has {held}"));
        }
        if !more && count > held {
            return Answer::Misuse(format!(".dec leaves {count} registers, and the thread has {held}"));
        }
        // Lanes of a warp that come apart from each other ask once.
        if count == held {
            return Answer::Granted;
        }
        let (first, turn) = (warp / GROUP * GROUP, self.asked[warp].len());
        let group = self.asked[first..].iter().take(GROUP).enumerate();
        for (at, other) in group {
            if let Some(&other) = other.get(turn).filter(|&&other| other != count) {
                return Answer::Misuse(format!(
                    "warps of one warp group ask for different counts: warp {} for {other}, warp {warp} \
                     for {count}",
                    first + at
                ));
            }
        }
        self.asked[warp].push(count);
        if more {
            return if self.take(warp, count) { Answer::Granted } else { Answer::Wait };
        }
        self.free += held - count;
        self.held[warp] = count;
        Answer::Granted
    }

    /// Gives a warp that waits its count, if the pool has enough.
    pub(crate) fn take(&mut self, warp: usize, count: u32) -> bool {
        let Some(missing) = self.missing(warp, count) else { return false };
        self.free -= missing;
        self.held[warp] = count;
        true
    }

    /// Whether the pool has enough for a warp that waits.
    pub(crate) fn has(&self, warp: usize, count: u32) -> bool {
        self.missing(warp, count).is_some()
    }

    fn missing(&self, warp: usize, count: u32) -> Option<u32> {
        let missing = count.saturating_sub(*self.held.get(warp)?);
        (missing <= self.free).then_some(missing)
    }

    /// What a warp had goes back. Whether a device does so is not known: this way nobody waits here
    /// who might get them there.
    pub(crate) fn end(&mut self, warp: usize) {
        if let Some(held) = self.held.get_mut(warp) {
            self.free += std::mem::take(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_assembler_makes_of_the_bounds_of_a_launch() {
        // Each line was seen with ptxas 13.0 for sm_90a.
        let most = Some(232);
        assert_eq!(at_start(None, Some(384), Some(1), most), Some(168));
        assert_eq!(at_start(None, Some(384), Some(2), most), Some(80));
        assert_eq!(at_start(None, Some(640), Some(1), most), Some(96));
        assert_eq!(at_start(None, Some(1024), Some(1), most), Some(64));
        assert_eq!(at_start(None, Some(256), Some(1), Some(240)), Some(240));
        assert_eq!(at_start(None, Some(384), Some(1), Some(152)), Some(152));
        assert_eq!(at_start(Some(168), Some(384), None, most), Some(168));
        assert_eq!(at_start(Some(248), None, None, Some(152)), Some(152));
        // It says 100 of this one; warps get them by eights.
        assert_eq!(at_start(Some(100), None, None, most), Some(104));
        assert_eq!(at_start(None, Some(384), None, most), None);
        assert_eq!(at_start(None, None, None, most), None);
    }

    #[test]
    fn who_raises_its_count_waits_for_who_lowers_its_own() {
        let mut block = Registers::new(8, Some(168));
        assert!((0..4).all(|warp| block.ask(warp, 232, true) == Answer::Wait));
        assert!(!block.take(0, 232));
        for warp in 4..8 {
            assert_eq!(block.ask(warp, 104, false), Answer::Granted);
        }
        assert!((0..4).all(|warp| block.take(warp, 232)));
        assert_eq!(block.free, 0);
    }

    #[test]
    fn ended_warps_hold_nobody_up() {
        let mut block = Registers::new(2, Some(64));
        assert_eq!(block.ask(0, 128, true), Answer::Wait);
        block.end(1);
        assert!(block.has(0, 128) && block.take(0, 128));
    }

    #[test]
    fn misuses_have_names() {
        let mut block = Registers::new(8, Some(168));
        let said = |answer| match answer {
            Answer::Misuse(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(said(block.ask(0, 160, true)).contains("asks for 160 registers, and the thread has 168"));
        assert!(said(block.ask(0, 176, false)).contains("leaves 176 registers, and the thread has 168"));
        assert_eq!(block.ask(0, 40, false), Answer::Granted);
        assert!(said(block.ask(1, 48, false)).contains("warp 0 for 40, warp 1 for 48"));
        // Other groups ask for what they like; nobody keeps count without bounds.
        assert_eq!(block.ask(4, 48, false), Answer::Granted);
        assert_eq!(Registers::new(8, None).ask(0, 24, true), Answer::Granted);
    }
}
