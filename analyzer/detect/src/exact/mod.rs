//! Exact mode on the analyzer's side: measured bytes in place of predicted ones.
//!
//! Owns how launches wait for their measured bytes, what measurement replaces, and the comparison
//! with predictions. Does not measure: the ranges come from the shim (`Op::Exact`), which gets them
//! from patched kernels.
//!
//! The files in the order of use: `pending` holds records back until a launch is measured,
//! `measured` turns measured runs into effects, `atomics` corrects the kinds of atomic loads and
//! stores, `locks` notes which were made under a lock, `scopes` which stores do not reach the host,
//! and `fences` which of them the launch did not order by its fences. `compare` and `oracle` hold
//! predictions against measurements for `--exact-compare`, with `byte_set` as their arithmetic.
//! `confirm` checks findings by measurement for `--confirm`, `settle` decides which launches need
//! no measuring, and `learned` keeps measured ranges for later runs. `measuring` puts these
//! together for the simulated GPU, which measures by itself.
//!
//! `atomics`, `compare`, `oracle` and `learned` know `measured`, which defines a run. `atomics`
//! uses `compare`'s rule of where a predicted effect may be, and `oracle` collects its verdicts.
//! `measuring` uses `settle`, `confirm` and `compare`. `fences` and `scopes` use `compare`'s rule
//! and `locks`' way to divide an effect, and `pending` keeps what `fences` makes. The other files
//! know no sibling.

pub mod atomics;
pub(crate) mod byte_set;
pub mod compare;
pub mod confirm;
pub mod fences;
pub mod learned;
pub mod locks;
pub mod measured;
pub mod measuring;
pub mod oracle;
pub mod pending;
pub mod scopes;
pub mod settle;
