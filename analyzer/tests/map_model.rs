//! The access map against a model that keeps every access of every byte forever.

use detect::memory::access_map::{Clocks, Glance, Ordered, PlainAccess};
use detect::memory::{
    Access, AccessKind, AccessMap, AllocationId, At, Cause, Dim, Exclusion, Extent, Meet, Pieces, Precision, Site,
    Touch,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use trace::{Epoch, StreamId, TimelineId};

const STREAMS: usize = 4;
/// Enough that cells are split and joined.
const BYTES: u64 = 160;

#[derive(Clone, Debug)]
enum Step {
    Access {
        stream: usize,
        kind: AccessKind,
        lo: u64,
        len: u64,
        gaps: Option<(u64, u64)>,
    },
    /// Everything of the first stream so far is ordered before everything of the second from now
    /// on.
    Wait {
        from: usize,
        to: usize,
    },
    /// The host waits for a stream, and with it everything enqueued later.
    Sync {
        stream: usize,
    },
}

/// Vector clocks in their simplest form.
#[derive(Default, Clone)]
struct World {
    time: [u64; STREAMS],
    clock: [[u64; STREAMS]; STREAMS],
    host: [u64; STREAMS],
}

impl World {
    fn begin(&mut self, stream: usize) -> Epoch {
        for s in 0..STREAMS {
            self.clock[stream][s] = self.clock[stream][s].max(self.host[s]);
        }
        self.time[stream] += 1;
        self.clock[stream][stream] = self.time[stream];
        Epoch { timeline: TimelineId(stream as u32 + 1), time: self.time[stream] }
    }

    fn covers(&self, stream: usize, e: Epoch) -> bool {
        self.clock[stream][e.timeline.0 as usize - 1] >= e.time
    }
}

/// The world as a stream sees it, with or without the quick check.
struct Seen<'a>(&'a World, usize, bool);

impl Clocks for Seen<'_> {
    fn ordered(&self, earlier: Epoch, _: u32) -> Ordered {
        if self.0.covers(self.1, earlier) { Ordered::Yes } else { Ordered::No }
    }
    fn finished(&self, e: Epoch) -> bool {
        let own = Epoch { timeline: TimelineId(self.1 as u32 + 1), time: self.0.time[self.1] };
        self.2 && e != own && self.0.covers(self.1, e)
    }
    fn dead(&self, e: Epoch) -> bool {
        self.0.host[e.timeline.0 as usize - 1] >= e.time
    }
}

impl Glance for Seen<'_> {
    fn finished(&self, e: Epoch) -> bool {
        Clocks::finished(self, e)
    }
    fn is_own(&self, e: Epoch) -> bool {
        e == Epoch { timeline: TimelineId(self.1 as u32 + 1), time: self.0.time[self.1] }
    }
}

fn access(epoch: Epoch, kind: AccessKind, extent: Extent) -> Access {
    let site = Site { stream: StreamId(epoch.timeline.0), ..Site::unknown(Cause::Kernel) };
    Access { epoch, kind, extent, allocation: AllocationId(1), site, exclusion: Exclusion::NONE }
}

fn step() -> impl Strategy<Value = Step> {
    use AccessKind::{Atomic, AtomicRead, AtomicWrite, Read, Write};
    let kind = prop_oneof![Just(Read), Just(Write), Just(Atomic), Just(AtomicRead), Just(AtomicWrite)];
    let gaps = prop_oneof![3 => Just(None), 1 => (3_u64..12, 2_u64..5).prop_map(Some)];
    prop_oneof![
        6 => (0..STREAMS, kind, 0..BYTES, prop_oneof![3 => 1_u64..24, 1 => 1..BYTES], gaps).prop_map(|(stream, kind, lo, len, gaps)| Step::Access {
            stream,
            kind,
            lo,
            len: if gaps.is_some() { len % 3 + 1 } else { len },
            gaps,
        }),
        2 => (0..STREAMS, 0..STREAMS).prop_map(|(from, to)| Step::Wait { from, to }),
        1 => (0..STREAMS).prop_map(|stream| Step::Sync { stream }),
    ]
}

fn bytes(e: &Extent) -> Vec<u64> {
    (e.start..e.end).filter(|b| e.holds(*b)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// A byte races in the map exactly if it races in the model, and every pair that the map passes
    /// on is a true one.
    #[test]
    fn the_same_bytes_race(
        steps in proptest::collection::vec(step(), 1..160),
        quick in any::<bool>(),
        irregular in any::<bool>(),
    ) {
        let mut world = World::default();
        let mut map = AccessMap::default();
        let mut model: BTreeMap<u64, Vec<Access>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Wait { from, to } => {
                    for s in 0..STREAMS {
                        world.clock[to][s] = world.clock[to][s].max(world.clock[from][s]);
                    }
                }
                Step::Sync { stream } => {
                    for s in 0..STREAMS {
                        world.host[s] = world.host[s].max(world.clock[stream][s]);
                    }
                }
                Step::Access { stream, kind, lo, len, gaps } => {
                    let dims: Vec<Dim> = gaps.iter().map(|(stride, count)| Dim { stride: *stride, count: *count }).collect();
                    let extent = Extent::pattern(lo, len, &dims, lo, Precision::Exact);
                    // The same bytes, as a list of pieces.
                    let extent = match irregular && !extent.is_dense() {
                        true => {
                            let spans = bytes(&extent).iter().map(|b| (*b, *b + 1)).collect();
                            Extent::irregular(lo, Pieces::of(spans, lo), Precision::Exact)
                        }
                        false => extent,
                    };
                    let a = access(world.begin(stream), kind, extent.clone());
                    let seen = Seen(&world, stream, quick);
                    let mut found: Vec<Access> = Vec::new();
                    map.add(&a, &seen, &mut |e, latent| {
                        assert!(!latent);
                        found.push(e.clone());
                    });
                    for e in &found {
                        prop_assert!(e.kind.conflicts(kind) && !world.covers(stream, e.epoch));
                    }
                    for b in bytes(&extent) {
                        let all = model.entry(b).or_default();
                        let expected = all.iter().any(|e| e.kind.conflicts(kind) && !world.covers(stream, e.epoch));
                        let got = found.iter().any(|e| e.extent.holds(b));
                        prop_assert_eq!(expected, got, "byte {} of {:?}", b, a);
                        all.push(a.clone());
                    }
                    for e in &found {
                        let common = bytes(&extent).iter().any(|b| e.extent.holds(*b));
                        prop_assert_eq!(e.extent.meet(&extent) == Meet::Yes, common);
                    }
                }
            }
        }
        prop_assert_eq!(map.forgotten(), 0);
    }

    /// Checking without keeping finds the same as adding.
    #[test]
    fn checking_is_adding_without_a_trace(steps in proptest::collection::vec(step(), 1..40), quick in any::<bool>()) {
        let mut world = World::default();
        let mut map = AccessMap::default();
        for step in steps {
            let Step::Access { stream, kind, lo, len, .. } = step else { continue };
            let a = access(world.begin(stream), kind, Extent::exact(lo, lo + len));
            let (mut first, mut second) = (Vec::new(), Vec::new());
            map.check(&a, &Seen(&world, stream, quick), &mut |e, _| first.push(e.epoch));
            map.add(&a, &Seen(&world, stream, quick), &mut |e, _| second.push(e.epoch));
            first.sort();
            first.dedup();
            second.sort();
            second.dedup();
            prop_assert_eq!(first, second);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// The fast path finds nothing to report where it is taken, and leaves the same map as the slow
    /// path. Ops have several accesses here.
    #[test]
    fn the_fast_path_leaves_what_the_slow_path_leaves(
        steps in proptest::collection::vec((step(), any::<bool>()), 1..160),
    ) {
        let (mut world, mut long, mut short) = (World::default(), AccessMap::default(), AccessMap::default());
        let (mut near, mut op) = (At::default(), None);
        for (step, goes_on) in steps {
            match step {
                Step::Wait { from, to } => {
                    for s in 0..STREAMS {
                        world.clock[to][s] = world.clock[to][s].max(world.clock[from][s]);
                    }
                    op = None;
                }
                Step::Sync { stream } => {
                    for s in 0..STREAMS {
                        world.host[s] = world.host[s].max(world.clock[stream][s]);
                    }
                    op = None;
                }
                Step::Access { stream, kind, lo, len, gaps } => {
                    let (stream, epoch) = op.filter(|_| goes_on).unwrap_or_else(|| (stream, world.begin(stream)));
                    op = Some((stream, epoch));
                    let dims: Vec<Dim> = gaps.iter().map(|(stride, count)| Dim { stride: *stride, count: *count }).collect();
                    let a = access(epoch, kind, Extent::pattern(lo, len, &dims, lo, Precision::Exact));
                    let seen = Seen(&world, stream, true);
                    let (mut first, mut second) = (Vec::new(), Vec::new());
                    long.add(&a, &seen, &mut |e, _| first.push(e.clone()));
                    if !(a.extent.is_plain() && short.add_fast(plain(&a), near, &seen)) {
                        near = short.add_near(&Touch::of(&a), near, &seen, &mut |e, _| second.push(e.clone()));
                    }
                    prop_assert_eq!(first, second);
                }
            }
        }
        let kept = |map: &AccessMap| map.iter().map(|e| (e.extent.start, e.kind, e.epoch)).collect::<Vec<_>>();
        prop_assert_eq!(kept(&long), kept(&short));
        prop_assert_eq!(long.entries(), short.entries());
    }
}

fn plain(a: &Access) -> PlainAccess<'_> {
    let Access { epoch, kind, extent: Extent { start, end, .. }, allocation, ref site, .. } = *a;
    PlainAccess { epoch, kind, start, end, allocation, site, param: site.param, at: site.at }
}

/// The kind of access that nine in ten are in a long run really takes the fast path.
#[test]
fn a_repeated_access_takes_the_fast_path() {
    let (mut world, mut map, mut near) = (World::default(), AccessMap::default(), At::default());
    let mut fast = Vec::new();
    for (stream, kind) in [(0, AccessKind::Write), (0, AccessKind::Read), (0, AccessKind::Write), (1, AccessKind::Read)]
    {
        let a = access(world.begin(stream), kind, Extent::exact(0, 64));
        let seen = Seen(&world, stream, true);
        fast.push(map.add_fast(plain(&a), near, &seen));
        if fast.last() == Some(&false) {
            near = map.add_near(&Touch::of(&a), near, &seen, &mut |_, _| ());
        }
    }
    assert_eq!(fast, [false, true, true, false], "the first finds nothing there, the last races");
}

/// Many instructions of one kernel whose bounds all end where the buffer does: the widest covers
/// all, and the next launch of another shape is compared with one piece.
#[test]
fn bounds_of_one_launch_inside_each_other_are_one_piece() {
    let (mut world, mut map) = (World::default(), AccessMap::default());
    for launch in 0..4 {
        let epoch = world.begin(0);
        for n in 0..300 {
            let start = launch + 2048 * n;
            let a = access(epoch, AccessKind::Read, Extent::bound(start, 1 << 20, start));
            map.add(&a, &Seen(&world, 0, true), &mut |_, _| panic!("reads do not race"));
        }
    }
    assert!(map.entries() <= 4, "{} pieces", map.entries());
    let x = access(world.begin(1), AccessKind::Write, Extent::exact(5000, 5001));
    let mut found = Vec::new();
    map.add(&x, &Seen(&world, 1, true), &mut |e, _| found.push((e.epoch.time, e.extent.start)));
    assert_eq!(found, [(1, 0), (2, 1), (3, 2), (4, 3)]);
}

/// Scattered work over one buffer, step after step (a workspace of cuBLAS): each bound begins and
/// ends elsewhere, so none stands for another. When they were cut where they overlap, 120 accesses
/// of a training step were 31,024 pieces, and a launch took 0.4 ms.
#[test]
fn bounds_that_lie_across_each_other_are_few_pieces() {
    const SHAPES: u64 = 120;
    let (mut world, mut map) = (World::default(), AccessMap::default());
    for n in 0..3 * SHAPES {
        let (lo, pitch) = ((n % SHAPES) * 1280, 1 << (17 + n % 4));
        let extent = Extent::pattern(lo, pitch - lo % 4096, &[Dim { stride: pitch, count: 8 }], lo, Precision::Bound);
        let kind = if n % 3 == 0 { AccessKind::Write } else { AccessKind::Read };
        let a = access(world.begin(0), kind, extent);
        map.add(&a, &Seen(&world, 0, true), &mut |_, _| panic!("a race with itself"));
    }
    assert!(map.entries() <= 4 * SHAPES as usize, "{} pieces", map.entries());
    assert_eq!(map.forgotten(), 0);
    // All of them are still there for a stream that waited for none.
    let x = access(world.begin(1), AccessKind::Write, Extent::exact(150 * 1280, 150 * 1280 + 1));
    let mut found = 0;
    map.add(&x, &Seen(&world, 1, true), &mut |_, _| found += 1);
    assert!(found > 90, "{found} of {SHAPES}");
}
