//! Reads of bytes that nothing has written: which are told, how sure, and what is written.

use std::sync::Mutex;

use sim_races::{
    Detector, Grade, Kind, LANES, Memory, MemoryEvents, Order, Race, Reading, Remedy, Scope, Strength, WarpAccess,
    WrittenBytes,
};

/// The first bytes of memory: which are written.
#[derive(Debug, Default)]
struct Global(Mutex<Vec<u64>>);

impl Global {
    fn missing(&self, address: u64, size: u32) -> Vec<u64> {
        let written = self.0.lock().expect("no panic");
        (address..address + u64::from(size)).filter(|at| !written.contains(at)).collect()
    }
}

impl WrittenBytes for Global {
    fn write(&self, lanes: u32, addresses: &[u64; LANES], size: u32) {
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            self.0.lock().expect("no panic").extend(addresses[lane]..addresses[lane] + u64::from(size));
        }
    }
    fn unwritten(&self, lanes: u32, addresses: &[u64; LANES], size: u32) -> u32 {
        let some = |lane: &usize| lanes >> lane & 1 != 0 && !self.missing(addresses[*lane], size).is_empty();
        (0..LANES).filter(some).fold(0, |some, lane| some | 1 << lane)
    }
    fn is_unwritten(&self, address: u64, size: u32) -> bool {
        self.missing(address, size).len() == size as usize
    }
    fn first_unwritten(&self, address: u64, size: u32) -> Option<u64> {
        self.missing(address, size).first().copied()
    }
}

const MINE: Memory = Memory::Shared(0);

fn detector() -> Detector {
    let detector = Detector::new(Reading::default()).watching(Box::leak(Box::default()) as &Global);
    (0..2).for_each(|block| detector.block_starts(block, 64, block));
    detector
}

/// An access of lane 3 of warp 1 of block 0; what is not said is plain.
fn access<'a>(site: u32, memory: Memory, addresses: &'a [u64; LANES], size: u32, kind: Kind) -> WarpAccess<'a> {
    WarpAccess {
        block: 0,
        warp: 1,
        lanes: 1 << 3,
        executing: 1 << 3,
        site,
        memory,
        addresses,
        size,
        kind,
        strength: Strength::Plain,
        unchanged: 0,
        alike: false,
        asynchronous: false,
        object: false,
        compares: false,
        keeps: [0; 4],
        bulk: None,
        map: false,
    }
}

fn told(detector: &Detector) -> Vec<Race> {
    detector.races().into_iter().filter(|race| race.remedy == Remedy::FirstWrite).collect()
}

#[test]
fn what_nothing_wrote_is_told_with_its_reader() {
    for memory in [Memory::Global, MINE] {
        let detector = detector();
        detector.access(&access(7, memory, &[64; LANES], 4, Kind::Read));
        let found = told(&detector);
        let [race] = found[..] else { panic!("{found:?}") };
        assert_eq!((race.sides[0], race.address, race.count), (race.sides[1], 64, 1));
        assert_eq!((race.sides[0].site, race.sides[0].thread, race.grade), (7, Some(35), Grade::Likely));
        assert_eq!(race.shared, (memory == MINE).then_some(0));
        // Again by that instruction, and by another one.
        detector.access(&access(7, memory, &[128; LANES], 4, Kind::Read));
        detector.access(&access(8, memory, &[64; LANES], 4, Kind::Read));
        assert_eq!(told(&detector).iter().map(|race| race.count).collect::<Vec<_>>(), [2, 1]);
    }
}

#[test]
fn what_anybody_wrote_is_not() {
    let strong = Strength::Strong(Order::RELAXED, Scope::Device);
    for memory in [Memory::Global, MINE] {
        for write in [
            access(1, memory, &[64; LANES], 4, Kind::Write),
            access(1, memory, &[60; LANES], 16, Kind::Write),
            WarpAccess { warp: 0, lanes: 1, ..access(1, memory, &[64; LANES], 4, Kind::Write) },
            WarpAccess { block: 1, ..access(1, memory, &[64; LANES], 4, Kind::Write) },
            WarpAccess { asynchronous: true, ..access(1, memory, &[64; LANES], 4, Kind::Write) },
            WarpAccess { bulk: Some(1), ..access(1, memory, &[64; LANES], 4, Kind::Write) },
            WarpAccess { strength: strong, ..access(1, memory, &[64; LANES], 4, Kind::Write) },
            WarpAccess { object: true, strength: strong, ..access(1, memory, &[64; LANES], 8, Kind::Atomic) },
        ] {
            let detector = detector();
            detector.access(&write);
            detector.access(&access(2, memory, &[64; LANES], 4, Kind::Read));
            assert_eq!(told(&detector), [], "{write:?}");
            detector.access(&access(3, memory, &[80; LANES], 4, Kind::Read));
            assert_eq!(told(&detector).len(), 1, "{write:?}");
        }
        // Byte by byte.
        let detector = detector();
        for byte in 64..68 {
            detector.access(&access(1, memory, &[byte; LANES], 1, Kind::Write));
        }
        detector.access(&access(2, memory, &[64; LANES], 4, Kind::Read));
        assert_eq!(told(&detector), []);
    }
}

#[test]
fn an_atomic_operation_reads_once_and_writes() {
    let detector = detector();
    let strength = Strength::Strong(Order::RELAXED, Scope::Device);
    for site in 1..4 {
        detector.access(&WarpAccess { strength, ..access(site, MINE, &[64; LANES], 4, Kind::Atomic) });
    }
    let found = told(&detector);
    assert_eq!(found.iter().map(|race| (race.sides[0].site, race.grade)).collect::<Vec<_>>(), [(1, Grade::Likely)]);
    assert_eq!(found[0].sides[0].scope, Some(Scope::Device));
}

#[test]
fn padding_and_copies_are_possible() {
    for memory in [Memory::Global, MINE] {
        let detector = detector();
        detector.access(&access(1, memory, &[64; LANES], 12, Kind::Write));
        detector.access(&access(2, memory, &[64; LANES], 16, Kind::Read));
        detector.access(&WarpAccess { asynchronous: true, ..access(3, memory, &[96; LANES], 16, Kind::Read) });
        detector.access(&WarpAccess { bulk: Some(1), ..access(4, memory, &[96; LANES], 16, Kind::Read) });
        let found = told(&detector);
        assert_eq!(found.iter().map(|race| race.sides[0].site).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(found.iter().all(|race| race.grade == Grade::Possible), "{found:?}");
        assert_eq!((found[0].address, found[1].sides[0].asynchronous), (76, true));
        // A lane of the same instruction that reads nothing else.
        let mut addresses = [64; LANES];
        addresses[5] = 96;
        let both = WarpAccess { lanes: 0b10_1000, ..access(2, memory, &addresses, 16, Kind::Read) };
        detector.access(&both);
        let found = told(&detector);
        let kept = (found[0].sides[0].thread, found[0].grade, found[0].address, found[0].count);
        assert_eq!(kept, (Some(37), Grade::Likely, 96, 2));
    }
}

#[test]
fn shared_memory_begins_with_its_block() {
    let detector = detector();
    detector.access(&access(1, MINE, &[64; LANES], 4, Kind::Write));
    detector.access(&WarpAccess { block: 1, ..access(2, Memory::Shared(1), &[64; LANES], 4, Kind::Read) });
    assert_eq!(told(&detector)[0].shared, Some(1), "another block's is its own");
    detector.block_ends(0);
    detector.block_starts(0, 64, 0);
    detector.given(MINE, 1024, 64);
    detector.access(&access(3, MINE, &[1024; LANES], 16, Kind::Read));
    assert_eq!(told(&detector).len(), 1, "the system has set it up");
    detector.access(&access(4, MINE, &[64; LANES], 4, Kind::Read));
    assert_eq!(told(&detector).len(), 2, "a new block's memory");
}

#[test]
fn it_is_looked_for_only_if_wanted() {
    let detector = Detector::new(Reading::default());
    detector.block_starts(0, 64, 0);
    detector.access(&access(1, MINE, &[64; LANES], 4, Kind::Read));
    assert_eq!(detector.races(), []);
}
