//! The synchronisation between the two sides of a finding: what is there, what is missing, and the
//! calls that would add it.
//!
//! Owns the sentences. The calls are [`super::lines`].

use super::api::Api;
use super::lines::{self, WaitEnd};
use super::overlap::overlapping;
use crate::call_site;
use crate::cause::Join;
use crate::elaborate::{Elaborator, called};
use crate::finding::STAGED;
use crate::format::text::short_kernel;
use crate::model::{Actor, MendingLines, Side, StreamName, Synchronisation};
use crate::words::{LaneKind, completion};
use cuda_sys::CUresult;
use cuda_sys::runtime_types::cudaError;
use detect::confidence::is_staged_copy;
use detect::findings::RawFinding;
use detect::memory::{AccessKind, Cause, Overlap};
use detect::race::Race;
use detect::state::op_site::OpSite;
use detect::state::streams::FailedCall;
use trace::StackId;

impl Elaborator<'_> {
    fn at(&mut self, stack: StackId) -> String {
        self.place(stack).map_or_else(String::new, |at| format!(" at {at}"))
    }

    /// The same of a side, behind a comma. A backward pass is where Python started it.
    fn behind(&mut self, side: &Side) -> String {
        let frames = if side.started.is_empty() { &side.stack } else { &side.started };
        call_site::place(frames, self.stacks).map_or_else(String::new, |at| format!(", {at}"))
    }

    /// The synchronisation between the two sides of a finding.
    pub(crate) fn synchronisation(
        &mut self,
        raw: &RawFinding,
        previous: &Side,
        access: &Side,
        is_tensor: bool,
    ) -> Synchronisation {
        let race = &raw.race;
        let mut s = Synchronisation::default();
        if race.latent {
            s.facts.push(
                "A synchronisation orders the two on today's drivers, but CUDA's documentation does not promise it."
                    .into(),
            );
        }
        if race.previous.kind.is_atomic() && race.access.kind.is_atomic() {
            s.facts.push(lines::NARROW_SCOPE.into());
        }
        let is_one_stream = previous.stream.id == access.stream.id;
        let is_source = race.access.site.cause == Cause::Copy && race.access.kind == AccessKind::Read;
        let overlaps = race.access.site.overlap != Overlap::No;
        let is_early = is_source && race.access.epoch.time > race.previous.epoch.time;
        if race.freed_early && is_tensor {
            tensor_freed_early(&mut s, previous, access);
        } else if race.freed_early {
            self.block_freed_early(&mut s, previous, access);
        } else if race.previous.epoch == race.access.epoch {
            self.nodes_of_one_launch(&mut s, race, previous, access);
        } else if is_one_stream && overlaps && race.previous.site.cause == Cause::Kernel {
            let wait = self.wait_above(&race.access);
            overlapping(race, (previous, access), wait, &mut s);
        } else if is_one_stream && is_early && previous.stream.kind != LaneKind::Host {
            self.source_read_early(&mut s, previous, access);
        } else if is_one_stream && race.access.site.batch != 0 {
            members_of_one_batch(&mut s);
        } else {
            self.waits_around(&mut s, raw, previous, access);
            self.memory_and_streams(&mut s, raw, previous, access);
            self.missing_wait(&mut s, raw, previous, access);
        }
        s
    }

    /// A block that went back to its pool too early.
    fn block_freed_early(&mut self, s: &mut Synchronisation, previous: &Side, access: &Side) {
        let (p, a) = (&previous.stream, &access.stream);
        s.facts.push(format!(
            "The block went back to its pool while {} may still use it. This run's allocation got other memory; another run's may \
             get this.",
            p.name
        ));
        s.missing = format!("Nothing makes {} wait for {} before the pool may give the bytes to it.", a.name, p.name);
        let after = format!("after the previous access{}", self.behind(previous));
        let (first, then) = (wait_end(p, after), wait_end(a, "before it goes back".into()));
        s.mend = self.lines(Join::KeepAlive, (previous, access), &first, &then);
        s.mend.retain(|mend| mend.api != Api::Torch);
    }

    /// Two nodes of one launch of a graph.
    fn nodes_of_one_launch(&mut self, s: &mut Synchronisation, race: &Race, previous: &Side, access: &Side) {
        let (from, to) = (previous.node.unwrap_or_default(), access.node.unwrap_or_default());
        s.facts.push("Both are nodes of one graph, launched together.".into());
        if race.access.site.overlap != Overlap::No {
            let wait = self.wait_above(&race.access);
            overlapping(race, (previous, access), wait, s);
        }
        let (one, other) = (node_name(previous, from), node_name(access, to));
        s.missing = format!("No path of dependencies leads from {one} to {other}.");
        // Captured at one line, in a loop or a helper: only the nodes tell them apart.
        let alike = call_site::site(&previous.stack) == call_site::site(&access.stack);
        let (first, then) = (OpSite::of_node(&race.previous), OpSite::of_node(&race.access));
        let (first, then) = (self.captured_on(&[first]), self.captured_on(&[then]));
        let mut end = |streams: Vec<StreamName>, comment: &str, side: &Side, node: u32| WaitEnd {
            streams,
            comment: match alike {
                true => format!("{comment}, {}{}", node_name(side, node), self.behind(side)),
                false => format!("{comment}{}", self.behind(side)),
            },
            node: if side.call.contains("GraphAdd") { format!("node_{node}") } else { String::new() },
        };
        let first = end(first, "after the previous access", previous, from);
        let then = end(then, "before this access", access, to);
        let lines = self.lines(Join::Capture, (previous, access), &first, &then);
        s.mend.extend(lines);
    }

    /// A copy that may read its source before earlier work of its stream is over.
    fn source_read_early(&mut self, s: &mut Synchronisation, previous: &Side, access: &Side) {
        let p = &previous.stream;
        s.facts.push(
            "The attributes of the copy let it read its source out of stream order, before earlier work of its \
             stream is over."
                .into(),
        );
        s.facts.push("cudaMemcpySrcAccessOrderStream would let it read the source in stream order.".into());
        s.missing = format!("The host does not wait for {} to finish the previous access before it copies.", p.name);
        let first = wait_end(p, String::new());
        let then = WaitEnd { comment: format!("before this access{}", self.behind(access)), ..WaitEnd::default() };
        s.mend = self.lines(Join::Host, (previous, access), &first, &then);
    }

    /// The waits that are there, and why they order nothing.
    fn waits_around(&mut self, s: &mut Synchronisation, raw: &RawFinding, previous: &Side, access: &Side) {
        let (p, a) = (&previous.stream, &access.stream);
        let (race, links) = (&raw.race, &raw.links);
        if let Some(link) = links.forward {
            let (waited, recorded) = (self.at(link.waited), self.at(link.recorded));
            let early =
                link.upto.timeline == race.previous.epoch.timeline && link.upto.time <= race.previous.epoch.time;
            let why = if early { ", which was before the previous access" } else { "" };
            s.facts.push(format!(
                "{} last waited for {}{waited}, for an event recorded{recorded}{why}.",
                cap(&a.name),
                p.name
            ));
        }
        if let Some(stack) = links.empty {
            let at = self.at(stack);
            s.facts.push(format!(
                "{} waited{at} for an event that had never been recorded; such a wait orders nothing.",
                cap(&a.name)
            ));
        }
        if let Some(stack) = links.vain {
            let at = self.at(stack);
            s.facts.push(format!(
                "A query{at} asked for an event that had never been recorded; such a query succeeds and orders nothing."
            ));
        }
        for (failed, did) in [(links.no_record, "recorded nothing"), (links.no_wait, "made nothing wait")] {
            if let Some(failed) = failed {
                s.facts.push(self.failed_call(&failed, did));
            }
        }
        if let (Some(link), None) = (links.backward, links.forward) {
            let at = self.at(link.waited);
            s.facts.push(format!("There is a wait the other way round: {} waited for {}{at}.", p.name, a.name));
        }
        if let Some(mistake) = self.mistaken_wait(&raw.around) {
            s.facts.push(mistake);
        }
        if p.kind != LaneKind::Request && !race.latent {
            s.facts.extend(self.host_waited_elsewhere(&raw.around));
        }
    }

    /// Facts of the memory, of the kinds of the streams, and of the previous call.
    fn memory_and_streams(&mut self, s: &mut Synchronisation, raw: &RawFinding, previous: &Side, access: &Side) {
        let (p, a) = (&previous.stream, &access.stream);
        let race = &raw.race;
        if !access.seen_by.is_empty() {
            s.facts.push("--host-accesses names the line of the host that writes there.".into());
        }
        if let (Some(old), Some(new)) = (raw.previous_allocation, raw.allocation)
            && old.id != new.id
            && let Some(freed) = old.freed
        {
            let (given, handed) = (self.at(freed), self.at(new.stack));
            s.facts.push(format!(
                "The memory was given back{given} and handed out again{handed}. Whatever handed it out took the \
                 previous access to be over, and nothing in the program orders that."
            ));
        }
        if matches!(
            (p.kind, a.kind),
            (LaneKind::Legacy, LaneKind::NonBlocking) | (LaneKind::NonBlocking, LaneKind::Legacy)
        ) {
            s.facts.push("A non-blocking stream takes no part in the order of the legacy default stream.".into());
        }
        if is_staged_copy(self.names.call(race.previous.site.call), &race.previous) {
            s.facts.push(format!(
                "{} {STAGED}, but its bytes may still be on their way to the device: CUDA's \"API synchronization \
                 behavior\", rule C3 in docs/reference/order-rules.md.",
                previous.call
            ));
        }
        if raw.links.forward.is_none() && !race.latent && !is_of_host(a) && !is_of_host(p) {
            s.facts.push(format!("{} never waited for an event of {}.", cap(&a.name), p.name));
        }
    }

    /// The wait that is missing, and the calls that would add it.
    fn missing_wait(&mut self, s: &mut Synchronisation, raw: &RawFinding, previous: &Side, access: &Side) {
        let (p, a) = (&previous.stream, &access.stream);
        let (first, second) = (self.behind(previous), self.behind(access));
        if p.kind == LaneKind::Request {
            s.missing = format!("The host does not wait until {} is complete.", p.name);
            let lines = vec![format!("{}  // before this access{second}", completion(&previous.call))];
            s.mend.push(MendingLines { api: Api::Runtime, lines });
            return;
        }
        if access.actor == Actor::Host || is_of_host(a) {
            s.missing = format!("The host does not wait for {} to finish the previous access.", p.name);
            let place = match (access.actor, access.seen_by.is_empty()) {
                (Actor::Host, false) => "before the host writes there".to_string(),
                _ => format!("before this access{second}"),
            };
            let then = WaitEnd { comment: place, ..WaitEnd::default() };
            s.mend = self.lines(Join::Host, (previous, access), &wait_end(p, String::new()), &then);
            return;
        }
        s.missing = format!("Nothing makes {} wait until {} has finished the previous access.", a.name, p.name);
        let first = wait_end(p, format!("after the previous access{first}"));
        let then = wait_end(a, format!("before this access{second}"));
        s.mend = self.lines(Join::Event, (previous, access), &first, &then);
        // On the block's own stream `record_stream` does nothing: the new owner has to wait.
        let reused = raw.previous_allocation.is_some_and(|old| {
            let foreign = old.stream != raw.race.previous.site.stream;
            foreign && old.freed.is_some() && raw.allocation.is_some_and(|new| new.id != old.id)
        });
        if reused && let Some(torch) = s.mend.iter_mut().find(|mend| mend.api == Api::Torch) {
            torch.lines = vec![format!("tensor.record_stream({})  # before the tensor is freed", torch_name(p))];
        }
    }

    /// A call that failed, which would have ordered.
    fn failed_call(&mut self, failed: &FailedCall, did: &str) -> String {
        let stack = self.frames(failed.stack);
        let call = called(&stack, self.names.call(failed.call));
        let at = call_site::site(&stack).map_or_else(String::new, |at| format!(" at {at}"));
        let name =
            if call.starts_with("cuda") { cudaError(failed.result).name() } else { CUresult(failed.result).name() };
        let name = name.map_or_else(|| format!("error {}", failed.result), str::to_string);
        format!("{call}{at} failed with {name}, so it {did}.")
    }

    /// The lines in each interface that the two sides use, Python's first.
    fn lines(
        &self,
        join: Join,
        (previous, access): (&Side, &Side),
        first: &WaitEnd,
        then: &WaitEnd,
    ) -> Vec<MendingLines> {
        let mut mend = Vec::new();
        if self.names.python {
            let frames = previous.stack.iter().chain(&access.stack);
            for api in Api::of_python(frames, self.names.torch) {
                mend.push(MendingLines { api, lines: lines::python(api, join, first, then) });
            }
        }
        let api = Api::of_both(
            Api::of_call(&previous.call, &previous.stack),
            Api::of_call(if access.call.is_empty() { &previous.call } else { &access.call }, &access.stack),
        );
        mend.push(MendingLines { api, lines: lines::cuda(api, join, first, then, None) });
        mend
    }

    /// The streams on which the nodes of these sites were captured.
    pub fn captured_on(&mut self, sites: &[OpSite]) -> Vec<StreamName> {
        let mut streams: Vec<_> = sites.iter().flat_map(|site| self.graphs.captured_on(site)).copied().collect();
        streams.sort_unstable();
        streams.dedup();
        streams.into_iter().map(|stream| self.stream(stream)).collect()
    }
}

/// A tensor whose block went back to PyTorch's pool too early.
fn tensor_freed_early(s: &mut Synchronisation, previous: &Side, access: &Side) {
    let (p, a) = (&previous.stream, &access.stream);
    s.facts.push(format!(
        "The tensor was freed while {} may still use it, without record_stream. This run's allocation got other memory; \
         another run's may get this.",
        p.name
    ));
    s.missing = format!("Neither record_stream nor a wait makes {} wait for {} in time.", a.name, p.name);
    let lines = vec![
        format!("tensor.record_stream({})  # before its last reference goes", torch_name(p)),
        format!("{}.wait_stream({})  # or this, before it goes", torch_name(a), torch_name(p)),
    ];
    s.mend.push(MendingLines { api: Api::Torch, lines });
}

/// Two copies of one batch.
fn members_of_one_batch(s: &mut Synchronisation) {
    s.facts.push("Both are copies of one batch, which may run in any order.".into());
    s.missing = "Nothing orders the members of a batch among themselves.".into();
    s.mend.push(MendingLines { api: Api::Runtime, lines: vec!["split the batch into two calls".into()] });
}

/// An end of a wait on one stream.
fn wait_end(stream: &StreamName, comment: String) -> WaitEnd {
    WaitEnd { streams: vec![stream.clone()], comment, ..WaitEnd::default() }
}

/// Whether the host makes the accesses there, or a library for it.
fn is_of_host(stream: &StreamName) -> bool {
    matches!(stream.kind, LaneKind::Host | LaneKind::Request)
}

/// A node of a graph: `node 3 (scale)`.
fn node_name(side: &Side, node: u32) -> String {
    let kernel = side.kernel.as_deref().map(short_kernel);
    let does = kernel.as_deref().unwrap_or(&side.call).split('(').next().unwrap_or_default();
    if does.is_empty() { format!("node {node}") } else { format!("node {node} ({does})") }
}

fn cap(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

fn torch_name(stream: &StreamName) -> String {
    if stream.kind == LaneKind::Legacy { "torch.cuda.default_stream()".into() } else { stream.short.clone() }
}
