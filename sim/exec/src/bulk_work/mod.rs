//! Bulk operations that have begun and are not done: what they move, and to whom they report. Owns
//! when they are carried out, no instruction.
//!
//! An operation is a thread of its own (PTX ISA, "Asynchronous operations"). The launch says when
//! it is carried out ([`BulkTiming`]): at once, or as late as a program can rely on, which is where
//! somebody polls the barrier object that it reports to and nothing else is missing there, where
//! its thread waits for its group, and at the end of its block.

pub(crate) mod object;
pub(crate) mod products;

use sim_races::{MemoryEvents, ObjectPlace, ThreadOf};

use crate::bulk_work::object::State;
use crate::bulk_work::products::Products;

/// When bulk operations (`cp.async.bulk`) are carried out, each within what PTX allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BulkTiming {
    /// Where they are issued.
    #[default]
    AtOnce,
    /// Where the program waits for them and nothing else is missing.
    Late,
    /// Some at once, some late, some in between, by a seed.
    Random(u64),
}

/// Turns of warps that an operation is held back for at most, if not until it is waited for.
const TURNS: u64 = 64;

/// Where bytes come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Host memory.
    Bytes(u64),
    /// These, which were read already or stand for what lies outside a tensor.
    These(Vec<u8>),
}

/// Bytes that go to host memory.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) from: Source,
    pub(crate) to: u64,
    pub(crate) size: u32,
}

impl Move {
    /// Reads what is to be written.
    fn hold(&mut self) {
        if let Source::Bytes(from) = self.from {
            let mut bytes = vec![0; self.size as usize];
            // SAFETY: the instruction has checked the range. Shared memory lives as long as the
            // block, which carries out its operations before it ends; allocations live as long as
            // the launch (`Device`).
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, bytes.as_mut_ptr(), bytes.len()) };
            self.from = Source::These(bytes);
        }
    }

    fn carry_out(&self) {
        let from = match &self.from {
            Source::Bytes(from) => *from as *const u8,
            Source::These(bytes) => bytes.as_ptr(),
        };
        // SAFETY: as in `hold`, of both ranges.
        unsafe { std::ptr::copy(from, self.to as *mut u8, self.size as usize) };
    }
}

/// The barrier object that gets the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    /// Where the word is for the CPU.
    pub(crate) at: u64,
    /// What the detector of races calls it.
    pub(crate) object: Option<ObjectPlace>,
    pub(crate) bytes: u32,
}

/// A bulk operation.
#[derive(Debug)]
pub(crate) struct Operation {
    /// For the detector: that of its reads; the next one is that of its writes.
    pub(crate) number: u64,
    pub(crate) moves: Vec<Move>,
    /// None: threads wait for its group.
    pub(crate) report: Option<Report>,
    thread: u32,
    group: u64,
    due: u64,
    /// Its thread knows that all has been read.
    read: bool,
}

/// Those of the threads of a block.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    operations: Vec<Operation>,
    /// The group that is open, of threads that have closed one.
    groups: Vec<(u32, u64)>,
    turns: u64,
    draws: u64,
    /// How often barrier objects were changed, by the block's threads and operations.
    pub(crate) changes: u64,
    pub(crate) products: Products,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn group(&mut self, thread: u32) -> &mut u64 {
        let at = self.groups.iter().position(|(of, _)| *of == thread).unwrap_or_else(|| {
            self.groups.push((thread, 0));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    /// Takes out operations, the newest first.
    fn take(&mut self, mut which: impl FnMut(&Operation) -> bool) -> Vec<Operation> {
        let mut taken = Vec::new();
        for at in (0..self.operations.len()).rev() {
            if which(&self.operations[at]) {
                taken.push(self.operations.remove(at));
            }
        }
        taken
    }

    /// Until which turn an operation is held back; `None`: it is carried out at once.
    fn due(&mut self, timing: BulkTiming) -> Option<u64> {
        let BulkTiming::Random(seed) = timing else {
            return (timing == BulkTiming::Late).then_some(u64::MAX);
        };
        self.draws += 1;
        let mut draw = (seed ^ self.draws).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        draw = (draw ^ draw >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 16;
        match draw % 3 {
            0 => None,
            1 => Some(u64::MAX),
            _ => Some(self.turns + 1 + draw / 3 % TURNS),
        }
    }

    /// Begins an operation of a thread.
    pub(crate) fn begin(&mut self, begun: Begun, timing: BulkTiming, events: Option<&dyn MemoryEvents>) {
        let Begun { thread, number, moves, report } = begun;
        let (due, group) = (self.due(timing), *self.group(thread));
        let mut operation = Operation { number, moves, report, thread, group, due: due.unwrap_or(0), read: false };
        if due.is_none() {
            operation.moves.drain(..).for_each(|one| one.carry_out());
            if report.is_some() {
                self.finish(operation, events);
                return;
            }
        }
        self.operations.push(operation);
    }

    /// Carries out what is left of an operation, and reports.
    pub(crate) fn finish(&mut self, operation: Operation, events: Option<&dyn MemoryEvents>) {
        operation.moves.iter().for_each(Move::carry_out);
        let Some(Report { at, object, bytes }) = operation.report else { return };
        self.changes += 1;
        let told = events.zip(object);
        if let Some((events, object)) = told {
            events.bulk_completes(operation.number, object);
            events.bulk_completes(operation.number + 1, object);
        }
        // SAFETY: the instruction has checked the word; one thread runs the whole cluster.
        let turned = unsafe { State::change(at, |state| state.bytes -= i64::from(bytes)) };
        if let (true, Some((events, object))) = (turned, told) {
            events.object_turns(object);
        }
    }

    /// Takes out what reports to the object whose word is there.
    pub(crate) fn reporting_to(&mut self, at: u64) -> Vec<Operation> {
        self.take(|operation| operation.report.is_some_and(|report| report.at == at))
    }

    /// A thread closes its group.
    pub(crate) fn commit(&mut self, thread: u32) {
        *self.group(thread) += 1;
    }

    /// A thread of a block waits until all but so many of its groups are done, or have been read.
    pub(crate) fn wait(&mut self, of: ThreadOf, pending: u32, read: bool, events: Option<&dyn MemoryEvents>) {
        let done = self.group(of.thread).saturating_sub(u64::from(pending));
        let waited = |operation: &Operation| {
            operation.report.is_none() && operation.thread == of.thread && operation.group < done
        };
        let tell = |number: u64| events.into_iter().for_each(|events| events.bulk_awaited(of, number));
        if read {
            for operation in self.operations.iter_mut().filter(|operation| waited(operation) && !operation.read) {
                operation.moves.iter_mut().for_each(Move::hold);
                operation.read = true;
                tell(operation.number);
            }
            return;
        }
        for operation in self.take(waited) {
            // Who has waited for the reads knew of them then.
            if !operation.read {
                tell(operation.number);
            }
            tell(operation.number + 1);
            self.finish(operation, events);
        }
    }

    /// A warp of the block has had a turn: some operations may be due.
    pub(crate) fn turn(&mut self, events: Option<&dyn MemoryEvents>) {
        self.turns += 1;
        let turns = self.turns;
        if !self.operations.iter().any(|operation| operation.due <= turns && !operation.moves.is_empty()) {
            return;
        }
        for operation in self.take(|operation| operation.due <= turns && operation.report.is_some()) {
            self.finish(operation, events);
        }
        for operation in self.operations.iter_mut().filter(|operation| operation.due <= turns) {
            operation.moves.drain(..).for_each(|one| one.carry_out());
        }
    }

    /// The block has ended: everything is carried out.
    pub(crate) fn end(&mut self, events: Option<&dyn MemoryEvents>) {
        for operation in self.take(|_| true) {
            self.finish(operation, events);
        }
        self.groups.clear();
        self.products.end();
    }
}

/// An operation that a thread of the block begins.
pub(crate) struct Begun {
    pub(crate) thread: u32,
    /// See [`Operation`].
    pub(crate) number: u64,
    pub(crate) moves: Vec<Move>,
    pub(crate) report: Option<Report>,
}
