//! What is remembered of a kernel launch.
//!
//! A long run launches the same few kernels millions of times, with few shapes and with parameters
//! that mostly repeat. This folder owns what the analysis remembers of a launch in memory and how a
//! repeated launch is recognised. It does not read code ([`crate::launches`]) and does not judge
//! races ([`crate`]).
//!
//! Several layers remember a launch, in this folder and outside of it. Each saves the work of the
//! layers listed before it. None changes a result: every access of every launch is compared with
//! the access map. A launch tries the fastest layer first and falls back to the slower ones. This
//! is the list from slow to fast, with the file, the key, the bound, what makes an entry void, and
//! where the proof or the model test is.
//!
//! 1. *Kernel summaries on disk* save the decoding and analysis of code. File: the crate `kernels`,
//!    `src/summary_cache.rs`. Key: a hash of the code, the architecture, the kernel's name and the
//!    sources of that crate. Bound: 256 MiB for the folder; what was unused for longest goes first.
//!    Void: never, because an entry is addressed by its content; an unreadable entry counts as
//!    missing. Test: `kernels/tests/summary_cache.rs`.
//! 2. *Evaluations on disk* save the evaluation of launches that an earlier run made. They are
//!    written by [`evaluator::LaunchEvaluator::keep`] at the end of a run, beside their summary.
//!    File: `src/ranges/memo/evaluation_cache.rs` of `kernels`. Key: the summary's key, then the
//!    shape of the launch and the inputs that its result depends on. Bound: 1 MiB a kernel, more is
//!    not kept. Void: never, as above. Test: `kernels/tests/summary_cache.rs`.
//! 3. *Evaluations in memory*, per kernel, save the evaluation of equal launches and of launches
//!    that differ in numbers only: the arithmetic of an evaluation is recorded on a tape and
//!    replayed with other numbers. Files: `src/ranges/memo/` of `kernels`. Key: the shape (for
//!    tapes without the grid) and the inputs that matter. Bound: 64 results and 8 tapes a kernel;
//!    the oldest goes first. Void: a tape does not apply to a launch outside of its recorded
//!    bounds. Proof: the head of `src/ranges/domain/tape.rs`; tests:
//!    `kernels/tests/ranges_replays.rs` and `ranges_fuzz.rs`.
//! 4. *Kernels of the process* save the look-up of the image and of the summary. File:
//!    [`evaluator`]. Key: the kernel's id in the trace. Bound: the kernels of the program; of their
//!    images 256 stay unpacked ([`crate::launches::image_reader`]). Void: never, because an id is
//!    not used again.
//! 5. *Parameter masks* make launches equal that differ only in parameter bytes without influence.
//!    They hold no launch; they shape the key of the next layer. File:
//!    [`crate::launches::param_mask`]. Key: the kernel. Bound: one mask a kernel, for 2^20 kernels.
//!    Void: a mask only grows. A kernel that is seen with another size of parameters depends on all
//!    of them from then on. Proof: the head of that file; tests: beside it.
//! 6. *The launch cache* saves the call into `kernels` and the translation of its answer. File:
//!    [`launch_cache`]. Key: [`launch_key`], a 64-bit hash of kernel, shape and masked parameters;
//!    on a hit all of these are compared, not only the hash. Bound: 2^13 sets of two slots. Void:
//!    never; an entry is evicted when both of its sets are full. A mask that has grown changes the
//!    hash, so older entries are no longer found and age out. Test: beside it.
//! 7. *The replay log* of a cached launch saves the search for the allocation, the access map and
//!    the cell of each access. Files: [`replay`] and [`crate::recording`], which writes the
//!    log. Key: the slot of layer 6. Bound: 24 accesses a launch; a launch with more has no log.
//!    Void: when a generation of a place it touched has changed ([`crate::memory::generations`]),
//!    when aliases, objects or variable addresses have changed, and, if an address lay in no
//!    allocation, when any root has come or gone. Argument: the head of [`replay`]; model test:
//!    `tests/launch_replay.rs`, which compares random programs with and without replay.
//! 8. *The fast path of the analysis* saves decoding the record into an op, and the dispatch.
//!    Files: `analysis`'s `fast_path.rs`, and `submissions.rs`, which makes the side
//!    effects of a launch for the fast and the slow path alike. `ingest/prefetch.rs` fetches the
//!    cache slots of the next 16 records into the processor's cache. Key: the slot of layer 6.
//!    Bound: none of its own. Void: as layer 7; and no launch takes this path while measuring,
//!    learning, hints, comparison between processes or paused checking need more than the accesses.
//!    Test: `tests/launch_replay.rs`, which also reads the programs from a recording.
//! 9. *The fast path of the access map* saves comparing an access piece by piece. File:
//!    `memory/access_map/fast_path.rs`. Key: the cell that held the access last, kept in the replay
//!    log. Bound: cells of at most 13 pieces. Void: the access is not within that cell, has gaps or
//!    is not exact, overlaps an access of another op that has not provably finished, or could
//!    overwrite a pointer table whose words are known. The access then takes the general way,
//!    `memory/access_map/cell.rs`. Proof: the head of [`crate::memory::access_map`]; model test:
//!    `tests/map_model.rs`.
//!
//! # The files of this folder
//!
//! In the order of use: [`launch_key`] names a launch, [`launch_cache`] finds it, [`replay`]
//! repeats its accesses, and [`evaluator`] owns them all and evaluates what is not found. Two pairs
//! know each other. [`evaluator`] and [`replay`]: a log holds the tally under which the evaluator
//! counts it. [`launch_cache`] and [`replay`]: a cached launch holds its log, so that one look-up
//! finds both.

pub mod evaluator;
pub(crate) mod launch_cache;
pub mod launch_key;
pub mod replay;
