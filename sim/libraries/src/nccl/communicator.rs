//! Communicators, and what a call becomes.
//!
//! A message is put into a ring when the one before it was, and when those that lay in its place
//! have been taken by all. Calls inside a group take effect at its end: first everything is put
//! into rings, then results are taken, so that ranks that send to each other do not wait in a
//! circle. The calls of one communicator in a group are one operation on all of its streams, as
//! NCCL's are: the streams wait for each other before it and after it. Operations of a communicator
//! follow each other, on whichever streams they are (NVIDIA/nccl, issue 574).

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use cuda_sys::{CU_EVENT_DISABLE_TIMING, CU_STREAM_CAPTURE_STATUS_NONE, CUcontext, CUevent, CUresult, CUstream};

use super::shared::{RANKS, RING, Shared, UniqueId, own_ring, pair_ring};
use super::transfer::{Combine, Post, Take};
use crate::model::launch::launch;
use sim_driver_link::{private, refused};

/// Statuses of NCCL.
pub(super) const UNHANDLED_CUDA_ERROR: i32 = 1;
pub(super) const INTERNAL_ERROR: i32 = 3;
pub(super) const INVALID_ARGUMENT: i32 = 4;
pub(super) const INVALID_USAGE: i32 = 5;

/// What one end knows of a ring: the messages in it, each with its end in bytes since the first.
#[derive(Default)]
struct Ring {
    messages: u32,
    bytes: u64,
    /// Messages that may still lie in the ring: number and first byte.
    held: VecDeque<(u32, u64)>,
}

/// Where a message lies.
struct Message {
    number: u32,
    offset: u64,
    /// The message that must have been taken before, if any.
    after: u32,
}

impl Ring {
    fn next(&mut self, bytes: u64) -> Message {
        // No message goes round the end.
        if self.bytes % RING + bytes > RING {
            self.bytes = self.bytes.next_multiple_of(RING);
        }
        let start = self.bytes;
        self.bytes += bytes.next_multiple_of(64);
        self.messages += 1;
        self.held.push_back((self.messages, start));
        let mut after = 0;
        while self.held.front().is_some_and(|&(_, first)| first + RING < self.bytes) {
            after = self.held.pop_front().map_or(after, |(number, _)| number);
        }
        Message { number: self.messages, offset: start % RING, after }
    }
}

/// What an `ncclComm_t` points to.
pub(super) struct Communicator {
    pub rank: usize,
    pub ranks: usize,
    pub device: i32,
    shared: Shared,
    /// By ring: of collectives (all ranks' are alike), then of pairs.
    rings: Mutex<Vec<Ring>>,
}

/// A stream waits for counters, then does its part.
struct Step {
    /// The communicator, as a number.
    communicator: usize,
    waits: Vec<(u64, u32)>,
    stream: CUstream,
    name: &'static str,
    part: Part,
}

enum Part {
    Post(Post),
    Take(Box<Take>),
}

/// What is to be put into rings, and what is to be taken out.
#[derive(Default)]
pub(super) struct Steps {
    posts: Vec<Step>,
    takes: Vec<Step>,
}

thread_local! {
    static GROUP: RefCell<(u32, Steps)> = RefCell::new((0, Steps::default()));
}

/// A collective, as one rank sees it.
pub(super) struct Collective {
    pub name: &'static str,
    pub send: u64,
    /// Bytes that this rank, and every other, has room for in its ring.
    pub room: u64,
    /// Bytes that this rank puts there.
    pub bytes: u64,
    pub receive: u64,
    pub combine: Combine,
    /// Whose contributions count.
    pub from: std::ops::Range<usize>,
    /// Which bytes of each count.
    pub part: std::ops::Range<u64>,
}

fn address(counter: &std::sync::atomic::AtomicU32) -> u64 {
    std::ptr::from_ref(counter) as u64
}

impl Communicator {
    /// Joins the communicator of an id.
    pub(super) fn join(id: &UniqueId, ranks: i32, rank: i32, device: i32) -> Result<Communicator, i32> {
        let (Ok(ranks), Ok(rank)) = (usize::try_from(ranks), usize::try_from(rank)) else {
            return Err(INVALID_ARGUMENT);
        };
        if rank >= ranks {
            return Err(INVALID_ARGUMENT);
        }
        if ranks > RANKS {
            refused(&format!("a communicator of NCCL with {ranks} ranks is not simulated"));
            return Err(INVALID_USAGE);
        }
        let shared = Shared::open(id).ok_or(INTERNAL_ERROR)?;
        let rings = (0..RANKS + RANKS * RANKS).map(|_| Ring::default()).collect();
        Ok(Communicator { rank, ranks, device, shared, rings: Mutex::new(rings) })
    }

    /// The file that its ranks share.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What tells it from others in the steps of a group.
    fn number(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn message(&self, ring: usize, bytes: u64) -> Result<Message, i32> {
        if bytes > RING {
            refused("a message of NCCL of more than 2 GiB is not simulated");
            return Err(INVALID_USAGE);
        }
        Ok(self.rings.lock().unwrap_or_else(PoisonError::into_inner)[ring].next(bytes))
    }

    fn post(
        &self,
        ring: usize,
        message: &Message,
        takers: std::ops::Range<usize>,
        from: u64,
        bytes: u64,
    ) -> (Vec<(u64, u32)>, Post) {
        let counter = address(self.shared.posted(ring));
        let mut waits = vec![(counter, message.number - 1)];
        if message.after > 0 {
            waits.extend(takers.map(|taker| (address(self.shared.taken(ring, taker)), message.after)));
        }
        (waits, Post { from, bytes, to: self.shared.at(ring, message.offset, bytes), counter, value: message.number })
    }

    /// Makes a collective's steps.
    pub(super) fn collective(&self, call: &Collective, stream: CUstream) -> Result<(), i32> {
        // All ranks' rings are filled alike, so this rank's own tells where all messages lie.
        let own = own_ring(self.rank);
        let message = self.message(own, call.room)?;
        let (waits, post) = self.post(own, &message, 0..self.ranks, call.send, call.bytes);
        let post = Step { communicator: self.number(), waits, stream, name: call.name, part: Part::Post(post) };
        let mut take = Take {
            combine: call.combine,
            parts: [0; RANKS],
            ranks: call.from.len(),
            bytes: call.part.end - call.part.start,
            to: call.receive,
            counters: [0; RANKS],
            value: message.number,
        };
        let mut waits = Vec::new();
        for rank in 0..self.ranks {
            let ring = own_ring(rank);
            waits.push((address(self.shared.posted(ring)), message.number));
            waits.push((address(self.shared.taken(ring, self.rank)), message.number - 1));
        }
        for (at, rank) in call.from.clone().enumerate() {
            take.parts[at] = self.shared.at(own_ring(rank), message.offset + call.part.start, take.bytes);
        }
        for rank in 0..self.ranks {
            take.counters[rank] = address(self.shared.taken(own_ring(rank), self.rank));
        }
        let take =
            Step { communicator: self.number(), waits, stream, name: call.name, part: Part::Take(Box::new(take)) };
        self.add(Some(post), Some(take))
    }

    /// Sends to one rank.
    pub(super) fn send(
        &self,
        name: &'static str,
        to: usize,
        from: u64,
        bytes: u64,
        stream: CUstream,
    ) -> Result<(), i32> {
        let ring = pair_ring(self.rank, to);
        let message = self.message(ring, bytes)?;
        let (waits, post) = self.post(ring, &message, to..to + 1, from, bytes);
        self.add(Some(Step { communicator: self.number(), waits, stream, name, part: Part::Post(post) }), None)
    }

    /// Receives from one rank.
    pub(super) fn receive(
        &self,
        name: &'static str,
        from: usize,
        to: u64,
        bytes: u64,
        stream: CUstream,
    ) -> Result<(), i32> {
        let ring = pair_ring(from, self.rank);
        // To itself a rank sends by the same ring, whose messages are counted when they are sent.
        let message = if from == self.rank { self.own_message(ring) } else { self.message(ring, bytes)? };
        let taken = address(self.shared.taken(ring, self.rank));
        let waits = vec![(address(self.shared.posted(ring)), message.number), (taken, message.number - 1)];
        let mut take = Take {
            combine: Combine::Concatenate,
            parts: [0; RANKS],
            ranks: 1,
            bytes,
            to,
            counters: [0; RANKS],
            value: message.number,
        };
        take.parts[0] = self.shared.at(ring, message.offset, bytes);
        take.counters[0] = taken;
        self.add(
            None,
            Some(Step { communicator: self.number(), waits, stream, name, part: Part::Take(Box::new(take)) }),
        )
    }

    /// The message that this rank sent to itself last.
    fn own_message(&self, ring: usize) -> Message {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, start) = rings[ring].held.back().copied().unwrap_or((1, 0));
        Message { number, offset: start % RING, after: 0 }
    }

    fn add(&self, post: Option<Step>, take: Option<Step>) -> Result<(), i32> {
        let now = GROUP.with_borrow_mut(|(depth, steps)| {
            steps.posts.extend(post);
            steps.takes.extend(take);
            (*depth == 0).then(|| std::mem::take(steps))
        });
        now.map_or(Ok(()), |steps| steps.enqueue())
    }
}

/// Opens a group.
pub(super) fn begin_group() {
    super::split::begin_group();
    GROUP.with_borrow_mut(|(depth, _)| *depth += 1);
}

/// Closes a group: the outermost one enqueues what was called in it.
pub(super) fn end_group() -> Result<(), i32> {
    let now = GROUP.with_borrow_mut(|(depth, steps)| {
        if *depth == 0 {
            return Err(INVALID_USAGE);
        }
        *depth -= 1;
        Ok((*depth == 0).then(|| std::mem::take(steps)))
    })?;
    super::split::end_group()?;
    now.map_or(Ok(()), |steps| steps.enqueue())
}

/// The event behind the last operation of each communicator, as a number, and its stream. They are
/// numbers themselves: handles of the driver's.
static LAST: Mutex<BTreeMap<usize, (usize, usize)>> = Mutex::new(BTreeMap::new());

/// Waits for the last operation of a communicator.
pub(super) fn finish(communicator: usize) -> Result<(), i32> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).get(&communicator).copied();
    match last {
        Some((event, _)) => cu!(cuEventSynchronize(CUevent(event as *mut _))).map_err(|_| UNHANDLED_CUDA_ERROR),
        None => Ok(()),
    }
}

/// A communicator goes away: another one may get its number.
pub(super) fn forget(communicator: usize) {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).remove(&communicator);
    if let Some((event, _)) = last {
        let _ = cu!(cuEventDestroy_v2(CUevent(event as *mut _)));
    }
}

impl Steps {
    fn enqueue(self) -> Result<(), i32> {
        self.enqueue_in_turn().map_err(|_| UNHANDLED_CUDA_ERROR)
    }

    /// The streams of each communicator, of which there is one at least.
    fn streams(&self) -> BTreeMap<usize, Vec<CUstream>> {
        let mut streams = BTreeMap::<usize, Vec<CUstream>>::new();
        for step in self.posts.iter().chain(&self.takes) {
            let streams = streams.entry(step.communicator).or_default();
            if !streams.contains(&step.stream) {
                streams.push(step.stream);
            }
        }
        streams
    }

    fn enqueue_in_turn(self) -> Result<(), CUresult> {
        let all = self.streams();
        all.iter().try_for_each(|(communicator, streams)| follow(*communicator, streams[0]))?;
        all.values().try_for_each(|streams| join(streams))?;
        self.posts.into_iter().chain(self.takes).try_for_each(Step::enqueue)?;
        all.values().try_for_each(|streams| join(streams))?;
        all.iter().try_for_each(|(communicator, streams)| mark(*communicator, streams[0]))
    }
}

/// Whether a stream is being captured: what belongs to a graph follows nothing outside.
fn is_captured(stream: CUstream) -> Result<bool, CUresult> {
    let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
    cu!(cuStreamIsCapturing(stream, &raw mut status))?;
    Ok(status != CU_STREAM_CAPTURE_STATUS_NONE)
}

/// The stream waits for the last operation of a communicator.
fn follow(communicator: usize, stream: CUstream) -> Result<(), CUresult> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).get(&communicator).copied();
    match last {
        Some((event, other)) if other != stream.0 as usize && !is_captured(stream)? => {
            cu!(cuStreamWaitEvent(stream, CUevent(event as *mut _), 0))
        }
        _ => Ok(()),
    }
}

/// The last operation of a communicator is the one that was put into this stream.
fn mark(communicator: usize, stream: CUstream) -> Result<(), CUresult> {
    if is_captured(stream)? {
        return Ok(());
    }
    let mut all = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let event = match all.get(&communicator) {
        Some((event, _)) => CUevent(*event as *mut _),
        None => new_event(stream)?,
    };
    all.insert(communicator, (event.0 as usize, stream.0 as usize));
    cu!(cuEventRecord(event, stream))
}

/// A new event in the context of a stream. (An event is of the current context, which may be
/// another device's.)
fn new_event(stream: CUstream) -> Result<CUevent, CUresult> {
    let (mut context, mut current) = (CUcontext(std::ptr::null_mut()), CUcontext(std::ptr::null_mut()));
    cu!(cuStreamGetCtx(stream, &raw mut context))?;
    let mut event = CUevent(std::ptr::null_mut());
    cu!(cuCtxPushCurrent_v2(context))?;
    let created = cu!(cuEventCreate(&raw mut event, CU_EVENT_DISABLE_TIMING));
    cu!(cuCtxPopCurrent_v2(&raw mut current))?;
    created.map(|()| event)
}

/// Each of these streams waits for what is in all of them now.
fn join(streams: &[CUstream]) -> Result<(), CUresult> {
    let [first, others @ ..] = streams else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let event = new_event(*first)?;
    for &stream in others {
        cu!(cuEventRecord(event, stream))?;
        cu!(cuStreamWaitEvent(*first, event, 0))?;
    }
    cu!(cuEventRecord(event, *first))?;
    others.iter().try_for_each(|&stream| cu!(cuStreamWaitEvent(stream, event, 0)))?;
    cu!(cuEventDestroy_v2(event))
}

impl Step {
    fn enqueue(self) -> Result<(), CUresult> {
        let table = private().ok_or(CUresult::ERROR_NOT_SUPPORTED)?;
        for (counter, value) in self.waits.into_iter().filter(|&(_, value)| value > 0) {
            // SAFETY: a counter of a file that is mapped for ever.
            match unsafe { (table.wait)(self.stream, counter as *const u32, value) } {
                CUresult::SUCCESS => {}
                error => return Err(error),
            }
        }
        match self.part {
            Part::Post(post) => launch(self.stream, self.name, &post.blocks(), &post),
            Part::Take(take) => launch(self.stream, self.name, &take.blocks(), &*take),
        }
    }
}

/// A communicator as programs hold it.
pub(super) type CommHandle = *const Communicator;

/// # Safety
/// The handle is a communicator's that was not destroyed, or null.
pub(super) unsafe fn communicator(handle: CommHandle) -> Result<Arc<Communicator>, i32> {
    if handle.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise: it came from `Arc::into_raw`, and the program's share remains.
    unsafe {
        Arc::increment_strong_count(handle);
        Ok(Arc::from_raw(handle))
    }
}
