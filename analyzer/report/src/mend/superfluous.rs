//! The hint about a fence or a barrier inside a kernel without which nothing is unordered.
//!
//! Owns its sentence. [`detect::superfluous`] knows the lines.

use crate::elaborate::Elaborator;
use crate::model::Hint;
use detect::hints::HintKind;
use detect::superfluous::RawSync;
use trace::op::inside::InsideSync;

/// The hint.
pub fn superfluous(sync: &RawSync, elaborator: &mut Elaborator<'_>) -> Hint {
    let what = match sync.kind {
        InsideSync::Fence => "fence of memory",
        InsideSync::ProxyFence => "fence between proxies",
        InsideSync::WarpBarrier => "barrier of a warp",
        InsideSync::BlockBarrier => "barrier of a block",
    };
    let stack = elaborator.kernel_stack(&sync.at, &sync.kernel, sync.machine);
    let text = format!(
        "Without this {what} inside a kernel nothing would have been unordered in this run, in which warps executed it {} times.",
        sync.count
    );
    let kind = HintKind::SuperfluousInKernel;
    Hint { kind, text, count: 1, pid: elaborator.names.process.pid, stack, other: Vec::new() }
}
