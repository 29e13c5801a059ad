//! What is missing from a trace counts as order, and what comes after it is ordered as ever.

use order::{Engine, Policy};
use trace::*;

const A: StreamId = StreamId(1);
const B: StreamId = StreamId(2);
const EVENT: EventId = EventId(9);
const THREAD: ThreadId = ThreadId(1);

fn create(engine: &mut Engine, stream: StreamId, kind: StreamKind) {
    let op = Op::StreamCreate { stream, context: ContextId(1), kind, priority: 0, handle: 0 };
    engine.apply(&op, THREAD);
}

fn work(engine: &mut Engine, stream: StreamId) -> Epoch {
    engine.apply(&Op::Opaque { stream }, THREAD)
}

fn record(engine: &mut Engine, stream: StreamId) {
    engine.apply(&Op::EventRecord { event: EVENT, stream, mode: EventMode::Plain }, THREAD);
}

fn wait(engine: &mut Engine, stream: StreamId) {
    engine.apply(&Op::StreamWait { stream, event: EVENT, mode: EventMode::Plain }, THREAD);
}

/// Two streams of these kinds, work in both, and a gap.
fn resumed(kinds: [StreamKind; 2]) -> (Engine, [Epoch; 2]) {
    let mut engine = Engine::new(Policy::Observed);
    let streams = [A, B];
    streams.iter().zip(kinds).for_each(|(stream, kind)| create(&mut engine, *stream, kind));
    let before = streams.map(|stream| work(&mut engine, stream));
    engine.apply(&Op::Gap { resumed: false }, THREAD);
    streams.iter().zip(kinds).for_each(|(stream, kind)| create(&mut engine, *stream, kind));
    engine.apply(&Op::Gap { resumed: true }, THREAD);
    (engine, before)
}

const BOTH: [StreamKind; 2] = [StreamKind::NonBlocking; 2];

#[test]
fn all_before_a_gap_is_over() {
    let (mut engine, before) = resumed(BOTH);
    for stream in [A, B] {
        work(&mut engine, stream);
        assert!(before.iter().all(|epoch| engine.start_clock().covers(*epoch)));
    }
}

#[test]
fn after_a_gap_streams_are_unordered_until_one_waits() {
    let (mut engine, _) = resumed(BOTH);
    let first = work(&mut engine, A);
    work(&mut engine, B);
    assert!(!engine.start_clock().covers(first));
    record(&mut engine, A);
    wait(&mut engine, B);
    work(&mut engine, B);
    assert!(engine.start_clock().covers(first));
}

#[test]
fn a_query_counts_for_what_there_is() {
    // The program has counted ten records and a thousand ops; here there is one of each.
    for query in [Op::EventReached { event: EVENT, record: 10 }, Op::StreamIdle { stream: A, upto: 1000 }] {
        let (mut engine, _) = resumed(BOTH);
        let first = work(&mut engine, A);
        record(&mut engine, A);
        engine.apply(&query, THREAD);
        work(&mut engine, B);
        assert!(engine.start_clock().covers(first), "{query:?}");
    }
    // An event that is made after the gap is counted from its beginning, as ever.
    let (mut engine, _) = resumed(BOTH);
    engine.apply(&Op::EventCreate { event: EVENT, context: ContextId(1), flags: 0, handle: 0 }, THREAD);
    let first = work(&mut engine, A);
    record(&mut engine, A);
    engine.apply(&Op::EventReached { event: EVENT, record: 10 }, THREAD);
    work(&mut engine, B);
    assert!(!engine.start_clock().covers(first));
}

#[test]
fn a_wait_for_an_event_of_before_is_a_wait() {
    // On the legacy stream it orders the blocking streams before it with those after it.
    let legacy = StreamId(3);
    for created in [false, true] {
        let (mut engine, _) = resumed([StreamKind::Blocking; 2]);
        create(&mut engine, legacy, StreamKind::Legacy);
        if created {
            engine.apply(&Op::EventCreate { event: EVENT, context: ContextId(1), flags: 0, handle: 0 }, THREAD);
        }
        let first = work(&mut engine, A);
        wait(&mut engine, legacy);
        work(&mut engine, B);
        // One that was made since and never recorded is nothing.
        assert_eq!(engine.start_clock().covers(first), !created);
    }
}

#[test]
fn a_synchronisation_that_began_before_a_gap_covers_nothing_after_it() {
    let mut engine = Engine::new(Policy::Observed);
    create(&mut engine, A, StreamKind::NonBlocking);
    let begin = Op::SyncBegin {
        sync: SyncId(1),
        scope: SyncScope::Stream,
        stream: A,
        event: EventId(0),
        context: ContextId(1),
    };
    engine.apply(&begin, THREAD);
    engine.apply(&Op::Gap { resumed: false }, THREAD);
    for stream in [A, B] {
        create(&mut engine, stream, StreamKind::NonBlocking);
    }
    engine.apply(&Op::Gap { resumed: true }, THREAD);
    let first = work(&mut engine, A);
    engine.apply(&Op::SyncEnd { sync: SyncId(1) }, THREAD);
    work(&mut engine, B);
    assert!(!engine.start_clock().covers(first));
}

#[test]
fn what_waits_for_a_value_of_before_is_judged_again() {
    let mut engine = Engine::new(Policy::Observed);
    create(&mut engine, A, StreamKind::NonBlocking);
    let value = Op::WaitValue { stream: A, address: 64, value: 1, width: 4, compare: WaitCompare::Equal };
    engine.apply(&value, THREAD);
    work(&mut engine, A);
    assert!(engine.start_clock().is_behind_open_wait());
    engine.apply(&Op::Gap { resumed: false }, THREAD);
    create(&mut engine, A, StreamKind::NonBlocking);
    engine.apply(&Op::Gap { resumed: true }, THREAD);
    work(&mut engine, A);
    assert!(!engine.start_clock().is_behind_open_wait());
}
