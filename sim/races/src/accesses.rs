//! One access of lanes of a warp: judges it against the histories of its bytes, keeps it there, and
//! leaves what it releases at its place. `simple` takes most accesses off it; `pair` has the rule
//! of what a race is.

use std::sync::Arc;

use crate::clock::join;
use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Order, Scope, Strength, WarpAccess};
use crate::grade::Evidence;
use crate::pair::{Group, is_guess, lanes, side};
use crate::records::{Race, Remedy, Side};
use crate::shadow::Access;
use crate::sources::Source;
use crate::threads::threads;

/// The size of a barrier object, as a power of two.
pub(crate) const OBJECT: u8 = 3;

/// Whether a compare-and-swap changes other bytes of its word than those of a cell.
fn keeps(access: &Access, at: u64, cell: u32) -> bool {
    let bytes = ((1u32 << (1 << cell)) - 1) << (at & 3);
    !matches!(access.kept(), 0 | Access::WORD) && u32::from(access.kept()) & bytes == bytes
}

fn flags_of(access: &WarpAccess<'_>, strong: Option<Scope>) -> u8 {
    let mut flags = match access.kind {
        Kind::Read => Access::READ,
        Kind::Write => Access::WRITE,
        Kind::Atomic => Access::READ | Access::WRITE,
    };
    if strong.is_some() {
        flags |= Access::STRONG;
    }
    if access.strength == Strength::Volatile {
        flags |= Access::VOLATILE;
    }
    if access.asynchronous {
        flags |= Access::COPY;
    }
    if access.bulk.is_some() {
        flags |= Access::BULK;
    }
    flags
}

impl State {
    pub(crate) fn access(&mut self, access: &WarpAccess<'_>) {
        if access.lanes == 0 || access.size == 0 {
            return;
        }
        self.events += 1;
        if self.is_beyond_life(access) {
            return;
        }
        let mut plain = *access;
        if access.asynchronous && access.kind == Kind::Read {
            // The target is asynchronous; the source is read from now on, until the wait.
            if let Some(block) = self.blocks.get_mut(&access.block) {
                self.sources.begin(block, access);
            }
            plain.asynchronous = false;
        } else if !self.sources.is_empty() && access.kind != Kind::Read && access.memory == Memory::Global {
            self.overwrites(access);
        }
        let global_read = (access.kind, access.memory) == (Kind::Read, Memory::Global);
        if self.reading.machine && global_read && access.strength == Strength::Plain && !plain.asynchronous {
            self.habits.reads(access);
        }
        plain.lanes = self.defer(&plain);
        if plain.lanes == 0 {
            return;
        }
        let access = &plain;
        let lanes = self.simple(access);
        if lanes == 0 {
            return;
        }
        let access = &WarpAccess { lanes, ..*access };
        let Some(block) = self.blocks.get(&access.block) else { return };
        // What a group of lanes does begins no epoch of another lane.
        let of_warp = &block.threads[access.warp as usize * LANES..][..LANES];
        let epochs: [u64; LANES] = std::array::from_fn(|lane| of_warp[lane].epoch);
        // Lanes of one address and one epoch go together.
        let (mut order, mut count) = ([0u8; LANES], 0);
        for lane in crate::pair::lanes(lanes) {
            order[count] = lane as u8;
            count += 1;
        }
        let taking_part = &mut order[..count];
        let place = |lane: u8| (access.addresses[usize::from(lane)], epochs[usize::from(lane)]);
        if !taking_part.is_sorted_by_key(|&lane| place(lane)) {
            taking_part.sort_by_key(|&lane| place(lane));
        }
        for together in taking_part.chunk_by(|&a, &b| place(a) == place(b)) {
            let (address, epoch) = place(together[0]);
            let mask = together.iter().fold(0, |mask, lane| mask | 1 << lane);
            self.group(access, address, epoch, mask);
        }
    }

    /// Tells of copies that have still to read what an access writes.
    fn overwrites(&mut self, access: &WarpAccess<'_>) {
        for met in self.sources.overwrite(access) {
            let Some(source) = self.sources.get(met.source) else { continue };
            let (reader, writer) = met.lanes;
            let same_warp = (source.block, source.warp) == (access.block, access.warp);
            if self.reading.machine && same_warp && reader != writer {
                self.inexact.unsaid += 1;
                continue;
            }
            let thread = |warp: u32, lane: u32| Some(warp * LANES as u32 + lane);
            let reads = Side {
                site: source.site,
                kind: Kind::Read,
                scope: None,
                asynchronous: true,
                block: source.block,
                thread: thread(source.warp, reader),
            };
            let strong = match access.strength {
                Strength::Strong(_, scope) => Some(scope),
                Strength::Volatile => Some(Scope::Device),
                Strength::Plain | Strength::Unsaid => (access.kind == Kind::Atomic).then_some(Scope::Device),
            };
            let writes = Side {
                site: access.site,
                kind: access.kind,
                scope: strong,
                asynchronous: access.asynchronous || access.bulk.is_some(),
                block: access.block,
                thread: thread(access.warp, writer),
            };
            let same_value = strong.is_none() && access.unchanged >> writer & 1 != 0;
            let grade = Evidence { same_value, ..Evidence::default() }.grade();
            let (sides, remedy) = ([reads, writes], Remedy::AwaitCopy);
            let race = Race { sides, shared: None, address: met.address, grade, remedy, count: 0 };
            self.records.add(race, true, self.events);
        }
    }

    /// Copies have read their source: what comes behind that must come behind the wait.
    pub(crate) fn has_read(&mut self, source: &Source) {
        let lanes = source.open & !source.overwritten;
        if lanes == 0 {
            return;
        }
        self.judged = true;
        self.access(&WarpAccess {
            block: source.block,
            warp: source.warp,
            lanes,
            executing: lanes,
            site: source.site,
            memory: Memory::Global,
            addresses: &source.addresses,
            size: source.size,
            kind: Kind::Read,
            strength: Strength::Plain,
            unchanged: 0,
            alike: false,
            asynchronous: false,
            object: false,
            compares: false,
            keeps: [0; 4],
            bulk: None,
            map: false,
        });
        self.judged = false;
    }

    /// Lanes of an access at one address, with one epoch.
    fn group(&mut self, access: &WarpAccess<'_>, address: u64, epoch: u64, mask: u32) {
        let (memory, this_block) = (access.memory, access.block);
        let State { blocks, shadows, locations, records, inexact, habits, objects, grids, .. } = self;
        let Some(block) = blocks.get_mut(&this_block) else { return };
        let place = (memory, address);
        // Machine code polls a half of a barrier object by a plain load.
        let polled = match (access.strength, access.kind, memory) {
            (Strength::Plain, Kind::Read, Memory::Shared(_)) if self.has_objects => {
                locations.get(&(memory, address & !7))
            }
            (Strength::Volatile, Kind::Read, Memory::Shared(_)) if self.has_objects && self.reading.machine => {
                locations.get(&(memory, address & !7))
            }
            _ => None,
        };
        let polled = polled.filter(|location| location.object);
        let known = polled.or_else(|| if locations.is_empty() { None } else { locations.get(&place) });
        let polls = polled.is_some();
        let strength = if polls { Strength::Plain } else { access.strength };
        let access = &WarpAccess { strength, ..*access };
        let strong = match access.strength {
            Strength::Plain if polls => Some((Order::BOTH, Scope::Block)),
            Strength::Plain if access.kind == Kind::Atomic => Some((Order::RELAXED, Scope::Device)),
            Strength::Plain | Strength::Unsaid => None,
            // A load of shared memory that is polled, with or without a fence behind it.
            Strength::Volatile if self.reading.machine => Some((Order { acquire: true, release: false }, Scope::Block)),
            Strength::Volatile => Some((Order::RELAXED, Scope::Device)),
            // A cluster of one block is the block.
            Strength::Strong(order, Scope::Cluster) if self.clusters.is_empty() => Some((order, Scope::Block)),
            Strength::Strong(order, scope) => Some((order, scope)),
        };
        let mut met = None;
        if let (Some((order, scope)), Some(location)) = (strong, known)
            && access.kind != Kind::Write
            && !(access.object && objects.has(place))
            // The thread learns nothing of what another proxy reads for it.
            && access.bulk.is_none()
        {
            let released = location.released_to(scope, this_block, block.cluster);
            if released.iter().any(Option::is_some) {
                habits.polls.insert(access.site);
            }
            let warp = if self.reading.machine && order.acquire { block.alive(access.warp) } else { 0 };
            block.acquire((access.warp, mask | warp), &released, order.acquire);
            // What is acquired is in the threads' clocks now.
            for part in released.into_iter().flatten().filter(|_| !order.acquire) {
                met = Some(met.map_or_else(|| part.clone(), |met| join(&met, &part)));
            }
        }
        // Machine code initialises and arrives at barrier objects by halves, too.
        let halves = self.has_objects
            && self.reading.machine
            && locations.get(&(memory, address & !7)).is_some_and(|location| location.object);
        let size = if polls || halves {
            OBJECT
        } else if access.size.is_power_of_two() {
            access.size.trailing_zeros() as u8
        } else {
            15
        };
        let reach = strong.map_or(0, |(_, scope)| scope as u8) | size << 4;
        let mut flags = flags_of(access, strong.map(|(_, scope)| scope));
        if access.executing == block.alive(access.warp) {
            flags |= Access::WHOLE;
        }
        if access.kind == Kind::Write && access.unchanged & mask == mask {
            flags |= Access::UNCHANGED;
        }
        // Copies have epochs of their own: the groups they are in.
        let (one, several) = ([(access.bulk.unwrap_or(epoch), mask)], access.asynchronous);
        let several: Vec<(u64, u32)> = if several {
            let mut groups: Vec<(u64, u32)> = Vec::new();
            for lane in lanes(mask) {
                let group = block.open_group(access.warp as usize * LANES + lane as usize);
                match groups.iter_mut().find(|(number, _)| *number == group) {
                    Some((_, mask)) => *mask |= 1 << lane,
                    None => groups.push((group, 1 << lane)),
                }
            }
            groups
        } else {
            Vec::new()
        };
        let copies = if several.is_empty() { &one[..] } else { &several };
        let kept = (0..4).fold(0u8, |kept, byte| kept | u8::from(access.keeps[byte] & mask == mask) << byte);
        if !matches!(kept, 0 | Access::WORD) {
            habits.partial_swaps.insert(access.site);
        }
        let mut released = false;
        let shadow = shadows.entry(memory).or_default();
        let shared = if let Memory::Shared(block) = memory { Some(block) } else { None };
        for &(epoch, mask) in copies {
            let now = Access {
                epoch,
                block: this_block,
                lanes: mask,
                site: access.site,
                warp: access.warp as u8,
                flags,
                reach,
                marks: Access::EXACT | kept << 4,
            };
            let group = Group {
                block,
                access: now,
                executing: access.executing,
                met: met.clone(),
                clusters: &self.clusters,
                objects,
                grids,
                shared: shared.is_some(),
                // What machine code has of the proxy of tensor maps is not told.
                object: access.object || access.map && self.reading.machine,
                map: access.map,
            };
            let event = self.events;
            let judged = self.judged;
            let mut add = |at: u64, before: &Access, (lane, other): (u32, u32), evidence: Evidence| {
                if judged {
                    return;
                }
                if self.reading.machine
                    && (evidence.same_warp
                        || shared.is_some() && (is_guess(before, &now) || evidence.mixed_size || evidence.is_volatile))
                {
                    inexact.unsaid += 1;
                    return;
                }
                let sides = [side(before, other), side(&now, lane)];
                let one = std::ptr::eq(before, &raw const now);
                let remedy = if one { Remedy::Atomic } else { group.remedy(before, (lane, other), evidence) };
                let grade = evidence.grade();
                let race = Race { sides, shared, address: at, grade, remedy, count: 0 };
                let for_itself = [before, &now].into_iter().find(|access| access.kept() == Access::WORD);
                match for_itself.filter(|_| !one) {
                    Some(swap) => records.add_of_vain_swap(race, swap.site, event),
                    None => records.add(race, !evidence.flag_like, event),
                }
            };
            let writes = access.kind == Kind::Write;
            if writes && mask.count_ones() > 1 {
                // Which of the lanes' values stays is not defined.
                let first = mask.trailing_zeros();
                let evidence = Evidence { same_value: access.alike, ..Evidence::default() };
                add(address, &now, ((mask & !(1 << first)).trailing_zeros(), first), evidence);
            }
            shadow.update(address, u64::from(access.size), |(at, cell), history| {
                let observed = group.observed(history);
                let continues = if observed.is_empty() { 0 } else { group.continues(history) };
                let repeated = group.repeated(history);
                let mut number = 0;
                history.retain_mut(|before| {
                    let is_observed = observed.iter().any(|seen| seen.contains(&number));
                    // The observer's own thread may come behind a write of now, not behind a read.
                    let own = (before.block, before.warp) == (this_block, now.warp) && before.lanes & !mask == 0;
                    let goes_on = now.is(Access::WRITE) || own;
                    let is_needed =
                        observed.iter().any(|seen| seen.end == number && (seen.start < continues || !goes_on));
                    number += 1;
                    released |= before.is(Access::STRONG) && before.is(Access::WRITE);
                    let own = (before.block, before.warp) == (this_block, now.warp) && before.lanes & mask != 0;
                    if own && is_guess(before, &now) && now.is(Access::WRITE) {
                        *habits.guesses.entry(before.site).or_default() |= access.compares;
                    }
                    if own && kept != 0 && !before.is(Access::WRITE) {
                        habits.keepers.insert(before.site);
                    }
                    if own && before.site == now.site && now.is(Access::STRONG) && now.is(Access::READ) {
                        habits.polls.insert(now.site);
                    }
                    let unordered = if is_observed && before.is(Access::STRONG) && before.is(Access::WRITE) {
                        // Behind it, but what its thread has done before it may not be.
                        return true;
                    } else if before.block == this_block
                        && !before.is(Access::COPY | Access::BULK)
                        && !now.is(Access::BULK)
                        && !before.is_wide()
                        && lanes(mask).all(|lane| before.epoch < group.block.threads[group.thread(lane)].floor)
                    {
                        None
                    } else if now.is(Access::WRITE) || before.is(Access::WRITE) {
                        let strong = now.is(Access::STRONG) && before.is(Access::STRONG);
                        let alike = now.reach >> 4 == before.reach >> 4;
                        let either_volatile = (now.flags | before.flags) & Access::VOLATILE != 0;
                        let never = strong && alike && group.reach_each_other(before);
                        let unordered = if never && !either_volatile { Some((0, 0)) } else { group.unordered(before) };
                        if let Some(pair) = unordered
                            && (!never || either_volatile)
                        {
                            if !never {
                                let mut evidence = group.evidence(before, pair);
                                evidence.same_value |= repeated == Some(number - 1);
                                evidence.kept = keeps(before, at, cell) || keeps(&now, at, cell);
                                add(at, before, pair, evidence);
                            } else if either_volatile {
                                let evidence = group.evidence(before, pair);
                                add(at, before, pair, Evidence { flag_like: true, ..evidence });
                            }
                        }
                        unordered
                    } else {
                        // Two reads: only whether the second makes the first superfluous.
                        Some((0, 0))
                    };
                    if is_needed {
                        return true;
                    }
                    let covered = group.covered(before, unordered.is_none() && group.met.is_none());
                    if covered == u32::MAX {
                        return false;
                    }
                    if !before.is_wide() {
                        before.lanes &= !covered;
                    }
                    before.is_wide() || before.lanes != 0
                });
                let says_so = |before: &Access| before.includes(&now) || Access { lanes: mask, ..*before } == now;
                let kept = history.iter().position(says_so).filter(|_| !now.is(Access::COPY));
                // What happened again is as late as now: see `Group::observed`.
                let mut kept = kept.map_or(now, |at| history.remove(at));
                if !kept.is_wide() {
                    kept.lanes |= mask;
                }
                history.push(kept);
            });
        }
        if strong.is_some() || released || access.strength == Strength::Unsaid {
            self.publish(access, place, mask, strong);
        }
        if access.strength == Strength::Unsaid && !halves {
            // What a fence before it has left; nothing without one.
            self.publish(access, place, mask, Some((Order::RELAXED, Scope::Block)));
        }
    }

    /// What a write leaves at its place for those who read from it.
    fn publish(&mut self, access: &WarpAccess<'_>, place: (Memory, u64), mask: u32, strong: Option<(Order, Scope)>) {
        // Those objects release by phase.
        if access.object && self.objects.has(place) {
            return;
        }
        // Reductions go on with what others have released, and release nothing.
        if access.bulk.is_some() && access.kind == Kind::Atomic {
            return;
        }
        self.has_objects |= access.object;
        let State { blocks, locations, .. } = self;
        if access.kind == Kind::Read {
            return;
        }
        let Some(block) = blocks.get_mut(&access.block) else { return };
        let Some((order, scope)) = strong else {
            for byte in place.1..place.1 + u64::from(access.size) {
                locations.remove(&(place.0, byte));
            }
            return;
        };
        if access.kind == Kind::Write
            && let Some(location) = locations.get_mut(&place)
        {
            location.clear();
        }
        if access.object {
            locations.entry(place).or_default().object = true;
        }
        for at in threads(access.warp, mask) {
            let cluster = block.cluster;
            let behind = &block.threads[at].sc;
            if scope == Scope::Device && !behind.is_empty() {
                locations.entry(place).or_default().release(scope, access.block, cluster, behind);
            }
            if order.release {
                let known = Arc::new(block.snapshot(at).clock());
                locations.entry(place).or_default().release(scope, access.block, cluster, &known);
                block.threads[at].released();
                continue;
            }
            // A fence before it has released as far as both reach.
            let mut last: Option<(u64, usize)> = None;
            for reached in Scope::ALL.into_iter().filter(|&reached| reached <= scope).rev() {
                let Some(snapshot) = block.threads[at].fenced(reached) else { continue };
                let this = (snapshot.epoch, Arc::as_ptr(&snapshot.known) as usize);
                // The wider domain has it already.
                if last == Some(this) {
                    continue;
                }
                last = Some(this);
                let known = Arc::new(snapshot.clock());
                locations.entry(place).or_default().release(reached, access.block, cluster, &known);
            }
        }
    }
}
