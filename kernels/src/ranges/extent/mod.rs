//! Stage of the range analysis; see the head of `ranges`.

pub(crate) mod address;
pub(crate) mod coalesce;
pub(crate) mod delinearization;
pub(crate) mod exactness;
pub(crate) mod pointer_table;
pub(crate) mod reached;
