//! The host's own accesses to memory that copies still use: no call announces them, so they are
//! looked for.
//!
//! Owns three ways of finding them. [`watches`] compares what the source of a copy looked like when
//! the copy was enqueued with what it looks like when the host is ordered after it: a change is a
//! write of the host that nothing ordered. On request [`page_protection`] takes the pages from the
//! CPU while a copy uses them: then every touch is seen when it happens, reads too. This folder
//! lies below the log and calls nothing of the driver; `crate::observe::host_watch` leads from
//! calls to it. What a change is worth is decided by the analyzer.
//!
//! Host code that is compiled for it says itself what it touches: [`touches`].
//!
//! Where devices reach memory through another mapping than the program does (the simulated GPU),
//! the CPU's touches of what kernels use in place are seen as well: [`in_place`] knows which work
//! is pending, [`holds`] takes its pages from the CPU, and a touch becomes an entry of
//! [`held_touches`] while [`single_step`] lets one instruction pass.
//!
//! [`pinned_bounds`] rules most copies out. [`watches`] holds the rest, with sums from [`checksum`]
//! within the [`read_budget`], and protects pages. A touch of a protected page arrives in
//! [`sigsegv`] or, when the kernel would touch it, in [`system_calls`]; both give the page back in
//! [`page_protection`]. Pages in [`unwatched`] are never protected. [`graph_copies`] stands alone:
//! what a graph's copies use.

pub mod checksum;
pub mod graph_copies;
pub mod held_touches;
pub mod holds;
pub mod in_place;
pub mod page_protection;
pub mod pinned_bounds;
pub mod read_budget;
pub mod sigsegv;
pub mod single_step;
pub mod system_calls;
pub mod touches;
pub mod unwatched;
pub mod watches;
