//! Programmatic dependent launch: which accesses threads make before they have waited for the grids
//! that their kernel depends on. Generated kernels are run thread by thread, and the summary must
//! say the same of each byte; forms of the trigger besides.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{AccessKind, CodeImage, Early, Extent, LaunchArgs, Summary, Triggering, Triggers};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const THREADS: u32 = 64;
const BLOCKS: u32 = 2;
const NUMBER: u32 = 3;
const P: u64 = 0x7f00_0000_0000;

/// When a thread takes a branch.
#[derive(Clone, Copy, Debug)]
enum When {
    /// Its index is less.
    Below(u32),
    From(u32),
    /// Its block is this one.
    Block(u32),
    /// A parameter has this value.
    Number(u32),
}

#[derive(Clone, Debug)]
enum Step {
    Wait,
    /// By a predicate, without a branch.
    WaitIf(When),
    /// Of four bytes for each thread, in a place for each such step.
    Read(u32),
    Barrier,
    WarpBarrier,
    If(When, Vec<Step>, Vec<Step>),
    /// Over a counter from 0, with a step only in its first or in later turns, as unrolled code has
    /// it: that many turns.
    Loop(u32, Vec<Step>),
}

impl When {
    fn holds(self, thread: u32, block: u32) -> bool {
        match self {
            When::Below(n) => thread < n,
            When::From(n) => thread >= n,
            When::Block(b) => block == b,
            When::Number(n) => NUMBER == n,
        }
    }

    fn setp(self) -> String {
        match self {
            When::Below(n) => format!("setp.lt.u32 %p1, %tid_, {n};\n"),
            When::From(n) => format!("setp.ge.u32 %p1, %tid_, {n};\n"),
            When::Block(b) => format!("setp.eq.u32 %p1, %cta_, {b};\n"),
            When::Number(n) => format!("setp.eq.u32 %p1, %n_, {n};\n"),
        }
    }
}

/// A small generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % n
    }

    fn when(&mut self) -> When {
        match self.below(5) {
            0 | 1 => When::Below(8 + self.below(48)),
            2 => When::From(8 + self.below(48)),
            3 => When::Block(self.below(BLOCKS)),
            _ => When::Number(2 + self.below(2)),
        }
    }

    fn steps(&mut self, depth: u32, reads: &mut u32) -> Vec<Step> {
        let count = 1 + self.below(4);
        (0..count).map(|_| self.step(depth, reads)).collect()
    }

    fn step(&mut self, depth: u32, reads: &mut u32) -> Step {
        match self.below(if depth > 0 { 11 } else { 7 }) {
            0 => Step::Wait,
            1 => Step::WaitIf(self.when()),
            2..=4 => {
                *reads += 1;
                Step::Read(*reads - 1)
            }
            5 => Step::Barrier,
            6 => Step::WarpBarrier,
            7 => {
                let turns = 1 + self.below(3);
                Step::Loop(turns, self.steps(depth - 1, reads))
            }
            _ => {
                let when = self.when();
                Step::If(when, self.steps(depth - 1, reads), self.steps(depth - 1, reads))
            }
        }
    }
}

fn code(steps: &[Step], depth: u32, labels: &mut u32, out: &mut String) {
    for step in steps {
        match step {
            Step::Wait => out.push_str("griddepcontrol.wait;\n"),
            Step::WaitIf(when) => {
                out.push_str(&when.setp());
                out.push_str("@%p1 griddepcontrol.wait;\n");
            }
            Step::Read(at) => writeln!(out, "ld.global.u32 %v, [%at+{}];", at * THREADS * BLOCKS * 4).unwrap(),
            // (In a branch it would be for some threads only.)
            Step::Barrier if depth == 0 => out.push_str("bar.sync 0;\n"),
            Step::WarpBarrier if depth == 0 => out.push_str("bar.warp.sync 0xffffffff;\n"),
            Step::Barrier | Step::WarpBarrier => {}
            Step::If(when, yes, no) => {
                *labels += 1;
                let label = *labels;
                out.push_str(&when.setp());
                writeln!(out, "@!%p1 bra NO{label};").unwrap();
                code(yes, depth + 1, labels, out);
                writeln!(out, "bra END{label};\nNO{label}:").unwrap();
                code(no, depth + 1, labels, out);
                writeln!(out, "END{label}:").unwrap();
            }
            Step::Loop(turns, body) => {
                *labels += 1;
                let label = *labels;
                writeln!(out, "mov.u32 %c{label}, 0;\nLOOP{label}:").unwrap();
                code(body, depth + 1, labels, out);
                writeln!(out, "add.u32 %c{label}, %c{label}, 1;\nsetp.lt.u32 %p1, %c{label}, {turns};").unwrap();
                writeln!(out, "@%p1 bra LOOP{label};").unwrap();
            }
        }
    }
}

fn summary(body: &str) -> std::sync::Arc<Summary> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n\
         .reg .b32 %tid_, %cta_, %n_, %v, %c<40>;\n.reg .b64 %at, %more;\n.reg .pred %p1;\n\
         mov.u32 %tid_, %tid.x;\nmov.u32 %cta_, %ctaid.x;\nld.param.u32 %n_, [n];\nld.param.u64 %at, [p];\n\
         mad.lo.u32 %v, %cta_, {THREADS}, %tid_;\nmul.wide.u32 %more, %v, 4;\nadd.u64 %at, %at, %more;\n\
         {body}ret;\n}}\n"
    );
    let image = CodeImage::from_code(CodeRef::Ptx(text.clone().into()), Arch::new(90));
    image.unwrap_or_else(|e| panic!("{e}\n{text}")).summary("k").expect("summarised")
}

/// The reads of one thread before it has waited: places. `waited`: of each thread of the block.
fn run(steps: &[Step], depth: u32, block: u32, waited: &mut [bool], active: &[u32], early: &mut BTreeSet<(u32, u32)>) {
    for step in steps {
        match step {
            Step::Wait => active.iter().for_each(|t| waited[*t as usize] = true),
            Step::WaitIf(when) => {
                active.iter().filter(|t| when.holds(**t, block)).for_each(|t| waited[*t as usize] = true);
            }
            Step::Read(at) => {
                let threads = active.iter().filter(|t| !waited[**t as usize]);
                early.extend(threads.map(|t| (*at, block * THREADS + t)));
            }
            Step::Barrier if depth == 0 => {
                if waited.iter().any(|waited| *waited) {
                    waited.fill(true);
                }
            }
            Step::WarpBarrier if depth == 0 => {
                for warp in waited.chunks_mut(32).filter(|warp| warp.contains(&true)) {
                    warp.fill(true);
                }
            }
            Step::Barrier | Step::WarpBarrier => {}
            Step::If(when, yes, no) => {
                let (taken, other): (Vec<u32>, Vec<u32>) = active.iter().partition(|t| when.holds(**t, block));
                run(yes, depth + 1, block, waited, &taken, early);
                run(no, depth + 1, block, waited, &other, early);
            }
            Step::Loop(turns, body) => (0..*turns).for_each(|_| run(body, depth + 1, block, waited, active, early)),
        }
    }
}

fn truth(steps: &[Step]) -> BTreeSet<(u32, u32)> {
    let mut early = BTreeSet::new();
    let all: Vec<u32> = (0..THREADS).collect();
    for block in 0..BLOCKS {
        run(steps, 0, block, &mut vec![false; THREADS as usize], &all, &mut early);
    }
    early
}

fn early(summary: &Summary) -> BTreeSet<(u32, u32)> {
    early_if(summary, |_, _| true)
}

/// Those of which it is known that threads make them before they have waited.
fn surely_early(summary: &Summary) -> BTreeSet<(u32, u32)> {
    early_if(summary, |early, exact| exact && early != Early::Perhaps)
}

fn early_if(summary: &Summary, counts: impl Fn(Early, bool) -> bool) -> BTreeSet<(u32, u32)> {
    let mut params = P.to_le_bytes().to_vec();
    params.extend(NUMBER.to_le_bytes());
    let mut accesses = Vec::new();
    summary.evaluate(&LaunchArgs::new([BLOCKS, 1, 1], [THREADS, 1, 1], &params), &mut accesses);
    let mut found = BTreeSet::new();
    for access in accesses.iter().filter(|access| access.early.is() && access.kind == AccessKind::Read) {
        let Extent::Bounded { lo, hi, ref dims, width, exact } = access.extent else { panic!("{access:?}") };
        if !counts(access.early, exact) {
            continue;
        }
        let mut starts = vec![lo];
        for dim in dims {
            let copies = |s: &i64| (0..dim.count).map(|n| s + (n * dim.stride) as i64).collect::<Vec<_>>();
            starts = starts.iter().flat_map(copies).collect();
        }
        let length = if dims.is_empty() { hi - lo } else { i64::from(width) };
        let words = starts.iter().flat_map(|start| (*start..start + length).step_by(4)).map(|at| (at / 4) as u32);
        found.extend(words.map(|word| (word / (THREADS * BLOCKS), word % (THREADS * BLOCKS))));
    }
    found
}

fn has_barrier(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Barrier | Step::WarpBarrier))
}

fn has_wait(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Wait | Step::WaitIf(_) => true,
        Step::If(_, yes, no) => has_wait(yes) || has_wait(no),
        Step::Loop(_, body) => has_wait(body),
        Step::Read(_) | Step::Barrier | Step::WarpBarrier => false,
    })
}

/// Each read that a thread makes before it has waited is found, and no other; a barrier may hand on
/// a wait that is not recognised, and then the read is not surely early.
#[test]
fn early_reads_are_those_that_threads_make_before_they_wait() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut some, mut same, mut all, mut sure) = (0, 0, 0, 0);
    for round in 0..400 {
        let steps = random.steps(2, &mut 0);
        if !has_wait(&steps) {
            continue;
        }
        let mut body = String::new();
        code(&steps, 0, &mut 0, &mut body);
        let summary = summary(&body);
        assert!(summary.dependency().waits, "{steps:?}");
        let (truth, found, surely) = (truth(&steps), early(&summary), surely_early(&summary));
        assert!(
            surely.is_subset(&truth),
            "round {round}: {:?} have waited\n{steps:?}\n{body}",
            surely.difference(&truth)
        );
        sure += usize::from(!truth.is_empty() && surely == truth);
        assert!(
            truth.is_subset(&found),
            "round {round}: {:?} are missing\n{steps:?}\n{body}",
            truth.difference(&found)
        );
        let more = found.difference(&truth).count();
        assert!(more == 0 || has_barrier(&steps), "round {round}: {more} too many\n{steps:?}\n{body}");
        all += 1;
        some += usize::from(!truth.is_empty());
        same += usize::from(more == 0);
    }
    assert!(all > 250 && some > 100, "{some} of {all} have early reads");
    assert!(same * 20 > all * 19, "{same} of {all} are exact");
    assert!(sure * 10 > some * 9, "{sure} of {some} are sure");
}

/// A barrier hands a wait on if some threads of each block wait before it.
#[test]
fn a_barrier_hands_a_wait_on() {
    let read = || Step::Read(0);
    let wait = |when| Step::If(when, vec![Step::Wait], vec![]);
    let one = When::Below(1);
    for (steps, is_early) in [
        (vec![wait(one), Step::Barrier, read()], false),
        (vec![Step::WaitIf(one), Step::Barrier, read()], false),
        (vec![wait(When::From(32)), Step::Barrier, read()], false),
        (vec![wait(one), read()], true),
        (vec![Step::Barrier, wait(one), read()], true),
        (vec![wait(When::Block(0)), Step::Barrier, read()], true),
        (vec![Step::WaitIf(When::Block(1)), Step::Barrier, read()], true),
        (vec![wait(When::Number(2)), Step::Barrier, read()], true),
        (vec![wait(When::Number(3)), Step::Barrier, read()], false),
        (vec![read(), Step::WaitIf(one), Step::Barrier, Step::Read(1)], true),
        (vec![wait(When::Block(0)), wait(one), Step::Barrier, read()], false),
    ] {
        let mut body = String::new();
        code(&steps, 0, &mut 0, &mut body);
        assert_eq!(!early(&summary(&body)).is_empty(), is_early, "{steps:?}");
    }
}

/// Warps of two branches meet at one barrier, by instructions of their own (`bar.arrive` and
/// `bar.sync` of a number).
#[test]
fn a_barrier_in_each_branch_hands_a_wait_on() {
    let read = "ld.global.u32 %v, [%at];\n";
    let branches = |first: &str, waits: &str, others: &str| {
        format!("{first}setp.lt.u32 %p1, %tid_, 32;\n@%p1 bra WAITS;\n{others}bra.uni END;\nWAITS:\n{waits}END:\n")
    };
    let (wait, meet) = ("griddepcontrol.wait;\n", "bar.sync 1, 64;\n");
    for (first, waits, others, is_early) in [
        ("", format!("{wait}{meet}{read}"), format!("{meet}{read}"), false),
        ("", format!("{wait}bar.arrive 1, 64;\n"), format!("{meet}{read}"), false),
        // The other branch reads before it meets; they meet in front of the wait; they do not meet.
        ("", format!("{wait}{meet}{read}"), format!("{read}{meet}"), true),
        ("", format!("{meet}{wait}{read}"), format!("{meet}{read}"), true),
        ("", format!("{wait}{read}"), format!("{meet}{read}"), true),
        // Nor does one that all came to before.
        (meet, format!("{wait}{meet}"), read.to_owned(), true),
    ] {
        let body = branches(first, &waits, &others);
        assert_eq!(!early(&summary(&body)).is_empty(), is_early, "{body}");
    }
}

#[test]
fn a_trigger_is_before_the_wait_or_behind_it() {
    let (wait, trigger, read) =
        ("griddepcontrol.wait;\n", "griddepcontrol.launch_dependents;\n", "ld.global.u32 %v, [%at];\n");
    let guarded = "setp.lt.u32 %p1, %tid_, 5;\n@%p1 ";
    for (body, waits, early, triggers) in [
        (read.to_owned(), false, false, Triggers::Never),
        (format!("{trigger}{read}"), false, false, Triggers::AtOnce),
        (format!("{wait}{read}"), true, false, Triggers::Never),
        (format!("{wait}{trigger}{read}"), true, false, Triggers::AfterWait),
        (format!("{trigger}{wait}{read}"), true, false, Triggers::AtOnce),
        (format!("{read}{wait}{trigger}"), true, true, Triggers::AfterWait),
        (format!("{wait}{guarded}{trigger}{read}"), true, false, Triggers::AfterWait),
        (format!("{guarded}{wait}{trigger}{read}"), true, true, Triggers::AtOnce),
        (format!("{guarded}{trigger}{wait}{read}"), true, false, Triggers::AtOnce),
        (format!("prefetch.global.L2 [%at];\n{wait}{read}"), true, false, Triggers::Never),
        (format!("red.global.add.u32 [%at], 1;\n{wait}{read}"), true, true, Triggers::Never),
        (format!("ld.global.nc.u32 %v, [%at];\n{wait}"), true, true, Triggers::Never),
        (format!("st.global.u32 [%at], %v;\n{wait}"), true, true, Triggers::Never),
        (format!("ld.param.u32 %v, [n];\n{wait}{read}"), true, false, Triggers::Never),
    ] {
        let found = summary(&body).dependency();
        assert_eq!((found.waits, found.accesses_early, found.triggers), (waits, early, triggers), "{body}");
        assert_eq!(summary(&body).waits().len(), usize::from(waits), "{body}");
    }
}

/// How sure it is that the read in a kernel is early.
fn how_early(body: &str) -> Early {
    let (mut params, mut accesses) = (P.to_le_bytes().to_vec(), Vec::new());
    params.extend(NUMBER.to_le_bytes());
    let mut launch = LaunchArgs::new([BLOCKS, 1, 1], [THREADS, 1, 1], &params);
    if body.contains("cluster") {
        launch.cluster = [BLOCKS, 1, 1];
    }
    summary(body).evaluate(&launch, &mut accesses);
    let reads = accesses.iter().filter(|access| access.kind == AccessKind::Read);
    let exact = |extent: &Extent| matches!(extent, Extent::Bounded { exact: true, .. });
    let early = reads.filter(|access| access.early.is()).map(|access| match access.early {
        Early::Asked if exact(&access.extent) => Early::Surely,
        Early::Asked => Early::Perhaps,
        early => early,
    });
    early.max().unwrap_or_default()
}

/// Who has a wait from others, by what hands it on; what may do so leaves a read that is not
/// surely early, and what can not leaves one that is.
#[test]
fn what_hands_a_wait_on() {
    let (wait, read) = ("griddepcontrol.wait;\n", "ld.global.u32 %v, [%at];\n");
    let lane = "and.b32 %c1, %tid_, 31;\nsetp.ne.u32 %p1, %c1, 0;\n";
    let warp = "setp.ge.u32 %p1, %tid_, 32;\n";
    let thread = "setp.ne.u32 %p1, %tid_, 0;\n";
    let data = "ld.global.u32 %c2, [%at+4096];\nsetp.ne.u32 %p1, %c2, 0;\n";
    let unless = |cond: &str, body: &str| format!("{cond}@%p1 bra SKIP;\n{body}SKIP:\n");
    let poll = "POLL:\nld.volatile.shared.u32 %c3, [%c4];\nsetp.eq.u32 %p1, %c3, 0;\n@%p1 bra POLL;\n";
    let phase = "PHASE:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%c4], 0;\n@!%p1 bra PHASE;\n";
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [%c4];\n";
    let cluster = ("barrier.cluster.arrive;\n", "barrier.cluster.wait;\n");
    let rank = "mov.u32 %c1, %cluster_ctarank;\nsetp.ne.u32 %p1, %c1, 0;\n";
    let (meet, other) = ("bar.sync 1, 64;\n", "bar.sync 2, 64;\n");
    let sides =
        |waits: &str, others: &str| format!("{warp}@%p1 bra OTHERS;\n{waits}bra.uni END;\nOTHERS:\n{others}END:\n");
    use Early::{No, Perhaps, Surely};
    for (body, early) in [
        (unless(lane, wait) + "bar.warp.sync 0xffffffff;\n" + read, No),
        (unless(thread, wait) + "bar.warp.sync 0xffffffff;\n" + read, Surely),
        (unless(warp, wait) + "bar.warp.sync 0xffffffff;\n" + read, Surely),
        ("bar.warp.sync 0xffffffff;\n".to_owned() + &unless(lane, wait) + read, Surely),
        (unless(lane, wait) + read, Surely),
        // Barriers of a number.
        (sides(&format!("{wait}{meet}"), &format!("{meet}{read}")), No),
        (sides(&format!("{wait}{meet}"), &format!("{other}{read}")), Surely),
        (sides(&format!("{wait}{meet}"), &format!("bar.arrive 1, 64;\n{read}")), Surely),
        (sides(&format!("{wait}bar.arrive 1, 64;\n"), &format!("{meet}{read}")), No),
        // Barriers of the cluster: one block waits for the other ones.
        (unless(rank, wait) + cluster.0 + cluster.1 + read, No),
        (cluster.0.to_owned() + &unless(rank, wait) + cluster.1 + read, Surely),
        (unless(rank, wait) + "bar.sync 0;\n" + read, Surely),
        (unless(rank, wait) + read, Surely),
        // A phase of an object at which something arrives behind the wait, or in front of it.
        (unless(thread, &format!("{wait}{arrive}")) + phase + read, No),
        (unless(thread, &format!("{arrive}{wait}")) + phase + read, Surely),
        // A word that threads poll, and a branch within a branch, are not followed.
        (unless(thread, wait) + poll + read, Perhaps),
        (
            unless(warp, &format!("and.b32 %c1, %tid_, 1;\nsetp.eq.u32 %p1, %c1, 1;\n@!%p1 {wait}")) + meet + read,
            Perhaps,
        ),
        // Of a loaded condition the read is a bound.
        (unless(data, wait) + read, Surely),
    ] {
        assert_eq!(how_early(&body), early, "{body}");
    }
}

/// Which blocks let the next grid begin is a matter of the launch.
#[test]
fn the_launch_decides_which_blocks_trigger() {
    let trigger = "griddepcontrol.launch_dependents;\n";
    let on = |cond: &str| format!("{cond}@%p1 bra YES;\nret;\nYES:\n{trigger}");
    for (body, found) in [
        (String::new(), Triggering::None),
        (trigger.to_owned(), Triggering::All),
        (on("setp.eq.u32 %p1, %tid_, 7;\n"), Triggering::All),
        (on(&format!("setp.eq.u32 %p1, %n_, {NUMBER};\n")), Triggering::All),
        (on(&format!("setp.ne.u32 %p1, %n_, {NUMBER};\n")), Triggering::None),
        (on("setp.eq.u32 %p1, %cta_, 0;\n"), Triggering::Some),
        (on(&format!("setp.lt.u32 %p1, %cta_, {BLOCKS};\n")), Triggering::All),
        (on("ld.global.u32 %c1, [%at];\nsetp.eq.u32 %p1, %c1, 0;\n"), Triggering::Some),
        (on("setp.gt.u32 %p1, %tid_, 1000;\n"), Triggering::None),
        (format!("setp.eq.u32 %p1, %tid_, 3;\n@%p1 {trigger}"), Triggering::All),
        (
            format!("setp.eq.u32 %p1, %cta_, 0;\n@%p1 {trigger}setp.ne.u32 %p1, %cta_, 0;\n@%p1 {trigger}"),
            Triggering::All,
        ),
    ] {
        let mut params = P.to_le_bytes().to_vec();
        params.extend(NUMBER.to_le_bytes());
        let launch = LaunchArgs::new([BLOCKS, 1, 1], [THREADS, 1, 1], &params);
        assert_eq!(summary(&body).triggering(&launch), found, "{body}");
    }
}

/// A trigger is the last thing that its block does only behind a barrier of the whole block.
#[test]
fn a_trigger_comes_last_or_not() {
    let (trigger, meet) = ("griddepcontrol.launch_dependents;\n", "bar.sync 0;\n");
    let (store, first) = ("st.global.u32 [%at], %v;\n", "setp.ne.u32 %p1, %tid_, 0;\n@%p1 bra END;\n");
    for (body, last, triggers) in [
        (format!("{store}{meet}{trigger}"), true, 1),
        (format!("{store}{meet}{first}{trigger}END:\n"), true, 1),
        (format!("{store}{meet}add.u32 %v, %v, 1;\n{trigger}"), true, 1),
        (format!("{meet}{store}{meet}{trigger}"), true, 1),
        // Other warps may not have come so far.
        (format!("{store}{trigger}"), false, 1),
        (format!("{store}{first}{trigger}END:\n"), false, 1),
        (format!("{store}bar.sync 1, 32;\n{trigger}"), false, 1),
        (format!("{first}{store}{meet}{trigger}END:\n"), false, 1),
        // There is more to do.
        (format!("{meet}{trigger}{store}"), false, 1),
        (format!("{store}{meet}{trigger}ld.global.u32 %v, [%at];\n"), false, 1),
        (format!("{store}{meet}{first}{trigger}END:\n{store}"), false, 1),
        (format!("{store}{meet}{trigger}{meet}{store}"), false, 1),
        (format!("{trigger}{store}{meet}{trigger}"), false, 2),
        (
            format!(
                "mov.u32 %c1, 0;\nTURN:\n{store}{meet}{trigger}add.u32 %c1, %c1, 1;\nsetp.lt.u32 %p1, %c1, 4;\n@%p1 bra TURN;\n"
            ),
            false,
            1,
        ),
        (format!("{store}{meet}"), false, 0),
    ] {
        let summary = summary(&body);
        assert_eq!((summary.triggers_last(), summary.triggers_at().len()), (last, triggers), "{body}");
    }
}
