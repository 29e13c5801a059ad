//! What a launch runs besides the code of its own grid: work that its threads launch, and native
//! kernels of stand-ins for libraries. Knows no launches: `kernel_exec` runs them.

pub(super) mod device_launches;
pub(super) mod native_kernel;
pub(super) mod races;
