//! Copies: which bytes go where.
//!
//! [`linear`], [`strided`] and [`batched`] own the rows, each with its way of describing the two
//! sides; all of them log by way of [`copy`]. [`linear`] borrows the reading of attributes from
//! [`batched`].

mod batched;
pub(crate) mod copy;
mod linear;
pub(crate) mod strided;

pub(crate) use batched::*;
pub(crate) use linear::*;
pub(crate) use strided::*;
