//! A read of memory that nothing wrote: the sentences of its advice. The finding is made as that of
//! a race inside a kernel is (`in_kernel`), and the rule of its grade is in
//! `sim/races/src/unwritten/mod.rs`.

use crate::call_site::site;
use crate::model::{AllocationInfo, InKernel, MendingLines, Side, Synchronisation};
use crate::words::{Api, KernelGrade, Verb};
use symbols::frame::Frame;

/// What is missing before a read of memory that nothing wrote.
pub(super) fn advice(access: &Side, k: &InKernel, memory: Option<&AllocationInfo>) -> Synchronisation {
    let at = |stack: &[Frame]| site(stack).map_or_else(String::new, |at| format!(" at {at}"));
    let (place, launched) = (at(&access.stack), at(&access.launched));
    let updates = access.verb == Verb::UpdatesAtomically;
    let (missing, lines) = match memory {
        Some(memory) => {
            let call = if memory.call.is_empty() { "its allocation" } else { &memory.call };
            let missing = format!(
                "No kernel, copy or fill has written these bytes since {call}{}, nor has this launch before the access.",
                at(&memory.stack)
            );
            let fill = if updates { "with the value to begin with" } else { "or a copy or kernel that writes them" };
            let lines = vec![
                format!("cudaMemset(...);  // {fill}, before the launch{launched}"),
                format!("if (index < count)  // or, where there is nothing to read, around the read{place}"),
            ];
            (missing, lines)
        }
        None => (
            "No thread of any block has written these bytes of shared memory since the block began; shared memory \
             begins without a value."
                .to_owned(),
            vec![
                format!("array[index] = 0; __syncthreads();  // by the threads of the block, before{place}"),
                format!("if (index < count)  // or, where there is nothing to read, around the read{place}"),
            ],
        ),
    };
    let mut facts = Vec::new();
    if k.grade == KernelGrade::Possible {
        facts.push(
            "Some bytes that the instruction reads are written, or it copies them on: they may be padding that \
             nobody uses."
                .to_owned(),
        );
    }
    Synchronisation { facts, missing, mend: vec![MendingLines { api: Api::Runtime, lines }] }
}
