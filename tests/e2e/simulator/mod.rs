//! The simulated GPU: what a user meets, and what it answers.

mod answers;
mod architecture;
mod refusals;
mod runtimes;
mod simulated;
