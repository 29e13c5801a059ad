//! What a launch has besides the code of its own grid: work that its threads launch, native kernels
//! of stand-ins for libraries, words for faults. Knows no launches: `kernel_exec` runs them.

pub(super) mod device_launches;
pub(super) mod native_kernel;
pub(super) mod nearest;
