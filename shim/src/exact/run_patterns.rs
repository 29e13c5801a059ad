//! Runs that repeat at one distance, as one pattern.
//!
//! Owns the search for patterns among the pieces of a page, and the joining of neighbouring runs:
//! across gaps too, when there are too many. `runs` collects the pages.

use trace::{ExactRun, exact_kind};

/// Pieces of a pattern may be that many times their width apart.
const MAX_STRIDE: u64 = 4096;

/// A run of which only the ends are known.
pub(super) fn bound(from: u64, to: u64, kind: u32) -> ExactRun {
    ExactRun { start: from, stride: 0, width: to - from, count: 1, kind: kind | exact_kind::BOUND }
}

/// Just behind the last byte.
pub(super) fn end(run: &ExactRun) -> u64 {
    run.start + run.stride * u64::from(run.count.saturating_sub(1)) + run.width
}

/// Offset, width and stride of the one pattern that a word repeats, if that is so.
pub(super) fn pattern_of(word: u32) -> Option<(u32, u32, u32)> {
    let stride = [2, 4, 8, 16, 32].into_iter().find(|s| word.rotate_left(*s) == word)?;
    let turn = word & (u32::MAX >> (32 - stride));
    let offset = turn.trailing_zeros();
    let width = (turn >> offset).trailing_ones();
    (turn >> offset >> width == 0).then_some((offset, width, stride))
}

/// Pieces of one period that are looked for: fields that a thread touches of its structure.
const MAX_PERIOD: usize = 32;

/// Pieces (first byte, bytes) in ascending order as few runs: those that repeat together, at one
/// distance, become a pattern each. How many runs are none.
pub(super) fn repeated(pieces: &[(u64, u64)], kind: u32, runs: &mut Vec<ExactRun>) -> usize {
    let (mut at, mut single) = (0, 0);
    while let Some(&(start, _)) = pieces.get(at) {
        // How many pieces follow each of which repeats the one a period before.
        let step = |period: usize| Some(pieces.get(at + period)?.0 - start);
        let repeats = |period: usize| {
            let step = step(period)?;
            let again = |k: &usize| {
                pieces.get(at + k + period) == Some(&(pieces[at + k].0 + step, pieces[at + k].1))
                    && step <= pieces[at + k].1 * MAX_STRIDE
            };
            Some((0..pieces.len()).take_while(again).count())
        };
        // The shortest period that repeats whole, and as often as any.
        let (mut period, mut count) = (1, 1);
        for wanted in 1..=MAX_PERIOD {
            let times = repeats(wanted).map_or(0, |repeated| repeated / wanted);
            if wanted * times > period * (count - 1) {
                (period, count) = (wanted, times + 1);
            }
            if at + period * (count + 1) > pieces.len() {
                break;
            }
        }
        // Two alike, or a long period that comes back a few times, may be chance.
        if count < 3 || period > 4 * (count - 1) {
            (period, count) = (1, 1);
            single += 1;
        }
        for k in 0..period {
            let (start, width) = pieces[at + k];
            let stride = if count > 1 { step(period).unwrap_or(0) } else { 0 };
            runs.push(ExactRun { start, stride, width, count: count as u32, kind });
        }
        at += period * count;
    }
    single
}

/// Patterns that a run may continue: those of one period.
const OPEN: usize = MAX_PERIOD + 2;

/// Adds a run that begins behind the start of all others of its kind; it continues one of the last
/// ones (of those from `floor` on) where it can.
pub(super) fn append(runs: &mut Vec<ExactRun>, floor: usize, run: ExactRun) {
    let Some(last) = runs.get_mut(floor..).and_then(<[ExactRun]>::last_mut).filter(|last| last.kind == run.kind) else {
        return runs.push(run);
    };
    let single = last.count == 1 && run.count == 1;
    if single && end(last) == run.start {
        let joined = ExactRun { width: last.width + run.width, ..*last };
        runs.pop();
        // Both were cut at the border of a page: the whole piece may continue what was before it.
        return append(runs, floor, joined);
    }
    let continues = |open: &&mut ExactRun| {
        let next = open.start.checked_add(open.stride.saturating_mul(u64::from(open.count)));
        let alike = open.count > 1 && (open.kind, open.width) == (run.kind, run.width);
        alike && next == Some(run.start) && (run.count == 1 || run.stride == open.stride)
    };
    let from = floor.max(runs.len().saturating_sub(OPEN));
    if let Some(open) = runs[from..].iter_mut().rev().find(continues)
        && let Some(count) = open.count.checked_add(run.count).filter(|_| run.kind & exact_kind::BOUND == 0)
    {
        open.count = count;
        return;
    }
    let Some(last) = runs.last_mut() else { return };
    let step = run.start.wrapping_sub(last.start + last.stride * u64::from(last.count - 1));
    let count = last.count.checked_add(run.count);
    let apart = run.start > end(last) && step <= last.width.saturating_mul(MAX_STRIDE);
    let fits = (last.count == 1 || last.stride == step) && (run.count == 1 || run.stride == step);
    match count {
        Some(count) if last.width == run.width && apart && fits && run.kind & exact_kind::BOUND == 0 => {
            (last.stride, last.count) = (step, count);
        }
        _ => runs.push(run),
    }
}

/// Joins neighbours across ever larger gaps until at most `limit` runs are left (or one for each
/// kind).
pub(super) fn join_until(runs: &mut Vec<ExactRun>, limit: usize) {
    let mut gap = 32_u64;
    while runs.len() > limit && gap < 1 << 62 {
        let mut kept: usize = 0;
        for index in 1..runs.len() {
            let next = runs[index];
            let last = &mut runs[kept];
            let same = (last.kind ^ next.kind) & exact_kind::MASK == 0;
            if same && next.start >= end(last) && next.start - end(last) <= gap {
                *last = bound(last.start, end(&next), last.kind);
            } else {
                kept += 1;
                runs[kept] = next;
            }
        }
        runs.truncate(kept + 1);
        gap *= 2;
    }
}
