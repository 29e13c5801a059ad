//! What a call of a library touches, as a kernel: the model.
//!
//! A stand-in computes natively, but its work must show as an operation of a stream with exact
//! bytes. So each call launches a small kernel of PTX that names these bytes: `block` describes
//! one set of them, `text` writes the PTX, `launch` hands both to the driver. Tools read the PTX as
//! they read any other. The simulator runs a native function in its place.
//!
//! A model never changes memory: what it loads, it stores back; to bytes that are only written it
//! stores zeros, and the native function that runs behind it overwrites them.

pub mod block;
pub mod launch;
pub mod text;
