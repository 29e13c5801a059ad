//! Tests that host code in a stream is held while threads of the program still run towards it, and
//! no longer.

use super::*;

/// What the program does meanwhile is known of the process as a whole.
static PROGRAM: Mutex<()> = Mutex::new(());

/// Host code that notes a number, between two operations of a stream that do so.
fn host_between(s: &'static Scheduler, log: &Log, n: u32) -> (StreamId, OpId) {
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    s.submit(stream, note(log, n), &[]);
    let host = log.clone();
    let op = s.submit(stream, Work::Host(Box::new(move || host.lock().unwrap().push(n + 1))), &[]);
    s.submit(stream, note(log, n + 2), &[]);
    (stream, op)
}

#[test]
fn host_code_is_held_until_a_thread_waits_for_what_comes_after_it() {
    let _alone = PROGRAM.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let _call = DriverCall::begin();
    for _ in 0..20 {
        let s = scheduler("schedule=eager:hold=60000");
        let log = Log::default();
        let (a, _) = host_between(s, &log, 10);
        let (b, host) = host_between(s, &log, 20);
        let c = s.add_stream(CTX, StreamKind::NonBlocking);
        s.submit(c, note(&log, 30), &[]);
        s.wait(&[s.tail(c)]);
        assert!(!s.poll(&[host]) && !s.poll(&[s.tail(b)]), "asked for twice");
        s.wait(&[s.tail(a)]);
        assert!(!s.is_done(host), "another stream's");
        let log = || log.lock().unwrap().clone();
        assert!(log().contains(&12) && !log().contains(&21), "{:?}", log());
        while !s.poll(&[s.tail(b)]) {}
        let [before, host, after] = [20, 21, 22].map(|n| position(&log(), n));
        assert!(before < host && host < after, "{:?}", log());
    }
}

#[test]
fn host_code_runs_for_a_thread_that_sleeps_spins_or_has_ended() {
    type Waits = fn(&Log);
    let _alone = PROGRAM.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let waits: [Waits; 4] = [
        |log| {
            while !log.lock().unwrap().contains(&2) {
                std::hint::spin_loop();
            }
        },
        |log| {
            while !log.lock().unwrap().contains(&2) {
                std::thread::yield_now();
            }
        },
        |log| {
            while !log.lock().unwrap().contains(&2) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        },
        |_| {},
    ];
    for wait in waits {
        let s = scheduler("schedule=eager:hold=60000");
        let log = Log::default();
        let own = log.clone();
        std::thread::spawn(move || {
            let call = DriverCall::begin();
            host_between(s, &own, 1);
            drop(call);
            wait(&own);
        })
        .join()
        .unwrap();
        let start = Instant::now();
        while !log.lock().unwrap().contains(&3) {
            assert!(start.elapsed().as_secs() < 30, "never released");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn host_code_is_held_for_a_bounded_time_in_all() {
    let s = scheduler("schedule=eager");
    let log = Log::default();
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    let start = Instant::now();
    let mut last = OpId(0);
    for n in 0..2000 {
        let host = log.clone();
        last = s.submit(stream, Work::Host(Box::new(move || host.lock().unwrap().push(n))), &[]);
        while n % 100 == 0 && !s.is_done(last) {
            std::thread::yield_now();
        }
    }
    s.wait(&[last]);
    assert_eq!(*log.lock().unwrap(), (0..2000).collect::<Vec<_>>());
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn a_long_queue_of_host_code_takes_as_long_as_it_has_entries() {
    let s = scheduler("schedule=eager");
    let ran = Arc::new(AtomicUsize::new(0));
    let stream = s.add_stream(CTX, StreamKind::NonBlocking);
    let start = Instant::now();
    let mut last = OpId(0);
    for _ in 0..40_000 {
        let ran = ran.clone();
        let work = Work::Host(Box::new(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }));
        last = s.submit(stream, work, &[]);
    }
    s.wait(&[last]);
    assert_eq!(ran.load(Ordering::Relaxed), 40_000);
    // A look at all that is queued up behind each one took minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
