//! The happens-before engine: vector clocks over streams and the host, and CUDA's rules of order.
//!
//! Owns the one implementation of "is this ordered before that". The shim uses it to stamp ops as
//! they happen inside the program under test; the analyzer uses it to replay the ops of a trace,
//! maybe under another policy. It knows nothing of bytes: the analyzer decides which accesses
//! conflict, and how the nodes inside one graph launch are ordered.
//!
//! # The model
//!
//! A *timeline* is anything that has a clock of its own: every stream, and the host. An op of a
//! stream gets an *epoch*: its timeline and the next time on it. A *clock* says, for every
//! timeline, up to which time its ops are known to have **finished**. Each op has a *start clock*:
//! what must have finished before it can begin. Op `x` is ordered before op `y` exactly when `y`'s
//! start clock covers `x`'s epoch. Two ops of which neither covers the other may run at once.
//!
//! A stream's clock is the start clock of its next op. It grows in three ways, all of which the
//! program asks for:
//!
//! - its own ops finish one after the other (the stream's own component needs no storage: it is the
//!   time of its last op);
//! - it waits: for an event's snapshot, for the legacy default stream, for a value in memory, for
//!   the pool to hand out bytes that were freed elsewhere, for the previous launch of the same
//!   graph;
//! - the host enqueues the op: what the host has seen finish by then, has finished.
//!
//! In the words of ThreadSanitizer: an event record, a free to a pool or a write of a value
//! *releases*; a wait *acquires* what was released, by *joining* its snapshot into the clock.
//!
//! An event is a *snapshot* of a clock, never a reference to a stream: what the stream does after
//! the record is not in it, and recording again changes later waits only. The host acquires by
//! synchronising (a wait covers what was enqueued before it **began** and takes effect when it
//! **ends**), by queries that succeed, and by calls that wait without being asked ([`policy`]).
//!
//! # The floor
//!
//! Host threads share one timeline: handovers between them are taken to be synchronised. Then what
//! the host knows is known to every op that is enqueued afterwards, on whichever stream. So the
//! host's clock is a *floor* under all clocks, held once, densely, and a stream's clock holds only
//! what it knows beyond the floor: mostly nothing, or a few streams that it waited for. This is why
//! a launch costs a few nanoseconds and no allocation, and why synchronising a context with
//! thousands of streams costs only as much as work was enqueued since the last time: raising the
//! floor raises every clock at once, and clocks shed what has sunk below it when they are next
//! rebuilt.
//!
//! A clock snapshot ([`ClockRef::snapshot`]) and the clock of a pending host function hold the
//! floor of their own moment, because they are asked later: what the host learns after a host
//! function was enqueued may be over when it runs, by chance, but is not ordered before it.
//!
//! The host's own time counts applied ops. A load or store of the host between two ops belongs to
//! the time of the first ([`Engine::host_epoch`]): covered by everything that is enqueued
//! afterwards, not by what was enqueued before.
//!
//! # When a time advances
//!
//! At every op of a stream, records and waits included, after the op has taken in all that it waits
//! for. So what a timeline knew at a time is settled when that time is given out, and one fact
//! follows that much else rests on:
//!
//! > *Closure.* A clock that covers epoch `(s, t)` by a completion covers all that `s` knew at `t`.
//!
//! It holds because nothing can wait for one op of a stream and not for those before it, and
//! because every join takes a whole snapshot. It lets a join be skipped when its epoch is known
//! already, and timelines be used again. Events that a kernel fires before it ends break it (their
//! snapshot knows more of others than its own epoch says), so they carry a mark and are always
//! joined in full. Overlapping launches and the copies of one batch start from less than their
//! stream's whole past; that changes the start clock of that op and not the stream's clock, because
//! everything that comes after them waits for all of them.
//!
//! # Default streams, lazily
//!
//! An op on the legacy default stream waits for all blocking streams of its context and holds back
//! their later ops. Doing that to each stream at each such op would cost streams times ops. Instead
//! the context keeps a list of the blocking streams with ops that the legacy stream has not joined,
//! emptied when it joins them, and a version that its ops raise; a blocking stream compares
//! versions at its next op and joins the legacy stream's clock if it is behind. Laziness cannot be
//! seen: the clock of the legacy stream is asked for only by ops that join it first, and it stands
//! still between its own ops. Records and waits are ops in this sense. Waits of a whole context
//! (`cuCtxWaitEvent`) work the same way.
//!
//! One choice: synchronising a *blocking* stream does not cover legacy work that this stream has
//! not yet been held back by (no op of it came after).
//!
//! # Soundness
//!
//! For ops that the engine sees and models: if `x` is covered, then either CUDA promises (or, under
//! [`Policy::Observed`], the driver was measured to ensure) that `x` has finished first, or one of
//! the cases below applies, each of which errs towards order: a race may be missed, none is
//! invented.
//!
//! - Handovers between host threads that are not synchronised look ordered, unless each has a
//!   timeline of its own ([`Options::host_threads`]). With one, synchronisation that is no edge of
//!   the trace (flags in memory, futexes) is not seen, which errs the other way: that is why it is
//!   an option.
//! - A free that drains the device is logged when the real call has succeeded, for a call that
//!   fails waits for nothing. What *another* thread enqueues while the drain lasts counts as
//!   drained too. To log the beginning as well would cure that at the price of an op more for each
//!   free.
//! - A successful query of the legacy stream also covers what blocking streams got during the
//!   query. A query overtaken by more than a few changes of the stream covers a few ops too many.
//! - Event nodes in a graph record and wait for the whole launch.
//! - What lies behind a wait for a value that no one has been seen to write is not judged
//!   (`state::sync_vars`) until the writer turns up or the host sees the wait pass.
//! - A kernel launch that may overlap its predecessor counts as one that never waits for it, unless
//!   [`Engine::apply_overlapping_launch`] says otherwise. Of kernels that end early by turns, some
//!   count as ended that run. On a device whose compute capability is not known no launch overlaps
//!   another.
//!
//! Order that is not seen errs the other way, and the shim's coverage names it: flags that kernels
//! poll in memory, external semaphores that other APIs signal, what other processes do. Messages
//! from a host function to the host are seen only with [`Options::host_functions_signal`].
//!
//! # Using timelines again
//!
//! Destroying a stream does not stop its work, so its timeline stays until the floor covers its
//! last time `T`. Then a new stream may have it, with times going on from `T + 1`, and no answer
//! changes:
//!
//! - Old epochs (`t <= T`), wherever they are kept, are covered by the floor, so by everything that
//!   comes now. The new stream's ops also come after them, as times on one timeline suggest.
//! - A clock that covers a new epoch (`t > T`) thereby claims all old ones; they are below the
//!   floor, so the claim is true.
//! - A clock that holds an old epoch claims nothing of the new stream, whose times are larger.
//!
//! Clocks and snapshots need no search for remains of the old life. So memory is bounded by live
//! streams, streams destroyed whose work has not been waited for, live events, live allocations,
//! and pool memory freed in work not yet waited for; an event's snapshots go when it is destroyed,
//! a graph's when it is.
//!
//! # Two floors
//!
//! The policies differ in what the host has seen finish, and in nothing else that clocks hold. So
//! one engine can answer for both: with [`Options::latent`] a second floor rises by documented
//! synchronisation alone, clocks keep what the *weaker* floor does not cover, and
//! [`ClockRef::covers_documented`] asks that one. A pair that is covered, but not by documented
//! synchronisation, is a latent race. (When a staged source is read is the one answer that stays
//! with the policy.)
//!
//! # Files
//!
//! From the bottom up; a file knows only what stands before it.
//!
//! - `id_map`: maps keyed by ids.
//! - `clock`: vector clocks and snapshots of timelines.
//! - `policy`: what the host waits for by itself, one table.
//! - `state`: streams, events, the host, host threads, allocations, values in memory, executable
//!   graphs, devices.
//! - `start_clock`: the answers to "is this ordered before it?".
//! - `engine`: the state as a whole, the path of every op, threads of the host, the queries.
//! - `rules`: [`Engine::apply`], and CUDA's rules, one file for each kind of op.

#![warn(unreachable_pub)]

mod clock;
mod condition;
mod engine;
pub(crate) mod id_map;
pub mod policy;
mod rules;
pub(crate) mod start_clock;
pub(crate) mod state;

pub use crate::condition::AwaitedWord;
pub use crate::start_clock::{ClockRef, ClockSnapshot, FastClock};
pub use crate::state::devices::has_programmatic_launches;
pub use crate::state::last_kernel::{Opens, Overlap};
pub use crate::state::sync_vars::FoundValues;
pub use engine::{Awaits, Engine, Options};
pub use policy::Policy;
