//! The graph with event nodes: made and launched, in the engine and in the naive model.

use super::*;

impl Run {
    /// The graph with event nodes is made.
    pub(super) fn event_graph(&mut self, nodes: &[(Node, u8)]) {
        self.shape = nodes.to_vec();
        let (exec, stream, mode) = (GraphExecId(EVENT_GRAPH), StreamId::NONE, EventMode::External);
        self.w.op(Op::GraphExec { exec, nodes: nodes.len() as u32, flags: 0, handle: 1 });
        for (index, (node, _)) in nodes.iter().enumerate() {
            let op = match *node {
                Node::Work => Op::HostFunc { func: HostFuncId(9999), stream, address: 0 },
                Node::Wait(event) => Op::StreamWait { stream, event: EventId(event + 1), mode },
                Node::Record(event) => Op::EventRecord { event: EventId(event + 1), stream, mode },
            };
            let mut buffer = [0; 64];
            let mut to = Encoder::new(&mut buffer);
            op.encode(&mut to);
            let len = to.finish().expect("fits");
            let behind: Vec<_> =
                self.directly_before(index).map(|from| Dependency { from: from as u32, port: 0 }).collect();
            self.w.op(Op::GraphNode {
                exec,
                index: index as u32,
                stack: StackId::NONE,
                call: CallId::NONE,
                enabled: true,
                dependencies: codec::List::new(&behind),
                tag: op.tag(),
                body: &buffer[..len],
            });
        }
    }

    /// The nodes of the event graph that a node comes directly after.
    fn directly_before(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let mask = self.shape[index].1;
        (0..index).filter(move |from| mask >> from & 1 != 0)
    }

    /// The nodes of the event graph that come before a node.
    fn nodes_before(&self, index: usize) -> Set {
        self.directly_before(index).flat_map(|from| self.nodes_before(from).into_iter().chain([from])).collect()
    }

    /// The event graph is launched on lane `i`. Work between the same events is one op.
    pub(super) fn launch_event_graph(&mut self, i: usize, before: &Set) -> Result<(), TestCaseError> {
        let exec = GraphExecId(EVENT_GRAPH);
        let shape = self.shape.clone();
        let is = |n: &usize, what: fn(&Node) -> bool| what(&shape[*n].0);
        let wait = |node: &Node| matches!(node, Node::Wait(_));
        let all: Set = (0..shape.len()).collect();
        let waits: Set = all.iter().copied().filter(|n| is(n, wait)).collect();
        let ends: Set = all.iter().copied().filter(|n| is(n, |node| matches!(node, Node::Record(_)))).collect();
        let waits_before = |n: usize| -> Set { self.nodes_before(n).intersection(&waits).copied().collect() };
        let waited_for = |run: &Self, waits: &Set| -> Set {
            let event = |n: &usize| match run.shape[*n].0 {
                Node::Wait(event) => run.m.current(event),
                Node::Work | Node::Record(_) => Set::new(),
            };
            waits.iter().flat_map(event).collect()
        };
        // The waits before each part, the records behind it, and one of its nodes.
        let mut parts: Vec<(Set, Set, usize)> = vec![];
        for n in all.iter().copied().filter(|n| is(n, |node| *node == Node::Work)) {
            let behind = ends.iter().copied().filter(|end| self.nodes_before(*end).contains(&n)).collect();
            let part = (waits_before(n), behind, n);
            if !parts.iter().any(|known| (&known.0, &known.1) == (&part.0, &part.1)) {
                parts.push(part);
            }
        }
        let is_one = parts.len() <= 1 && parts.iter().all(|part| part.0 == waits);
        let mut whole: Set = before.union(&waited_for(self, &waits)).copied().collect();
        let own: Vec<Set> = ends.iter().map(|end| waited_for(self, &waits_before(*end))).collect();
        let epoch = self.w.op(Op::GraphLaunch { stream: self.m.lanes[i].id, exec });
        let mut finished: Vec<Set> = vec![];
        for (waits, _, node) in parts.iter().filter(|_| !is_one) {
            let before: Set = before.union(&waited_for(self, waits)).copied().collect();
            let epoch = self.w.engine.begin_node(exec, *node as u32).expect("of several parts");
            self.compare(epoch, &before)?;
            let me = self.epochs.len();
            self.epochs.push(epoch);
            whole.insert(me);
            finished.push(before.into_iter().chain([me]).collect());
        }
        self.w.engine.end_nodes(exec);
        self.check(i, epoch, whole.clone(), whole)?;
        if is_one {
            finished.push(self.m.lanes[i].frontier.clone());
        }
        for (end, mut state) in ends.iter().zip(own) {
            state.extend(before);
            let ahead = parts.iter().zip(&finished).filter(|((_, ends, _), _)| ends.contains(end));
            ahead.for_each(|(_, finished)| state.extend(finished));
            if let Node::Record(event) = shape[*end].0 {
                self.set_event(event, state);
            }
        }
        Ok(())
    }
}
