//! The simulated GPU: what a user meets, and what it answers.

mod answers;
mod refusals;
mod simulated;
