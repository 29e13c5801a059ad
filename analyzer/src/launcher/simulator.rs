//! The simulated GPU in front of a program: a folder with `libcuda.so.1` and
//! `libcudart.so.12`/`.13` for `LD_LIBRARY_PATH`, what is preloaded beside them, and the variables
//! that configure the simulator.
//!
//! Owns the folder, the variables and the reading of the simulator's messages. Does not simulate:
//! that is the crate `sim`, whose libraries lie beside the streamsan program.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::launcher::dynamic_section;
use detect::coverage::SimulatedAs;
use settings::SimOptions;

/// The libraries under the names that programs load, and the files they are built as.
/// `libcudart.so.12` differs from `.13` in its symbol versions: `scripts/build` makes it.
const NAMES: [(&str, &str); 2] =
    [("libcuda.so.1", "libstreamsan_sim.so"), ("libcudart.so.13", "libstreamsan_sim_cudart.so")];

/// All names that the folder may hold.
const SONAMES: [&str; 3] = ["libcuda.so.1", "libcudart.so.12", "libcudart.so.13"];

/// Names of the stand-ins for CUDA's libraries: a file for CUDA 13, and one for CUDA 12; and what
/// says that the devices have files.
const STAND_INS: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libstreamsan_device_files.so"];

/// What a line of the file begins with that names a form of code that ran (`sim/src/status.rs`).
const RAN: &str = "ran: ";

/// A simulated GPU, ready for a program.
#[derive(Debug)]
pub(crate) struct Sim {
    /// The folder with the libraries.
    pub(crate) folder: PathBuf,
    /// Variables for the program, with their values.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    status: PathBuf,
}

impl Sim {
    /// Creates the files inside `run`, which goes away with the run. The error is a line for the
    /// user.
    pub(crate) fn prepare(run: &Path, options: &SimOptions) -> Result<Self, String> {
        let status = run.join("sim-status");
        // Made here: under the program's umask it might come to be a file that nobody may read.
        let made = std::fs::File::create(&status).and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
        made.map_err(|error| format!("{}: {error}", status.display()))?;
        let mut variables = vec![("STREAMSAN_SIM_STATUS", status.clone().into_os_string())];
        let given = std::env::var("STREAMSAN_SIM").unwrap_or_default();
        let keys = keys(options, &given);
        if !keys.is_empty() {
            variables.push(("STREAMSAN_SIM", keys.into()));
        }
        for (name, file) in
            [("STREAMSAN_SIM_ADDRESSES", &options.addresses), ("STREAMSAN_SIM_RESULTS", &options.results)]
        {
            let Some(file) = file else { continue };
            // The program may change its folder before it uses CUDA. The output of an earlier run
            // would mix with this one's.
            let path = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
            std::fs::File::create(&path).map_err(|error| format!("{file} can not be written: {error}"))?;
            variables.push((name, path.into_os_string()));
        }
        Ok(Self { folder: libraries(run)?, variables, status })
    }

    /// What has to be preloaded: the library that puts the simulator's runtime in place of NVIDIA's
    /// where a program holds that itself, or finds it past `LD_LIBRARY_PATH`.
    pub(crate) fn preload(&self) -> Option<PathBuf> {
        Some(self.folder.join("libstreamsan_divert.so")).filter(|path| path.exists())
    }

    /// The stand-ins for CUDA's libraries, to be preloaded: then they come before NVIDIA's,
    /// wherever the program's search paths lead.
    pub(crate) fn stand_ins(&self) -> impl Iterator<Item = PathBuf> {
        STAND_INS.iter().map(|name| self.folder.join(name)).filter(|path| path.exists())
    }

    /// Functions that the program is linked with and the simulated GPU has not got: then the loader
    /// has ended the program.
    pub(crate) fn missing(&self, program: &Path) -> Vec<String> {
        let libraries: Vec<PathBuf> = SONAMES.iter().map(|name| self.folder.join(name)).collect();
        let missing = dynamic_section::missing_functions(program, &libraries);
        missing.into_iter().map(|name| format!("{name} is needed by the program and not simulated")).collect()
    }

    /// What the simulated GPU refused, in the order in which it did: calls, kernels and images.
    /// Empty when all is well.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let refused = |line: &&str| !line.is_empty() && !line.starts_with(RAN) && seen.insert((*line).to_owned());
        self.told().lines().filter(refused).map(str::to_owned).collect()
    }

    /// The forms of code that ran: PTX, machine code.
    pub(crate) fn ran(&self) -> SimulatedAs {
        let mut ran = SimulatedAs::default();
        self.told().lines().filter_map(|line| line.strip_prefix(RAN)).for_each(|form| ran.add(form));
        ran
    }

    fn told(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.status).unwrap_or_default()).into_owned()
    }
}

fn libraries(run: &Path) -> Result<PathBuf, String> {
    let ready = crate::launcher::process::beside("sim/libcuda.so.1").ok();
    if let Some(folder) = ready.as_deref().and_then(Path::parent) {
        return Ok(folder.to_path_buf());
    }
    let folder = run.join("sim");
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, built) in NAMES {
        let library = crate::launcher::process::beside(built).map_err(|error| format!("no simulated GPU: {error}"))?;
        std::os::unix::fs::symlink(&library, folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(folder)
}

/// The value of `STREAMSAN_SIM`: what it says already, and behind it (so that they win) the
/// options.
fn keys(options: &SimOptions, given: &str) -> String {
    let mut keys: Vec<String> = (!given.is_empty()).then(|| given.to_owned()).into_iter().collect();
    // A seed means nothing to the other schedules.
    let names_schedule = given.split(':').any(|key| key.trim().starts_with("schedule"));
    let schedule = options.schedule.or((options.seed.is_some() && !names_schedule).then_some("random"));
    keys.extend(schedule.map(|name| format!("schedule={name}")));
    keys.extend(options.seed.map(|seed| format!("seed={seed}")));
    keys.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_alone_asks_for_random_schedules() {
        let seed = SimOptions { seed: Some(7), ..SimOptions::default() };
        assert_eq!(keys(&seed, ""), "schedule=random:seed=7");
        assert_eq!(keys(&seed, "arch=90"), "arch=90:schedule=random:seed=7");
        assert_eq!(keys(&seed, "schedule=late-first"), "schedule=late-first:seed=7");
        let both = SimOptions { schedule: Some("in-order"), ..seed };
        assert_eq!(keys(&both, "schedule=late-first"), "schedule=late-first:schedule=in-order:seed=7");
        assert_eq!(keys(&SimOptions::default(), ""), "");
    }
}
