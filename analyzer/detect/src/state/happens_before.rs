//! The happens-before order in the analyzer's terms: a thin layer over the crate `order`.
//!
//! Owns the engine of one process and the questions that the analyzer asks it. Knows no rule of
//! order itself: the rules and their proof are in the crate `order`.

use crate::memory::access_map::{Clocks, Glance, Ordered};
use crate::state::graphs::Graph;
use order::{Awaits, ClockRef, Engine, FastClock, FoundValues, Options, Overlap};
use trace::{Epoch, GraphExecId, HostFuncId, KernelId, Op, StreamId, ThreadId, TimelineId};

/// The engine of one process.
pub struct Ordering {
    engine: Engine,
    options: Options,
    latent: bool,
}

impl Ordering {
    /// The order that these options ask for.
    pub fn new(options: Options) -> Self {
        Self { engine: Engine::with_options(options), options, latent: options.latent }
    }

    /// How its engine works.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The kind of the memory at an address, as far as the order knows it.
    pub fn memory_kind(&self, address: u64) -> Option<trace::MemoryKind> {
        self.engine.memory_kind(address)
    }

    /// Time of a stream now.
    pub fn stream_time(&self, stream: StreamId) -> u64 {
        self.engine.stream_time(stream)
    }

    /// The epoch of the op that a stream had last.
    pub fn stream_epoch(&self, stream: StreamId) -> Epoch {
        let timeline = self.engine.timeline(stream).unwrap_or_default();
        Epoch { timeline, time: self.engine.stream_time(stream) }
    }

    /// Takes a definition: devices matter to the order.
    pub fn define(&mut self, op: &Op<'_>) {
        if let Op::Device { ordinal, arch, .. } = *op {
            self.engine.define_device(ordinal, arch);
        }
    }

    /// Applies an op. Returns its epoch.
    #[inline]
    pub fn apply(&mut self, op: &Op<'_>, thread: ThreadId) -> Epoch {
        self.engine.apply(op, thread)
    }

    /// Applies a launch that does not overlap its predecessor.
    pub fn launch(&mut self, stream: StreamId, kernel: KernelId, thread: ThreadId) -> Epoch {
        self.engine.apply_plain_launch(stream, kernel, thread)
    }

    /// Applies a launch that may overlap its predecessor.
    pub fn overlapping_launch(
        &mut self,
        stream: StreamId,
        kernel: KernelId,
        thread: ThreadId,
        overlap: Overlap,
    ) -> Epoch {
        self.engine.apply_overlapping_launch(stream, kernel, thread, overlap)
    }

    /// See [`Engine::is_behind_fired`].
    #[inline]
    pub fn is_behind_fired(&self, stream: StreamId) -> bool {
        self.engine.is_behind_fired(stream)
    }

    /// See [`Engine::launch_behind_fired`].
    pub fn launch_behind_fired(&mut self, stream: StreamId, waits: bool) {
        self.engine.launch_behind_fired(stream, waits);
    }

    /// See [`Engine::kernel_before`].
    pub fn kernel_before(&self, stream: StreamId) -> Option<KernelId> {
        self.engine.kernel_before(stream)
    }

    /// See [`Engine::left_by`].
    pub(crate) fn left_by(&self, thread: ThreadId) -> Option<Epoch> {
        self.engine.left_by(thread)
    }

    /// See [`Engine::values_found`].
    pub(crate) fn values_found(&mut self, op: &Op<'_>) -> Vec<FoundValues> {
        self.engine.values_found(op)
    }

    /// See [`Engine::doubt_left_value`].
    pub(crate) fn doubt_left_value(&mut self, address: u64, epoch: Epoch) {
        self.engine.doubt_left_value(address, epoch);
    }

    /// The order as seen from the op applied last.
    #[inline]
    pub fn view<'a>(&'a self, epoch: Epoch, node: Option<(&'a Graph, u32)>) -> View<'a> {
        let clock = self.engine.start_clock();
        View { clock, engine: &self.engine, latent: self.latent, epoch, node, early: false, waited: true }
    }

    /// The order as seen from a kernel of the op applied last, as long as it has not waited for the
    /// work it depends on. `None`: it begins behind that work, or it never waits, which
    /// [`Ordering::view`] knows.
    pub fn view_before_wait<'a>(&'a self, epoch: Epoch, node: Option<(&'a Graph, u32)>) -> Option<View<'a>> {
        let clock = match node {
            None => self.engine.early_launch(epoch)?,
            Some((graph, node)) if graph.begins_early(node) => self.engine.start_clock(),
            Some(_) => return None,
        };
        Some(View { clock, engine: &self.engine, latent: self.latent, epoch, node, early: true, waited: false })
    }

    /// The order as seen from the read of a source that may begin before the rest of the copy
    /// applied last.
    pub fn view_of_source(&self, epoch: Epoch) -> Option<View<'_>> {
        let clock = self.engine.early_source(epoch)?;
        Some(View { clock, engine: &self.engine, latent: self.latent, epoch, node: None, early: true, waited: true })
    }

    /// A node of the graph launched last comes next: views are as seen from it. Its epoch; that of
    /// the launch is `launch`.
    pub fn begin_node(&mut self, exec: GraphExecId, index: u32, launch: Epoch) -> Epoch {
        self.engine.begin_node(exec, index).unwrap_or(launch)
    }

    /// No node comes any more: views are as seen from the launch.
    pub fn end_nodes(&mut self, exec: GraphExecId) {
        self.engine.end_nodes(exec);
    }

    /// The epoch of a node of a launch, which is the latest of its executable graph.
    pub fn node_epoch(&self, exec: GraphExecId, index: u32, launch: Epoch) -> Epoch {
        self.engine.node_epoch(exec, index).unwrap_or(launch)
    }

    /// Whether two epochs are of nodes of one launch.
    pub fn is_same_launch(&self, one: Epoch, other: Epoch) -> bool {
        self.engine.is_same_launch(one, other)
    }

    /// The epoch on its stream of the work at an epoch: see [`Engine::stream_epoch`].
    pub fn stream_epoch_of(&self, epoch: Epoch) -> Epoch {
        self.engine.stream_epoch(epoch)
    }

    /// The part of that order which constant-time checks can see. `node`: whether the op applied
    /// last stands for a graph node.
    #[inline]
    pub(crate) fn reach(&self, epoch: Epoch, node: bool) -> Reach<'_> {
        // An unpromised synchronisation does not count as finished here.
        let usual = if self.latent { FastClock::default() } else { self.engine.fast_start_clock() };
        Reach { usual, epoch: (!node).then_some(epoch) }
    }

    /// The clock of the host now, as a copy.
    pub fn known(&self) -> order::ClockSnapshot {
        self.engine.host_clock().snapshot()
    }

    /// The clock at the start of the op applied last, as a copy.
    pub fn kept_start(&self) -> order::ClockSnapshot {
        self.engine.start_clock().snapshot()
    }

    /// How far each timeline is, by its number.
    pub fn times(&self) -> Vec<u64> {
        self.engine.times()
    }

    /// Number of an event's latest record.
    pub fn event_record(&self, event: trace::EventId) -> u64 {
        self.engine.event_record(event)
    }

    /// What an event's latest record covers.
    pub fn event_clock(&self, event: trace::EventId) -> Option<order::ClockSnapshot> {
        self.engine.event_clock(event)
    }

    /// How often the host has seen something finish.
    pub fn host_changes(&self) -> u64 {
        self.engine.host_changes()
    }

    /// The order as seen from an op of this stream, if it were enqueued now.
    pub fn view_of_stream(&mut self, stream: StreamId) -> View<'_> {
        let latent = self.latent;
        self.engine.prepare_stream(stream);
        let timeline = self.engine.timeline(stream).unwrap_or_default();
        let epoch = Epoch { timeline, time: self.engine.stream_time(stream) + 1 };
        let clock = self.engine.stream_clock(stream);
        View { clock, engine: &self.engine, latent, epoch, node: None, early: false, waited: true }
    }

    /// Whether an op of this stream, if it were enqueued now, would be behind a wait for a value
    /// that nobody has been seen to write.
    pub fn is_blocked(&mut self, stream: StreamId) -> bool {
        self.engine.prepare_stream(stream);
        self.engine.stream_clock(stream).is_behind_open_wait()
    }

    /// The words that the op applied last is behind waits for, and of which nothing seen has
    /// written the values.
    pub fn awaited_words(&self, timeline: TimelineId) -> impl Iterator<Item = (u64, u8)> {
        self.engine.awaited_words(timeline).map(|word| (word.address, word.width()))
    }

    /// Whether the host has seen this op finish.
    pub fn host_saw(&self, epoch: Epoch) -> bool {
        self.engine.host_covers(epoch)
    }

    /// Whether nothing orders an op behind a host function that has not returned.
    pub fn runs_beside_function(&self, func: HostFuncId, epoch: Epoch) -> bool {
        self.engine.runs_beside_function(func, epoch)
    }

    /// Whether an op is behind a host function that has not returned, other than `except`.
    pub fn awaits_host_function(&self, epoch: Epoch, except: HostFuncId) -> Awaits {
        self.engine.awaits_host_function(epoch, except)
    }

    /// The host functions that an op is behind, and that have not returned.
    pub fn host_functions_before(&self, epoch: Epoch) -> Vec<HostFuncId> {
        self.engine.host_functions_before(epoch)
    }

    /// Whether host functions have been put into streams that have not ended yet.
    pub fn host_functions_pending(&self) -> bool {
        self.engine.host_functions_pending()
    }

    /// Whether the thread of the op applied last knows of an access of the host.
    pub fn host_knows(&self, touch: Epoch) -> bool {
        self.engine.host_clock().covers(touch)
    }

    /// Whether the copy applied last had read its source when its call returned, because it was
    /// staged or waited for.
    pub fn source_is_read(&self) -> bool {
        self.engine.source_epoch().is_some()
    }
}

/// The order as seen from one op, or from one node of a graph launch.
#[derive(Clone, Copy)]
pub struct View<'a> {
    clock: ClockRef<'a>,
    engine: &'a Engine,
    latent: bool,
    /// Whether it is seen from before the op: what the host has learned since does not count.
    early: bool,
    /// Whether it is seen from behind the wait of a kernel, if that waits.
    waited: bool,
    /// The op.
    pub(crate) epoch: Epoch,
    /// The graph that is launched, and the index of the node.
    pub(crate) node: Option<(&'a Graph, u32)>,
}

impl View<'_> {
    /// Whether the op came after everything up to this epoch.
    pub(crate) fn covers(&self, earlier: Epoch) -> bool {
        self.clock.covers(earlier)
    }

    /// See [`Engine::stream_epoch`].
    pub(crate) fn stream_epoch(&self, epoch: Epoch) -> Epoch {
        self.engine.stream_epoch(epoch)
    }

    /// What the op came after.
    pub fn clock(&self) -> &ClockRef<'_> {
        &self.clock
    }
}

/// The constant-time part of a [`View`].
pub(crate) struct Reach<'a> {
    usual: FastClock<'a>,
    /// The epoch of the op, unless it stands for a graph node.
    epoch: Option<Epoch>,
}

impl Glance for Reach<'_> {
    #[inline(always)]
    fn finished(&self, earlier: Epoch) -> bool {
        self.usual.covers(earlier)
    }

    #[inline(always)]
    fn is_own(&self, epoch: Epoch) -> bool {
        self.epoch == Some(epoch)
    }
}

impl Clocks for View<'_> {
    #[inline]
    fn ordered(&self, earlier: Epoch, earlier_node: u32) -> Ordered {
        if earlier == self.epoch || (self.node.is_some() && self.engine.is_same_launch(earlier, self.epoch)) {
            return match self.node {
                Some((graph, node)) if earlier_node > 0 && graph.comes_before(earlier_node - 1, node, self.waited) => {
                    Ordered::Yes
                }
                _ => Ordered::No,
            };
        }
        if !self.clock.covers(earlier) {
            Ordered::No
        } else if self.latent && !self.clock.covers_documented(earlier) {
            Ordered::Latent
        } else {
            Ordered::Yes
        }
    }

    #[inline(always)]
    fn finished(&self, earlier: Epoch) -> bool {
        earlier != self.epoch && !self.latent && self.clock.covers(earlier)
    }

    #[inline]
    fn dead(&self, earlier: Epoch) -> bool {
        earlier != self.epoch
            && !self.early
            && self.engine.host_covers(earlier)
            && (!self.latent || self.engine.host_clock().covers_documented(earlier))
    }
}
