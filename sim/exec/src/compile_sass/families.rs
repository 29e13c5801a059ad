//! The list of the families of instructions.

use device_code::sass::MachineInst;

use super::translation::Translation;
use super::{control, convert, float, half, int, lanes, logic, memory, special, tensor, warp_group};
use crate::compile::function::Result;

/// Dispatches to the families. A new family adds its line here.
pub(super) fn instruction(i: &MachineInst, t: &mut Translation<'_>) -> Result<()> {
    if control::control(i, t)?
        || memory::pipelines::pipelines(i, t)?
        || memory::remote::remote(i, t)?
        || memory::load_store::load_store(i, t)?
        || memory::atomic::atomic(i, t)?
        || lanes::lanes(i, t)?
        || int::integer(i, t)?
        || logic::logic(i, t)?
        || logic::predicates(i, t)?
        || special::special(i, t)?
        || memory::texture::texture(i, t)?
        || float::floating(i, t)?
        || half::half(i, t)?
        || convert::convert(i, t)?
        || tensor::tensor(i, t)?
        || warp_group::warp_group(i, t)?
    {
        return Ok(());
    }
    t.unsupported(i)
}
