//! Byte ranges of the memory accesses of a kernel: which bytes a launch may read, write or update
//! atomically.
//!
//! # The way of one instruction
//!
//! Take two instructions of a kernel that reads `a[i]`, as sm_80 has them:
//!
//! ```text
//! IMAD.WIDE R2, R5, R4, c[0x0][0x160] ;   // R2:R3 = R5 * 4 + a
//! @!P0 LDG.E R8, [R2.64] ;                // R8 = the four bytes at R2:R3
//! ```
//!
//! Say that the range of the load is wrong. These are the stages in which that can happen, in
//! order. Each one names the files to open.
//!
//! 1. **Decode** (`device_code::sass`, once per kernel). Bits become a `MachineInst` with an
//!    `Opcode`. `sass/decode/mod.rs` dispatches by operation number: `integer.rs` and `logic.rs`
//!    for arithmetic, `load_store.rs` and `bulk.rs` for memory, `control_flow.rs` for branches. A
//!    register or a width that is wrong in the output of that crate's `examples/sass_survey --list`
//!    is mended there. Its `tests/sass_nvdisasm.rs` compares every field with `nvdisasm`.
//!
//! 2. **Lower** (`crate::lower_sass`). The machine instruction becomes operations of `crate::ir`:
//!    the `IMAD.WIDE` an `Op::MadWide` (`lower_sass/arithmetic.rs`), the `LDG` an `Op::Mem` with
//!    the guard `!P0` (`lower_sass/memory_access.rs`). `lower_sass/control_flow.rs` makes blocks
//!    and edges, and inlines calls. An operation without a rule here is `Op::Unknown`, and the
//!    reason of the unknown extent is `Reason::Instruction`. (PTX enters here by way of
//!    `crate::lower_ptx`.)
//!
//! 3. **Thread jumps** (`ir/jump_threading.rs`). An edge that decides the test of the next block is
//!    led past that test. A guard that got lost between two tests of the same number is mended
//!    there.
//!
//! 4. **Build the graph** ([`graph`]). `analysis.rs` starts it for the kernel, `graph/build.rs`
//!    walks the accesses and branch conditions. `graph/memory_accesses.rs` makes the access of the
//!    `LDG` with its guard; `graph/ssa.rs` finds the definition of R2 and R3 that reaches it;
//!    `graph/pairing.rs` (with `graph/carries.rs` for sums) sees that both are halves of one 64-bit
//!    value, here of the `IMAD.WIDE`; `graph/operations.rs` makes the node `R5 * 4 + a`. Predicates
//!    are in `graph/predicates.rs`, division by a variable in `graph/reciprocal_division.rs`. The
//!    reason `Reason::Pairing` means that two words did not combine. The node kinds are in
//!    `graph/node.rs`. `graph/provenance.rs` says, without any launch, from which parameter words
//!    an address can come.
//!
//! 5. **Evaluate** ([`eval`], once per launch). Every node becomes an affine form over atoms
//!    ([`domain`]): here `a + 4 * (tid.x + 128 * ctaid.x)`. `eval/value.rs` dispatches by node kind
//!    to the file that owns the operation: `no_wrap.rs` (widening, quotients, products),
//!    `arithmetic.rs` (shifts, minima, division), `bitwise.rs`, `indexed_loads.rs`, `joins.rs`, and
//!    for loops the folder `loops`. `conditions.rs` turns the predicate of the
//!    guard into constraints, `predicate_masks.rs` does so for predicates that wait in the bits of
//!    a word. `bounds.rs` bounds a form under these constraints, `relevance.rs` chooses which of
//!    them matter. A range that is too wide usually lacks a rule here. A range that is too narrow
//!    breaks one of the promises at the head of `eval/mod.rs`.
//!
//! 6. **Find the bytes** ([`extent`]). `extent/address.rs` splits the form into a base (the
//!    parameter word `a`) and an offset, and bounds the offset. `extent/exactness.rs` finds the
//!    progressions that cover it, and decides whether every byte of them is touched.
//!    `extent/delinearization.rs` is for addresses made of quotients and remainders,
//!    `extent/pointer_table.rs` for addresses that come out of a table in memory. Then
//!    `analysis.rs` groups the accesses that agree in base and direction, and `extent/coalesce.rs`
//!    joins their byte sets. Kernels that look up their work by the block index are evaluated block
//!    by block (`per_block.rs`). What a small launch is left inexact about is looked at thread by
//!    thread (`by_thread`).
//!
//! 7. **Remember** ([`memo`]). `memo/evaluation_cache.rs` returns the result of an equal launch,
//!    and `memo/replay.rs` replays the recorded arithmetic for a launch with other numbers
//!    (`domain/tape.rs` argues why that is an evaluation). When `Summary::evaluate` and
//!    `Summary::evaluate_uncached` differ, the error is here.
//!
//! `examples/dump.rs` prints what stages 5 and 6 make of a launch. `tests/ranges_truth.rs` emulates
//! kernels over all threads, and `tests/ranges_fuzz.rs` does so for generated ones; a mended rule
//! gets its kernel in `tests/cuda/`.
//!
//! # Folders
//!
//! [`graph`] depends on `crate::ir` only. [`domain`] holds the numbers and forms that an evaluation
//! calculates with, and depends on the identifiers of [`graph`]. [`eval`] uses both, [`extent`]
//! uses [`eval`], and [`memo`] stores what [`extent`] found. `analysis.rs`, `per_block.rs` and
//! `by_thread` stand above all of them. No folder knows one that comes later.

mod by_thread;
mod domain;
mod eval;
mod extent;
mod graph;
mod memo;
mod per_block;
mod program_slice;

mod access_groups;
mod analysis;
mod claims;
mod handovers;
mod held_locks;
mod locks;
mod losses;
mod map_words;
mod passed_tests;
mod resolution;
mod selections;
mod ways;

pub(crate) use analysis::{Analysis, analyse};
