//! Tests of runs: what is touched is written, once, and nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trace::{HostFuncId, Region, StackId, ThreadId};

use super::runs::{Touched, Written, begin, end_all, forget_all, goes_on, table};
use crate::runtime::thread_state;

/// The age is one for the process.
static ALONE: Mutex<()> = Mutex::new(());

/// What one thread touches, and what is written of it.
struct Scene {
    written: Vec<Written>,
}

const READ_4: u64 = 4 << 3;
const WRITE_4: u64 = 4 << 3 | 1;

impl Scene {
    fn new() -> (MutexGuard<'static, ()>, Self) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        forget_all();
        (alone, Self { written: Vec::new() })
    }

    fn touch(&mut self, address: u64, what: u64, pc: u64) {
        let touched = Touched { address, what, pc };
        if !goes_on(&touched) {
            let at = (ThreadId(1), StackId(pc as u32), HostFuncId::NONE);
            // SAFETY: ALONE stands for the lock of the log; the table is this thread's.
            unsafe { begin(table().expect("memory"), &touched, at, |run| self.written.push(*run)) };
        }
    }

    fn end(&mut self) -> Vec<(Region, bool, bool)> {
        // SAFETY: as above.
        unsafe { end_all(|run| self.written.push(*run)) };
        self.written.drain(..).map(|run| (run.region, run.writes, run.polled)).collect()
    }
}

#[test]
fn loops_become_one_run_for_each_instruction() {
    let (_alone, mut scene) = Scene::new();
    for i in 0..1000 {
        scene.touch(0x10000 + 4 * i, READ_4, 1);
        scene.touch(0x20000 + 16 * i, WRITE_4, 2);
        scene.touch(0x90000 - 4 * i, READ_4, 3);
    }
    let backwards = Region::linear(0x90000 - 3996, 4000);
    let expected = [
        (Region::linear(0x10000, 4000), false, false),
        (Region::pitched(0x20000, 4, 1000, 16), true, false),
        (backwards, false, false),
    ];
    assert_eq!(scene.end(), expected);
    assert_eq!(scene.end(), [], "all has been written");
}

#[test]
fn the_same_again_is_written_once_until_an_op_comes() {
    let (_alone, mut scene) = Scene::new();
    for _ in 0..5 {
        (0..100).for_each(|i| scene.touch(0x10000 + 4 * i, READ_4, 1));
    }
    assert_eq!(scene.end(), [(Region::linear(0x10000, 400), false, false)]);
    (0..100).for_each(|i| scene.touch(0x10000 + 4 * i, READ_4, 1));
    assert_eq!(scene.end(), [(Region::linear(0x10000, 400), false, false)]);
}

#[test]
fn every_touch_lies_in_a_run_and_every_run_holds_touches_only() {
    let (_alone, mut scene) = Scene::new();
    let (mut touched, mut random) = (std::collections::BTreeSet::new(), 7_u64);
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let address = 0x10000 + (random >> 40) % 512 * 4;
        scene.touch(address, READ_4, 1 + (random >> 60) % 3);
        touched.insert(address);
    }
    let mut held = std::collections::BTreeSet::new();
    for (region, ..) in scene.end() {
        for row in 0..u64::from(region.height) {
            let first = region.start + row * region.pitch;
            held.extend((first..first + region.width).step_by(4));
        }
    }
    assert_eq!(held, touched);
}

#[test]
fn a_polled_flag_is_written_before_what_it_may_have_told() {
    let (_alone, mut scene) = Scene::new();
    (0..10).for_each(|_| scene.touch(0x10000, READ_4, 1));
    // Without order, so that runs end at once.
    for i in [5, 1, 9, 3, 700, 2, 40, 11] {
        scene.touch(0x20000 + 4 * i, READ_4, 2);
    }
    let runs = scene.end();
    assert_eq!(runs[0], (Region::linear(0x10000, 4), false, true));
    assert!(runs.len() > 2 && runs[1..].iter().all(|run| !run.2));
}

#[test]
fn another_thread_ends_the_runs_of_this_one() {
    let (_alone, mut scene) = Scene::new();
    (0..10).for_each(|i| scene.touch(0x10000 + 4 * i, READ_4, 1));
    let ended = std::thread::scope(|scope| scope.spawn(|| scene.end()).join().expect("thread"));
    assert_eq!(ended, [(Region::linear(0x10000, 40), false, false)]);
    (10..20).for_each(|i| scene.touch(0x10000 + 4 * i, READ_4, 1));
    assert_eq!(scene.end(), [(Region::linear(0x10000 + 40, 40), false, false)]);
}

#[test]
fn tables_of_threads_that_have_ended_are_used_again() {
    let (_alone, mut scene) = Scene::new();
    let mut seen = std::collections::HashSet::new();
    for i in 0..50 {
        let at = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                scene.touch(0x10000 + 4 * i, READ_4, 1);
                thread_state::with(|l| l.touches.get() as usize)
            });
            run.join().expect("thread")
        });
        seen.insert(at);
        scene.end();
    }
    assert!(seen.len() < 25, "{}", seen.len());
}
