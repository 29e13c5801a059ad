//! What kernels launch (dynamic parallelism): kept while their grid runs, then run in CUDA's order.
//!
//! Owns that order. What a grid has launched begins when the grid has ended, in the order in which
//! it was launched, each with all that it launches in turn; then comes what it put into
//! `cudaStreamTailLaunch`. That keeps every promise of streams and events of kernels (CUDA C++
//! Programming Guide, dynamic parallelism), and is one of the orders that CUDA allows: no kernel
//! may count on running beside one that it launched. Does not run kernels itself: `kernel_exec`
//! does.

use std::collections::VecDeque;
use std::sync::Mutex;

use cuda_sys::CUresult;

use crate::interp::{DeviceStream, DeviceWork};
use sim_races::LaunchPoint;

/// What the launch answers that has too many unfinished ones above it.
const LAUNCH_PENDING_COUNT_EXCEEDED: u32 = 69;

/// Work that a grid has asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    /// What it is.
    pub(crate) work: DeviceWork,
    /// How many launches of kernels are above it.
    pub(crate) level: u32,
    /// Of a kernel in a launch that is searched for races: what it comes behind.
    pub(crate) point: Option<LaunchPoint>,
}

/// What one grid has asked for so far.
#[derive(Default)]
pub(crate) struct Launches {
    level: u32,
    /// In streams, and in the tail stream.
    lists: Mutex<(VecDeque<Launched>, VecDeque<Launched>)>,
}

impl Launches {
    /// Those of a grid at that level; one that the host launched is at 0.
    pub(crate) fn of_level(level: u32) -> Launches {
        Launches { level, lists: Mutex::default() }
    }

    /// Adds work. A status of the runtime. `levels` is how deep kernels may nest: the context's
    /// `cudaLimitDevRuntimePendingLaunchCount`. A grid has not ended while one below it runs, so
    /// all above it are pending (measured: on an H100, driver 580, 2,048 nest by default, and the
    /// next launch fails with 69; the 24 levels of CUDA's manual are not enforced there). What goes
    /// into the tail stream takes its launcher's level. Launches that wait side by side are not
    /// counted.
    pub(crate) fn add(&self, work: DeviceWork, stream: DeviceStream, levels: u64, point: Option<LaunchPoint>) -> u32 {
        let tail = stream == DeviceStream::Tail;
        let level = self.level + u32::from(!tail);
        if u64::from(level) > levels && matches!(work, DeviceWork::Kernel { .. }) {
            return LAUNCH_PENDING_COUNT_EXCEEDED;
        }
        let mut lists = self.lists.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let list = if tail { &mut lists.1 } else { &mut lists.0 };
        list.push_back(Launched { work, level, point });
        0
    }

    /// All of it, in the order in which it runs.
    pub(crate) fn in_order(self) -> VecDeque<Launched> {
        let (mut all, mut tail) = self.lists.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.append(&mut tail);
        all
    }
}

/// Runs what a grid has launched; `run` runs one piece of it and returns what that has launched.
pub(crate) fn run_all(
    launched: VecDeque<Launched>,
    mut run: impl FnMut(Launched) -> Result<VecDeque<Launched>, CUresult>,
) -> Result<(), CUresult> {
    let mut open = vec![launched];
    while let Some(list) = open.last_mut() {
        let next = list.pop_front();
        // Before it runs: a kernel that launches itself as its own tail may do so for ever.
        if list.is_empty() {
            open.pop();
        }
        if let Some(next) = next {
            let launched = run(next)?;
            if !launched.is_empty() {
                open.push(launched);
            }
        }
    }
    Ok(())
}

/// What a status of the runtime means, or its name: those that the functions for kernels answer.
pub(crate) fn error_text(status: u32, name: bool) -> String {
    let (known, text) = match status {
        0 => ("cudaSuccess", "no error"),
        1 => ("cudaErrorInvalidValue", "invalid argument"),
        2 => ("cudaErrorMemoryAllocation", "out of memory"),
        9 => ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
        65 => ("cudaErrorLaunchMaxDepthExceeded", "launch would exceed maximum depth of nested launches"),
        69 => (
            "cudaErrorLaunchPendingCountExceeded",
            "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount",
        ),
        98 => ("cudaErrorInvalidDeviceFunction", "invalid device function"),
        215 => ("cudaErrorUnsupportedLimit", "limit is not supported on this architecture"),
        801 => ("cudaErrorNotSupported", "operation not supported"),
        _ => ("unrecognized error code", "unrecognized error code"),
    };
    if name { known } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: u32 = 2048;

    fn fill(to: u64) -> DeviceWork {
        DeviceWork::Fill { to, value: 0, bytes: 1 }
    }

    #[test]
    fn what_work_launches_ends_before_the_next_begins_and_tails_come_last() {
        let top = Launches::of_level(0);
        for (to, stream) in [(9, DeviceStream::Tail), (1, DeviceStream::Ordered), (2, DeviceStream::Detached)] {
            assert_eq!(top.add(fill(to), stream, LEVELS.into(), None), 0);
        }
        let mut seen = Vec::new();
        run_all(top.in_order(), |next| {
            let DeviceWork::Fill { to, .. } = next.work else { panic!("{next:?}") };
            seen.push(to);
            let below = Launches::of_level(next.level);
            if to == 1 {
                below.add(fill(19), DeviceStream::Tail, LEVELS.into(), None);
                below.add(fill(11), DeviceStream::Ordered, LEVELS.into(), None);
            }
            Ok(below.in_order())
        })
        .unwrap();
        assert_eq!(seen, [1, 11, 19, 2, 9]);
    }

    #[test]
    fn kernels_nest_as_deep_as_on_a_device() {
        let kernel = || DeviceWork::Kernel { function: 0, grid: [1; 3], block: [1; 3], shared: 0, params: Vec::new() };
        let deepest = Launches::of_level(LEVELS);
        let add = |to: &Launches, work, stream| to.add(work, stream, LEVELS.into(), None);
        assert_eq!(add(&deepest, kernel(), DeviceStream::Ordered), LAUNCH_PENDING_COUNT_EXCEEDED);
        assert_eq!(add(&deepest, fill(1), DeviceStream::Ordered), 0);
        assert_eq!(add(&deepest, kernel(), DeviceStream::Tail), 0);
        assert_eq!(add(&Launches::of_level(LEVELS - 1), kernel(), DeviceStream::Ordered), 0);
        // A context may have set another limit.
        assert_eq!(deepest.add(kernel(), DeviceStream::Ordered, u64::from(LEVELS) + 1, None), 0);
    }
}
