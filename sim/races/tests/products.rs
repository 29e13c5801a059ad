//! Products of warp groups as events of order: what one thread of the group says for all of them
//! when it hands a buffer back. Twins of each form.

use sim_races::{GROUPED, Grade, Kind, Memory, Remedy};

use crate::script::{GLOBAL, Script};

use Grade::{Certain, Possible};
use Kind::{Read, Write};

const TILE: (Memory, u64) = (Memory::Shared(0), 32);
/// What the threads of the warp group report to, and the group of the product.
const EMPTY: u64 = 128;
const GROUP: u64 = 1 << 40;
const PRODUCT: u64 = GROUPED | 7;

/// What happens in a step of a ring of one stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A thread reads a word of the stage.
    Reads(u32),
    /// It arrives at the object.
    Arrives(u32),
    /// It issues its part of the product.
    Issues(u32),
    /// It waits for the product.
    Waits(u32),
}

/// Threads 0 and 40 are of the warp group; thread 130 fills the stage again once its object's phase
/// is over.
fn ring(steps: &[Step]) -> Script {
    let mut s = Script::new(1, 160);
    s.object_begins((0, 0), EMPTY);
    s.sync(0);
    for &step in steps {
        match step {
            Step::Reads(thread) => s.shared((0, thread), 0, 32, Read),
            Step::Arrives(thread) => s.object_arrives((0, thread), 0, EMPTY),
            Step::Issues(thread) => s.product_issued((0, thread), PRODUCT + u64::from(thread)),
            Step::Waits(thread) => {
                s.bulk_completes(PRODUCT, 0, GROUP);
                s.bulk_completes(PRODUCT + 40, 0, GROUP);
                s.object_turns(0, GROUP);
                s.object_passes((0, thread), 0, GROUP);
            }
        }
    }
    s.object_turns(0, EMPTY);
    s.object_passes((0, 130), 0, EMPTY);
    s
}

fn refilled(steps: &[Step]) -> Script {
    let mut s = ring(steps);
    s.bulk((0, 130), 1, (GLOBAL, 64), Read);
    s.bulk((0, 130), 1, TILE, Write);
    s
}

use Step::{Arrives, Issues, Reads, Waits};

#[test]
fn a_wait_for_a_product_makes_reads_before_it_possible_to_overwrite() {
    let s = refilled(&[Reads(40), Issues(0), Issues(40), Waits(0), Arrives(0)]);
    assert_eq!(s.surest(), Some((Possible, Remedy::EachReader)));
    // An asynchronous copy of the thread in place of a bulk load, and a plain write.
    let steps = [Reads(40), Issues(0), Issues(40), Waits(0), Arrives(0)];
    let mut s = ring(&steps);
    s.copy((0, 130), 32);
    assert_eq!(s.surest(), Some((Possible, Remedy::EachReader)));
    let mut s = ring(&steps);
    s.shared((0, 130), 0, 32, Write);
    assert_eq!(s.surest(), Some((Possible, Remedy::EachReader)));
}

#[test]
fn a_reader_that_arrives_is_known_without_a_product() {
    assert_eq!(refilled(&[Reads(40), Arrives(40), Arrives(0)]).races(), []);
    assert_eq!(refilled(&[Reads(40), Issues(0), Issues(40), Arrives(40), Waits(0), Arrives(0)]).races(), []);
    assert_eq!(refilled(&[Reads(0), Issues(0), Issues(40), Waits(0), Arrives(0)]).races(), []);
    // It stays known behind a barrier of all threads.
    let mut s = ring(&[Reads(40), Issues(0), Issues(40), Waits(0), Arrives(0)]);
    s.sync(0);
    s.bulk((0, 130), 1, TILE, Write);
    assert_eq!(s.races(), []);
}

#[test]
fn reads_that_no_awaited_product_comes_behind_are_certain() {
    let certain = Some((Certain, Remedy::AwaitUsers));
    // No product; a product that is not awaited; one that is awaited behind the arrival.
    assert_eq!(refilled(&[Reads(40), Arrives(0)]).surest(), certain);
    assert_eq!(refilled(&[Reads(40), Issues(0), Issues(40), Arrives(0)]).surest(), certain);
    assert_eq!(refilled(&[Reads(40), Issues(0), Issues(40), Arrives(0), Waits(0)]).surest(), certain);
    // The read comes behind the product.
    assert_eq!(refilled(&[Issues(0), Issues(40), Reads(40), Waits(0), Arrives(0)]).surest(), certain);
    // Another thread reads as well, which has issued no product.
    assert_eq!(refilled(&[Reads(40), Reads(70), Issues(0), Issues(40), Waits(0), Arrives(0)]).surest(), certain);
}

#[test]
fn a_wait_for_a_product_says_nothing_of_writes_and_of_global_memory() {
    let mut s = Script::new(1, 160);
    s.sync(0);
    s.shared((0, 40), 0, 32, Write);
    s.read((0, 40), 64);
    s.product_issued((0, 40), PRODUCT);
    s.bulk_completes(PRODUCT, 0, GROUP);
    s.object_turns(0, GROUP);
    s.object_passes((0, 0), 0, GROUP);
    s.shared((0, 0), 0, 32, Read);
    assert_eq!(s.surest(), Some((Certain, Remedy::BlockBarrier)));
    s.write((0, 0), 64);
    assert_eq!(s.races().iter().map(|race| race.grade).collect::<Vec<_>>(), [Certain, Certain]);
}
