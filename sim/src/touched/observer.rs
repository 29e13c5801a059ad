//! Who is told what launches touch, and the life of a launch that is measured.
//!
//! A launch is announced inside the call that makes it. It is told of when the last holder of its
//! [`LaunchTouched`] lets go: normally the work that ran it. Nobody may let go with a lock of the
//! simulator held, because the tool may take its time.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuda_sys::{CUgraphExec, CUgraphNode, LaunchObserver, ObservedLaunch, launch_end, launch_wish};

use super::inside::Grid;
use super::order::LaunchOrder;
use super::pages::TouchedPages;
use crate::interp::{Accesses, OrderEvent};

static OBSERVER: AtomicPtr<LaunchObserver> = AtomicPtr::new(std::ptr::null_mut());

fn observer() -> Option<&'static LaunchObserver> {
    // SAFETY: null, or one that lives as long as the process (`observe`).
    unsafe { OBSERVER.load(Ordering::Acquire).as_ref() }
}

/// Makes this one the observer of the process; false when there is another.
#[cfg(feature = "driver")]
pub(crate) fn observe(observer: &'static LaunchObserver) -> bool {
    let new = std::ptr::from_ref(observer).cast_mut();
    OBSERVER.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Whether anybody may want to know.
pub(crate) fn is_observed() -> bool {
    observer().is_some()
}

/// Says that a graph is being launched.
pub(crate) fn graph_begins(exec: usize) {
    if let Some(observer) = observer() {
        // SAFETY: the observer's own function.
        unsafe { (observer.graph_begins)(CUgraphExec(exec as *mut _)) };
    }
}

/// Grids of a launch whose races are told.
const MOST_GRIDS: usize = 64;

/// What somebody wants of a launch that starts to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wish {
    /// Its bytes.
    pub(crate) bytes: bool,
    /// Its races.
    pub(crate) inside: bool,
    /// And which of its synchronisation is superfluous.
    pub(crate) superfluous: bool,
}

/// A launch of which somebody wants the bytes or the races.
pub(crate) struct LaunchTouched {
    observer: &'static LaunchObserver,
    number: u64,
    pages: TouchedPages,
    order: LaunchOrder,
    in_body: bool,
    ran: AtomicBool,
    failed: AtomicBool,
    /// Nanoseconds that it ran.
    spent: AtomicU64,
    inside: Mutex<Vec<Grid>>,
}

impl LaunchTouched {
    /// Announces a launch: number and name of its function, grid and block, the node that it is of
    /// (or 0). Nothing if nobody wants to know of it.
    pub(crate) fn begin(
        function: u64,
        name: &str,
        (grid, block): ([u32; 3], [u32; 3]),
        node: usize,
    ) -> Option<LaunchTouched> {
        let observer = observer()?;
        let name = CString::new(name).ok()?;
        let node = CUgraphNode(node as *mut _);
        let launch = ObservedLaunch { function, name: name.as_ptr(), grid, block, node };
        // SAFETY: all of it lives until the call returns.
        let number = unsafe { (observer.begins)(&raw const launch) };
        let (ran, failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (pages, order) = (TouchedPages::new(), LaunchOrder::default());
        let spent = AtomicU64::new(0);
        let inside = Mutex::default();
        let made =
            |number| LaunchTouched { observer, number, pages, order, in_body: false, ran, failed, spent, inside };
        (number != 0).then(|| made(number))
    }

    /// It may never run: then it touches nothing.
    pub(crate) fn may_be_left_out(self) -> LaunchTouched {
        let mut launch = self;
        launch.in_body = true;
        launch
    }

    /// Takes note of what a warp touches.
    pub(crate) fn observe(&self, accesses: &Accesses<'_>) {
        self.pages.observe(accesses);
        self.order.observe(accesses, &self.pages);
    }

    /// Takes note of what a warp of a block does to the order of its accesses.
    pub(crate) fn observe_order(&self, block: [u32; 3], warp: u32, event: OrderEvent) {
        self.order.event(block, warp, event, &self.pages);
    }

    /// It is about to run: what is wanted of it.
    pub(crate) fn starts(&self) -> Wish {
        // SAFETY: the observer's own function.
        let wanted = unsafe { (self.observer.starts)(self.number) };
        let wants = |bit: i32| wanted & bit != 0;
        let inside = wants(launch_wish::INSIDE);
        let superfluous = inside && wants(launch_wish::SUPERFLUOUS);
        let wish = Wish { bytes: wants(launch_wish::BYTES), inside, superfluous };
        if !wish.bytes {
            self.failed.store(true, Ordering::Relaxed);
        }
        wish
    }

    /// The races of a grid of it.
    pub(crate) fn raced(&self, grid: Grid) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.len() < MOST_GRIDS {
            inside.push(grid);
        } else if let Some(last) = inside.last_mut() {
            last.count(&grid);
        }
    }

    /// It has run for so long, perhaps not for the last time.
    pub(crate) fn ran(&self, time: Duration, failed: bool) {
        self.spent.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.end(failed);
    }

    /// It has run, perhaps not for the last time.
    pub(crate) fn end(&self, failed: bool) {
        self.ran.store(true, Ordering::Relaxed);
        self.failed.fetch_or(failed, Ordering::Relaxed);
    }
}

impl Drop for LaunchTouched {
    fn drop(&mut self) {
        let end = match (*self.failed.get_mut(), *self.ran.get_mut()) {
            (false, true) => launch_end::RAN,
            (false, false) if self.in_body => launch_end::LEFT_OUT,
            _ => launch_end::FAILED,
        };
        let (observer, number, spent) = (self.observer, self.number, *self.spent.get_mut());
        for grid in self.inside.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // SAFETY: the report lives until the call returns.
            grid.read(|report| unsafe { (observer.inside)(number, report) });
        }
        let is_wanted = self.order.finish(&self.pages);
        self.pages.read(is_wanted, |pages| {
            // SAFETY: the pages live until the call returns.
            unsafe { (observer.ended)(number, pages.as_ptr(), pages.len(), end, spent) }
        });
    }
}

/// The measured launches of one launch of a graph, by their nodes.
#[derive(Default)]
pub(crate) struct GraphTouched(HashMap<usize, Arc<LaunchTouched>>);

impl GraphTouched {
    /// Adds the launch of a node.
    pub(crate) fn insert(&mut self, node: usize, launch: LaunchTouched) {
        self.0.insert(node, Arc::new(launch));
    }

    /// The launch of a node.
    pub(crate) fn get(&self, node: usize) -> Option<Arc<LaunchTouched>> {
        self.0.get(&node).cloned()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
