//! A launch of an executable graph: its kernels' numbers go from the simulator's questions to the
//! hook behind the call.
//!
//! Owns what is known of the launch that a thread is making.

use std::cell::Cell;
use std::ffi::c_void;

use trace::codec::List;
use trace::ring::back_channel::LaunchClass;
use trace::{Epoch, GraphExecId, KernelId, Op};

use super::state::{Simulated, running};
use super::tickets::LaunchPlace;
use crate::exact::demand::MeasuredFunction;
use crate::exact::settled::GridAndBlock;
use crate::log::core::Core;

/// A kernel of the launch that is being made.
pub(super) struct SimulatedNode {
    pub handle: u64,
    pub function: MeasuredFunction,
    pub shape: GridAndBlock,
    /// Its class was settled when it was launched.
    pub settled: bool,
    /// 0: it is not measured.
    pub number: u64,
}

/// The launch of a graph that a thread is making.
pub struct SimulatedGraphLaunch {
    exec: *mut c_void,
    nodes: Vec<SimulatedNode>,
    /// Numbers of the nodes that were announced, with their places in the trace.
    announced: Vec<(u64, u32)>,
}

thread_local! {
    static LAUNCHING: Cell<*mut SimulatedGraphLaunch> = const { Cell::new(std::ptr::null_mut()) };
}

fn take() -> Option<Box<SimulatedGraphLaunch>> {
    let left = LAUNCHING.replace(std::ptr::null_mut());
    // SAFETY: made by Box::into_raw in `graph_begins`, taken once.
    (!left.is_null()).then(|| unsafe { Box::from_raw(left) })
}

impl Drop for SimulatedGraphLaunch {
    /// What was not announced will not be asked for.
    fn drop(&mut self) {
        if let Some(simulated) = running() {
            self.nodes.iter().filter(|node| node.number != 0).for_each(|node| simulated.unlogged(node.number));
        }
    }
}

/// A graph is being launched by this thread.
pub(super) fn graph_begins(exec: *mut c_void) {
    drop(take());
    let launching = SimulatedGraphLaunch { exec, nodes: Vec::new(), announced: Vec::new() };
    LAUNCHING.set(Box::into_raw(Box::new(launching)));
}

/// One of its kernels. False: this thread is launching no graph.
pub(super) fn node_begins(node: SimulatedNode) -> bool {
    // SAFETY: made by Box::into_raw, and taken on this thread only.
    let launching = unsafe { LAUNCHING.get().as_mut() };
    launching.map(|launching| launching.nodes.push(node)).is_some()
}

/// Behind a launch: what this thread has just launched, if that was this executable graph.
pub fn launched(exec: *mut c_void) -> Option<Box<SimulatedGraphLaunch>> {
    if LAUNCHING.get().is_null() { None } else { take().filter(|launching| launching.exec == exec) }
}

impl SimulatedGraphLaunch {
    /// Announces the nodes that are measured: to be called just before the launch is logged.
    /// `node_of` answers a node's index in the trace by its handle, and the kernel and the shape
    /// that it has there.
    pub fn announce(
        &mut self,
        core: &Core,
        exec: GraphExecId,
        node_of: impl Fn(u64) -> Option<(u32, KernelId, [u32; 3], [u32; 3])>,
    ) {
        let Some(simulated) = running() else { return };
        for node in &mut self.nodes {
            let Some((index, kernel, grid, block)) = node_of(node.handle) else { continue };
            if let Some(all) = &simulated.settled {
                let settled = core.header().settled.has(LaunchClass::of(kernel, grid, block));
                if settled != node.settled {
                    all.change(node.function, node.shape, settled);
                }
            }
            if let Some(demand) = &simulated.demand
                && let Some(function) = demand.asked_of(node.function, kernel, &core.header().wanted)
            {
                demand.add(function, true);
            }
            let number = std::mem::take(&mut node.number);
            if number != 0 {
                self.announced.push((number, index + 1));
            }
        }
        let measured: Vec<u32> = self.announced.iter().map(|(_, node)| *node).collect();
        if !measured.is_empty()
            && let Some(mut shared) = core.lock()
        {
            shared.define(&Op::ExactNodes { exec, nodes: List::new(&measured) });
        }
    }

    /// The launch has been logged at `epoch`.
    pub fn submitted(&mut self, epoch: Epoch) {
        let Some(simulated) = running() else { return };
        let place = |node| LaunchPlace { epoch, node };
        self.announced.drain(..).for_each(|(number, node)| Simulated::logged(simulated, number, place(node)));
    }
}
