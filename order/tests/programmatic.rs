//! Programmatic dependent launch against what was measured: the table of
//! `tests/gpu/programs/programmatic.cu` (H200), in which a row is a form of launches on one stream.

use crate::common::{MAIN, World};
use order::{Opens, Overlap};
use std::collections::BTreeMap;
use trace::*;

const TABLE: &str = include_str!("../../tests/gpu/programs/programmatic.h200.txt");

/// A launch of a form: how, and the steps of its kernel.
struct Kernel<'a> {
    how: char,
    steps: &'a str,
}

impl Kernel<'_> {
    fn waits(&self) -> bool {
        self.steps.contains(['w', 's'])
    }

    /// What its code says. (All blocks but one that trigger or exit are no trigger of the kernel.)
    fn opens(&self) -> Opens {
        let wait = self.steps.find('w').unwrap_or(self.steps.len());
        match self.steps.find(['t', 'u']) {
            None => Opens::Never,
            Some(trigger) if trigger > wait => Opens::AfterWait,
            Some(_) => Opens::AtOnce,
        }
    }
}

/// For each pair of kernels, what comes before the wait of the later one and what comes behind it:
/// whether that is ordered behind the end of the earlier one.
fn judge(form: &str) -> BTreeMap<(usize, usize), (bool, bool)> {
    let mut w = World::new();
    let [stream, another] = w.streams();
    let (mut kernels, mut answers): (Vec<Epoch>, _) = (Vec::new(), BTreeMap::new());
    let mut before: Option<Opens> = None;
    for step in form.split(' ') {
        let (how, steps) = step.split_at(1);
        let kernel = Kernel { how: how.chars().next().unwrap(), steps };
        let launch = |w: &mut World, on, overlap: Option<Overlap>| match overlap {
            None => w.engine.apply_plain_launch(on, KernelId(7), MAIN),
            Some(overlap) => w.engine.apply_overlapping_launch(on, KernelId(7), MAIN, overlap),
        };
        let epoch = match kernel.how {
            'M' => {
                w.set(stream, 0x1000, true);
                continue;
            }
            'E' => {
                w.record(1, stream);
                continue;
            }
            'W' => {
                w.record(2, another);
                w.wait(stream, 2);
                continue;
            }
            'H' => {
                w.op(Op::HostFunc { stream, func: HostFuncId(1), address: 0 });
                continue;
            }
            'O' => launch(&mut w, stream, None),
            'P' => {
                let before = before.unwrap_or_default();
                launch(&mut w, stream, Some(Overlap { before, waits: kernel.waits() }))
            }
            'X' => {
                w.record(1, stream);
                w.wait(another, 1);
                launch(&mut w, another, None)
            }
            other => panic!("{other} in {form}"),
        };
        let late = w.engine.start_clock();
        let early = w.engine.early_launch(epoch).unwrap_or(late);
        for (at, earlier) in kernels.iter().enumerate() {
            answers.insert((kernels.len(), at), (early.covers(*earlier), late.covers(*earlier)));
        }
        kernels.push(epoch);
        before = Some(kernel.opens());
        assert!(kernel.how == 'X' || w.engine.kernel_before(stream) == Some(KernelId(7)));
    }
    answers
}

/// Whether "+" says that the rule orders the kernel at `later` behind the one at `earlier`, and not
/// the clock: the earlier one sleeps after its trigger, and none in between sleeps as long.
fn is_rule(form: &str, earlier: usize, later: usize) -> bool {
    let kernels: Vec<&str> = form.split(' ').filter(|step| step.starts_with(['O', 'P', 'X'])).collect();
    let sleeps = |at: usize| {
        let steps = kernels[at];
        steps[steps.rfind(['t', 'u']).unwrap_or(0)..].contains('d')
    };
    sleeps(earlier) && (earlier + 1..later).all(|at| !kernels[at].contains('d'))
}

#[test]
fn launches_begin_when_they_were_seen_to() {
    let (mut asked, mut wrong) = (0, Vec::new());
    for line in TABLE.lines().filter_map(|line| line.strip_prefix("stream")) {
        let line = line.trim();
        let (form, measured) = line.split_once("  ").unwrap_or_else(|| panic!("not a row: {line}"));
        let answers = judge(form);
        let words: Vec<&str> = measured.split_whitespace().collect();
        for pair in words.chunks(3) {
            let [names, early, late] = pair else { panic!("not a row: {line}") };
            let number = |at: usize| usize::from(names.as_bytes()[at] - b'A');
            let (later, earlier) = (number(0), number(1));
            let (is_early, is_late) = answers[&(later, earlier)];
            // A wait for what is over was no wait: here it is one, which errs towards order.
            let errs = form.contains('W') && is_early;
            let agrees = match &early[1..] {
                "+" => is_early || !is_rule(form, earlier, later),
                "-" => !is_early || errs,
                other => panic!("{other} in {line}"),
            };
            let waits = match &late[1..] {
                "+" => is_late,
                "." => true,
                other => panic!("{other} in {line}"),
            };
            asked += usize::from(early == &"e-" || is_rule(form, earlier, later));
            if !agrees || !waits {
                wrong.push(format!("{form}: {names}, but {is_early} {is_late}"));
            }
        }
    }
    assert!(wrong.is_empty(), "the rules say otherwise:\n{}", wrong.join("\n"));
    assert!(asked > 200, "rows are missing: {asked}");
}
