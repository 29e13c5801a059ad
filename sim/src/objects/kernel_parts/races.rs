//! Tells of the races inside the grids of a launch, by the names of its module. Finds none itself:
//! the detector is `sim-races`.

use std::sync::Arc;

use cuda_sys::CUresult;

use crate::interp::Program;
use crate::objects::kernel_exec::program;
use crate::objects::module::{CodeForm, Function, Module};
use crate::touched::LaunchTouched;
use crate::touched::grids::InsideGrids;
use crate::touched::inside::Names;

/// Tells of the races of all grids. They are of one module.
pub(crate) fn tell(module: &Arc<Module>, grids: InsideGrids, touched: &LaunchTouched) {
    let names = match &module.code.form {
        CodeForm::Ptx { ast, .. } => Names::Ptx(ast),
        CodeForm::Machine(code) => Names::Machine(code),
    };
    let globals = |address: u64| {
        let mut all = module.globals.iter();
        let (name, global) = all.find(|(_, global)| address.wrapping_sub(global.at) < global.size)?;
        Some((name.clone(), global.at, global.size))
    };
    // All of them have run.
    let functions: Result<Vec<Arc<Function>>, CUresult> =
        grids.kernels().iter().map(|name| module.function(name, None)).collect();
    let Ok(functions) = functions else { return };
    let programs: Result<Vec<&Program>, CUresult> = functions.iter().map(|f| program(f, module)).collect();
    let Ok(programs) = programs else { return };
    grids.reports(&programs, &names, &globals).into_iter().for_each(|grid| touched.raced(grid));
}
