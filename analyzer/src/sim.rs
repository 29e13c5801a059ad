//! Puts the simulated GPU in front of a program: a folder with `libcuda.so.1` and `libcudart.so.12`/`.13` for `LD_LIBRARY_PATH`.
//!
//! Owns the folder only; the simulator is the crate `sim`, whose libraries lie beside the streamsan program.

use std::path::{Path, PathBuf};

/// The libraries under the names that programs ask for, and the files they are built as. `libcudart.so.12` differs from `.13` in its
/// symbols' versions: `scripts/build` makes it.
const NAMES: [(&str, &str); 2] =
    [("libcuda.so.1", "libstreamsan_sim.so"), ("libcudart.so.13", "libstreamsan_sim_cudart.so")];

/// Makes the folder inside `run`, which goes away with the run. The error is a line for the user.
pub fn prepare(run: &Path) -> Result<PathBuf, String> {
    let ready = crate::launch::beside("sim/libcuda.so.1").ok();
    if let Some(folder) = ready.as_deref().and_then(Path::parent) {
        return Ok(folder.to_path_buf());
    }
    let folder = run.join("sim");
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, built) in NAMES {
        let library = crate::launch::beside(built).map_err(|error| format!("no simulated GPU: {error}"))?;
        std::os::unix::fs::symlink(&library, folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(folder)
}
