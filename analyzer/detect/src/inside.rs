//! Races inside kernels, and reads of bytes that nothing has written: those of all launches become
//! findings, one for each pair of source lines, with a count and the smallest example.
//!
//! Owns that de-duplication. The races come from the simulated GPU ([`trace::Op::Inside`]), which
//! also grades them; the rule is in `sim/races/src/grade.rs`. Knows no names.

use crate::memory::{Allocation, Allocations, SeenRegions, Site};
use rustc_hash::FxHashMap;
use trace::Epoch;
use trace::op::inside::{InsideKind, InsideRemedy, ReadInside, ReadRace, ReadSide, inside_flags};

/// Findings kept for one process. More are only counted.
const MOST: usize = 1 << 12;

/// An instruction as findings tell it apart: its source lines, or its place in a kernel.
type Place = (Vec<(String, u32)>, Option<(String, u32)>);

/// A race inside a kernel, and the launch that showed it.
#[derive(Clone, Debug)]
pub struct RawInside {
    /// The race.
    pub race: ReadRace,
    /// The launch.
    pub site: Site,
    /// The kernel's mangled name. A kernel that another one launched is not that of the site.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// It ran as machine code, not as PTX.
    pub machine: bool,
    /// The memory of a race in global memory.
    pub allocation: Option<Allocation>,
    /// Where the allocation begins.
    pub base: u64,
    /// Pairs of accesses, of all launches.
    pub count: u64,
    /// Launches that showed it.
    pub launches: u64,
    /// The regions of those launches, each once, in their order.
    pub regions: SeenRegions,
    /// The last of them.
    last: (Epoch, u32),
}

/// All of a process.
#[derive(Default)]
pub struct InsideRaces {
    /// By the places of the two sides, and whether it is in shared memory, and a race.
    index: FxHashMap<([Place; 2], [bool; 2]), usize>,
    list: Vec<RawInside>,
    dropped: u64,
}

/// How little an example asks of its reader: sure ones first, then one that reads what the other
/// writes, then low blocks and threads.
fn weight(race: &ReadRace) -> impl Ord + use<> {
    let reads = race.sides.iter().any(|side| side.kind == InsideKind::Read);
    let place = |side: &ReadSide| {
        let [x, y, z] = side.block;
        let thread = side.thread.map_or([u32::MAX; 3], |[x, y, z]| [z, y, x]);
        ([z, y, x], thread)
    };
    let [one, other] = [place(&race.sides[0]), place(&race.sides[1])];
    (std::cmp::Reverse(race.grade), !reads, one.max(other), one.min(other), race.address)
}

impl InsideRaces {
    /// Takes in what was found inside a grid that the launch of a site ran.
    pub fn add(&mut self, inside: &ReadInside, site: &Site, memory: &Allocations) {
        for race in &inside.races {
            let place = |side: &ReadSide| match side.frames.is_empty() {
                true => (Vec::new(), Some((inside.kernel.clone(), side.at))),
                false => (side.frames.clone(), None),
            };
            let mut places = race.sides.each_ref().map(place);
            // Copies of inlined code may stand in another order.
            places.sort();
            let key = (places, [race.shared.is_some(), race.remedy != InsideRemedy::FirstWrite]);
            if let Some(&at) = self.index.get(&key) {
                let known = &mut self.list[at];
                let last = (inside.launch, inside.node);
                known.count += race.count;
                known.launches += u64::from(known.last != last);
                known.last = last;
                known.regions.add(site.region);
                if weight(race) < weight(&known.race) {
                    let (count, launches, regions) = (known.count, known.launches, known.regions.clone());
                    *known = RawInside { count, launches, regions, ..RawInside::of(race, inside, site, memory) };
                }
                continue;
            }
            if self.list.len() >= MOST {
                self.dropped += race.count;
                continue;
            }
            self.index.insert(key, self.list.len());
            self.list.push(RawInside::of(race, inside, site, memory));
        }
    }

    /// All of them.
    pub fn all(&self) -> &[RawInside] {
        &self.list
    }

    /// Pairs of accesses that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl RawInside {
    fn of(race: &ReadRace, inside: &ReadInside, site: &Site, memory: &Allocations) -> Self {
        let location = if race.shared.is_none() { memory.locate(race.address) } else { None };
        let allocation = location.and_then(|location| memory.info(location.allocation).copied());
        Self {
            race: race.clone(),
            site: *site,
            kernel: inside.kernel.clone(),
            grid: inside.grid,
            block: inside.block,
            machine: inside.flags & inside_flags::MACHINE != 0,
            base: allocation.map_or(0, |allocation| allocation.ptr),
            allocation,
            count: race.count,
            launches: 1,
            regions: SeenRegions::of(site.region),
            last: (inside.launch, inside.node),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::{Cause, Region};
    use trace::TimelineId;
    use trace::op::inside::{InsideGrade, InsideRemedy, InsideScope};

    /// An access of a thread at a line; line 0 is none.
    pub(crate) fn side(line: u32, kind: InsideKind, thread: u32) -> ReadSide {
        ReadSide {
            function: "f".into(),
            frames: if line == 0 { Vec::new() } else { vec![("a.cu".into(), line)] },
            at: line * 16,
            kind,
            scope: InsideScope::Weak,
            asynchronous: false,
            ends: false,
            block: [0; 3],
            thread: Some([thread, 0, 0]),
        }
    }

    fn race(sides: [ReadSide; 2], grade: InsideGrade) -> ReadRace {
        let shared = Some((String::new(), 0, 0));
        ReadRace { sides, address: 0, count: 5, shared, global: None, grade, remedy: InsideRemedy::BlockBarrier }
    }

    /// What a grid of one block says of these races.
    pub(crate) fn inside(kernel: &str, time: u64, races: Vec<ReadRace>) -> ReadInside {
        ReadInside {
            launch: Epoch { timeline: TimelineId(1), time },
            node: 0,
            kernel: kernel.into(),
            flags: 0,
            grid: [1; 3],
            block: [32, 1, 1],
            widened: 0,
            unsaid: 0,
            textures: 0,
            more: 0,
            races,
            synchronisations: Vec::new(),
        }
    }

    #[test]
    fn one_finding_for_a_pair_of_lines_with_the_smallest_example() {
        use InsideGrade::{Certain, Possible};
        use InsideKind::{Read, Write};
        let (mut all, memory) = (InsideRaces::default(), Allocations::default());
        let pair = |a, b, grade| race([side(3, Write, a), side(7, Read, b)], grade);
        let within = |region| Site { region: Region(region), ..Site::unknown(Cause::Kernel) };
        all.add(&inside("k<1>", 1, vec![pair(9, 4, Possible)]), &within(4), &memory);
        all.add(&inside("k<2>", 2, vec![pair(8, 31, Certain)]), &within(7), &memory);
        all.add(&inside("k<2>", 2, vec![race([side(7, Read, 5), side(3, Write, 6)], Certain)]), &within(7), &memory);
        all.add(&inside("k<3>", 3, vec![race([side(3, Write, 0), side(7, Write, 1)], Certain)]), &within(5), &memory);
        assert_eq!(all.all().len(), 1, "{:?}", all.all());
        let one = &all.all()[0];
        assert_eq!((one.count, one.launches, &*one.kernel), (20, 3, "k<2>"));
        assert_eq!(one.race.sides[1].thread, Some([6, 0, 0]), "it reads, and its threads are low");
        assert_eq!(one.regions.as_slice(), [4, 7, 5].map(Region), "of all launches, that of the example among them");
        // A read of unwritten bytes at the same line is another matter.
        let reads = race([side(7, Read, 5), side(7, Read, 5)], InsideGrade::Likely);
        let unwritten = ReadRace { remedy: InsideRemedy::FirstWrite, ..reads.clone() };
        all.add(&inside("k", 4, vec![unwritten.clone(), unwritten]), &Site::unknown(Cause::Kernel), &memory);
        all.add(&inside("k", 5, vec![reads]), &Site::unknown(Cause::Kernel), &memory);
        assert_eq!(all.all().iter().map(|raw| raw.count).collect::<Vec<_>>(), [20, 10, 5]);
        // Without lines, the kernel and the instruction tell them apart.
        for kernel in ["k", "k", "l"] {
            let sides = [side(0, Write, 1), side(0, Read, 2)];
            all.add(&inside(kernel, 1, vec![race(sides, Certain)]), &Site::unknown(Cause::Kernel), &memory);
        }
        assert_eq!(all.all().len(), 5);
    }
}
