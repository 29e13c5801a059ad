//! The calling thread's stack, as it is inside a hook.
//!
//! Owns finding frames: return addresses of native code ([`native`]) and code objects of CPython
//! ([`python`]). A stack that was walked before is recognised without walking it again. Names and
//! lines are not found here (the analyzer does that later, `analyzer::symbols`), and nothing is
//! written to the trace.
//!
//! Files, in the order in which a capture uses them: [`frames`] (entry: the buffer and how much of
//! a stack is wanted), [`walk_memo`] (the walks that this thread has made before), [`python`] and
//! [`native`] (the two walks), [`stack_ids`] (which stack of the trace a known walk is). Both
//! walks build on [`walk`] (the result of a walk) and [`edges`] (the table in which known walks
//! branch), and on nothing else of each other but the test for readable memory in [`native`].
//!
//! Everything here runs inside somebody else's program, so it must not fault, wait for a lock of
//! the program, or allocate with the program's allocator. The module uses nothing else of this
//! crate: the tests compile it into a library of its own.

pub mod edges;
pub mod frames;
pub mod native;
pub mod python;
pub mod stack_ids;
pub mod walk;
pub mod walk_memo;

/// Clears what a fork may have copied in the middle of a change. To be called in the child of a
/// fork.
pub fn after_fork_in_child() {
    native::modules::after_fork_in_child();
    walk_memo::after_fork_in_child();
}
