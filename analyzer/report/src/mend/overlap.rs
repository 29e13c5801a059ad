//! What to say of a kernel that begins before the kernels in front of it have ended (programmatic
//! dependent launch), and touches memory then.
//!
//! Owns the sentences. When such a kernel begins is known to the order, and which of its accesses
//! come before its wait to `kernels`.

use crate::format::text::short_kernel;
use crate::model::{MendingLines, Side, Synchronisation};
use crate::words::{Api, Verb};
use detect::memory::Overlap;
use detect::race::Race;

/// The synchronisation of two kernels of one stream, or of one graph, of which the later one may
/// begin early. `above`: the line of the access, and of the wait that the source has in front of
/// it. `s`: what is known already.
pub(super) fn overlapping(
    race: &Race,
    (previous, access): (&Side, &Side),
    above: Option<(String, String)>,
    s: &mut Synchronisation,
) {
    let (name, before) = (called(access), called(previous));
    let by = if access.node.is_some() { "a programmatic edge" } else { "its launch attribute" };
    s.facts.push(format!(
        "By {by}, {name} may begin before the kernels in front of it have ended (programmatic dependent launch)."
    ));
    let does = match access.verb {
        Verb::Reads | Verb::ReadsAtomically => "read",
        Verb::UpdatesAtomically => "update",
        _ => "write",
    };
    let place = access.inside.as_ref().map(|inside| {
        let file = inside.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", inside.line)
    });
    let at = place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
    s.facts.push(match race.access.site.overlap {
        Overlap::NeverWaits => {
            format!("{name} never waits for them (cudaGridDependencySynchronize, griddepcontrol.wait).")
        }
        _ => format!(
            "{name} waits for them (cudaGridDependencySynchronize, griddepcontrol.wait), but some of its threads \
             {does} these bytes{at} before they have waited, or never wait."
        ),
    });
    if let (Overlap::BeforeWait, Some((line, wait))) = (race.access.site.overlap, above) {
        s.facts.push(format!(
            "In the source {line} is below the wait at {wait}, but some threads get there without it: the compiler has \
             moved the access, or a way through the code leads around the wait."
        ));
    }
    s.missing = format!("The threads of {name} that {does} these bytes do not wait first until {before} has ended.");
    let before = place.as_deref().unwrap_or("its first access to them");
    let line = format!("cudaGridDependencySynchronize();  // in {name}, in each of these threads, before {before}");
    s.mend.push(MendingLines { api: Api::Runtime, lines: vec![line] });
}

/// A kernel's name without its arguments.
fn called(side: &Side) -> String {
    let name = side.kernel.as_deref().map(short_kernel);
    let name = name.as_deref().unwrap_or(&side.call).split('(').next().unwrap_or_default();
    if name.is_empty() { "the kernel".into() } else { name.into() }
}
