//! What is said of a pair of accesses of two processes: both sides, their memory and the advice.
//!
//! Owns the way from a pair to a finding of a report. The sides are described by their own
//! processes, which leave that when they end ([`PeerProcess`](super::exchange::PeerProcess)).

use report::doubt::{self, Doubt};
use report::model::{AllocationInfo, Finding, Side};
use report::words::{Established, FindingKind};

use super::advice::advice;
use super::exchange::{Exchange, Found};
use super::participant::{BASE, details, site_key};
use super::visibility::member_of;
use detect::memory::{Access, AllocationId, Cause};

impl Exchange {
    /// The finding of a pair. `None`: a process has not ended as it should.
    pub(super) fn elaborate(&self, found: &Found) -> Option<Finding> {
        let (previous, why_previous) = self.side(&found.race.previous)?;
        let (access, why_access) = self.side(&found.race.access)?;
        let process = |access: &Access| self.peers[member_of(access) as usize].process.as_ref();
        let (earlier, later) = (process(&found.race.previous)?, process(&found.race.access)?);
        let allocation = self.allocation(found);
        let (a, p) = (&found.race.access.extent, &found.race.previous.extent);
        let from = a.start.max(p.start);
        let to = a.end.min(p.end).max(from);
        let kernel = |s: &Side| s.kernel.is_some();
        let (hazard, confidence) = (found.race.hazard, found.race.confidence);
        let synchronisation = advice(&previous, &access, (earlier, later), hazard, found.by_flag);
        let mut finding = Finding {
            weakness: found.race.weakness,
            established: if kernel(&access) || kernel(&previous) { Established::Code } else { Established::Call },
            doubts: doubt::between(confidence, [why_access, why_previous], found.by_flag),
            count: found.count,
            pid: later.pid,
            origin: later.name.clone(),
            allocation,
            from: from.wrapping_sub(BASE),
            to: to.wrapping_sub(BASE),
            ..Finding::new(FindingKind::Race, hazard, confidence, [access, previous], synchronisation)
        };
        finding.identity = report::fingerprint::identity(&finding);
        Some(finding)
    }

    /// The memory as described by its owner, otherwise by a process that has opened it.
    fn allocation(&self, found: &Found) -> Option<AllocationInfo> {
        let of = |member: u32, root: AllocationId| {
            let process = self.peers.get(member as usize)?.process.as_ref()?;
            process.memory.iter().find(|(id, _)| *id == root).map(|(_, memory)| memory.clone())
        };
        let owner = found.owner.and_then(|(member, root)| of(member, root));
        owner.or_else(|| {
            let users = self.peers.iter().enumerate();
            let mut roots = users.flat_map(|(i, p)| p.roots.iter().map(move |(root, at)| (i as u32, *root, at.0)));
            roots.find(|(.., object)| *object == found.object).and_then(|(member, root, _)| of(member, root))
        })
    }

    /// The process's own description of this access.
    fn side(&self, access: &Access) -> Option<(Side, Option<Doubt>)> {
        let process = self.peers[member_of(access) as usize].process.as_ref()?;
        let key = site_key(access);
        let of_site = || process.sites.iter().filter(|(sample, ..)| site_key(sample) == key);
        let alike = of_site().find(|(sample, ..)| details(sample) == details(access));
        let (_, side, doubt) = alike.or_else(|| of_site().next())?;
        let (mut side, doubt) = (side.clone(), doubt.clone());
        report::elaborate::describe_bytes(&mut side, access, BASE);
        let of = format!(" of {}", process.name);
        if access.site.cause != Cause::Free || !access.site.stream.is_none() {
            side.stream.long.push_str(&of);
            side.stream.name.push_str(&of);
        }
        side.process = Some(process.pid);
        Some((side, doubt))
    }
}
