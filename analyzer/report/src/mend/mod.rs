//! What would mend a missing synchronisation: which interface the program uses, and the lines in
//! it.
//!
//! Owns the wording of these lines, of findings and of causes alike. Does not decide what is
//! missing between the places of a cause: that is `causes`.
//!
//! The files in the order of use: `api` is the interface of a call site, `lines` are its calls, and
//! `finding` is the synchronisation between the two sides of one finding, with `overlap` for
//! kernels that begin early. `in_kernel` is the finding, with its advice, of two threads of one
//! kernel, `stale_graph` that of a graph that names memory which has ended;
//! `unwritten_read` has the advice where a kernel reads what nothing wrote, and `superfluous` the
//! hint about a fence or a barrier that nothing needed.

pub mod api;
mod finding;
mod in_kernel;
pub mod lines;
mod overlap;
pub mod stale_graph;
pub mod superfluous;
mod unwritten_read;
