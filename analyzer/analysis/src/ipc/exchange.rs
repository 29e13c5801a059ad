//! The exchange: messages of all processes, put in order of time and compared.
//!
//! Owns the memory objects that processes share, each with its access map, the shared events, and
//! the findings. Does not know how a process describes its call sites: it asks the process's own
//! analysis at the end.

use order::ClockSnapshot;
use report::words::{Established, FindingKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use trace::Epoch;

use crate::ipc::participant::{BASE, details, site_key};
use crate::ipc::visibility::{CrossProcessOrder, PeerView, global, member_of};
use detect::confidence::Confidence;
use detect::memory::{Access, AccessMap, AllocationId, Cause};
use detect::race::{Hazard, Race};
use detect::state::names::TorchUse;
use report::doubt::{self, Doubt};
use report::mend::api::Api;
use report::mend::lines;
use report::model::{AllocationInfo, Finding, MendingLines, Outcome, Side, Synchronisation, merge_finding};

/// Maximum number of records remembered of one event: a waiting host asks for the one that was
/// current when it began.
const RECORDS: usize = 16;

/// Maximum number of findings between processes.
const MAX_FINDINGS: usize = 1024;

/// Nanoseconds by which the comparison lags behind. Otherwise a thread that was interrupted between
/// reading the clock and writing its op, or a process that is not known yet, would be too late. (On
/// two busy cores one of some hundred runs was.)
const GRACE: u64 = 50_000_000;

/// A message of one process.
#[expect(clippy::large_enum_variant, reason = "most messages are accesses")]
pub(crate) enum Message {
    /// Memory gets a name that other processes can use.
    Memory { root: AllocationId, key: Arc<[u8]>, at: u64, imported: bool },
    /// An access to shared memory.
    Access { root: AllocationId, access: Access, clock: Option<ClockSnapshot> },
    /// Shared memory ends in this process.
    Gone { root: AllocationId },
    /// A shared event is recorded.
    Record { key: Arc<[u8]>, clock: ClockSnapshot },
    /// An op waits for a shared event.
    Wait { key: Arc<[u8]>, epoch: Epoch },
    /// The host has waited for a shared event, from this time on.
    HostWaited { key: Arc<[u8]>, began: u64 },
    /// The clock of the host.
    Host { clock: ClockSnapshot },
    /// A kernel that may wait for kernels of other processes.
    Signals,
    /// The process has ended.
    End,
}

/// The description that a process leaves when it has ended.
#[derive(Default)]
pub struct PeerProcess {
    /// Its name in reports.
    pub(crate) name: String,
    /// Process id.
    pub(crate) pid: u32,
    /// Whether it runs Python.
    pub(crate) python: bool,
    /// What was seen of PyTorch in it.
    pub(crate) torch: TorchUse,
    /// Its call sites, each for one access of it, and why the bytes of that are not exact.
    pub(crate) sites: Vec<(Access, Side, Option<Doubt>)>,
    /// Its shared memory.
    pub(crate) memory: Vec<(AllocationId, AllocationInfo)>,
}

#[derive(Default)]
struct Peer {
    queue: VecDeque<(u64, Message)>,
    reached: u64,
    ended: bool,
    process: Option<PeerProcess>,
    /// Its shared memory: the index of the object, and the shift to add to its offsets.
    roots: FxHashMap<AllocationId, (usize, u64)>,
    signals: bool,
    /// Accesses that came too late to be compared.
    late: u64,
    /// Memory whose owner is not checked.
    orphans: u64,
}

/// Memory that processes share.
#[derive(Default)]
struct Object {
    map: AccessMap,
    owner: Option<(u32, AllocationId)>,
    users: u32,
    /// Whether it lives as long as any process has it, not as long as its owner's allocation.
    outlives: bool,
    /// Processes that opened it before its owner was known.
    orphans: Vec<u32>,
}

/// A pair of call sites in two processes.
struct Found {
    race: Race,
    object: usize,
    owner: Option<(u32, AllocationId)>,
    signals: bool,
    count: u64,
}

/// Records of one event, oldest first: when, by which process, and what they cover.
type Records = VecDeque<(u64, u32, ClockSnapshot)>;

/// All processes of a run, their messages and their findings. See the module.
pub(crate) struct Exchange {
    live: bool,
    peers: Vec<Peer>,
    /// Everything up to this time has been compared.
    merged: u64,
    queued: usize,
    keys: FxHashMap<Arc<[u8]>, (usize, u64)>,
    objects: Vec<Object>,
    events: FxHashMap<Arc<[u8]>, Records>,
    order: CrossProcessOrder,
    found: Vec<Found>,
}

impl Exchange {
    pub(crate) fn new(live: bool) -> Self {
        Self {
            live,
            peers: Vec::new(),
            merged: 0,
            queued: 0,
            keys: FxHashMap::default(),
            objects: Vec::new(),
            events: FxHashMap::default(),
            order: CrossProcessOrder::default(),
            found: Vec::new(),
        }
    }

    pub(crate) fn join(&mut self) -> u32 {
        self.peers.push(Peer { reached: self.merged, ..Peer::default() });
        self.peers.len() as u32 - 1
    }

    pub(crate) fn send(&mut self, member: u32, time: u64, message: Message) {
        let peer = &mut self.peers[member as usize];
        peer.queue.push_back((time, message));
        peer.reached = peer.reached.max(time.saturating_sub(1));
        self.queued += 1;
        if self.queued.is_multiple_of(1024) {
            self.advance();
        }
    }

    pub(crate) fn reached(&mut self, member: u32, time: u64) {
        let peer = &mut self.peers[member as usize];
        peer.reached = peer.reached.max(time);
        if self.queued > 0 {
            self.advance();
        }
    }

    pub(crate) fn end(&mut self, member: u32, time: u64, process: PeerProcess) {
        self.send(member, time, Message::End);
        let peer = &mut self.peers[member as usize];
        peer.ended = true;
        peer.process = Some(process);
        self.advance();
    }

    /// Compares the messages before the time that all processes have passed.
    fn advance(&mut self) {
        if !self.live {
            return;
        }
        let open = self.peers.iter().filter(|p| !p.ended).map(|p| p.reached).min();
        self.compare(open.map_or(u64::MAX, |reached| reached.saturating_sub(GRACE)));
    }

    fn compare(&mut self, upto: u64) {
        loop {
            let first = |(i, p): (usize, &Peer)| p.queue.front().map(|(time, _)| (*time, i));
            let Some((time, member)) = self.peers.iter().enumerate().filter_map(first).min() else { break };
            if time > upto {
                break;
            }
            let Some((_, message)) = self.peers[member].queue.pop_front() else { break };
            self.queued -= 1;
            let is_late = time < self.merged;
            self.merged = self.merged.max(time);
            self.take(member as u32, time, message, is_late);
        }
        if upto < u64::MAX {
            self.merged = self.merged.max(upto);
        }
        let objects = &self.objects;
        self.order.sweep(|| objects.iter().flat_map(|o| o.map.iter().map(|a| a.epoch)).collect::<FxHashSet<_>>());
    }

    fn take(&mut self, member: u32, time: u64, message: Message, is_late: bool) {
        match message {
            Message::Memory { root, key, at, imported } => self.memory(member, root, key, at, imported),
            // Later accesses were compared without this one, so conflicts with it may have been
            // missed.
            Message::Access { .. } if is_late => self.peers[member as usize].late += 1,
            Message::Access { root, access, clock } => self.access(member, root, access, clock.as_ref()),
            Message::Gone { root } => self.gone(member, root),
            Message::Record { key, clock } => {
                let records = self.events.entry(key).or_default();
                records.push_back((time, member, clock));
                if records.len() > RECORDS {
                    records.pop_front();
                }
            }
            Message::Wait { key, epoch } => {
                if let Some((_, from, clock)) = self.events.get(&key).and_then(VecDeque::back) {
                    self.order.link(*from, clock, member, epoch);
                }
            }
            Message::HostWaited { key, began } => {
                let records = self.events.get(&key);
                let record = records.and_then(|r| r.iter().rev().find(|(time, ..)| *time <= began));
                if let Some((_, from, clock)) = record {
                    self.order.seen(*from, clock);
                }
            }
            Message::Host { clock } => self.order.seen(member, &clock),
            Message::Signals => self.peers[member as usize].signals = true,
            Message::End => self.order.ended(member),
        }
    }

    fn memory(&mut self, member: u32, root: AllocationId, key: Arc<[u8]>, at: u64, imported: bool) {
        let peer = &mut self.peers[member as usize];
        if let Some((object, shift)) = peer.roots.get(&root) {
            // Another name of a known object: another handle, or an address inside.
            self.keys.insert(key, (*object, at.wrapping_add(*shift)));
            return;
        }
        let outlives = key.starts_with(trace::PHYSICAL_KEY);
        // Whoever made physical memory may map it after others, or never.
        if let Some((object, there)) = self.keys.get(&key)
            && (imported || outlives)
        {
            peer.roots.insert(root, (*object, there.wrapping_sub(at)));
            let object = &mut self.objects[*object];
            object.users += 1;
            if imported && object.owner.is_none() && outlives {
                object.orphans.push(member);
                peer.orphans += 1;
            }
            if !imported && object.owner.is_none() {
                object.owner = Some((member, root));
                let waiting = std::mem::take(&mut object.orphans);
                waiting.into_iter().for_each(|orphan| self.peers[orphan as usize].orphans -= 1);
            }
            return;
        }
        peer.orphans += u64::from(imported);
        let owner = (!imported).then_some((member, root));
        peer.roots.insert(root, (self.objects.len(), 0));
        self.keys.insert(key, (self.objects.len(), at));
        let orphans = Vec::from_iter(imported.then_some(member));
        self.objects.push(Object { owner, users: 1, outlives, orphans, ..Object::default() });
    }

    /// The owner's free ends the lifetime of an object. Other processes only close it. Physical
    /// memory ends with its last mapping: the next one of it begins with what is unknown.
    fn gone(&mut self, member: u32, root: AllocationId) {
        let Some((at, _)) = self.peers[member as usize].roots.remove(&root) else { return };
        let object = &mut self.objects[at];
        object.users = object.users.saturating_sub(1);
        let by_owner = object.owner == Some((member, root));
        if by_owner && !object.outlives || object.users == 0 {
            object.map.clear();
            self.keys.retain(|_, (object, _)| *object != at);
        }
    }

    fn access(&mut self, member: u32, root: AllocationId, access: Access, clock: Option<&ClockSnapshot>) {
        let Some((at, shift)) = self.peers[member as usize].roots.get(&root).copied() else { return };
        let Some(epoch) = global(member, access.epoch) else { return };
        let access = Access { epoch, extent: access.extent.moved(shift), ..access };
        let object = &mut self.objects[at];
        let (mut races, compares) = (Vec::new(), clock.is_some());
        let view = PeerView { member, clock, known: &self.order };
        object.map.add(&access, &view, &mut |earlier: &Access, _| {
            if compares && member_of(earlier) != member {
                races.extend(Race::judge(earlier, &access, false));
            }
        });
        self.order.begin(epoch);
        let owner = object.owner;
        // One pair of ops may race in several pieces.
        races.sort_by_key(|r| (r.previous.epoch, std::cmp::Reverse(r.confidence)));
        races.dedup_by_key(|r| r.previous.epoch);
        for race in races {
            self.add(race, at, owner);
        }
    }

    fn add(&mut self, mut race: Race, object: usize, owner: Option<(u32, AllocationId)>) {
        let (p, a) = (member_of(&race.previous), member_of(&race.access));
        let signals = self.peers[p as usize].signals || self.peers[a as usize].signals;
        if signals {
            race.confidence = Confidence::Possible;
        }
        let key = |f: &Found| {
            (
                member_of(&f.race.previous),
                site_key(&f.race.previous),
                member_of(&f.race.access),
                site_key(&f.race.access),
            )
        };
        let new = (p, site_key(&race.previous), a, site_key(&race.access));
        if let Some(same) = self.found.iter_mut().find(|f| key(f) == new && f.race.hazard == race.hazard) {
            same.count += 1;
            if same.race.confidence < race.confidence {
                (same.race, same.signals) = (race, signals);
            }
        } else if self.found.len() < MAX_FINDINGS {
            self.found.push(Found { race, object, owner, signals, count: 1 });
        }
    }

    pub(crate) fn finish(&mut self, outcomes: &mut [Outcome]) {
        self.compare(u64::MAX);
        for outcome in outcomes.iter_mut() {
            let Some(peer) = outcome.member.and_then(|m| self.peers.get(m as usize)) else { continue };
            let notes = [
                ("accesses to memory shared between processes that came too late to be compared", peer.late),
                ("memory shared by a process that is not checked", peer.orphans),
            ];
            for (what, count) in notes {
                if count > 0 {
                    *outcome.coverage.unobserved.entry(what.into()).or_default() += count;
                }
            }
        }
        for found in std::mem::take(&mut self.found) {
            let member = member_of(&found.race.access);
            let Some(outcome) = outcomes.iter_mut().find(|o| o.member == Some(member)) else { continue };
            if let Some(finding) = self.elaborate(&found) {
                merge_finding(&mut outcome.findings, finding);
            }
        }
        for outcome in outcomes {
            report::fingerprint::number(&mut outcome.findings);
        }
    }

    fn elaborate(&self, found: &Found) -> Option<Finding> {
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
        let synchronisation = advice(&previous, &access, (earlier, later), hazard, found.signals);
        let mut finding = Finding {
            weakness: found.race.weakness,
            established: if kernel(&access) || kernel(&previous) { Established::Code } else { Established::Call },
            doubts: doubt::between(confidence, [why_access, why_previous], found.signals),
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

/// The synchronisation between two processes: what is there, and what is missing.
fn advice(
    previous: &Side,
    access: &Side,
    (earlier, later): (&PeerProcess, &PeerProcess),
    hazard: Hazard,
    signals: bool,
) -> Synchronisation {
    let mut s = Synchronisation::default();
    s.facts.push(format!("{} and {} share this memory.", capital(&earlier.name), later.name));
    if signals {
        s.facts.push(
            "Kernels with fences of system scope run there, which may order the two by flags in memory: that is not followed.".into(),
        );
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
