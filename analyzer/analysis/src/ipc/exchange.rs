//! The exchange: messages of all processes, put in order of time and compared.
//!
//! Owns the memory objects that processes share, each with its access map, the shared events, and
//! the findings. Does not know how a process describes its call sites: it asks the process's own
//! analysis at the end.

use order::{AwaitedWord, ClockSnapshot};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use trace::Epoch;

use crate::ipc::collectives::Collectives;
use crate::ipc::flags::{KernelWaits, PadWord, WordValues};
use crate::ipc::meetings::{self, Meetings};
use crate::ipc::participant::site_key;
use crate::ipc::queue::{Awaited, Block, MessageQueue, Sent};
use crate::ipc::signals::Signals;
use crate::ipc::visibility::{CrossProcessOrder, Edge, Finished, PeerView, global, local, member_of};
use detect::confidence::{Confidence, Weakness};
use detect::memory::{Access, AccessMap, AllocationId, Cause};
use detect::race::Race;
use detect::state::names::TorchUse;
use report::doubt::Doubt;
use report::model::{AllocationInfo, Outcome, Side, merge_finding};

/// Maximum number of records remembered of one event: a waiting host asks for the one that was
/// current when it began.
const RECORDS: usize = 16;

/// Maximum number of findings between processes.
const MAX_FINDINGS: usize = 1024;

/// Maximum number of messages that wait to be compared while some are held back.
const MOST_HELD: usize = 1 << 18;

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
    /// `awaits`: the words that it lies behind waits for, if nothing in its process writes them.
    Access { root: AllocationId, access: Access, clock: Option<ClockSnapshot>, awaits: Vec<AwaitedWord> },
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
    /// A kernel that waits, or (`anywhere`) may wait in ways that are not followed, for a flag.
    KernelWaits { epoch: Epoch, anywhere: bool },
    /// A stream writes a value (how wide, and which) to shared memory, behind what a clock covers.
    WritesValue { root: AllocationId, at: u64, value: (u8, u64), clock: ClockSnapshot },
    /// What a kernel of PyTorch's symmetric memory does with words of signal pads.
    Signals(Signals),
    /// The words are not known of a kernel that updates signal pads.
    SignalsUnknown,
    /// An op waits for a value in shared memory.
    WaitsForValue { root: AllocationId, at: u64, word: AwaitedWord, epoch: Epoch },
    /// The process has ended.
    End,
}

impl Message {
    /// Whether a wait of another process may be over by it.
    fn may_end_waits(&self) -> bool {
        match self {
            Message::Record { key, .. } => meetings::is_of(key),
            Message::Signals(_) | Message::SignalsUnknown | Message::WritesValue { .. } => true,
            _ => false,
        }
    }
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
    /// The collectives that it has enqueued, and the ones that it does not know all of.
    pub(crate) collectives: Collectives,
    /// Its shared memory.
    pub(crate) memory: Vec<(AllocationId, AllocationInfo)>,
}

#[derive(Default)]
pub(super) struct Peer {
    /// What it has sent.
    queue: MessageQueue,
    reached: u64,
    ended: bool,
    pub(super) process: Option<PeerProcess>,
    /// Its shared memory: the index of the object, and the shift to add to its offsets.
    pub(super) roots: FxHashMap<AllocationId, (usize, u64)>,
    /// The words of shared memory that its streams have waited for, by their addresses in it: the
    /// object, and the place there.
    awaited: FxHashMap<u64, (usize, u64)>,
    /// Its kernels that wait for flags.
    pub(super) waits: KernelWaits,
    /// Its kernels that signal, and those of others that each of them waits for.
    pub(super) signalling: FxHashSet<Epoch>,
    pub(super) partners: FxHashMap<Epoch, Vec<(u32, Epoch)>>,
    /// Accesses that came too late to be compared.
    late: u64,
    /// Memory whose owner is not checked.
    orphans: u64,
}

/// Memory that processes share.
#[derive(Default)]
pub(super) struct Object {
    map: AccessMap,
    /// Words of it that streams write values to, or wait for values in.
    pub(super) values: FxHashMap<u64, WordValues>,
    /// Words of it that are signal pads.
    pub(super) pads: FxHashMap<u64, PadWord>,
    pub(super) owner: Option<(u32, AllocationId)>,
    users: u32,
    /// Whether it lives as long as any process has it, not as long as its owner's allocation.
    outlives: bool,
    /// Processes that opened it before its owner was known.
    orphans: Vec<u32>,
}

/// A pair of call sites in two processes.
pub(super) struct Found {
    pub(super) race: Race,
    pub(super) object: usize,
    pub(super) owner: Option<(u32, AllocationId)>,
    /// A flag in memory may order the two.
    pub(super) by_flag: bool,
    pub(super) count: u64,
}

/// Records of one event, oldest first: when, by which process, and what they cover.
type Records = VecDeque<(u64, u32, ClockSnapshot)>;

/// All processes of a run, their messages and their findings. See the module.
pub(crate) struct Exchange {
    live: bool,
    pub(super) peers: Vec<Peer>,
    /// Everything up to this time has been compared.
    merged: u64,
    queued: usize,
    keys: FxHashMap<Arc<[u8]>, (usize, u64)>,
    pub(super) objects: Vec<Object>,
    events: FxHashMap<Arc<[u8]>, Records>,
    /// Processes that come together.
    pub(super) meetings: Meetings,
    pub(super) order: CrossProcessOrder,
    /// Signals were missed, so those that follow can not be counted.
    pub(super) signals_missed: bool,
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
            meetings: Meetings::default(),
            order: CrossProcessOrder::default(),
            signals_missed: false,
            found: Vec::new(),
        }
    }

    pub(crate) fn join(&mut self) -> u32 {
        self.peers.push(Peer { reached: self.merged, ..Peer::default() });
        self.peers.len() as u32 - 1
    }

    pub(crate) fn send(&mut self, member: u32, time: u64, message: Message) {
        let is_late = time < self.merged;
        let peer = &mut self.peers[member as usize];
        peer.queue.push(time, message, is_late);
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
        while let Some(member) = self.next(upto) {
            let Some(Sent { time, message, is_late, .. }) = self.peers[member].queue.pop() else { break };
            self.queued -= 1;
            self.merged = self.merged.max(time);
            let may_end_waits = message.may_end_waits();
            self.take(member as u32, time, message, is_late);
            if may_end_waits {
                self.end_waits();
            }
        }
        if upto < u64::MAX {
            self.merged = self.merged.max(upto);
        }
        let oldest = self.oldest();
        self.order.forget_seen(oldest);
        let objects = &self.objects;
        self.order.sweep(|| objects.iter().flat_map(|o| o.map.iter().map(|a| a.epoch)).collect::<FxHashSet<_>>());
    }

    /// The process whose message is the next one: the earliest that comes behind no wait for other
    /// processes. Those that do are held back.
    fn next(&mut self, upto: u64) -> Option<usize> {
        loop {
            let first = |(i, p): (usize, &Peer)| p.queue.first().map(|sent| (sent.time, i));
            let first = self.peers.iter().enumerate().filter_map(first).filter(|(time, _)| *time <= upto).min();
            let Some((_, member)) = first else {
                // A signal that never comes holds nothing back for good.
                let is_last = upto == u64::MAX || self.queued > MOST_HELD;
                let held = self.peers.iter_mut().filter_map(|p| Some((p.queue.oldest_held()?, p)));
                let (_, peer) = held.min_by_key(|(time, _)| *time).filter(|_| is_last)?;
                peer.queue.gives_up_first();
                continue;
            };
            let is_behind = self.peers[member].queue.is_behind();
            let block = if is_behind { None } else { self.block(member) };
            if is_behind || block.is_some() {
                self.peers[member].queue.hold(block);
            } else if !self.gives_up(member) {
                return Some(member);
            }
        }
    }

    /// Whether the next message of a process proves that waits are over which hold something back.
    fn gives_up(&mut self, member: usize) -> bool {
        let queue = &mut self.peers[member].queue;
        match queue.first().map(|sent| &sent.message) {
            Some(Message::Host { .. }) => queue.gives_up_seen(),
            Some(Message::HostWaited { key, began }) => {
                let (key, began) = (key.clone(), *began);
                self.peers.iter_mut().any(|peer| peer.queue.gives_up_recorded(&key, began))
            }
            _ => false,
        }
    }

    /// Looks for waits that are over by now.
    fn end_waits(&mut self) {
        for member in 0..self.peers.len() {
            let blocks = self.peers[member].queue.blocks();
            if blocks.iter().any(|block| !self.is_awaited(member as u32, &block.on)) {
                self.peers[member].queue.look_again();
            }
        }
    }

    /// The time of the oldest message that has not been compared.
    fn oldest(&self) -> u64 {
        self.peers.iter().filter_map(|peer| peer.queue.oldest()).min().unwrap_or(u64::MAX)
    }

    /// The next message of a process, if it waits for what others have not told yet.
    fn block(&self, member: usize) -> Option<Block> {
        let Sent { message, is_given_up, .. } = self.peers[member].queue.first()?;
        let (op, on) = match message {
            _ if *is_given_up => return None,
            Message::Wait { key, epoch } if meetings::is_of(key) => (*epoch, Awaited::Meeting(key.clone())),
            Message::Signals(signals) => (signals.kernel(), self.awaited_by(member as u32, signals)?),
            Message::WaitsForValue { root, at, word, epoch } => {
                let (object, shift) = *self.peers[member].roots.get(root)?;
                (*epoch, Awaited::Value(object, at.wrapping_add(shift), *word))
            }
            _ => return None,
        };
        self.is_awaited(member as u32, &on).then(|| Block::new(op, on))
    }

    fn take(&mut self, member: u32, time: u64, message: Message, is_late: bool) {
        match message {
            Message::Memory { root, key, at, imported } => self.memory(member, root, key, at, imported),
            // Later accesses were compared without this one, so conflicts with it may have been
            // missed.
            Message::Access { .. } if is_late => self.peers[member as usize].late += 1,
            Message::Access { root, access, clock, awaits } => {
                self.access(member, time, root, access, (clock.as_ref(), &awaits));
            }
            Message::Gone { root } => self.gone(member, root),
            Message::Record { key, clock } if meetings::is_of(&key) => {
                self.meetings.arrives(key, Finished { process: member, clock, op: None, time });
            }
            Message::Wait { key, epoch } if meetings::is_of(&key) => {
                match self.meetings.goes_on(&key, member) {
                    Some(from) => self.order.link(Edge { from, to: member, epoch }),
                    // Whoever did not come, or is not known, may order anything.
                    None => self.peers[member as usize].waits.note(epoch, true),
                }
            }
            Message::Record { key, clock } => {
                let records = self.events.entry(key).or_default();
                records.push_back((time, member, clock));
                if records.len() > RECORDS {
                    records.pop_front();
                }
            }
            Message::Wait { key, epoch } => {
                if let Some((time, from, clock)) = self.events.get(&key).and_then(VecDeque::back) {
                    let from = Finished { process: *from, clock: clock.clone(), op: None, time: *time };
                    self.order.link(Edge { from, to: member, epoch });
                }
            }
            Message::HostWaited { key, began } => {
                let records = self.events.get(&key);
                let record = records.and_then(|r| r.iter().rev().find(|(time, ..)| *time <= began));
                if let Some((_, from, clock)) = record {
                    self.order.seen(*from, clock, time);
                }
            }
            Message::Host { clock } => {
                self.order.seen(member, &clock, time);
                self.peers[member as usize].waits.seen(&clock, time);
            }
            Message::KernelWaits { epoch, anywhere } => self.peers[member as usize].waits.note(epoch, anywhere),
            Message::WritesValue { root, at, value, clock } => {
                let by = Finished { process: member, clock, op: None, time };
                let edges = self.word(member, root, at).map(|word| word.write(by, value));
                edges.into_iter().flatten().for_each(|edge| self.order.link(edge));
            }
            Message::Signals(signals) => self.signals(member, time, signals),
            Message::SignalsUnknown => self.signals_missed = true,
            Message::WaitsForValue { root, at, word, epoch } => {
                let peer = &mut self.peers[member as usize];
                if let Some((object, shift)) = peer.roots.get(&root).copied() {
                    peer.awaited.insert(word.address, (object, at.wrapping_add(shift)));
                }
                let edges = self.word(member, root, at).map(|values| values.wait(member, word, epoch));
                edges.into_iter().flatten().for_each(|edge| self.order.link(edge));
            }
            Message::End => self.order.ended(member, time),
        }
    }

    /// A word of shared memory, at this place in the terms of a process.
    fn word(&mut self, member: u32, root: AllocationId, at: u64) -> Option<&mut WordValues> {
        let (object, shift) = *self.peers[member as usize].roots.get(&root)?;
        Some(self.objects[object].values.entry(at.wrapping_add(shift)).or_default())
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
            object.values.clear();
            object.pads.clear();
            self.keys.retain(|_, (object, _)| *object != at);
        }
    }

    fn access(
        &mut self,
        member: u32,
        now: u64,
        root: AllocationId,
        access: Access,
        (clock, awaits): (Option<&ClockSnapshot>, &[AwaitedWord]),
    ) {
        let Some((at, shift)) = self.peers[member as usize].roots.get(&root).copied() else { return };
        let Some(epoch) = global(member, access.epoch) else { return };
        let mut open_until = self.peers[member as usize].waits.open_until(&access, access.epoch, clock);
        // Its stream waits for a value that its process has not been seen to write.
        let is_behind = clock.is_some_and(|clock| clock.clock().is_behind_open_wait());
        let is_answered = is_behind && !awaits.is_empty() && self.is_answered(member, awaits);
        let is_held = is_behind && !is_answered;
        if is_held {
            open_until = u64::MAX;
        }
        let own = access.epoch;
        let access = Access { epoch, extent: access.extent.moved(shift), ..access };
        let object = &mut self.objects[at];
        let (mut races, compares) = (Vec::new(), clock.is_some());
        let view = PeerView { member, own, clock, now, known: &self.order };
        object.map.add(&access, &view, &mut |earlier: &Access, _| {
            if compares && member_of(earlier) != member {
                let race = Race::judge(earlier, &access, false);
                races.extend(race.map(|race| (self.order.began_before(earlier.epoch, open_until), race)));
            }
        });
        self.order.begin(epoch, now, is_held, is_answered);
        let owner = object.owner;
        // One pair of ops may race in several pieces.
        races.sort_by_key(|(_, r)| (r.previous.epoch, std::cmp::Reverse(r.confidence)));
        races.dedup_by_key(|(_, r)| r.previous.epoch);
        for (by_flag, mut race) in races {
            if is_answered || self.order.is_answered(race.previous.epoch) {
                race.confidence = race.confidence.min(Confidence::Likely);
            }
            // The earlier one may be behind a flag that is set after this one.
            let by_flag = by_flag || self.order.is_held(race.previous.epoch) || {
                let (peer, own) = local(race.previous.epoch);
                self.peers[peer as usize].waits.open_until(&race.previous, own, None) > now
            };
            self.add(race, at, owner, by_flag);
        }
    }

    /// Whether all that an op of a process waits for was written by one stream, once or counting
    /// up, and by nothing else that has been seen: then it comes after these writes, and after
    /// nothing more.
    fn is_answered(&self, member: u32, awaits: &[AwaitedWord]) -> bool {
        let awaited = &self.peers[member as usize].awaited;
        awaits.iter().all(|word| {
            let Some((object, at)) = awaited.get(&word.address) else { return false };
            let object = &self.objects[*object];
            let is_once = object.values.get(at).is_some_and(|values| values.is_answered_by_one(*word));
            is_once
                && (*at..at.saturating_add(word.width().into())).all(|byte| {
                    let mut others = false;
                    object.map.each_at(byte, &mut |access| {
                        others |= access.kind.writes() && access.site.cause != Cause::Value;
                    });
                    !others
                })
        })
    }

    fn add(&mut self, mut race: Race, object: usize, owner: Option<(u32, AllocationId)>, by_flag: bool) {
        let (p, a) = (member_of(&race.previous), member_of(&race.access));
        if by_flag {
            race.demote(race.weakness.unwrap_or(Weakness::Flag));
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
                (same.race, same.by_flag) = (race, by_flag);
            }
        } else if self.found.len() < MAX_FINDINGS {
            self.found.push(Found { race, object, owner, by_flag, count: 1 });
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
        self.compare_collectives(outcomes);
        for outcome in outcomes {
            report::fingerprint::number(&mut outcome.findings);
        }
    }
}
