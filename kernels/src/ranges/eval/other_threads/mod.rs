//! Values that a thread gets from others: through a word of shared memory, or from a lane of its
//! warp. Owns nothing itself.

mod other_lanes;
mod shared_loads;
