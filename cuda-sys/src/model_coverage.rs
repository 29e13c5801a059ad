//! How much of each function's meaning is modelled, for the listing of `streamsan coverage`.
//!
//! Owns the meaning of the last column of a row of [`driver_api!`](crate::driver_api!). The shim's
//! tests compare the column with what the shim does.

use crate::driver_functions::{EFFECTS, FnId};

/// How much of a function is modelled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effect {
    /// What it does to order and memory is modelled: a row without the column.
    Modelled,
    /// It has no effect on order or memory, or one that another function's row covers: `no_effect`,
    /// and every row that is `skip`.
    None,
    /// Modelled in part: what is missing. `partly "..."`.
    Partly(&'static str),
    /// It has an effect that is not modelled. Calls are counted and named. `not_modelled`, and the
    /// functions of GL, EGL and VDPAU.
    NotModelled,
}

impl FnId {
    /// How much of this function is modelled.
    pub fn effect(self) -> Effect {
        let row = EFFECTS.iter().find(|(row, _)| *row == self.info().row && !self.is_interop());
        row.map_or(Effect::NotModelled, |(_, effect)| *effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_functions::{DRIVER_FUNCTIONS, When};

    #[test]
    fn a_row_without_an_op_function_has_no_effect() {
        for function in DRIVER_FUNCTIONS.iter().filter(|f| f.when == When::Skip && !FnId(f.index).is_interop()) {
            assert_eq!(FnId(function.index).effect(), Effect::None, "{}", function.row);
        }
    }
}
