//! Where the threads of a block stand that can no longer go on: which wait for which barrier, at
//! which lines. Owns the words; who is stuck is found elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::groups::Wait;
use crate::program::LANES;
use crate::warp::Warp;

/// Places that are named one by one.
const MOST: usize = 8;

/// Threads as ranges of their numbers in the block.
fn ranges(threads: &[u32]) -> String {
    let mut out = String::new();
    for part in threads.chunk_by(|a, b| a + 1 == *b) {
        let separator = if out.is_empty() { "" } else { ", " };
        let (first, last) = (part[0], part[part.len() - 1]);
        let _ = match part.len() {
            1 => write!(out, "{separator}{first}"),
            _ => write!(out, "{separator}{first} to {last}"),
        };
        if out.len() > 60 {
            out.push_str(", ...");
            break;
        }
    }
    out
}

/// What a thread of a group waits for.
fn what(wait: Wait) -> String {
    match wait {
        Wait::None => "run".to_owned(),
        Wait::Barrier(number, _) => format!("wait at barrier {number}"),
        Wait::Cluster(_) => "wait at the cluster's barrier".to_owned(),
        Wait::Lanes(mask) => format!("wait for the lanes {mask:#x} of their warp"),
    }
}

fn place(warp: &Warp<'_>, pc: u32) -> String {
    let program = warp.env.program;
    match program.source(pc) {
        Some((file, line)) => format!("{file}:{line}"),
        None if program.machine.is_some() => format!("machine code at {:#x}", program.line(pc)),
        None => format!("PTX line {}", program.line(pc)),
    }
}

/// The threads of a block by what they wait for and where; those that have ended come last.
pub(crate) fn waits(warps: &[Warp<'_>]) -> String {
    let mut places: BTreeMap<(u32, String), (String, Vec<u32>)> = BTreeMap::new();
    let mut ended = Vec::new();
    for warp in warps {
        let threads = |mask: u32| {
            let lanes = (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0);
            lanes.map(|lane| warp.index * LANES as u32 + lane)
        };
        let mut add = |pc: u32, wait: Wait, mask: u32| {
            let new = || (place(warp, pc), Vec::new());
            places.entry((pc, what(wait))).or_insert_with(new).1.extend(threads(mask));
        };
        match warp.parked {
            Some((number, phase)) => add(warp.pc, Wait::Barrier(number, phase), warp.active),
            None => warp.groups.iter().for_each(|group| add(group.pc, group.wait, group.mask)),
        }
        ended.extend(threads(warp.began_with() & !warp.alive));
    }
    let more = places.len().saturating_sub(MOST);
    let mut out: Vec<String> = places
        .into_iter()
        .take(MOST)
        .map(|((_, what), (place, threads))| format!("threads {} {what} ({place})", ranges(&threads)))
        .collect();
    if more > 0 {
        out.push(format!("threads at {more} more places wait"));
    }
    if !ended.is_empty() {
        out.push(format!("threads {} have ended", ranges(&ended)));
    }
    out.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_in_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3]), "0 to 3");
        assert_eq!(ranges(&[0, 2, 3, 9]), "0, 2 to 3, 9");
        let odd: Vec<u32> = (0..200).map(|at| at * 2).collect();
        assert!(ranges(&odd).ends_with(", ...") && ranges(&odd).len() < 80, "{}", ranges(&odd));
    }
}
