//! The random programs: their steps, and how often each kind of step comes.
//!
//! What a step does, to the engine and to the model, is in `property`.

use proptest::prelude::*;
use trace::*;

/// One step of a program. Streams, events and threads are small numbers.
#[derive(Clone, Debug)]
pub enum Step {
    Launch(u32),
    Overlap(u32),
    Record(u32, u32),
    Wait(u32, u32),
    DestroyEvent(u32),
    Begin(u32, SyncScope, u32, u32),
    End(u32),
    QueryBegin(u32),
    QueryEnd,
    EventQueryBegin(u32),
    EventQueryEnd,
    Replace(u32, StreamKind),
    CopyOut(u32),
    Drain,
    ContextRecord(u32),
    ContextWait(u32),
    AllocAsync(u32, u64),
    FreeAsync(u32, u64),
    Graph(u32, u32),
    Batch(u32, u32),
    HostFunc(u32),
    HostFuncRun(usize, bool),
    Request(u32),
    RequestDone(u32),
    /// The graph with event nodes is made once more: as an update of the old one, or a new one.
    Shape(Vec<(Node, u8)>, bool),
}

/// A node of the graph with event nodes. Events are small numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    Work,
    Wait(u32),
    Record(u32),
}

pub const STREAMS: u32 = 12;
const EVENTS: u32 = 5;
/// The graph with event nodes.
pub const EVENT_GRAPH: u32 = 2;

fn kind() -> impl Strategy<Value = StreamKind> {
    prop_oneof![
        3 => Just(StreamKind::NonBlocking),
        2 => Just(StreamKind::Blocking),
        1 => Just(StreamKind::PerThread),
    ]
}

/// The nodes of a graph, each with a set of nodes that it comes directly after, of which those
/// count that are before it in the list.
pub fn shape() -> impl Strategy<Value = Vec<(Node, u8)>> {
    let node = prop_oneof![
        3 => Just(Node::Work),
        1 => (0..3_u32).prop_map(Node::Wait),
        1 => (1..4_u32).prop_map(Node::Record),
    ];
    prop::collection::vec((node, any::<u8>()), 1..9)
}

pub fn step() -> impl Strategy<Value = Step> {
    let s = 0..STREAMS;
    let e = 0..EVENTS;
    let scope = prop_oneof![
        3 => Just(SyncScope::Stream),
        3 => Just(SyncScope::Event),
        1 => Just(SyncScope::Context),
        1 => Just(SyncScope::Device),
    ];
    prop_oneof![
        12 => s.clone().prop_map(Step::Launch),
        1 => s.clone().prop_map(Step::Overlap),
        8 => (e.clone(), s.clone()).prop_map(|(e, s)| Step::Record(e, s)),
        8 => (s.clone(), e.clone()).prop_map(|(s, e)| Step::Wait(s, e)),
        1 => e.clone().prop_map(Step::DestroyEvent),
        2 => (0..3_u32, scope, s.clone(), e.clone()).prop_map(|(t, k, s, e)| Step::Begin(t, k, s, e)),
        2 => (0..3_u32).prop_map(Step::End),
        1 => s.clone().prop_map(Step::QueryBegin),
        1 => Just(Step::QueryEnd),
        1 => e.clone().prop_map(Step::EventQueryBegin),
        1 => Just(Step::EventQueryEnd),
        2 => (1..STREAMS, kind()).prop_map(|(s, k)| Step::Replace(s, k)),
        1 => s.clone().prop_map(Step::CopyOut),
        1 => Just(Step::Drain),
        1 => e.clone().prop_map(Step::ContextRecord),
        1 => e.clone().prop_map(Step::ContextWait),
        2 => (s.clone(), 0..6_u64).prop_map(|(s, p)| Step::AllocAsync(s, p)),
        2 => (s.clone(), 0..6_u64).prop_map(|(s, p)| Step::FreeAsync(s, p)),
        2 => (s.clone(), 1..3_u32).prop_map(|(s, g)| Step::Graph(s, g)),
        1 => (shape(), any::<bool>()).prop_map(|(nodes, new)| Step::Shape(nodes, new)),
        1 => (s.clone(), 1..4_u32).prop_map(|(s, n)| Step::Batch(s, n)),
        1 => s.prop_map(Step::HostFunc),
        1 => (0..8_usize, any::<bool>()).prop_map(|(k, done)| Step::HostFuncRun(k, done)),
        2 => (0..3_u32).prop_map(Step::Request),
        1 => (0..3_u32).prop_map(Step::RequestDone),
    ]
}
