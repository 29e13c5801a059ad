//! The simulated GPU: what a user meets, and what it answers.

mod algebra;
mod answers;
mod architecture;
mod atomics;
mod constants;
mod device_launches;
mod fences;
mod found_values;
mod grid_barriers;
mod host_functions;
mod inside;
mod inside_launches;
mod jump_tables;
mod libraries;
mod locks;
mod measured;
mod modern_calls;
mod passed_pointers;
mod pipelines;
mod refusals;
mod replaced_files;
mod replayed;
mod runtimes;
mod simulated;
mod tiles;
mod unasked;
