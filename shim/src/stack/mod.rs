//! The calling thread's stack, as it is inside a hook.
//!
//! Owns finding frames: return addresses of native code ([`native`]) and code objects of CPython
//! ([`python`]), and knowing stacks again that were walked before ([`memo`]). It owns neither names
//! and lines (the analyzer finds those later, `analyzer::symbols`) nor what the trace stores of a
//! stack.
//!
//! Everything here runs inside somebody else's program, so it must not fault, wait for a lock of
//! the program, or allocate with the program's allocator. The module uses nothing else of this
//! crate: the tests compile it into a library of its own.

pub mod frames;
pub mod native;
pub mod python;
pub mod walk_memo;
