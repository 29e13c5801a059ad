//! Values that fills and copies leave in memory, and streams that wait for them.
//!
//! The model below shares nothing with the engine: it runs every schedule of a small program, and
//! looks at the bytes.

use crate::common::{MAIN, World};
use order::Options;
use std::collections::HashSet;
use trace::codec::List;
use trace::*;

const FLAG: u64 = 0x1000;
const COMPARES: [WaitCompare; 4] = [WaitCompare::GreaterEqual, WaitCompare::Equal, WaitCompare::And, WaitCompare::Nor];

fn world() -> World {
    let mut options = Options::default();
    options.left_values = true;
    let mut w = World::with(options);
    w.alloc(0, 0x2000, MemoryKind::Device);
    w
}

/// The fills that set both words at [`FLAG`], or one.
#[derive(Clone, Copy, Debug)]
struct Fill {
    element: u8,
    value: u32,
    dst: Region,
}

impl Fill {
    fn new(element: u8, value: u32, dst: Region) -> Self {
        Self { element, value, dst }
    }

    /// The bytes, written out one by one.
    fn bytes(&self) -> u64 {
        let element = usize::from(self.element);
        let pattern: Vec<u8> = self.value.to_le_bytes()[..element].iter().copied().cycle().take(8).collect();
        u64::from_le_bytes(pattern.try_into().expect("eight"))
    }

    fn on(&self, w: &mut World, stream: StreamId) -> Epoch {
        let Self { element, value, dst } = *self;
        let epoch = w.op(Op::Set { stream, dst, asynchronous: true });
        w.op(Op::Filled { dst, value, element });
        epoch
    }
}

/// The functions of `cuMemset*`: elements, and one row or the second of three.
fn fills(value: u32) -> Vec<Fill> {
    let places = [Region::linear(FLAG, 8), Region::linear(0x800, 0x1000), Region::pitched(FLAG - 64, 16, 3, 64)];
    let sizes = [(1, value & 0xff), (2, value & 0xffff), (4, value)];
    sizes.iter().flat_map(|(element, value)| places.map(|dst| Fill::new(*element, *value, dst))).collect()
}

fn wait(w: &mut World, stream: StreamId, compare: WaitCompare, value: u64, width: u8) {
    w.op(Op::WaitValue { stream, address: FLAG, value, width, compare });
}

/// The comparison as `cuda.h` words it, on bytes.
fn holds(compare: WaitCompare, found: u64, value: u64, width: u8) -> bool {
    let bits = 8 * u32::from(width);
    let mask = u64::MAX >> (64 - bits);
    let (found, value) = (found & mask, value & mask);
    match compare {
        WaitCompare::GreaterEqual => (found.wrapping_sub(value) & mask) >> (bits - 1) == 0,
        WaitCompare::Equal => found == value,
        WaitCompare::And => found & value != 0,
        WaitCompare::Nor => !(found | value) & mask != 0,
    }
}

/// cuda.h, `CUstreamWaitValue_flags`: a condition that the memory satisfies already passes at once.
#[test]
fn a_wait_may_find_what_a_fill_left() {
    let (mut found, mut ordered) = (0, 0);
    for left in [0, 1, 0x30, 0xffff_fff0] {
        for fill in fills(left) {
            for (compare, width) in COMPARES.iter().flat_map(|compare| [(*compare, 4), (*compare, 8)]) {
                for value in [0, 1, 0x10, 0xffff_fff0, u64::MAX] {
                    let mut w = world();
                    let [a, b] = w.streams();
                    fill.on(&mut w, a);
                    w.sync_context();
                    let before = w.launch(a);
                    w.op(Op::WriteValue { stream: a, address: FLAG, value, width, barrier: true });
                    wait(&mut w, b, compare, value, width);
                    w.launch(b);
                    let passes = holds(compare, fill.bytes(), value, width);
                    let ends = passes || holds(compare, value, value, width);
                    assert_eq!(w.engine.start_clock().is_behind_open_wait(), !ends);
                    if ends {
                        *(if passes { &mut found } else { &mut ordered }) += 1;
                        assert_eq!(w.after(before), !passes, "{fill:?} {compare:?} {value:#x} {width}");
                    }
                }
            }
        }
    }
    assert!(found > 400 && ordered > 200, "{found} {ordered}");
}

/// Follows: the bytes of a copy from pageable memory are those of the call.
#[test]
fn a_wait_may_find_what_a_copy_left() {
    for (at, value, passes) in [(FLAG, 7, true), (FLAG - 4, 0, true), (FLAG, 8, false), (FLAG + 64, 7, false)] {
        let mut w = world();
        let [a, b] = w.streams();
        let (dst, src) = (Region::linear(at, 12), Region::linear(1 << 40, 12));
        let (dst_space, src_space) = (Space::Device, Space::Host);
        w.op(Op::Copy { stream: a, dst, src, dst_space, src_space, asynchronous: false, batch: 0 });
        w.op(Op::Contents { ptr: at, bytes: &[7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0] });
        w.sync_context();
        let before = w.launch(a);
        w.op(Op::WriteValue { stream: a, address: FLAG, value, width: 4, barrier: true });
        wait(&mut w, b, WaitCompare::Equal, value, 4);
        assert_eq!(w.launch_after(b, before), !passes, "{at:#x} {value}");
    }
}

/// Follows: the bytes are of the op before, in its stream, by the thread that made it.
#[test]
fn bytes_belong_to_the_fill_before_them() {
    for (thread, between, passes) in [(MAIN, false, true), (ThreadId(2), false, false), (MAIN, true, false)] {
        let mut w = world();
        let [a, b] = w.streams();
        let dst = Region::linear(FLAG, 8);
        w.op(Op::Set { stream: a, dst, asynchronous: true });
        if between {
            w.launch(a);
        }
        w.engine.apply(&Op::Filled { dst, value: 1, element: 4 }, thread);
        w.sync_context();
        let before = w.launch(a);
        w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: true });
        wait(&mut w, b, WaitCompare::Equal, 1, 4);
        assert_eq!(w.launch_after(b, before), !passes);
    }
}

/// Whoever knows of other writes says so: then it is as if the bytes were not known.
#[test]
fn a_doubtful_value_is_not_found() {
    for doubts in [false, true] {
        let mut w = world();
        let [a, b] = w.streams();
        let fill = Fill::new(4, 1, Region::linear(FLAG, 8)).on(&mut w, a);
        w.sync_context();
        let before = w.launch(a);
        let write = w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: true });
        let compare = WaitCompare::Equal;
        let waits = Op::WaitValue { stream: b, address: FLAG, value: 1, width: 4, compare };
        let found = w.engine.values_found(&waits);
        assert_eq!((found[0].left.as_slice(), found[0].known.as_slice()), (&[fill][..], &[fill, write][..]));
        let other = Op::WaitValue { stream: b, address: FLAG, value: 2, width: 4, compare };
        assert_eq!(w.engine.values_found(&other), [], "it would not end that wait");
        if doubts {
            w.engine.doubt_left_value(FLAG, fill);
            assert_eq!(w.engine.values_found(&waits), []);
        }
        w.op(waits);
        assert_eq!(w.launch_after(b, before), doubts);
    }
}

/// Follows: the address is other memory now.
#[test]
fn freed_memory_forgets_what_was_left() {
    for (kind, freed) in [(FreeKind::Plain, true), (FreeKind::Async, true), (FreeKind::Block, false)] {
        for waited_for_before in [false, true] {
            let mut w = world();
            let [a, b, c] = w.streams();
            Fill::new(4, 1, Region::linear(FLAG, 8)).on(&mut w, a);
            if waited_for_before {
                wait(&mut w, c, WaitCompare::Equal, 1, 4);
            }
            w.op(Op::Free { ptr: 0, kind, stream: a });
            w.sync_context();
            w.alloc(0, 0x2000, MemoryKind::Device);
            let before = w.launch(a);
            w.op(Op::WriteValue { stream: a, address: FLAG, value: 1, width: 4, barrier: true });
            wait(&mut w, b, WaitCompare::Equal, 1, 4);
            assert_eq!(w.launch_after(b, before), freed, "{kind:?}");
        }
    }
}

/// Graphs wait as streams do.
#[test]
fn a_graph_may_find_what_a_fill_left() {
    for value in [1, 2] {
        let mut w = world();
        let [a, b] = w.streams();
        let exec = GraphExecId(1);
        let compare = WaitCompare::Equal;
        let op = Op::WaitValue { stream: StreamId::NONE, address: FLAG, value, width: 4, compare };
        let mut body = [0; 64];
        let mut to = Encoder::new(&mut body);
        op.encode(&mut to);
        let len = to.finish().expect("fits");
        w.op(Op::GraphExec { exec, nodes: 1, flags: 0, handle: 0 });
        let dependencies = List::new(&[]);
        let (stack, call) = (StackId::NONE, CallId::NONE);
        let (tag, body) = (op.tag(), &body[..len]);
        w.op(Op::GraphNode { exec, index: 0, stack, call, enabled: true, dependencies, tag, body });
        Fill::new(4, 1, Region::linear(FLAG, 8)).on(&mut w, a);
        w.sync_context();
        let before = w.launch(a);
        w.op(Op::WriteValue { stream: a, address: FLAG, value, width: 4, barrier: true });
        let launch = Op::GraphLaunch { stream: b, exec };
        assert_eq!(w.engine.values_found(&launch).len(), usize::from(value == 1));
        w.op(launch);
        assert_eq!(w.after(before), value == 2, "the launch itself");
    }
}

/// One piece of work of the model: what has to be over before it, and what it leaves at the flag.
#[derive(Debug)]
struct Item {
    past: u32,
    leaves: Option<u64>,
    epoch: Epoch,
}

/// A small program, on the engine and in the model.
struct Small {
    world: World,
    items: Vec<Item>,
    streams: [StreamId; 4],
    known: [u32; 4],
    host: u32,
}

impl Small {
    fn new() -> Self {
        let mut world = world();
        let streams = world.streams();
        Self { world, items: Vec::new(), streams, known: [0; 4], host: 0 }
    }

    fn add(&mut self, stream: usize, epoch: Epoch, leaves: Option<u64>) {
        let past = self.known[stream] | self.host;
        self.known[stream] = past | 1 << self.items.len();
        self.items.push(Item { past, leaves, epoch });
    }

    /// What is over in every schedule at the moment at which the wait ends; `None`: it never does.
    fn guaranteed(&self, past: u32, ends: impl Fn(u64) -> bool) -> Option<u32> {
        let mut common = None;
        let (mut next, mut seen) = (vec![(0_u32, None)], HashSet::new());
        while let Some((over, value)) = next.pop() {
            if past & !over == 0 && value.is_some_and(&ends) {
                common = Some(common.unwrap_or(u32::MAX) & over);
            }
            for (n, item) in self.items.iter().enumerate() {
                let after = (over | 1 << n, item.leaves.or(value));
                if over & 1 << n == 0 && item.past & !over == 0 && seen.insert(after) {
                    next.push(after);
                }
            }
        }
        common
    }
}

/// Fills and writes by three streams, with events and waits of the host between them, then one wait
/// for a value: the engine orders it after what is over in every schedule in which it ends.
#[test]
fn the_engine_agrees_with_all_schedules() {
    let mut seed = 0x9e37_79b9_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    const VALUES: [u32; 5] = [0, 1, 2, 0x30, 0xffff_fff0];
    let (mut open, mut less, mut all) = (0, 0, 0);
    for case in 0..6000 {
        let mut p = Small::new();
        let width = [4, 8][random(2)];
        for _ in 0..3 + random(6) {
            let (on, value) = (random(3), VALUES[random(5)]);
            let stream = p.streams[on];
            match random(7) {
                0 | 1 => {
                    let epoch = p.world.launch(stream);
                    p.add(on, epoch, None);
                }
                2 | 3 => {
                    let address = FLAG;
                    let op = Op::WriteValue { stream, address, value: value.into(), width, barrier: true };
                    let epoch = p.world.op(op);
                    p.add(on, epoch, Some(value.into()));
                }
                4 => {
                    let every = fills(value);
                    let fill = every[random(every.len())];
                    let epoch = fill.on(&mut p.world, stream);
                    p.add(on, epoch, Some(fill.bytes()));
                }
                5 => {
                    let to = random(4);
                    p.world.record(1, stream);
                    p.world.wait(p.streams[to], 1);
                    p.known[to] |= p.known[on] | p.host;
                }
                _ => {
                    p.world.sync_context();
                    p.host = (1 << p.items.len()) - 1;
                }
            }
        }
        let (compare, value) = (COMPARES[random(4)], u64::from(VALUES[random(5)]));
        let waiting = p.streams[3];
        wait(&mut p.world, waiting, compare, value, width);
        p.world.launch(waiting);
        let guaranteed = p.guaranteed(p.known[3] | p.host, |found| holds(compare, found, value, width));
        let blocked = p.world.engine.start_clock().is_behind_open_wait();
        let what = format!("case {case}: {:?} {:?} {compare:?} {value:#x} {width}", p.items, p.known);
        assert_eq!(blocked, guaranteed.is_none(), "{what}");
        open += u32::from(blocked);
        for (n, item) in p.items.iter().enumerate().filter(|_| !blocked) {
            let is_over = guaranteed.is_some_and(|over| over & 1 << n != 0);
            assert_eq!(p.world.after(item.epoch), is_over, "item {n} of {what}");
            *(if is_over { &mut all } else { &mut less }) += 1;
        }
    }
    assert!(open > 500 && less > 2000 && all > 2000, "{open} {less} {all}");
}
