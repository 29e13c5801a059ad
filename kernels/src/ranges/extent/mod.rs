//! From the value of an address to the bytes that a launch touches.
//!
//! Owns everything behind [`Eval`](super::eval::Eval): splitting an address into base and offset
//! (`address`), the progressions that cover the offset and whether they are exact (`exactness`),
//! addresses of two special shapes (`delinearization`, `pointer_table`), joining the sets of
//! several accesses (`coalesce`), and the variables behind the constant bank (`constant_bank`).
//! `made_maps` finds the tensors of maps that the kernel makes itself.
//! `reached` holds the types of the results. `address`, `delinearization` and `pointer_table` know
//! each other: the first tries the other two, and they ask it for the extent of a part of the
//! address. All of them take the evaluation as a parameter; no file of `eval` calls these.

pub(super) mod address;
pub(super) mod coalesce;
mod constant_bank;
pub(super) mod delinearization;
mod exactness;
pub(super) mod made_maps;
mod pointer_table;
pub(super) mod reached;
pub(crate) mod tiles;
