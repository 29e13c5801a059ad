//! Random programs against a naive model: every op keeps the explicit set of ops that have finished
//! before it starts.
//!
//! The model shares nothing with the engine but the rules: no clocks, no laziness, no pruning, no
//! reuse of timelines. What an op comes after is the set of ops that a path leads from, in a graph
//! with an edge for every rule. This file applies each step to both and compares; `program` has the
//! steps, `model` what the model knows.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p order --test it property::` takes a hundred
//! thousand programs (256 otherwise).

mod event_graph;
mod model;
mod program;

use crate::common::{CTX, World};
use model::{Func, Lane, Model, Set};
use order::{Engine, Options};
use program::{EVENT_GRAPH, Node, STREAMS, Step, step};
use proptest::prelude::*;
use trace::*;

const PAGEABLE: u64 = 0x7000_0000;

struct Run {
    w: World,
    m: Model,
    epochs: Vec<Epoch>,
    next_stream: u32,
    next_sync: u32,
    query: Option<(u32, StreamId, u64)>,
    event_query: Option<(u32, u64)>,
    /// Whether the end of a host function signals the host.
    signal: bool,
    /// The nodes of the event graph.
    shape: Vec<(Node, u8)>,
}

impl Run {
    fn new(latent: bool, spread: bool) -> Self {
        let mut options = Options::default();
        options.latent = latent;
        // No promise is made of it, and the model keeps no second host.
        let signal = spread && !latent;
        options.host_functions_signal = signal;
        let w = World::with(options);
        let mut run = Self {
            w,
            m: Model::default(),
            epochs: vec![],
            next_stream: 0,
            next_sync: 0,
            query: None,
            event_query: None,
            signal,
            shape: vec![],
        };
        run.event_graph(&[(Node::Wait(0), 0), (Node::Work, 0), (Node::Record(1), 2), (Node::Work, 5)]);
        for i in 0..STREAMS {
            // Idle streams between them, so that timelines are far apart.
            for _ in 0..if spread { 13 } else { 0 } {
                run.new_lane(StreamKind::NonBlocking, 1);
            }
            let context = usize::from(i >= STREAMS - 3);
            let kind = match i {
                0 => StreamKind::Legacy,
                _ if i % 3 == 0 => StreamKind::Blocking,
                _ => StreamKind::NonBlocking,
            };
            let lane = run.new_lane(kind, context);
            run.m.lanes.push(lane);
        }
        run
    }

    fn new_lane(&mut self, kind: StreamKind, context: usize) -> Lane {
        self.next_stream += 1;
        let id = self.w.stream_in(ContextId(context as u32 + 1), self.next_stream, kind);
        Lane { id, kind, context, frontier: Set::new(), history: vec![], kernel_start: None }
    }

    /// What the engine says of the start of the op applied last.
    fn compare(&self, epoch: Epoch, before: &Set) -> Result<(), TestCaseError> {
        let clock = self.w.engine.start_clock();
        let fast = self.w.engine.fast_start_clock();
        prop_assert!(!fast.covers(epoch), "{:?} has not finished before it starts", epoch);
        for (n, &e) in self.epochs.iter().enumerate() {
            prop_assert!(!fast.covers(e) || before.contains(&n), "{:?} against {:?} on the fast path", epoch, e);
            prop_assert_eq!(
                clock.covers(e),
                before.contains(&n),
                "op {} ({:?}) against op {} ({:?})",
                self.epochs.len(),
                epoch,
                n,
                e
            );
        }
        Ok(())
    }

    /// An op of lane `i` was applied: compare, and let the model go on.
    fn check(&mut self, i: usize, epoch: Epoch, before: Set, whole: Set) -> Result<(), TestCaseError> {
        self.compare(epoch, &before)?;
        let me = self.epochs.len();
        self.epochs.push(epoch);
        let lane = &mut self.m.lanes[i];
        lane.frontier = whole;
        lane.frontier.insert(me);
        lane.history.push((epoch.time, lane.frontier.clone()));
        lane.kernel_start = None;
        if lane.kind == StreamKind::Legacy {
            self.m.legacy[lane.context] = lane.frontier.clone();
        }
        Ok(())
    }

    fn check_host(&self) -> Result<(), TestCaseError> {
        for (n, &e) in self.epochs.iter().enumerate() {
            prop_assert_eq!(self.w.engine.host_covers(e), self.m.host.contains(&n), "host against op {}", n);
            prop_assert_eq!(self.w.engine.host_clock().covers_documented(e), self.m.host.contains(&n));
        }
        Ok(())
    }

    fn set_event(&mut self, event: u32, set: Set) {
        let (count, all) = self.m.events.entry(event).or_default();
        *count += 1;
        all.push(set);
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Launch(s) | Step::Overlap(s) => {
                let i = s as usize;
                let overlap = matches!(step, Step::Overlap(_));
                let whole = self.m.before(i);
                let mut before = whole.clone();
                let shared: Set = if overlap && self.m.lanes[i].kernel_start.is_some() {
                    // All that is not the lane's own still holds; of the lane's own, what the last
                    // kernel's start had.
                    let start = self.m.lanes[i].kernel_start.clone().unwrap();
                    let own: Set =
                        self.m.lanes[i].history.iter().map(|(t, _)| *t).flat_map(|t| self.own(i, t)).collect();
                    before.retain(|n| !own.contains(n) || start.contains(n) || self.m.host.contains(n));
                    before.clone()
                } else {
                    before.clone()
                };
                let flags = if overlap { launch_flags::PROGRAMMATIC_SERIALIZATION } else { 0 };
                let epoch = self.w.launch_flags(self.m.lanes[i].id, flags);
                self.check(i, epoch, before, whole)?;
                self.m.lanes[i].kernel_start = Some(shared);
            }
            Step::Request(r) => {
                if !self.m.requests.contains_key(&r) {
                    self.next_stream += 1;
                    let request = StreamId(self.next_stream);
                    self.w.op(Op::RequestStart { request });
                    self.m.requests.insert(r, (request, Set::new()));
                }
                let (request, own) = self.m.requests[&r].clone();
                let region = Region::linear(0x100, 4);
                let epoch = self.w.op(Op::HostTransfer { request, region, reads: true, writes: true, exact: true });
                let before: Set = own.union(&self.m.host).copied().collect();
                let clock = self.w.engine.start_clock();
                for (n, &e) in self.epochs.iter().enumerate() {
                    prop_assert_eq!(clock.covers(e), before.contains(&n), "request against op {}", n);
                }
                self.epochs.push(epoch);
                let me = self.epochs.len() - 1;
                self.m.requests.insert(r, (request, before.into_iter().chain([me]).collect()));
            }
            Step::RequestDone(r) => {
                if let Some((request, whole)) = self.m.requests.remove(&r) {
                    self.w.op(Op::RequestDone { request });
                    self.m.host.extend(whole);
                }
            }
            Step::Record(e, s) => {
                let i = s as usize;
                let before = self.m.before(i);
                let stream = self.m.lanes[i].id;
                let epoch = self.w.op(Op::EventRecord { event: EventId(e + 1), stream, mode: EventMode::Plain });
                let kernel_start = self.m.lanes[i].kernel_start.clone();
                self.check(i, epoch, before.clone(), before)?;
                self.m.lanes[i].kernel_start = kernel_start.filter(|_| self.m.lanes[i].kind == StreamKind::NonBlocking);
                self.set_event(e, self.m.lanes[i].frontier.clone());
            }
            Step::Wait(s, e) => {
                let i = s as usize;
                let mut before = self.m.before(i);
                before.extend(self.m.current(e));
                let stream = self.m.lanes[i].id;
                let epoch = self.w.op(Op::StreamWait { stream, event: EventId(e + 1), mode: EventMode::Plain });
                if self.m.events.contains_key(&e) {
                    self.check(i, epoch, before.clone(), before)?;
                } else {
                    // An event never recorded: no op.
                    self.m.lanes[i].kernel_start = None;
                }
            }
            Step::DestroyEvent(e) => {
                self.w.op(Op::EventDestroy { event: EventId(e + 1) });
                self.m.events.remove(&e);
                self.event_query.take_if(|q| q.0 == e);
            }
            Step::Begin(thread, scope, s, e) => {
                let stream = self.m.lanes[s as usize].id;
                let covered = match scope {
                    SyncScope::Stream => {
                        let mut set = self.m.lanes[s as usize].frontier.clone();
                        if self.m.lanes[s as usize].kind == StreamKind::Legacy {
                            set.extend(self.m.blocking(0));
                        }
                        set
                    }
                    SyncScope::Event => self.m.current(e),
                    SyncScope::Context => self.m.all(Some(0)),
                    _ => self.m.all(None),
                };
                self.next_sync += 1;
                let sync = SyncId(self.next_sync);
                let op = Op::SyncBegin { sync, scope, stream, event: EventId(e + 1), context: CTX };
                self.w.engine.apply(&op, ThreadId(thread));
                let pending = self.m.pending.entry(thread).or_default();
                if pending.len() == 4 {
                    pending.remove(0);
                }
                pending.push((sync, covered));
            }
            Step::End(thread) => {
                if let Some((sync, covered)) = self.m.pending.get_mut(&thread).and_then(Vec::pop) {
                    self.w.engine.apply(&Op::SyncEnd { sync }, ThreadId(thread));
                    self.m.host.extend(covered);
                }
            }
            Step::QueryBegin(s) => {
                let lane = &self.m.lanes[s as usize];
                if lane.kind != StreamKind::Legacy {
                    self.query = Some((s, lane.id, self.w.engine.stream_time(lane.id)));
                }
            }
            Step::QueryEnd => {
                if let Some((s, stream, upto)) = self.query.take()
                    && self.m.lanes[s as usize].id == stream
                {
                    let history = &self.m.lanes[s as usize].history;
                    let overtaken = history.iter().filter(|(t, _)| *t > upto).count();
                    // The engine remembers a few changes only.
                    if overtaken <= 2 {
                        self.w.op(Op::StreamIdle { stream, upto });
                        let at = history.iter().rev().find(|(t, _)| *t <= upto);
                        self.m.host.extend(at.map(|(_, set)| set.clone()).unwrap_or_default());
                    }
                }
            }
            Step::EventQueryBegin(e) => {
                self.event_query = Some((e, self.w.engine.event_record(EventId(e + 1))));
            }
            Step::EventQueryEnd => {
                if let Some((e, record)) = self.event_query.take() {
                    let (count, all) = self.m.events.get(&e).cloned().unwrap_or_default();
                    self.w.op(Op::EventReached { event: EventId(e + 1), record });
                    if record > 0 && record <= count && count - record < 2 {
                        self.m.host.extend(&all[record as usize - 1]);
                    }
                }
            }
            Step::Replace(s, kind) => {
                let i = s as usize;
                let old = self.m.lanes[i].clone();
                self.w.op(Op::StreamDestroy { stream: old.id });
                let new = self.new_lane(kind, old.context);
                self.m.lanes[i] = new;
                self.m.dead.push(old);
            }
            Step::CopyOut(s) => {
                let i = s as usize;
                let before = self.m.before(i);
                let stream = self.m.lanes[i].id;
                let (dst, src) = (Region::linear(PAGEABLE, 4), Region::linear(0x100, 4));
                let (dst_space, src_space) = (Space::Host, Space::Device);
                let epoch =
                    self.w.op(Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: false, batch: 0 });
                let me = self.epochs.len();
                self.epochs.push(epoch);
                self.m.host.extend(&before);
                self.m.host.insert(me);
                let lane = &mut self.m.lanes[i];
                lane.frontier = before;
                lane.frontier.insert(me);
                lane.history.push((epoch.time, lane.frontier.clone()));
                lane.kernel_start = None;
                if lane.kind == StreamKind::Legacy {
                    self.m.legacy[lane.context] = lane.frontier.clone();
                }
            }
            Step::Drain => {
                let kind = MemoryKind::PinnedHost;
                self.w.alloc(0x9000, 16, kind);
                self.w.begin_end_device();
                self.m.host.extend(self.m.all(None));
            }
            Step::ContextRecord(e) => {
                self.w.op(Op::ContextRecord { event: EventId(e + 1), context: CTX });
                self.set_event(e, self.m.all(Some(0)));
            }
            Step::ContextWait(e) => {
                self.w.op(Op::ContextWait { context: CTX, event: EventId(e + 1) });
                let set = self.m.current(e);
                self.m.context_waits[0].extend(set);
            }
            Step::AllocAsync(s, p) => {
                let i = s as usize;
                let mut before = self.m.before(i);
                if let Some(free) = self.m.freed.remove(&p) {
                    before.extend(free);
                }
                let epoch = self.w.alloc_async(0x100_0000 + p * 64, 64, self.m.lanes[i].id);
                self.check(i, epoch, before.clone(), before)?;
            }
            Step::FreeAsync(s, p) => {
                let i = s as usize;
                let before = self.m.before(i);
                let ptr = 0x100_0000 + p * 64;
                let live = self.w.engine.memory_kind(ptr).is_some();
                let epoch = self.w.free_async(ptr, self.m.lanes[i].id);
                self.check(i, epoch, before.clone(), before)?;
                if live {
                    self.m.freed.insert(p, self.m.lanes[i].frontier.clone());
                }
            }
            Step::Graph(s, g) => {
                let i = s as usize;
                let mut before = self.m.before(i);
                before.extend(self.m.graphs.get(&g).cloned().unwrap_or_default());
                if g == EVENT_GRAPH {
                    self.launch_event_graph(i, &before)?;
                } else {
                    let epoch = self.w.op(Op::GraphLaunch { stream: self.m.lanes[i].id, exec: GraphExecId(g) });
                    self.check(i, epoch, before.clone(), before)?;
                }
                self.m.graphs.insert(g, self.m.lanes[i].frontier.clone());
            }
            Step::Shape(ref nodes, new) => {
                if new {
                    self.w.op(Op::GraphExecDestroy { exec: GraphExecId(EVENT_GRAPH) });
                    self.m.graphs.remove(&EVENT_GRAPH);
                }
                self.event_graph(nodes);
            }
            Step::Batch(s, n) => {
                let i = s as usize;
                let start = self.m.before(i);
                let mut whole = start.clone();
                self.next_sync += 1;
                let batch = self.next_sync;
                for _ in 0..n {
                    let stream = self.m.lanes[i].id;
                    let (dst, src) = (Region::linear(0x200, 4), Region::linear(0x100, 4));
                    let (dst_space, src_space, asynchronous) = (Space::Device, Space::Device, true);
                    let epoch = self.w.op(Op::Copy { stream, dst, src, dst_space, src_space, asynchronous, batch });
                    self.check(i, epoch, start.clone(), whole.clone())?;
                    whole.clone_from(&self.m.lanes[i].frontier);
                }
            }
            Step::HostFunc(s) => {
                let i = s as usize;
                let before = self.m.before(i);
                self.next_sync += 1;
                let id = HostFuncId(self.next_sync);
                let stream = self.m.lanes[i].id;
                let epoch = self.w.op(Op::HostFunc { stream, func: id, address: 0 });
                self.check(i, epoch, before.clone(), before.clone())?;
                let (me, whole) = (self.epochs.len() - 1, self.m.lanes[i].frontier.clone());
                self.m.funcs.push(Func { id, lane: stream, time: epoch.time, me, before, whole });
            }
            Step::HostFuncRun(k, done) => {
                let live = |f: &Func| {
                    let lane = self.m.lanes.iter().find(|l| l.id == f.lane)?;
                    // The engine remembers a few changes only, which matters to a function that
                    // signals the host.
                    (lane.history.iter().filter(|(t, _)| *t >= f.time).count() <= 2).then_some(())
                };
                let Some(at) = self.m.funcs.len().checked_sub(1).map(|last| k.min(last)) else { return Ok(()) };
                let func = self.m.funcs[at].clone();
                if live(&func).is_none() || self.m.host.contains(&func.me) {
                    self.m.funcs.remove(at);
                    return Ok(());
                }
                let epoch = self.w.op(Op::HostFuncRun { func: func.id, done });
                prop_assert_eq!(epoch, self.epochs[func.me]);
                let clock = self.w.engine.start_clock();
                for (n, &e) in self.epochs.iter().enumerate() {
                    prop_assert_eq!(
                        clock.covers(e),
                        func.before.contains(&n),
                        "host function {} against op {}",
                        func.me,
                        n
                    );
                }
                // It may wake the host while it runs.
                if self.signal {
                    self.m.host.extend(if done { &func.whole } else { &func.before });
                }
                if done {
                    self.m.funcs.remove(at);
                }
            }
        }
        self.check_host()
    }

    /// The op of lane `i` at engine time `t`.
    fn own(&self, i: usize, t: u64) -> Option<usize> {
        let timeline = self.w.engine.timeline(self.m.lanes[i].id)?;
        self.epochs.iter().position(|e| e.timeline == timeline && e.time == t)
    }
}

impl World {
    fn begin_end_device(&mut self) {
        let sync = self.begin(9, SyncScope::Device, StreamId::NONE, 0);
        self.end(sync);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_the_naive_model(steps in prop::collection::vec(step(), 1..160), latent: bool, spread: bool) {
        let mut run = Run::new(latent, spread);
        for step in &steps {
            run.step(step)?;
        }
    }

    /// Damaged traces: any ops in any order, ids that were never made. Nothing to compare; it must
    /// not panic, and must answer.
    #[test]
    fn nothing_panics(ops in prop::collection::vec((0..40_u16, any::<[u8; 96]>(), 0..4_u32, any::<bool>()), 1..200)) {
        let mut engine = Engine::with_options(Options::default());
        for (pick, mut bytes, thread, small) in ops {
            if small {
                // Small numbers meet each other, and make valid enumerations.
                for chunk in bytes.chunks_mut(4) {
                    chunk[0] &= 3;
                    chunk[1..].fill(0);
                }
            }
            let tags = [32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 64, 65, 66, 67, 71, 96, 97, 98, 99, 100, 101, 102, 103, 104, 130, 131, 132, 133];
            let tag = tags[usize::from(pick) % tags.len()];
            if let Ok(op) = Op::decode(tag, &bytes) {
                let epoch = engine.apply(&op, ThreadId(thread));
                let clock = engine.start_clock();
                let _ = clock.covers(epoch);
                let _ = clock.snapshot().clock().time_of(epoch.timeline);
                let _ = engine.host_covers(epoch);
            }
        }
    }
}
