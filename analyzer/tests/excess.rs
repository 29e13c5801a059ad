//! `excess` on small programs with known answers, each with a twin that gets another one.

use crate::support::*;
use analysis::counterfactual::excess::listing::{Listing, SyncVerdict};
use analysis::counterfactual::excess::{page, text};
use trace::*;

const WHOLE: Shape = Shape::Exact(0, 1024);

fn verdicts(listing: &Listing) -> Vec<(SyncVerdict, bool)> {
    listing.sites.iter().map(|site| (site.verdict, site.can_go)).collect()
}

#[test]
fn a_wait_that_orders_writer_and_reader_is_needed_and_says_so() {
    let mut p = Program::new();
    p.malloc(X, 1024);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.go(B, X, &[reads(0, WHOLE)]);
    let listing = p.listing();
    assert_eq!(verdicts(&listing), [(SyncVerdict::Needed, false)]);
    let pair = listing.sites[0].pair.as_ref().expect("a pair");
    assert_eq!((pair.why, pair.first.at.as_str()), ("read-after-write", "app.cu:11"));
    assert_eq!(pair.then.as_ref().map(|then| then.at.as_str()), Some("app.cu:15"));
}

#[test]
fn a_wait_between_streams_that_share_nothing_orders_nothing() {
    let mut p = Program::new();
    p.malloc(X, 4096);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.go(B, X + 2048, &[reads(0, WHOLE)]);
    assert_eq!(verdicts(&p.listing()), [(SyncVerdict::Nothing, true)]);
}

#[test]
fn of_two_that_order_the_same_one_can_go() {
    let mut p = Program::new();
    p.malloc(X, 1024);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.sync(A);
    p.go(B, X, &[reads(0, WHOLE)]);
    let listing = p.listing();
    assert!(listing.sites.iter().all(|site| site.verdict == SyncVerdict::Together), "{listing:#?}");
    assert_eq!(listing.sites.iter().filter(|site| site.can_go).count(), 1);
    assert_eq!((listing.sites[0].partners.clone(), listing.sites[1].partners.clone()), (vec![1], vec![0]));
}

#[test]
fn a_download_is_waited_for_by_the_host() {
    let download = |host: bool| {
        let mut p = Program::new();
        p.malloc(X, 1024);
        p.alloc(PINNED, 1024, MemoryKind::PinnedHost);
        p.go(A, X, &[writes(0, WHOLE)]);
        if host {
            p.copy(A, PINNED, X, 1024, D2H);
        }
        p.sync(A);
        p.listing()
    };
    let listing = download(true);
    assert_eq!(verdicts(&listing), [(SyncVerdict::Host, false)]);
    assert_eq!(listing.sites[0].pair.as_ref().map(|pair| pair.why), Some("host-reads"));
    assert_eq!(verdicts(&download(false)), [(SyncVerdict::Nothing, true)]);
}

#[test]
fn a_source_that_is_uploaded_again_may_have_been_refilled() {
    let upload = |again: bool| {
        let mut p = Program::new();
        p.malloc(X, 4096);
        p.alloc(PINNED, 4096, MemoryKind::PinnedHost);
        p.copy(A, X, PINNED, 1024, H2D);
        p.sync(A);
        p.copy(A, X + 2048, PINNED + if again { 512 } else { 2048 }, 1024, H2D);
        p.listing()
    };
    let listing = upload(true);
    assert_eq!(verdicts(&listing), [(SyncVerdict::Host, false)]);
    assert_eq!(listing.sites[0].pair.as_ref().map(|pair| pair.why), Some("host-writes"));
    assert_eq!(verdicts(&upload(false)), [(SyncVerdict::Nothing, true)]);
}

#[test]
fn work_whose_bytes_are_not_known_leaves_a_verdict_open() {
    let run = |known: bool| {
        let mut p = Program::new();
        p.malloc(X, 4096);
        let kernel = if known { p.kernel("mystery", &[writes(0, WHOLE)]) } else { p.define("mystery") };
        p.launch(A, kernel, &[X]);
        p.order(A, B);
        p.go(B, X + 2048, &[reads(0, WHOLE)]);
        p.listing()
    };
    let listing = run(false);
    assert_eq!(verdicts(&listing), [(SyncVerdict::Unknown, false)]);
    assert_eq!(listing.sites[0].kernels, ["kernel mystery(float*, int)"]);
    assert_eq!(verdicts(&run(true)), [(SyncVerdict::Nothing, true)]);
}

/// A query found the stream idle up to a time that counts the wait.
fn queried(upto: u64) -> Listing {
    let mut p = Program::new();
    p.malloc(X, 4096);
    p.go(A, X, &[writes(0, WHOLE)]);
    let event = EventId(p.id());
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 0, handle: 0 });
    p.record(event, A);
    let at = |time| Epoch { timeline: TimelineId(2), time };
    p.at(at(1)).wait(B, event);
    p.at(at(2)).go(B, X + 2048, &[writes(0, WHOLE)]);
    p.at(at(3)).go(B, X + 3072, &[writes(0, WHOLE)]);
    p.at(Epoch::default());
    p.does("cudaStreamQuery", Op::StreamIdle { stream: B, upto });
    p.go(A, X + 2048, &[writes(0, WHOLE)]);
    p.go(A, X + 3072, &[writes(0, WHOLE)]);
    p.listing()
}

/// What a communication library does inside its own call is not the program's to leave out; the
/// same by the program is.
#[test]
fn a_wait_inside_a_call_of_a_communication_library_is_the_librarys() {
    for (call, verdict) in
        [("ncclGroupEnd", (SyncVerdict::Library, false)), ("cuStreamWaitEvent", (SyncVerdict::Nothing, true))]
    {
        let mut p = Program::new();
        p.malloc(X, 4096);
        p.go(A, X, &[writes(0, WHOLE)]);
        let (event, mode) = (EventId(70), EventMode::Plain);
        p.does("cuEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 2, handle: 0 });
        p.does("cuEventRecord", Op::EventRecord { event, stream: A, mode });
        p.does(call, Op::StreamWait { stream: B, event, mode });
        p.go(B, X + 2048, &[reads(0, WHOLE)]);
        assert_eq!(verdicts(&p.listing()), [verdict], "{call}");
    }
    // One that orders something is needed, whoever makes it.
    let mut p = Program::new();
    p.malloc(X, 1024);
    p.go(A, X, &[writes(0, WHOLE)]);
    let (event, mode) = (EventId(70), EventMode::Plain);
    p.does("ncclGroupEnd", Op::EventRecord { event, stream: A, mode });
    p.does("ncclGroupEnd", Op::StreamWait { stream: B, event, mode });
    p.go(B, X, &[reads(0, WHOLE)]);
    assert_eq!(verdicts(&p.listing()), [(SyncVerdict::Needed, false)]);
}

#[test]
fn a_query_is_no_site_and_stands_for_what_was_there_when_it_began() {
    let silent = queried(3);
    assert_eq!((verdicts(&silent), silent.findings), (vec![(SyncVerdict::Nothing, true)], 0));
    let racy = queried(2);
    assert_eq!((verdicts(&racy), racy.findings), (vec![(SyncVerdict::Nothing, true)], 1));
    assert!(racy.notes[0].contains("race in this run"), "{:?}", racy.notes);
    assert_eq!(queried(1).findings, 2);
}

#[test]
fn text_json_and_page_say_the_same() {
    let mut p = Program::new();
    p.malloc(X, 1024);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.go(B, X, &[reads(0, WHOLE)]);
    p.sync(B);
    let all = [p.listing()];
    let text = text::text(&all);
    assert!(text.contains("streamsan: EXCESS: 2 synchronisations at 2 sites in"), "{text}");
    assert!(
        text.contains("  #1 cudaStreamWaitEvent, app.cu:14: 1 time\n      without it read-after-write: "),
        "{text}"
    );
    assert!(text.ends_with("1 site can go together (1 synchronisation): #2\n"), "{text}");
    let json = Listing::json(&all, "t.trace");
    let site = |n: usize| &json["processes"][0]["sites"][n];
    assert_eq!((site(0)["verdict"].as_str(), site(0)["can_go"].as_bool()), (Some("needed"), Some(false)));
    assert_eq!((site(1)["verdict"].as_str(), site(1)["number"].as_u64()), (Some("nothing"), Some(2)));
    let page = page::page(&all);
    assert!(page.contains("2 (can go)") && page.contains("read-after-write"), "{page}");
}

/// A block of stream A's pool that B reads, too, if `used`. Then its thread records an event on B,
/// as `record_stream` has it done, and the block goes back.
fn recorded(used: bool, then: impl FnOnce(&mut Program, EventId)) -> Listing {
    let mut p = Program::new();
    p.python();
    p.malloc(X, 1 << 28);
    hand_out(&mut p, X, 16 << 20);
    p.go(A, X, &[writes(0, WHOLE)]);
    p.order(A, B);
    p.go(B, if used { X } else { X + (1 << 27) }, &[reads(0, WHOLE)]);
    let event = EventId(p.id());
    p.does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 2, handle: 0 });
    p.record(event, B);
    p.line(50).does("c10::cuda::free", Op::Free { ptr: X, kind: FreeKind::Block, stream: StreamId(0) });
    then(&mut p, event);
    p.listing()
}

fn hand_out(p: &mut Program, ptr: u64, size: u64) {
    let (kind, pool) = (MemoryKind::Block, PoolId(0));
    p.does("c10::cuda::alloc", Op::Alloc { ptr, size, kind, context: CONTEXT, stream: A, pool, flags: 0 });
}

fn of_kind<'a>(listing: &'a Listing, kind: &str) -> Vec<&'a analysis::counterfactual::excess::listing::Listed> {
    listing.sites.iter().filter(|site| site.kind == kind).collect()
}

#[test]
fn record_stream_keeps_a_block_from_the_next_allocation() {
    let other = |p: &mut Program, _| hand_out(p.line(60), X + (1 << 26), 4 << 20);
    let listing = recorded(true, other);
    let sites = of_kind(&listing, "record-stream");
    assert_eq!((sites.len(), sites[0].verdict, sites[0].call.as_str()), (1, SyncVerdict::Needed, "record_stream"));
    assert_eq!((sites[0].at.as_str(), sites[0].can_go), ("app.cu:50", false));
    let pair = sites[0].pair.as_ref().expect("a pair");
    assert_eq!((pair.why, pair.first.at.as_str()), ("reused-early", "app.cu:16"));
    assert_eq!(pair.then.as_ref().map(|then| then.at.as_str()), Some("app.cu:60"));

    // The stream never touches the block; nothing is allocated any more.
    for listing in [recorded(false, other), recorded(true, |_, _| {})] {
        let sites = of_kind(&listing, "record-stream");
        assert_eq!((sites.len(), sites[0].verdict, sites[0].can_go), (1, SyncVerdict::Nothing, true), "{listing:#?}");
    }
}

#[test]
fn record_stream_and_a_wait_stand_for_each_other() {
    let listing = recorded(true, |p, _| {
        p.order(B, A);
        hand_out(p.line(60), X + (1 << 26), 4 << 20);
    });
    let verdicts: Vec<_> = listing.sites.iter().map(|site| (site.kind, site.verdict)).collect();
    let [first, rest @ ..] = &verdicts[..] else { panic!("sites") };
    assert_eq!(*first, ("stream-wait", SyncVerdict::Needed));
    assert_eq!(rest, [("record-stream", SyncVerdict::Together), ("stream-wait", SyncVerdict::Together)]);
}

#[test]
fn without_record_stream_nobody_asks_for_its_event() {
    // The pool hands out the same bytes when a query has found the event complete.
    let listing = recorded(true, |p, event| {
        p.does("cudaEventQuery", Op::EventReached { event, record: 1 });
        hand_out(p.line(60), X, 16 << 20);
        p.line(61).go(A, X, &[writes(0, WHOLE)]);
    });
    let sites = of_kind(&listing, "record-stream");
    assert_eq!((sites[0].verdict, sites[0].count), (SyncVerdict::Needed, 1), "{listing:#?}");
    let pair = sites[0].pair.as_ref().expect("a pair");
    assert_eq!((pair.why, pair.then.as_ref().map(|then| then.at.as_str())), ("write-after-read", Some("app.cu:61")));
}

#[test]
fn a_wait_that_comes_before_a_block_goes_back_is_needed() {
    let run = |waits: bool| {
        let mut p = Program::new();
        p.python();
        p.malloc(X, 1 << 28);
        hand_out(&mut p, X, 16 << 20);
        p.go(B, X, &[writes(0, WHOLE)]);
        p.line(30);
        if waits {
            p.order(B, A);
        }
        p.line(50).does("c10::cuda::free", Op::Free { ptr: X, kind: FreeKind::Block, stream: StreamId(0) });
        hand_out(p.line(60), X + (1 << 26), 4 << 20);
        p.listing()
    };
    let listing = run(true);
    assert_eq!(verdicts(&listing), [(SyncVerdict::Needed, false)], "{listing:#?}");
    assert_eq!(listing.findings, 0);
    assert_eq!((run(false).sites.len(), run(false).findings), (0, 1), "no site, but a finding");
}
