//! Grids that kernels launch: against their launchers and against each other, each race with a twin
//! that is in order.

use sim_races::{
    Detector, Grade, GridEvents, Kind, LANES, Lanes, LaunchPoint, Memory, MemoryEvents, Order, Reading, Remedy, Scope,
    Stream, Strength, ThreadOf, WarpAccess,
};

const AT: u64 = 0x1000;

fn access(grid: &GridEvents<'_>, (block, thread): (u32, u32), site: u32, kind: Kind, strength: Strength) {
    grid.access(&WarpAccess {
        block,
        warp: thread / 32,
        lanes: 1 << (thread % 32),
        executing: !0,
        site,
        memory: Memory::Global,
        addresses: &[AT; LANES],
        size: 4,
        kind,
        strength,
        unchanged: 0,
        alike: false,
        asynchronous: false,
        object: false,
        compares: false,
        keeps: [0; 4],
        bulk: None,
        map: false,
    });
}

fn write(grid: &GridEvents<'_>, thread: (u32, u32), site: u32) {
    access(grid, thread, site, Kind::Write, Strength::Plain);
}

fn read(grid: &GridEvents<'_>, thread: (u32, u32), site: u32) {
    access(grid, thread, site, Kind::Read, Strength::Plain);
}

/// A grid of so many blocks of 64 threads.
fn begin<'d>(detector: &'d Detector, point: Option<&LaunchPoint>, blocks: u32) -> GridEvents<'d> {
    let grid = detector.grid(point, blocks, 0);
    (0..blocks).for_each(|block| grid.block_starts(block, 64, block));
    grid
}

fn end(grid: &GridEvents<'_>, blocks: u32) {
    (0..blocks).for_each(|block| grid.block_ends(block));
}

fn launch(detector: &Detector, grid: &GridEvents<'_>, (block, thread): (u32, u32), stream: Stream) -> LaunchPoint {
    grid.launches(ThreadOf { block, thread }, stream);
    detector.launched().expect("a launch was told")
}

fn barrier(grid: &GridEvents<'_>, block: u32) {
    (0..2).for_each(|warp| grid.barrier_arrives(0, Lanes { block, warp, mask: !0 }, true));
    grid.barrier_completes(block, 0, true);
}

fn races(detector: &Detector) -> Vec<([u32; 2], Grade, Remedy)> {
    detector.races().iter().map(|race| (race.sides.map(|side| side.site), race.grade, race.remedy)).collect()
}

/// A write of the launcher by `writer`, at a barrier or not, and a grid that thread 0 launches and
/// that reads it.
fn written_before(writer: u32, meet: bool, stream: Stream) -> Detector {
    let detector = Detector::new(Reading::default());
    let parent = begin(&detector, None, 1);
    write(&parent, (0, writer), 1);
    if meet {
        barrier(&parent, 0);
    }
    let point = launch(&detector, &parent, (0, 0), stream);
    end(&parent, 1);
    let child = begin(&detector, Some(&point), 1);
    read(&child, (0, 40), 2);
    end(&child, 1);
    detector
}

#[test]
fn a_grid_is_behind_what_its_launching_thread_did_before() {
    for stream in [Stream::OfBlock, Stream::Named(7), Stream::Detached, Stream::Tail] {
        assert_eq!(races(&written_before(0, false, stream)), []);
    }
}

#[test]
fn a_grid_is_not_behind_other_threads_that_its_launcher_has_not_met() {
    for stream in [Stream::OfBlock, Stream::Named(7), Stream::Detached] {
        let found = races(&written_before(40, false, stream));
        assert_eq!(found, [([1, 2], Grade::Certain, Remedy::LaunchOrder)], "{stream:?}");
        assert_eq!(races(&written_before(40, true, stream)), [], "{stream:?}");
    }
}

#[test]
fn a_grid_in_the_tail_stream_is_behind_all_threads_of_its_launcher() {
    assert_eq!(races(&written_before(40, false, Stream::Tail)), []);
}

/// What the launcher does behind the launch, by the launching thread or another one.
fn written_after(writer: u32, stream: Stream) -> Detector {
    let detector = Detector::new(Reading::default());
    let parent = begin(&detector, None, 1);
    let point = launch(&detector, &parent, (0, 0), stream);
    write(&parent, (0, writer), 1);
    end(&parent, 1);
    let child = begin(&detector, Some(&point), 1);
    read(&child, (0, 0), 2);
    detector
}

#[test]
fn what_the_launcher_does_behind_the_launch_is_unordered() {
    for writer in [0, 40] {
        let found = races(&written_after(writer, Stream::OfBlock));
        assert_eq!(found, [([1, 2], Grade::Certain, Remedy::LaunchOrder)], "{writer}");
        assert_eq!(races(&written_after(writer, Stream::Tail)), []);
    }
}

/// Two grids that write one place, launched by two threads.
fn siblings(threads: [(u32, u32); 2], streams: [Stream; 2], event: bool) -> Detector {
    let detector = Detector::new(Reading::default());
    let parent = begin(&detector, None, 2);
    if event {
        parent.makes_event(0);
    }
    let points = [0, 1].map(|at| launch(&detector, &parent, threads[at], streams[at]));
    end(&parent, 2);
    for point in &points {
        let child = begin(&detector, Some(point), 3);
        write(&child, (2, 5), 3);
        end(&child, 3);
    }
    detector
}

#[test]
fn grids_of_one_stream_are_in_order() {
    let blocks = [Stream::OfBlock; 2];
    assert_eq!(races(&siblings([(0, 0), (0, 0)], blocks, false)), []);
    // The stream without a name is that of the block.
    assert_eq!(races(&siblings([(0, 0), (0, 33)], blocks, false)), []);
    assert_eq!(races(&siblings([(0, 0), (1, 0)], [Stream::Named(4); 2], false)), []);
    assert_eq!(races(&siblings([(0, 0), (1, 0)], [Stream::Tail; 2], false)), []);
}

#[test]
fn grids_of_different_streams_are_unordered() {
    let cases = [
        ([(0, 0), (1, 0)], [Stream::OfBlock; 2]),
        ([(0, 0), (0, 0)], [Stream::Named(4), Stream::Named(5)]),
        ([(0, 0), (0, 0)], [Stream::OfBlock, Stream::Named(5)]),
        ([(0, 0), (0, 0)], [Stream::Detached; 2]),
    ];
    for (threads, streams) in cases {
        let found = races(&siblings(threads, streams, false));
        assert_eq!(found, [([3, 3], Grade::Certain, Remedy::LaunchOrder)], "{threads:?} {streams:?}");
    }
}

#[test]
fn events_may_order_streams() {
    assert_eq!(races(&siblings([(0, 0), (0, 0)], [Stream::Named(4), Stream::Named(5)], true)), []);
    // Nothing waits for those.
    assert_eq!(races(&siblings([(0, 0), (0, 0)], [Stream::Detached; 2], true)).len(), 1);
}

/// A grid launches another one, which writes, and a second one behind it in its stream or beside
/// it.
fn below(stream: Stream) -> Detector {
    let detector = Detector::new(Reading::default());
    let parent = begin(&detector, None, 1);
    let points = [Stream::OfBlock, stream].map(|stream| launch(&detector, &parent, (0, 0), stream));
    end(&parent, 1);
    let child = begin(&detector, Some(&points[0]), 1);
    let inner = launch(&detector, &child, (0, 9), Stream::Detached);
    end(&child, 1);
    let grandchild = begin(&detector, Some(&inner), 1);
    write(&grandchild, (0, 1), 4);
    end(&grandchild, 1);
    let second = begin(&detector, Some(&points[1]), 1);
    read(&second, (0, 2), 5);
    detector
}

#[test]
fn a_grid_has_ended_when_all_that_it_launched_has() {
    assert_eq!(races(&below(Stream::OfBlock)), []);
    assert_eq!(races(&below(Stream::Tail)), []);
    assert_eq!(races(&below(Stream::Named(1))), [([4, 5], Grade::Certain, Remedy::LaunchOrder)]);
}

#[test]
fn a_flag_orders_a_launcher_and_what_it_launched() {
    let relaxed = |order| Strength::Strong(order, Scope::Device);
    for (order, count) in [(Order::BOTH, 0), (Order::RELAXED, 1)] {
        let detector = Detector::new(Reading::default());
        let parent = begin(&detector, None, 1);
        let point = launch(&detector, &parent, (0, 0), Stream::OfBlock);
        write(&parent, (0, 40), 1);
        let flag = |grid: &GridEvents<'_>, thread: u32, site: u32| {
            grid.access(&WarpAccess {
                block: 0,
                warp: thread / 32,
                lanes: 1 << (thread % 32),
                executing: !0,
                site,
                memory: Memory::Global,
                addresses: &[AT + 64; LANES],
                size: 4,
                kind: Kind::Atomic,
                strength: relaxed(order),
                unchanged: 0,
                alike: false,
                asynchronous: false,
                object: false,
                compares: false,
                keeps: [0; 4],
                bulk: None,
                map: false,
            });
        };
        flag(&parent, 40, 6);
        end(&parent, 1);
        let child = begin(&detector, Some(&point), 1);
        flag(&child, 3, 7);
        read(&child, (0, 3), 2);
        assert_eq!(races(&detector).len(), count, "{order:?}");
    }
}

#[test]
fn shared_memory_and_instructions_of_grids_are_told_apart() {
    let detector = Detector::new(Reading::default());
    let parent = begin(&detector, None, 1);
    let point = launch(&detector, &parent, (0, 0), Stream::Detached);
    let child = detector.grid(Some(&point), 1, 100);
    child.block_starts(0, 64, 0);
    let shared = |grid: &GridEvents<'_>, thread: u32| {
        grid.access(&WarpAccess {
            block: 0,
            warp: thread / 32,
            lanes: 1 << (thread % 32),
            executing: !0,
            site: 1,
            memory: Memory::Shared(0),
            addresses: &[0; LANES],
            size: 4,
            kind: Kind::Write,
            strength: Strength::Plain,
            unchanged: 0,
            alike: false,
            asynchronous: false,
            object: false,
            compares: false,
            keeps: [0; 4],
            bulk: None,
            map: false,
        });
    };
    shared(&parent, 0);
    shared(&child, 0);
    assert_eq!(races(&detector), []);
    // Within the child there is a race, and its numbers are those of the child.
    shared(&child, 40);
    let found = detector.races();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sides.map(|side| side.site), [101, 101]);
    assert_eq!(found[0].shared, Some(child.first_block()));
    assert_eq!(found[0].remedy, Remedy::BlockBarrier);
}
