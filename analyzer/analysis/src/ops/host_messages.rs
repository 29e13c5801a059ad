//! What the host may have been told through memory.
//!
//! Owns the messages of work that the host has not seen finish: which may exist, and which the host
//! may have received. What that means for a race is decided in [`super::host_touch`].
//!
//! A kernel with a fence of system scope, and a stream that writes a value, may tell the host that
//! all before them is over. So may a kernel that stores a word with the scope of the system and has
//! no fence, of the work before it: the end of that work has made its stores visible. The host
//! receives such a message by a load. Where all its loads are seen (`--host-accesses`), it cannot
//! have received one before it has looked at bytes that the kernel stores a flag in: see
//! [`speaks_openly`]. Nor does a launch send one that reaches no fence because its parameters
//! switch the message off. A look is all that is known. Whether the flag was set is not. Whether
//! the kernel sets it behind its other accesses, with a fence between, is known of measured
//! launches on a simulated GPU ([`detect::exact::fences`]).

use crate::process::facts::ProcessFacts;
use crate::process::state::ProcessState;
use detect::host_watch;
use detect::memory::allocations::{flags_in, speaks_openly};
use detect::memory::{Access, AccessKind, Cause};
use trace::{Epoch, KernelId, StreamId};

/// Work that may send messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// Its place in the order.
    pub(super) epoch: Epoch,
    /// The node of the graph launched there that it is, counted from 1; 0: none.
    node: u32,
    /// It says so without a fence: what came before it in its stream is over, and of itself it
    /// tells nothing.
    unfenced: bool,
    /// The host cannot have received one yet.
    pub(super) unheard: bool,
}

impl Sender {
    /// Whether the host may know from its message that this work is over.
    pub(super) fn may_tell_of(self, work: &Access) -> bool {
        let may_follow = self.epoch.timeline != work.epoch.timeline || self.epoch.time >= work.epoch.time;
        let itself = (self.epoch, self.node) == (work.epoch, work.site.node);
        !self.unheard && may_follow && !(itself && (self.unfenced || work.exclusion.untold))
    }
}

/// The host looked, or may have looked, at these bytes.
pub(super) fn look(state: &mut ProcessState, start: u64, end: u64) {
    if (start, end) == (0, u64::MAX) {
        return state.touches.lose_sight();
    }
    let ordering = &state.ordering;
    let found: Vec<Epoch> = flags_in(&state.memory, start, end).filter(|epoch| !ordering.host_saw(*epoch)).collect();
    found.into_iter().for_each(|epoch| state.touches.look_at(epoch));
}

/// Work that the host has not seen finish and that may tell it something through memory which
/// both use: kernels with a fence of system scope, and values that streams write.
pub(super) fn senders(state: &ProcessState, facts: &mut ProcessFacts) -> Vec<Sender> {
    let mut senders = Vec::new();
    let mut kernels: Vec<(KernelId, StreamId, Epoch, u32)> = Vec::new();
    for access in state.memory.accesses_in(&host_watch::SHARED) {
        match access.site.cause {
            _ if state.ordering.host_saw(access.epoch) => {}
            Cause::Value => {
                senders.push(Sender { epoch: access.epoch, node: access.site.node, unfenced: false, unheard: false })
            }
            Cause::Kernel => {
                let known = (access.site.kernel, access.site.stream, access.epoch, access.site.node);
                if kernels.last() != Some(&known) {
                    kernels.push(known);
                }
            }
            _ => {}
        }
    }
    kernels.sort_unstable();
    kernels.dedup();
    for (kernel, stream, epoch, node) in kernels {
        if state.touches.is_mute(epoch, node) {
            continue;
        }
        let (arch, def) = (facts.arch(&state.streams, stream), facts.names.kernel(kernel));
        let signals = facts.code.signals(kernel, def, arch);
        let mut leaves_word = || {
            let mut stores = |kind| facts.code.stores_for_host((kernel, def, arch), kind);
            stores(AccessKind::AtomicWrite) || stores(AccessKind::Atomic)
        };
        if signals || leaves_word() {
            let unheard = !state.touches.has_looked_at(epoch)
                && !facts.code.listens(kernel, def, arch)
                && speaks_openly(&state.memory, epoch);
            senders.push(Sender { epoch, node, unfenced: !signals, unheard });
        }
    }
    senders
}
