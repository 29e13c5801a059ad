//! What a finding between two processes says of their order: what there is, and what is missing.
//!
//! Owns the sentences and the lines. Does not decide what is a finding.

use crate::ipc::exchange::PeerProcess;
use detect::race::Hazard;
use report::mend::api::Api;
use report::mend::lines::{self, NARROW_SCOPE};
use report::model::{MendingLines, Side, Synchronisation};

/// The synchronisation between two processes: what is there, and what is missing.
pub(crate) fn advice(
    previous: &Side,
    access: &Side,
    (earlier, later): (&PeerProcess, &PeerProcess),
    hazard: Hazard,
    by_flag: bool,
) -> Synchronisation {
    let mut s = Synchronisation::default();
    s.facts.push(format!("{} and {} share this memory.", capital(&earlier.name), later.name));
    if by_flag {
        s.facts.push(
            "One of the two comes after a wait for a flag in memory, which may have been set behind the other one."
                .into(),
        );
    }
    if previous.verb.is_atomic() && access.verb.is_atomic() {
        s.facts.push(NARROW_SCOPE.into());
    }
    s.facts.push(format!(
        "{} submitted this access while no host thread could know that the previous one was over, and no wait for an event of both \
         processes orders them.",
        capital(&later.name)
    ));
    s.missing = format!(
        "Nothing makes {} wait until {} has finished the previous access.",
        access.stream.name, previous.stream.name
    );
    let word = match hazard {
        Hazard::WriteAfterRead => "may overwrite it",
        _ => "may use it",
    };
    let mut cuda = Vec::new();
    cuda.push(format!(
        "cudaStreamSynchronize({});  // in {}, before it tells {} that it {word}",
        previous.stream.short, earlier.name, later.name
    ));
    cuda.push(format!(
        "cudaStreamWaitEvent({}, opened);  // or: in {}, an event that {} has recorded and shared (cudaIpcGetEventHandle)",
        access.stream.short, later.name, earlier.name
    ));
    // The lines are for the earlier process: its packages count.
    let apis = if earlier.python { Api::of_python(previous.stack.iter(), earlier.torch) } else { Vec::new() };
    for api in apis {
        let call = lines::python_waits_for_all(api);
        let lines = vec![format!("{call}  # in {}, before it tells {}", earlier.name, later.name)];
        s.mend.push(MendingLines { api, lines });
    }
    s.mend.push(MendingLines { api: Api::Runtime, lines: cuda });
    s
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}
