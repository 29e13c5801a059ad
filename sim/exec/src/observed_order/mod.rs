//! What observers of a launch are told of its order: fences and barriers, and what each access
//! orders besides itself. The order between kernels, and between a kernel and the host, rests on
//! it. (`sim_races` is told more, for the order inside a kernel.)

mod event;
mod program_order;

pub use event::{AccessOrder, OrderEvent, Reach};
pub(crate) use program_order::ProgramOrder;
