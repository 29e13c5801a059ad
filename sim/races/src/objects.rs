//! Barrier objects by phase, and the bulk operations that report to them or are waited for in
//! groups. Owns which phase an operation was done in; knows no shadow.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::clock::{Known, Span, join, object};
use crate::events::{Memory, ObjectPlace, ThreadOf};

/// A barrier object.
#[derive(Debug)]
struct Object {
    number: u32,
    phase: u64,
    /// What has been released in the phase that it is in.
    coming: Arc<Known>,
    /// And in those before.
    over: Arc<Known>,
    /// The same of arrivals that only waits of the cluster's scope hear.
    far_coming: Arc<Known>,
    far: Arc<Known>,
}

/// How far a bulk operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its bytes came in a phase of a block's object.
    Reported { block: u32, object: u32, phase: u64 },
    /// A thread has waited for it, at an epoch.
    Awaited { block: u32, thread: u32, epoch: u64 },
}

/// All of a launch.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    objects: FxHashMap<ObjectPlace, Object>,
    numbers: u32,
    /// Of the operations that are done.
    done: FxHashMap<u64, Progress>,
    /// Of products that nobody has waited for: how far the threads were that issued them.
    issued: FxHashMap<u64, Vec<Span>>,
    /// The objects that a thread has initialised since its last fence for that.
    begun: FxHashMap<(u32, u32), Vec<ObjectPlace>>,
}

fn block_of(memory: Memory) -> u32 {
    if let Memory::Shared(block) = memory { block } else { 0 }
}

impl Objects {
    /// Whether there is an object that was told to begin.
    pub(crate) fn has(&self, place: ObjectPlace) -> bool {
        self.objects.contains_key(&place)
    }

    fn object(&mut self, place: ObjectPlace) -> &mut Object {
        let numbers = &mut self.numbers;
        self.objects.entry(place).or_insert_with(|| {
            *numbers += 1;
            let [coming, over, far_coming, far] = <[Arc<Known>; 4]>::default();
            Object { number: *numbers, phase: 0, coming, over, far_coming, far }
        })
    }

    pub(crate) fn begins(&mut self, thread: ThreadOf, place: ObjectPlace) {
        self.objects.remove(&place);
        self.object(place);
        self.begun.entry((thread.block, thread.thread)).or_default().push(place);
    }

    /// The objects that a thread has initialised since this was asked last.
    pub(crate) fn take_begun(&mut self, thread: (u32, u32)) -> Vec<ObjectPlace> {
        self.begun.remove(&thread).unwrap_or_default()
    }

    pub(crate) fn arrives(&mut self, place: ObjectPlace, known: &Arc<Known>, far: bool) {
        let object = self.object(place);
        let coming = if far { &mut object.far_coming } else { &mut object.coming };
        *coming = join(coming, known);
    }

    pub(crate) fn turns(&mut self, place: ObjectPlace) {
        let of = self.object(place);
        let mut over = join(&of.over, &of.coming);
        let block = block_of(place.0);
        let span = Span { thread: object(of.number), first: block, last: block, epoch: of.phase };
        Arc::make_mut(&mut over).learn(vec![span]);
        (of.over, of.coming) = (over, Arc::default());
        of.far = join(&of.far, &std::mem::take(&mut of.far_coming));
        of.phase += 1;
    }

    /// What those learn who see that the last phase is over, and what they learn besides if they
    /// wait for the cluster.
    pub(crate) fn passed(&mut self, place: ObjectPlace) -> [Arc<Known>; 2] {
        let of = self.object(place);
        [of.over.clone(), of.far.clone()]
    }

    pub(crate) fn completes(&mut self, operation: u64, place: ObjectPlace) {
        let of = self.object(place);
        let done = Progress::Reported { block: block_of(place.0), object: of.number, phase: of.phase };
        self.done.insert(operation, done);
        if let Some(issued) = self.issued.remove(&operation) {
            Arc::make_mut(&mut self.object(place).coming).learn(issued);
        }
    }

    /// Threads have issued their parts of a product.
    pub(crate) fn issued(&mut self, operation: u64, threads: Vec<Span>) {
        self.issued.insert(operation, threads);
    }

    pub(crate) fn awaited(&mut self, operation: u64, thread: ThreadOf, epoch: u64) {
        let ThreadOf { block, thread } = thread;
        self.done.insert(operation, Progress::Awaited { block, thread, epoch });
    }

    /// `None`: it is not done, as far as anybody can know.
    pub(crate) fn progress(&self, operation: u64) -> Option<Progress> {
        self.done.get(&operation).copied()
    }

    /// A block has ended, and its memory with it.
    pub(crate) fn block_ends(&mut self, block: u32) {
        self.objects.retain(|(memory, _), _| *memory != Memory::Shared(block));
        self.begun.retain(|thread, _| thread.0 != block);
    }
}
