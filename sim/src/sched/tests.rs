//! Tests that what CUDA orders is never reversed, and that what it leaves open happens both ways.

mod host_code;

use super::*;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn scheduler(options: &str) -> &'static Scheduler {
    Box::leak(Box::new(Scheduler::new(Config::parse(options).unwrap())))
}

type Log = Arc<Mutex<Vec<u32>>>;

fn note(log: &Log, n: u32) -> Work {
    let log = log.clone();
    Work::Run(Box::new(move || log.lock().unwrap().push(n)))
}

const CTX: ContextId = ContextId(1);
const SCHEDULES: [&str; 5] =
    ["schedule=eager", "schedule=random:seed=1", "schedule=random:seed=2", "schedule=late-first", "schedule=in-order"];

fn position(log: &[u32], n: u32) -> usize {
    log.iter().position(|&m| m == n).unwrap()
}

#[test]
fn a_stream_runs_in_order() {
    for options in SCHEDULES {
        let s = scheduler(options);
        let log = Log::default();
        let stream = s.add_stream(CTX, StreamKind::NonBlocking);
        for n in 0..50 {
            s.submit(stream, note(&log, n), &[]);
        }
        s.wait(&[s.tail(stream)]);
        assert_eq!(*log.lock().unwrap(), (0..50).collect::<Vec<_>>(), "{options}");
    }
}

fn two_streams(options: &str, kinds: [StreamKind; 2]) -> Vec<u32> {
    let s = scheduler(options);
    let log = Log::default();
    let a = s.add_stream(CTX, kinds[0]);
    let b = s.add_stream(CTX, kinds[1]);
    s.submit(a, note(&log, 1), &[]);
    s.submit(b, note(&log, 2), &[]);
    s.wait(&s.context_tails(CTX));
    let log = log.lock().unwrap();
    log.clone()
}

#[test]
fn unordered_streams_run_both_ways_over_seeds() {
    let mut seen = HashSet::new();
    for seed in 0..40 {
        let options = format!("schedule=random:seed={seed}");
        let order = two_streams(&options, [StreamKind::NonBlocking; 2]);
        assert_eq!(order, two_streams(&options, [StreamKind::NonBlocking; 2]), "a seed repeats its schedule");
        seen.insert(order);
    }
    assert_eq!(seen.len(), 2);
    assert_eq!(two_streams("schedule=late-first", [StreamKind::Blocking; 2]), [2, 1]);
    assert_eq!(two_streams("schedule=in-order", [StreamKind::NonBlocking; 2]), [1, 2]);
}

/// The order in which 4 streams of 12 operations each run, with some events between them and a poll
/// now and then.
fn tangle(options: &str) -> Vec<u32> {
    let s = scheduler(options);
    let log = Log::default();
    let streams = [(); 4].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
    let mut last = OpId(0);
    for n in 0..48 {
        let at = streams[n as usize % 4];
        let after = if n % 7 == 0 { vec![last] } else { vec![] };
        last = s.submit(at, note(&log, n), &after);
        if n % 11 == 10 {
            s.poll(&[last]);
        }
        if n == 30 {
            s.wait(&[s.tail(streams[1])]);
        }
    }
    s.wait(&s.context_tails(CTX));
    let log = log.lock().unwrap();
    log.clone()
}

#[test]
fn a_seed_repeats_its_schedule_and_seeds_differ() {
    let mut seen = HashSet::new();
    for seed in 0..24 {
        let options = format!("schedule=random:seed={seed}:hold=60000");
        let order = tangle(&options);
        assert_eq!(order, tangle(&options), "seed {seed}");
        seen.insert(order);
    }
    assert!(seen.len() >= 22, "{} orders of 24 seeds", seen.len());
    assert_eq!(tangle("schedule=late-first:hold=60000"), tangle("schedule=late-first:hold=60000"));
    assert_eq!(tangle("schedule=in-order"), (0..48).collect::<Vec<_>>());
}

/// Whether an operation of one stream comes before one of another with some seed, both deep in
/// their streams.
#[test]
fn any_operation_overtakes_any_other() {
    const DEPTH: u32 = 24;
    let order = |seed: u64| {
        let s = scheduler(&format!("schedule=random:seed={seed}:hold=60000"));
        let log = Log::default();
        let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
        for n in 0..DEPTH {
            s.submit(a, note(&log, n), &[]);
            s.submit(b, note(&log, 100 + n), &[]);
        }
        s.wait(&s.context_tails(CTX));
        let log = log.lock().unwrap();
        log.clone()
    };
    let orders: Vec<Vec<u32>> = (0..128).map(order).collect();
    let seeds =
        |first: u32, second: u32| orders.iter().filter(|log| position(log, first) < position(log, second)).count();
    // The first of one behind the last of the other, both ways, and neighbours in the middle, both
    // ways.
    for (first, second) in [(DEPTH - 1, 100), (100 + DEPTH - 1, 0), (12, 112), (112, 12), (0, 100), (100, 0)] {
        assert!(seeds(first, second) >= 4, "{first} before {second} with {} of 128 seeds", seeds(first, second));
    }
}

#[test]
fn in_order_finishes_before_the_call_returns() {
    let s = scheduler("schedule=in-order");
    let log = Log::default();
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    for n in 0..20 {
        let host = log.clone();
        let work = if n % 2 == 0 { note(&log, n) } else { Work::Host(Box::new(move || host.lock().unwrap().push(n))) };
        s.submit(stream, work, &[]);
        assert_eq!(log.lock().unwrap().len() as u32, n + 1);
    }
}

#[test]
fn polling_once_does_not_finish_the_work() {
    let outlives = |options: &str| {
        let s = scheduler(options);
        let log = Log::default();
        let stream = s.add_stream(CTX, StreamKind::NonBlocking);
        let op = s.submit(stream, note(&log, 1), &[]);
        assert!(!s.poll(&[op]), "held");
        let held = log.lock().unwrap().is_empty();
        while !s.poll(&[op]) {}
        held
    };
    assert!(outlives("schedule=late-first:hold=60000"));
    let held = (0..16).filter(|seed| outlives(&format!("schedule=random:seed={seed}:hold=60000"))).count();
    assert!((4..16).contains(&held), "{held} of 16");
}

#[test]
fn the_legacy_stream_is_ordered_with_blocking_streams_only() {
    use StreamKind::*;
    for seed in 0..40 {
        let options = format!("schedule=random:seed={seed}");
        assert_eq!(two_streams(&options, [Legacy, Blocking]), [1, 2]);
        assert_eq!(two_streams(&options, [Blocking, Legacy]), [1, 2]);
    }
    assert_eq!(two_streams("schedule=late-first", [Legacy, NonBlocking]), [2, 1]);
    assert_eq!(two_streams("schedule=late-first", [NonBlocking, Legacy]), [2, 1]);
}

#[test]
fn two_contexts_have_two_legacy_streams() {
    let s = scheduler("schedule=late-first");
    let log = Log::default();
    let legacy = s.add_stream(ContextId(1), StreamKind::Legacy);
    let other = s.add_stream(ContextId(2), StreamKind::Blocking);
    s.submit(legacy, note(&log, 1), &[]);
    s.submit(other, note(&log, 2), &[]);
    s.wait(&s.all_tails());
    assert_eq!(*log.lock().unwrap(), [2, 1]);
}

#[test]
fn a_dependency_orders_across_streams_and_nothing_else_does() {
    for options in SCHEDULES {
        let s = scheduler(options);
        let log = Log::default();
        let a = s.add_stream(CTX, StreamKind::NonBlocking);
        let b = s.add_stream(CTX, StreamKind::NonBlocking);
        let first = s.submit(a, note(&log, 1), &[]);
        assert!(s.is_ordered(first, &[first]));
        s.submit(a, note(&log, 2), &[]);
        s.submit(b, Work::Point(None), &[first]);
        s.submit(b, note(&log, 3), &[]);
        s.wait(&s.context_tails(CTX));
        let log = log.lock().unwrap();
        assert!(position(&log, 1) < position(&log, 3) && position(&log, 1) < position(&log, 2), "{options}: {log:?}");
    }
}

#[test]
fn reachability_follows_the_order() {
    let s = scheduler("schedule=late-first:hold=60000");
    let log = Log::default();
    let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
    let first = s.submit(a, note(&log, 1), &[]);
    let second = s.submit(b, note(&log, 2), &[]);
    assert!(!s.is_ordered(first, &[second]));
    let joined = s.submit(b, Work::Point(None), &[first]);
    let later = s.submit(b, note(&log, 3), &[]);
    assert!(s.is_ordered(first, &[joined]) && s.is_ordered(first, &[later]) && s.is_ordered(second, &[later]));
    assert!(!s.is_ordered(later, &[first]));
    s.wait(&[later]);
    assert!(s.is_done(first));
}

#[test]
fn a_partial_order_keeps_its_edges_and_frees_the_rest() {
    let mut swapped = 0;
    for seed in 0..40 {
        let s = scheduler(&format!("schedule=random:seed={seed}"));
        let log = Log::default();
        let stream = s.add_stream(CTX, StreamKind::NonBlocking);
        s.submit(stream, note(&log, 0), &[]);
        let parts = vec![
            (note(&log, 1), vec![], vec![]),
            (note(&log, 2), vec![0], vec![]),
            (note(&log, 3), vec![0], vec![]),
            (note(&log, 4), vec![1, 2], vec![]),
        ];
        s.submit_dag(stream, parts, &[]);
        s.submit(stream, note(&log, 5), &[]);
        s.wait(&[s.tail(stream)]);
        let log = log.lock().unwrap();
        assert_eq!((log[0], log[1], log[4], log[5]), (0, 1, 4, 5));
        swapped += usize::from(log[2] == 3);
    }
    assert!((1..40).contains(&swapped), "{swapped}");
}

#[test]
fn held_work_starts_when_somebody_polls_or_time_passes() {
    let s = scheduler("schedule=late-first:hold=60000");
    let log = Log::default();
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    let op = s.submit(stream, note(&log, 1), &[]);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(log.lock().unwrap().is_empty(), "held");
    while !s.poll(&[op]) {
        std::thread::yield_now();
    }
    assert_eq!(*log.lock().unwrap(), [1]);

    let s = scheduler("schedule=late-first:hold=5");
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    let op = s.submit(stream, note(&log, 2), &[]);
    let start = Instant::now();
    while !s.is_done(op) {
        assert!(start.elapsed().as_secs() < 10, "never released");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn waiting_for_one_stream_leaves_the_other_held() {
    let s = scheduler("schedule=late-first:hold=60000");
    let log = Log::default();
    let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
    s.submit(a, note(&log, 1), &[]);
    s.submit(b, note(&log, 2), &[]);
    s.wait(&[s.tail(b)]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(*log.lock().unwrap(), [2]);
    s.wait(&[s.tail(a)]);
    assert_eq!(*log.lock().unwrap(), [2, 1]);
}

#[test]
fn a_condition_holds_its_stream_and_no_other() {
    for options in SCHEDULES {
        let s = scheduler(options);
        let log = Log::default();
        let flag = Arc::new(AtomicUsize::new(0));
        let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
        let seen = flag.clone();
        s.submit(a, Work::Until(Box::new(move || seen.load(Ordering::Relaxed) == 1)), &[]);
        s.submit(a, note(&log, 1), &[]);
        s.submit(b, note(&log, 2), &[]);
        s.wait(&[s.tail(b)]);
        flag.store(1, Ordering::Relaxed);
        s.wait(&[s.tail(a)]);
        assert_eq!(*log.lock().unwrap(), [2, 1], "{options}");
    }
}

#[test]
fn a_destroyed_stream_finishes_its_work_and_still_counts() {
    let s = scheduler("schedule=late-first:hold=60000");
    let log = Log::default();
    let legacy = s.add_stream(CTX, StreamKind::Legacy);
    let a = s.add_stream(CTX, StreamKind::Blocking);
    s.submit(a, note(&log, 1), &[]);
    s.remove_stream(a);
    s.submit(legacy, note(&log, 2), &[]);
    s.wait(&[s.tail(legacy)]);
    assert_eq!(*log.lock().unwrap(), [1, 2]);
}

#[test]
fn an_operation_that_waits_for_another_gets_company() {
    // A kernel that spins until a kernel of another stream has run: possible on a device, so it
    // must end here too. All at once, and none gives way: patience is a second of the process's
    // processor time.
    let ends = |options| {
        let s = scheduler(options);
        let flag = Arc::new(AtomicUsize::new(0));
        let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
        let (set, seen) = (flag.clone(), flag.clone());
        let spin = move || {
            while seen.load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
        };
        s.submit(a, Work::Run(Box::new(spin.clone())), &[]);
        s.submit(b, Work::Run(Box::new(move || set.store(1, Ordering::Release))), &[]);
        s.submit(b, Work::Run(Box::new(spin)), &[]);
        s.wait(&s.context_tails(CTX));
    };
    std::thread::scope(|all| {
        for options in SCHEDULES {
            all.spawn(move || ends(options));
        }
    });
}

#[test]
fn a_condition_is_looked_at_while_the_only_worker_waits_for_what_is_behind_it() {
    // A kernel that sets one flag and spins until a stream has waited for that and set another. The
    // worker that runs it is idle, and not awake yet, when the condition comes.
    for round in 0..50 {
        let s = scheduler("schedule=eager");
        let [told, answered] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let [a, b] = [(); 2].map(|()| s.add_stream(CTX, StreamKind::NonBlocking));
        s.submit(a, Work::Run(Box::new(|| {})), &[]);
        s.wait(&[s.tail(a)]);
        let (set, seen) = (told.clone(), answered.clone());
        let spin = move || {
            set.store(1, Ordering::Release);
            let until = Instant::now() + Duration::from_secs(20);
            while seen.load(Ordering::Acquire) == 0 && Instant::now() < until {
                std::thread::yield_now();
            }
            seen.fetch_add(1, Ordering::AcqRel);
        };
        s.submit(a, Work::Run(Box::new(spin)), &[]);
        let looks = told.clone();
        s.submit(b, Work::Until(Box::new(move || looks.load(Ordering::Acquire) == 1)), &[]);
        let set = answered.clone();
        s.submit(b, Work::Run(Box::new(move || set.store(2, Ordering::Release))), &[]);
        s.wait(&s.context_tails(CTX));
        assert_eq!(answered.load(Ordering::Acquire), 3, "round {round}: the kernel went on before it was answered");
    }
}

#[test]
fn thousands_of_streams_and_many_threads() {
    let s = scheduler("schedule=eager");
    let log = Log::default();
    let threads: Vec<_> = (0..8)
        .map(|t| {
            let log = log.clone();
            std::thread::spawn(move || {
                let streams: Vec<_> = (0..512).map(|_| s.add_stream(CTX, StreamKind::NonBlocking)).collect();
                for (n, &stream) in streams.iter().enumerate() {
                    s.submit(stream, note(&log, t * 512 + n as u32), &[]);
                }
                for &stream in &streams {
                    s.wait(&[s.tail(stream)]);
                    s.remove_stream(stream);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let mut log = log.lock().unwrap().clone();
    log.sort_unstable();
    assert_eq!(log, (0..4096).collect::<Vec<_>>());
}
