//! From a kernel launch to the bytes that it touches.
//!
//! Owns the effects of a launch and the way from code to effects. Does not remember launches
//! ([`crate::launch_memory`]) and does not know allocations or order.
//!
//! The files in the order of use: [`kernel_code`] is the interface to a kernel's code,
//! [`image_reader`] its implementation by the crate `kernels` ([`images`] says where code is, and
//! [`held_files`] are the files it reads), [`ahead`] the threads that analyse kernels before their
//! turn, [`effects`] the result, [`coalesce`] shortens the list of effects, and [`param_mask`]
//! says which parameter bytes the result depends on. [`param_layout`] is for traces that have the
//! parameters elsewhere than the code, [`map_copies`] for copies by tensor maps. [`dependence`] is
//! what code says of programmatic dependent launch.
//!
//! Two pairs know each other. [`effects`] and [`kernel_code`]: code produces effects, and the
//! summary of a launch asks the code what is missing from them. [`effects`] and [`coalesce`]: a
//! union is made of effects, as the last step of building them.

pub mod ahead;
pub(crate) mod coalesce;
pub mod dependence;
pub mod effects;
pub(crate) mod held_files;
pub mod image_reader;
pub mod images;
pub mod kernel_code;
mod known_kernel;
pub(crate) mod map_copies;
pub(crate) mod param_layout;
pub(crate) mod param_mask;
