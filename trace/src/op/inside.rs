//! Races inside one kernel, and reads of bytes that nothing has written: the items of
//! [`Op::Inside`], and the reading of one.
//!
//! Owns the meaning of its numbers. Ops come from crashed programs, too: a number that means
//! nothing, or that leads out of its list, is an error with the name of its field.

use crate::codec::DecodeError;
use crate::id::Epoch;
use crate::item;
use crate::op::Op;

/// A source line of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InsideFrame {
    /// Number of the file's name among the texts.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}
item!(InsideFrame { file: u32, line: u32 });

/// One side of a race: an instruction, and an example of a thread that executed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InsideSide {
    /// Number of the function's mangled name among the texts; 0: not known.
    pub function: u32,
    /// Its first frame; then outwards, through what was inlined.
    pub first: u32,
    /// How many frames there are; 0: its lines are not known.
    pub frames: u32,
    /// The line of the PTX text, or the offset of the machine instruction.
    pub at: u32,
    /// See [`InsideKind`].
    pub kind: u32,
    /// 0: it is weak; else the scope: 1 the block, 2 the cluster, 3 the device.
    pub scope: u32,
    /// See [`inside_side_flags`].
    pub flags: u32,
    /// The block.
    pub block: [u32; 3],
    /// The thread in it.
    pub thread: [u32; 3],
}
item!(InsideSide {
    function: u32,
    first: u32,
    frames: u32,
    at: u32,
    kind: u32,
    scope: u32,
    flags: u32,
    block: [u32; 3],
    thread: [u32; 3]
});

/// Accesses of two threads that race, or ([`InsideRemedy::FirstWrite`]) a read of bytes that
/// nothing has written. Its sides are the two at twice its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InsideRace {
    /// The first byte: an address of global memory, or an offset in a block's shared memory.
    pub address: u64,
    /// Accesses that met an unordered one.
    pub count: u64,
    /// 1: in shared memory; 0: in global memory.
    pub shared: u32,
    /// Number of the variable's mangled name among the texts; 0: not known, or none.
    pub variable: u32,
    /// Of a shared variable, or of dynamic shared memory, where in shared memory it begins; of a
    /// global variable, where in it the byte is.
    pub begins: u32,
    /// Its bytes; 0: not known.
    pub size: u32,
    /// See [`InsideGrade`].
    pub grade: u32,
    /// See [`InsideRemedy`].
    pub remedy: u32,
}
item!(InsideRace {
    address: u64,
    count: u64,
    shared: u32,
    variable: u32,
    begins: u32,
    size: u32,
    grade: u32,
    remedy: u32
});

/// Bits of [`Op::Inside`]'s `flags`.
pub mod inside_flags {
    /// The kernel ran as machine code.
    pub const MACHINE: u32 = 1;
    /// The kernel failed: what it would have done next was not checked.
    pub const FAILED: u32 = 2;
    /// It did nothing (machine code that is skipped), so nothing was checked.
    pub const NOT_RUN: u32 = 4;
    /// Which fences and barriers are superfluous was wanted, and is not known of all.
    pub const NOT_TRIED: u32 = 8;
}

/// Bits of [`InsideSide`]'s `flags`.
pub mod inside_side_flags {
    /// A copy behind the back of its thread.
    pub const ASYNCHRONOUS: u32 = 1;
    /// The thread is known; without, it is one of many.
    pub const THREAD: u32 = 2;
    /// The thread ends there, as the last one of its block, and its shared memory with it.
    pub const ENDS: u32 = 4;
}

macro_rules! numbered {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn of(value: u32) -> Result<Self, DecodeError> {
                match value {
                    $($value => Ok(Self::$variant),)*
                    other => Err(DecodeError::BadValue { field: stringify!($name), value: other.into() }),
                }
            }
        }
    )*};
}

numbered! {
    /// What an access does.
    InsideKind {
        /// Reads.
        Read = 0,
        /// Writes.
        Write = 1,
        /// Reads and writes as one.
        Atomic = 2,
    }

    /// Which threads a strong access reaches.
    InsideScope {
        /// It is weak.
        Weak = 0,
        /// Those of the block.
        Block = 1,
        /// Those of the cluster.
        Cluster = 2,
        /// All.
        Device = 3,
    }

    /// What orders accesses, of [`ReadSync`].
    InsideSync {
        /// A fence of memory.
        Fence = 0,
        /// A fence between proxies.
        ProxyFence = 1,
        /// A barrier of a warp.
        WarpBarrier = 2,
        /// A barrier of a block.
        BlockBarrier = 3,
    }

    /// Whether it is superfluous.
    InsideAnswer {
        /// Without it nothing is unordered in that launch.
        Superfluous = 0,
        /// It was not tried.
        Unknown = 1,
        /// Something is unordered without it.
        Needed = 3,
    }

    /// How sure a race is to be an error.
    InsideGrade {
        /// Both orders leave the same value.
        Benign = 0,
        /// Something that the model does not promise may order the two.
        Possible = 1,
        /// Nothing orders the two, but one side is written as a flag would be.
        Likely = 2,
        /// Nothing orders the two.
        Certain = 3,
    }

    /// What would order the two.
    InsideRemedy {
        /// A barrier of the warp.
        WarpBarrier = 0,
        /// A barrier of the block.
        BlockBarrier = 1,
        /// A wait for the copy.
        AwaitCopy = 2,
        /// A scope that includes the other block.
        WiderScope = 3,
        /// An atomic operation in place of the plain access.
        Atomic = 4,
        /// A barrier of the cluster.
        ClusterBarrier = 5,
        /// A release and an acquire, or a barrier of the grid.
        ReleaseAcquire = 6,
        /// A fence between the generic and the asynchronous proxy.
        ProxyFence = 7,
        /// A wait for the phase of the barrier object that a bulk operation reports to.
        AwaitPhase = 8,
        /// A wait for the group that a bulk operation is in.
        AwaitGroup = 9,
        /// A bulk operation that begins when those who use the bytes have arrived.
        AwaitUsers = 10,
        /// Another place of a launch by a kernel, or one stream for two such launches.
        LaunchOrder = 11,
        /// Fences of the proxy of tensor maps.
        MapFence = 12,
        /// A block of the cluster that ends later.
        BlockStays = 13,
        /// A wait at a barrier object that acquires for the cluster.
        WiderWait = 14,
        /// A fence of the registers of products of warp groups.
        RegisterFence = 15,
        /// A wait for the group of products that uses registers.
        AwaitProduct = 16,
        /// A write before it: it is no race, but a read of bytes that nothing has written, and
        /// both sides are the one that reads.
        FirstWrite = 17,
        /// An arrival of each thread that reads before a product of its warp group.
        EachReader = 38,
        /// One thread that initialises a barrier object.
        OneBegins = 39,
    }
}

/// A side as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadSide {
    /// The function's mangled name; empty: not known.
    pub function: String,
    /// Files and lines, outwards.
    pub frames: Vec<(String, u32)>,
    /// The line of the PTX text, or the offset of the machine instruction.
    pub at: u32,
    /// What it does.
    pub kind: InsideKind,
    /// How far it reaches.
    pub scope: InsideScope,
    /// It is a copy behind the back of its thread.
    pub asynchronous: bool,
    /// The thread ends there, and the shared memory of its block.
    pub ends: bool,
    /// The block.
    pub block: [u32; 3],
    /// The thread; `None`: one of many.
    pub thread: Option<[u32; 3]>,
}

/// A race as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRace {
    /// Its sides, in the order of their instructions.
    pub sides: [ReadSide; 2],
    /// The first byte.
    pub address: u64,
    /// Accesses that met an unordered one.
    pub count: u64,
    /// Of shared memory: the variable's mangled name, where it begins, and its bytes.
    pub shared: Option<(String, u32, u32)>,
    /// Of a variable in global memory: its mangled name, where in it the byte is, and its bytes.
    pub global: Option<(String, u32, u32)>,
    /// How sure it is.
    pub grade: InsideGrade,
    /// What would order it.
    pub remedy: InsideRemedy,
}

/// In place of an [`InsideRemedy`]: the item is no race, but a fence or a barrier, which both sides
/// are. Its address is an [`InsideSync`], its count how often warps executed it, its grade an
/// [`InsideAnswer`].
const SYNCHRONISATION: u32 = 39;

/// The fences or barriers of a source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadSync {
    /// One of its instructions; no access.
    pub at: ReadSide,
    /// What they are.
    pub kind: InsideSync,
    /// How often warps executed them.
    pub count: u64,
    /// Whether they are superfluous.
    pub answer: InsideAnswer,
}

/// An [`Op::Inside`] as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadInside {
    /// The launch.
    pub launch: Epoch,
    /// Node of the launched graph, counted from 1; 0 when no graph.
    pub node: u32,
    /// The kernel's mangled name.
    pub kernel: String,
    /// See [`inside_flags`].
    pub flags: u32,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Accesses that were joined to those of whole blocks.
    pub widened: u64,
    /// Pairs that machine code does not say enough of.
    pub unsaid: u64,
    /// Accesses of textures and surfaces, which were not compared.
    pub textures: u64,
    /// Races beyond those here.
    pub more: u64,
    /// The races.
    pub races: Vec<ReadRace>,
    /// The fences and barriers that were tried.
    pub synchronisations: Vec<ReadSync>,
}

impl ReadInside {
    /// Reads an op; `None`: it is another one.
    ///
    /// # Errors
    /// Which field is damaged.
    pub fn of(op: &Op<'_>) -> Option<Result<Self, DecodeError>> {
        let Op::Inside {
            timeline, time, node, ref kernel, ref counts, ref races, ref sides, ref frames, texts, ..
        } = *op
        else {
            return None;
        };
        let Op::Inside { flags, grid, block, .. } = *op else { return None };
        let read = || {
            let [widened, unsaid, textures, more] = four(counts.iter())?;
            let texts: Vec<&[u8]> = texts.split(|byte| *byte == 0).collect();
            let text = |number: u32| {
                let found = texts.get(number as usize).filter(|_| number == 0 || (number as usize) < texts.len() - 1);
                let found = found.ok_or(DecodeError::BadValue { field: "text", value: number.into() })?;
                Ok(String::from_utf8_lossy(found).into_owned())
            };
            let frames: Vec<InsideFrame> = frames.iter().collect();
            let side = |side: InsideSide| {
                let end = side.first.checked_add(side.frames).map(|end| end as usize);
                let own = end.and_then(|end| frames.get(side.first as usize..end));
                let own = own.ok_or(DecodeError::BadValue { field: "frames", value: side.first.into() })?;
                let own = own.iter().map(|frame| Ok((text(frame.file)?, frame.line)));
                Ok(ReadSide {
                    function: text(side.function)?,
                    frames: own.collect::<Result<_, DecodeError>>()?,
                    at: side.at,
                    kind: InsideKind::of(side.kind)?,
                    scope: InsideScope::of(side.scope)?,
                    asynchronous: side.flags & inside_side_flags::ASYNCHRONOUS != 0,
                    ends: side.flags & inside_side_flags::ENDS != 0,
                    block: side.block,
                    thread: (side.flags & inside_side_flags::THREAD != 0).then_some(side.thread),
                })
            };
            if sides.len() != races.len() * 2 {
                return Err(DecodeError::BadValue { field: "sides", value: sides.len() as u64 });
            }
            let mut sides = sides.iter();
            let mut next = || sides.next().ok_or(DecodeError::BadLength(0)).and_then(side);
            let (mut read, mut synchronisations) = (Vec::new(), Vec::new());
            for race in races.iter() {
                if race.remedy == SYNCHRONISATION {
                    let (at, _) = (next()?, next()?);
                    let kind = InsideSync::of(u32::try_from(race.address).unwrap_or(u32::MAX))?;
                    let answer = InsideAnswer::of(race.grade)?;
                    synchronisations.push(ReadSync { at, kind, count: race.count, answer });
                    continue;
                }
                let place = || Ok((text(race.variable)?, race.begins, race.size));
                read.push(ReadRace {
                    sides: [next()?, next()?],
                    address: race.address,
                    count: race.count,
                    shared: match race.shared {
                        0 => None,
                        1 => Some(place()?),
                        value => return Err(DecodeError::BadValue { field: "shared", value: value.into() }),
                    },
                    global: if race.shared == 0 && race.variable != 0 { Some(place()?) } else { None },
                    grade: InsideGrade::of(race.grade)?,
                    remedy: InsideRemedy::of(race.remedy)?,
                });
            }
            Ok(Self {
                launch: Epoch { timeline, time },
                node,
                kernel: kernel.lossy().into_owned(),
                flags,
                grid,
                block,
                widened,
                unsaid,
                textures,
                more,
                races: read,
                synchronisations,
            })
        };
        Some(read())
    }
}

fn four(counts: impl Iterator<Item = u64>) -> Result<[u64; 4], DecodeError> {
    let counts: Vec<u64> = counts.collect();
    <[u64; 4]>::try_from(counts).map_err(|wrong| DecodeError::BadValue { field: "counts", value: wrong.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Encoder, List};
    use crate::id::TimelineId;
    use crate::op::tag;

    /// What an op with these items reads as, through its encoding.
    fn read(
        counts: &[u64],
        races: &[InsideRace],
        sides: &[InsideSide],
        frames: &[InsideFrame],
        texts: &[u8],
    ) -> Result<ReadInside, DecodeError> {
        let op = Op::Inside {
            timeline: TimelineId(1),
            time: 2,
            node: 3,
            kernel: "k".into(),
            flags: inside_flags::MACHINE,
            grid: [4, 1, 1],
            block: [32, 1, 1],
            counts: List::new(counts),
            races: List::new(races),
            sides: List::new(sides),
            frames: List::new(frames),
            texts,
        };
        let mut bytes = [0; 1024];
        let mut encoder = Encoder::new(&mut bytes);
        op.encode(&mut encoder);
        let length = encoder.finish().expect("room");
        assert_eq!(length, op.encoded_len());
        ReadInside::of(&Op::decode(tag::Inside, &bytes[..length]).expect("an op")).expect("this op")
    }

    fn side(kind: u32) -> InsideSide {
        InsideSide { function: 2, first: 0, frames: 2, kind, flags: 2, thread: [7, 0, 0], ..InsideSide::default() }
    }

    const FRAMES: [InsideFrame; 2] = [InsideFrame { file: 1, line: 5 }, InsideFrame { file: 1, line: 9 }];
    const RACE: InsideRace =
        InsideRace { address: 8, count: 3, shared: 1, variable: 2, begins: 4, size: 16, grade: 3, remedy: 1 };

    #[test]
    fn what_is_written_is_read() {
        let inside = read(&[1, 2, 3, 4], &[RACE], &[side(0), side(1)], &FRAMES, b"\0a.cu\0f\0").expect("sound");
        let race = &inside.races[0];
        assert_eq!(race.sides[1].frames, [("a.cu".to_owned(), 5), ("a.cu".to_owned(), 9)]);
        assert_eq!((race.sides[0].kind, race.sides[1].kind), (InsideKind::Read, InsideKind::Write));
        assert_eq!((race.sides[0].thread, race.shared.clone()), (Some([7, 0, 0]), Some(("f".to_owned(), 4, 16))));
        assert_eq!((race.grade, race.remedy), (InsideGrade::Certain, InsideRemedy::BlockBarrier));
        assert_eq!((inside.widened, inside.unsaid, inside.textures, inside.more), (1, 2, 3, 4));
        assert_eq!((inside.launch.time, inside.node, &*inside.kernel), (2, 3, "k"));
        assert!(read(&[0; 4], &[], &[], &[], b"").expect("none").races.is_empty());
    }

    #[test]
    fn synchronisation_is_no_race() {
        let sync = InsideRace { address: 3, remedy: SYNCHRONISATION, grade: 1, shared: 0, variable: 0, ..RACE };
        let sides = [side(0), side(0), side(0), side(1)];
        let inside = read(&[0; 4], &[sync, RACE], &sides, &FRAMES, b"\0a.cu\0f\0").expect("sound");
        assert_eq!(inside.races.iter().map(|race| race.sides[1].kind).collect::<Vec<_>>(), [InsideKind::Write]);
        let [sync] = &inside.synchronisations[..] else { panic!("one") };
        assert_eq!((sync.kind, sync.count, sync.answer), (InsideSync::BlockBarrier, 3, InsideAnswer::Unknown));
        assert_eq!(sync.at.frames[1], ("a.cu".to_owned(), 9));
    }

    #[test]
    fn damage_is_named_by_its_field() {
        let texts = b"\0a.cu\0f\0";
        let two = [side(0), side(1)];
        let of = |race: InsideRace, sides: &[InsideSide], frames: &[InsideFrame]| {
            read(&[0; 4], &[race], sides, frames, texts).expect_err("damage").to_string()
        };
        for (field, error) in [
            ("InsideGrade", of(InsideRace { grade: 4, ..RACE }, &two, &FRAMES)),
            ("InsideRemedy", of(InsideRace { remedy: 18, ..RACE }, &two, &FRAMES)),
            ("InsideSync", of(InsideRace { address: 4, remedy: SYNCHRONISATION, ..RACE }, &two, &FRAMES)),
            ("InsideAnswer", of(InsideRace { address: 1, grade: 2, remedy: SYNCHRONISATION, ..RACE }, &two, &FRAMES)),
            ("shared", of(InsideRace { shared: 2, ..RACE }, &two, &FRAMES)),
            ("text", of(InsideRace { variable: 3, ..RACE }, &two, &FRAMES)),
            ("sides", of(RACE, &two[..1], &FRAMES)),
            ("InsideKind", of(RACE, &[side(0), side(3)], &FRAMES)),
            ("InsideScope", of(RACE, &[InsideSide { scope: 4, ..side(0) }, side(1)], &FRAMES)),
            ("frames", of(RACE, &[InsideSide { frames: u32::MAX, ..side(0) }, side(1)], &FRAMES)),
            ("frames", of(RACE, &two, &FRAMES[..1])),
            ("text", of(RACE, &two, &[FRAMES[0], InsideFrame { file: 9, line: 1 }])),
            ("counts", read(&[0; 3], &[RACE], &two, &FRAMES, texts).expect_err("damage").to_string()),
        ] {
            assert!(error.contains(&format!("`{field}`")), "{field}: {error}");
        }
    }
}
