//! Random programs of several host threads against a naive model: every thread keeps the explicit
//! set of ops that it knows to have finished, and hands it over along the edges of the trace and
//! nowhere else.
//!
//! The model shares nothing with the engine but the rules: no floor, no clocks, no reuse of
//! timelines. `PROPTEST_CASES=100000 cargo test --release -p order --test it property_threads::`
//! takes a hundred thousand programs (256 otherwise).

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{CTX, World};
use order::Options;
use proptest::prelude::*;
use trace::*;

type Set = BTreeSet<usize>;

const THREADS: u32 = 4;
const STREAMS: usize = 9;
/// Of them the legacy stream, and blocking ones behind it.
const LEGACY: usize = 0;
const BLOCKING: std::ops::RangeInclusive<usize> = 1..=3;
const EVENTS: u32 = 4;
const OBJECTS: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    Launch(usize),
    Record(u32, usize),
    Wait(usize, u32),
    SyncStream(usize),
    SyncEvent(u32),
    SyncContext,
    QueryStream(usize),
    Release(u64),
    Acquire(u64),
    Replace(usize),
    Start,
}

fn step() -> impl Strategy<Value = (u32, Step)> {
    let (s, e, o) = (0..STREAMS, 0..EVENTS, 0..OBJECTS);
    let step = prop_oneof![
        10 => s.clone().prop_map(Step::Launch),
        4 => (e.clone(), s.clone()).prop_map(|(e, s)| Step::Record(e, s)),
        4 => (s.clone(), e.clone()).prop_map(|(s, e)| Step::Wait(s, e)),
        3 => s.clone().prop_map(Step::SyncStream),
        2 => e.prop_map(Step::SyncEvent),
        1 => Just(Step::SyncContext),
        1 => s.clone().prop_map(Step::QueryStream),
        5 => o.clone().prop_map(Step::Release),
        5 => o.prop_map(Step::Acquire),
        2 => (BLOCKING.end() + 1..STREAMS).prop_map(Step::Replace),
        1 => Just(Step::Start),
    ];
    (1..=THREADS, step)
}

/// What is known to have finished: by whom, on which stream, by which event, left with which
/// object.
#[derive(Default)]
struct Model {
    threads: BTreeMap<u32, Set>,
    streams: Vec<Set>,
    events: BTreeMap<u32, Set>,
    objects: BTreeMap<u64, Set>,
}

struct Run {
    w: World,
    ids: Vec<StreamId>,
    model: Model,
    launches: Vec<Epoch>,
    next: u32,
}

impl Run {
    fn new() -> Self {
        let mut options = Options::default();
        options.host_threads = true;
        let mut w = World::with(options);
        w.op(Op::HostThreads {});
        let kind = |index: usize| match index {
            LEGACY => StreamKind::Legacy,
            _ if BLOCKING.contains(&index) => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let ids = (0..STREAMS).map(|index| w.stream(index as u32 + 1, kind(index))).collect();
        let model = Model { streams: vec![Set::new(); STREAMS], ..Model::default() };
        let mut run = Self { w, ids, model, launches: Vec::new(), next: 100 };
        run.model.threads.insert(1, Set::new());
        run.start(2, 1);
        run
    }

    fn by(&mut self, thread: u32, op: Op<'_>) -> Epoch {
        self.w.engine.apply(&op, ThreadId(thread))
    }

    /// `maker` makes a thread: it starts with what its maker knew.
    fn start(&mut self, thread: u32, maker: u32) {
        self.next += 1;
        let object = u64::from(self.next) << 20;
        self.by(maker, Op::HostEdge { object, acquire: false, start: false });
        self.by(thread, Op::HostEdge { object, acquire: true, start: true });
        let known = self.model.threads[&maker].clone();
        self.model.threads.insert(thread, known);
    }

    fn wait(&mut self, thread: u32, scope: SyncScope, stream: StreamId, event: u32, covered: Set) {
        self.next += 1;
        let sync = SyncId(self.next);
        self.by(thread, Op::SyncBegin { sync, scope, stream, event: EventId(event), context: CTX });
        self.by(thread, Op::SyncEnd { sync });
        self.learn(thread, &covered);
    }

    fn learn(&mut self, thread: u32, covered: &Set) {
        self.model.threads.get_mut(&thread).expect("it has started").extend(covered);
    }

    /// An op of a stream comes after what the stream and the thread know, and what the legacy
    /// stream has to do with it.
    fn before(&mut self, thread: u32, stream: usize) -> Set {
        let mut known = self.model.threads[&thread].clone();
        match stream {
            LEGACY => known.extend(self.covered(LEGACY)),
            _ if BLOCKING.contains(&stream) => known.extend(&self.model.streams[LEGACY]),
            _ => {}
        }
        self.model.streams[stream].extend(known);
        self.model.streams[stream].clone()
    }

    /// What waiting for a stream covers: for the legacy stream the blocking ones too.
    fn covered(&self, stream: usize) -> Set {
        let mut covered = self.model.streams[stream].clone();
        if stream == LEGACY {
            BLOCKING.for_each(|blocking| covered.extend(&self.model.streams[blocking]));
        }
        covered
    }

    fn step(&mut self, thread: u32, step: &Step) -> Result<(), TestCaseError> {
        if !self.model.threads.contains_key(&thread) {
            if matches!(step, Step::Start) {
                self.start(thread, 1);
            }
            return Ok(());
        }
        match *step {
            Step::Launch(s) => {
                let before = self.before(thread, s);
                let (kernel, stream, shape) = (KernelId(1), self.ids[s], LaunchShape::new([1; 3], [1; 3]));
                let launch = Op::Launch { stream, kernel, shape, params: &[] };
                let epoch = self.by(thread, launch);
                for (index, earlier) in self.launches.iter().enumerate() {
                    let (is, should) = (self.w.after(*earlier), before.contains(&index));
                    prop_assert_eq!(
                        is,
                        should,
                        "launch {} of thread {} after launch {}",
                        self.launches.len(),
                        thread,
                        index
                    );
                }
                self.model.streams[s].insert(self.launches.len());
                self.launches.push(epoch);
            }
            Step::Record(event, s) => {
                let snapshot = self.before(thread, s);
                self.by(thread, Op::EventRecord { event: EventId(event), stream: self.ids[s], mode: EventMode::Plain });
                self.model.events.insert(event, snapshot);
            }
            Step::Wait(s, event) => {
                if let Some(snapshot) = self.model.events.get(&event).cloned() {
                    self.before(thread, s);
                    self.model.streams[s].extend(snapshot);
                }
                self.by(thread, Op::StreamWait { event: EventId(event), stream: self.ids[s], mode: EventMode::Plain });
            }
            Step::SyncStream(s) => {
                let covered = self.covered(s);
                self.wait(thread, SyncScope::Stream, self.ids[s], 0, covered);
            }
            Step::SyncEvent(event) => {
                let covered = self.model.events.get(&event).cloned().unwrap_or_default();
                self.wait(thread, SyncScope::Event, StreamId::NONE, event, covered);
            }
            // Streams that were destroyed with work under way count too.
            Step::SyncContext => {
                let all = (0..self.launches.len()).collect();
                self.wait(thread, SyncScope::Context, StreamId::NONE, 0, all);
            }
            Step::QueryStream(s) => {
                let upto = self.w.engine.stream_time(self.ids[s]);
                self.by(thread, Op::StreamIdle { stream: self.ids[s], upto });
                let covered = self.covered(s);
                self.learn(thread, &covered);
            }
            Step::Release(object) => {
                self.by(thread, Op::HostEdge { object, acquire: false, start: false });
                let known = self.model.threads[&thread].clone();
                self.model.objects.entry(object).or_default().extend(known);
            }
            Step::Acquire(object) => {
                self.by(thread, Op::HostEdge { object, acquire: true, start: false });
                let left = self.model.objects.get(&object).cloned().unwrap_or_default();
                self.learn(thread, &left);
            }
            Step::Replace(s) => {
                self.by(thread, Op::StreamDestroy { stream: self.ids[s] });
                self.next += 1;
                let (stream, kind) = (StreamId(self.next), StreamKind::NonBlocking);
                let handle = u64::from(self.next);
                self.by(thread, Op::StreamCreate { stream, context: CTX, kind, priority: 0, handle });
                self.ids[s] = stream;
                self.model.streams[s] = Set::new();
            }
            Step::Start => {}
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn threads_agree_with_the_naive_model(steps in prop::collection::vec(step(), 1..160)) {
        let mut run = Run::new();
        for (thread, step) in &steps {
            run.step(*thread, step)?;
        }
    }
}
