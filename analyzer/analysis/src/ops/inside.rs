//! What was found inside a launch ([`trace::Op::Inside`]): its races go to the findings, and what
//! was not checked to the coverage.
//!
//! Owns the words for what was not checked.

use crate::process::facts::ProcessFacts;
use crate::process::state::ProcessState;
use detect::memory::Site;
use trace::op::inside::{ReadInside, inside_flags};
use trace::{DecodeError, Epoch};

/// Takes in what was found inside a launch, or inside the node of a graph with this number: an
/// entry for each grid that it ran.
pub(super) fn take(
    state: &mut ProcessState,
    facts: &ProcessFacts,
    epoch: Epoch,
    number: u32,
    site: impl FnOnce() -> Site,
) {
    let found = state.exact.pending.inside(epoch, number);
    if !found.is_empty() {
        add_found(state, facts, found, &site());
    }
}

#[cold]
fn add_found(state: &mut ProcessState, facts: &ProcessFacts, found: Vec<Result<ReadInside, DecodeError>>, site: &Site) {
    let coverage = &mut state.coverage;
    coverage.launches_inside += 1;
    for inside in found {
        let inside = match inside {
            Ok(inside) => inside,
            Err(error) => {
                let kernel = facts.names.kernel(site.kernel).map_or("?", |kernel| &kernel.name);
                let kernel = facts.stacks.demangle(kernel);
                let line = format!("the inside of a launch of kernel {kernel}: its record is damaged: {error}");
                add(&mut coverage.unchecked, line);
                continue;
            }
        };
        let name = facts.stacks.demangle(&inside.kernel);
        if inside.flags & inside_flags::NOT_RUN != 0 {
            add(&mut coverage.unchecked, format!("the inside of kernel {name}, which did not run"));
        }
        if inside.flags & inside_flags::FAILED != 0 {
            add(&mut coverage.unchecked, format!("the inside of kernel {name} behind the fault that ended it"));
        }
        for (what, count) in [
            ("accesses of textures and surfaces", inside.textures),
            ("pairs of lanes or of atomics that machine code does not say enough of", inside.unsaid),
            ("accesses that were joined for their number", inside.widened),
            ("races beyond the first 128 of a launch", inside.more),
        ] {
            if count > 0 {
                *coverage.inside_left.entry(what.to_owned()).or_default() += count;
            }
        }
        if inside.flags & inside_flags::NOT_TRIED != 0 {
            let what = "launches of which some fences and barriers were not left out for a trial";
            *coverage.inside_left.entry(what.to_owned()).or_default() += 1;
        }
        state.inside.add(&inside, site, &state.memory);
        state.synchronisations.add(&inside);
    }
}

fn add(lines: &mut Vec<String>, line: String) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}
