//! Numbers of PTX that the grammar allows and no driver takes.

use cuda_sys::CUresult;
use device_code::ptx;

/// Refuses limits of a kernel that ptxas refuses (release 13.0: "Constant overflow", "Positive
/// non-zero value expected").
pub(crate) fn check(ast: &ptx::Module) -> Result<(), CUresult> {
    for function in &ast.functions {
        for limit in &function.tuning {
            let directive = ast.name(limit.name);
            let is_positive = matches!(directive, "maxntid" | "reqntid" | "minnctapersm" | "maxnreg");
            let wrong = |&&value: &&u64| value > u64::from(u32::MAX) || is_positive && value == 0;
            if let Some(value) = limit.values.iter().find(wrong) {
                let kernel = ast.name(function.name);
                crate::status::complain(&format!("PTX: `.{directive}` of `{kernel}` cannot be {value}"));
                return Err(CUresult::ERROR_INVALID_PTX);
            }
        }
    }
    Ok(())
}
