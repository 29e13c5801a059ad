//! A launch of an executable graph: which of its kernels are measured, how their bytes are kept
//! apart, and whose code must stay as it is.
//!
//! Owns what is known of the launch that a thread is making. NVIDIA's API lets patches have one
//! datum for the kernels of a launch that share a stream of the driver's: the one that was set last
//! (measured with CUDA 13.0, driver 580, though the API takes one for each kernel). So all kernels
//! get the same table, and each adds the number of its grid to the table's keys. That number is
//! unique within a launch, and the callback of the node gets it too. The hook behind the launch
//! knows which nodes of the trace these are ([`launched`], [`GraphLaunching::announce`]).
//!
//! Code that an executable graph was made with must not be patched afterwards: its launch failed
//! with an illegal instruction. Other code may.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

use cuda_sys::CUstream;
use trace::codec::List;
use trace::ring::back_channel::LaunchClass;
use trace::{Epoch, GraphExecId, KernelId, Op};

use super::demand::MeasuredFunction;
use super::device_table::{DeviceTable, OF_GRAPH};
use super::launch;
use super::sanitizer_api::{GraphData, LaunchData, NodeData};
use super::settled::GridAndBlock;
use super::state::{DRAINING, Exact, running};
use crate::log::core::Core;
use crate::runtime::lifecycle;

/// A kernel node of the launch that is being made.
struct KernelNode {
    handle: u64,
    function: MeasuredFunction,
    shape: GridAndBlock,
    /// What the table's keys have of the number of its grid.
    number: u16,
    /// Its bytes are asked for, were it not settled.
    wanted: bool,
    settled: bool,
}

/// The launch of a graph that a thread is making.
pub struct GraphLaunching {
    exec: *mut c_void,
    table: Option<DeviceTable>,
    nodes: Vec<KernelNode>,
    /// Some kernel has not got the table that it should have.
    spoilt: bool,
}

thread_local! {
    static LAUNCHING: Cell<*mut GraphLaunching> = const { Cell::new(std::ptr::null_mut()) };
    /// This thread is making an executable graph, and how many of its kernels the API has named.
    static MAKING: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Drop for GraphLaunching {
    /// A table that no hook took belongs to a launch that failed, or that is not the program's:
    /// its end is unknown.
    fn drop(&mut self) {
        if let (Some(table), Some(exact)) = (self.table.take(), running())
            && let Ok(mut pool) = exact.pool.lock()
        {
            pool.give_up(table.context);
        }
    }
}

fn take() -> Option<Box<GraphLaunching>> {
    let left = LAUNCHING.replace(std::ptr::null_mut());
    // SAFETY: made by Box::into_raw in `graph_begins`, taken once.
    (!left.is_null()).then(|| unsafe { Box::from_raw(left) })
}

impl Exact {
    /// An executable graph is about to be made, or has been.
    pub(super) fn graph_made(&self, begins: bool) {
        let Some(demand) = &self.demand else { return };
        let seen = MAKING.replace(begins.then_some(0));
        demand.making(begins);
        // The API has named none of its kernels: it is unknown what it holds.
        if !begins && seen.is_none_or(|kernels| kernels == 0) {
            demand.close();
        }
    }

    /// A kernel was set up: as a node of an executable graph, when one is being made.
    pub(super) fn set_up(&self, launch: &LaunchData) {
        if let (Some(demand), Some(kernels)) = (&self.demand, MAKING.get()) {
            MAKING.set(Some(kernels + 1));
            demand.hold(launch.module);
        }
    }

    /// A graph is about to be launched, or only uploaded.
    pub(super) fn graph_begins(&self, data: &GraphData) {
        drop(take());
        if data.upload != 0 || DRAINING.get() || lifecycle::is_off() {
            return;
        }
        let idle = self.idle.lock().is_ok_and(|idle| idle.contains(&(data.exec as usize)));
        let wanted = !idle && (self.pattern.is_some() || self.demand.as_ref().is_some_and(|demand| demand.any()));
        let table = if wanted { self.take(data.context, data.stream_handle) } else { None };
        if wanted && table.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        let launching = GraphLaunching { exec: data.exec, table, nodes: Vec::new(), spoilt: false };
        LAUNCHING.set(Box::into_raw(Box::new(launching)));
    }

    /// A kernel of that graph is about to be handed to the device: gives it the launch's table, or
    /// null.
    pub(super) fn launching_node(&self, node: &NodeData) {
        let launch = &node.launch;
        // SAFETY: made by Box::into_raw, and taken on this thread only.
        let launching = unsafe { LAUNCHING.get().as_mut() }.filter(|l| l.exec == node.exec);
        let Some(launching) = launching else {
            self.assign(launch, std::ptr::null());
            return;
        };
        // Memory of one device is not for kernels of another.
        let table = launching.table.as_ref().filter(|table| table.context == launch.context);
        let data = table.map_or(std::ptr::null(), |table| table.address().wrapping_byte_add(OF_GRAPH));
        launching.spoilt |= !self.assign(launch, data);
        let asked = self.demand.as_ref().is_some_and(|demand| demand.measures(MeasuredFunction::of(launch)));
        launching.nodes.push(KernelNode {
            handle: node.node as u64,
            function: MeasuredFunction::of(launch),
            shape: GridAndBlock::of(launch),
            number: launch.grid as u16,
            wanted: (asked || self.wants(launch.name)) && !self.is_refused(launch.module) && !data.is_null(),
            settled: self
                .settled
                .as_ref()
                .is_some_and(|settled| settled.has(MeasuredFunction::of(launch), GridAndBlock::of(launch))),
        });
    }
}

/// Behind a launch: what this thread has just launched, if that was this executable graph.
pub fn launched(exec: *mut c_void) -> Option<Box<GraphLaunching>> {
    if LAUNCHING.get().is_null() { None } else { take().filter(|launching| launching.exec == exec) }
}

/// An executable graph was given other kernels, which the API has not named: it is unknown what it
/// holds.
pub fn changed() {
    if let Some(demand) = running().and_then(|exact| exact.demand.as_ref()) {
        demand.close();
    }
}

impl GraphLaunching {
    /// Announces the nodes that are measured: to be called just before the launch is logged.
    /// `node_of` answers a node's index in the trace by its handle, and the kernel and the shape
    /// that it has there.
    pub fn announce(
        &mut self,
        core: &Core,
        exec: GraphExecId,
        node_of: impl Fn(u64) -> Option<(u32, KernelId, [u32; 3], [u32; 3])>,
    ) {
        let Some(exact) = running() else { return };
        let (mut numbers, mut known, mut measured) = (HashSet::new(), Vec::new(), Vec::new());
        let mut idle = true;
        for node in &self.nodes {
            // Two that cannot be distinguished.
            self.spoilt |= !numbers.insert(node.number);
            // A node that the trace does not have: what it touches is not logged.
            let Some((index, kernel, grid, block)) = node_of(node.handle) else {
                known.push((node.number, 0));
                continue;
            };
            let mut settled = false;
            if let Some(all) = &exact.settled {
                settled = core.header().settled.has(LaunchClass::of(kernel, grid, block));
                if settled != node.settled {
                    all.change(node.function, node.shape, settled);
                }
            }
            if let Some(demand) = &exact.demand
                && let Some(function) = demand.asked_of(node.function, kernel, &core.header().wanted)
            {
                exact.begin(demand, function);
            }
            idle &= settled;
            let is_measured = node.wanted && !node.settled;
            known.push((node.number, if is_measured { index + 1 } else { 0 }));
            measured.extend(is_measured.then_some(index + 1));
        }
        if let Ok(mut all) = exact.idle.lock() {
            if idle {
                all.insert(self.exec as usize)
            } else {
                all.remove(&(self.exec as usize))
            };
        }
        let Some(table) = &mut self.table else { return };
        if self.spoilt || measured.is_empty() {
            return;
        }
        if let Some(mut shared) = core.lock() {
            shared.define(&Op::ExactNodes { exec, nodes: List::new(&measured) });
            table.nodes = known;
        }
    }

    /// The launch has been logged at `epoch`: its table is read when the stream has got there.
    pub fn submitted(&mut self, epoch: Epoch, stream: CUstream, per_thread: bool) {
        let Some(table) = self.table.take() else { return };
        launch::table_submitted(table, epoch, stream, per_thread);
    }
}
