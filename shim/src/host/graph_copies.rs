//! What the copies of an executable graph do to the host's memory, worked out when the graph is
//! made.
//!
//! Owns which nodes are worth a watch at each launch. Does not watch: see
//! `crate::observe::host_watch`.

use trace::{HostFuncId, Op, Region};

/// What a graph does to the host's memory.
#[derive(Clone, Debug, Default)]
pub struct GraphHostWork {
    /// What its copies read, by their nodes: not what other nodes write, nor anything when host
    /// functions may write in their turn.
    pub sources: Vec<(u32, Region)>,
    /// What its copies write, by their nodes.
    pub targets: Vec<(u32, Region)>,
    /// It calls host functions.
    pub calls_host: bool,
    /// It calls host functions that nobody sees running.
    pub calls_unseen: bool,
    /// The host functions that are seen running.
    pub seen: Vec<HostFuncId>,
    /// Words of its kernels' parameters that may be addresses.
    pub words: Vec<u64>,
    /// All that its copies read.
    pub read: Vec<Region>,
    /// All that its copies and fills write.
    pub written: Vec<Region>,
}

impl GraphHostWork {
    /// Of a graph with these nodes, `None` for those that do nothing.
    pub fn of(nodes: &[Option<Op<'_>>]) -> Self {
        let ops = || nodes.iter().flatten();
        let mut used = Self::default();
        for op in ops() {
            match *op {
                Op::Launch { params, .. } => {
                    let words =
                        params.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
                    used.words.extend(words.filter(|word| (1 << 16..1 << crate::arch::ADDRESSES).contains(word)));
                }
                Op::Copy { dst, src, .. } => {
                    used.read.push(src);
                    used.written.push(dst);
                }
                Op::Set { dst, .. } => used.written.push(dst),
                _ => {}
            }
        }
        used.words.sort_unstable();
        used.words.dedup();
        if ops().any(|op| matches!(op, Op::HostFunc { .. })) {
            let calls_unseen = ops().any(|op| matches!(op, Op::HostFunc { address: 0, .. }));
            let seen = ops().filter_map(|op| match *op {
                Op::HostFunc { func, address, .. } if address != 0 => Some(func),
                _ => None,
            });
            return Self { calls_host: true, calls_unseen, seen: seen.collect(), ..used };
        }
        let is_written = |src: &Region| {
            ops().any(|op| match op {
                Op::Copy { dst, .. } | Op::Set { dst, .. } => {
                    dst.array.is_none() && dst.start < src.end() && src.start < dst.end()
                }
                _ => false,
            })
        };
        let source = |(index, op): (usize, &Option<Op<'_>>)| match op {
            Some(Op::Copy { src, .. }) if src.array.is_none() && !is_written(src) => Some((index as u32, *src)),
            _ => None,
        };
        let target = |(index, op): (usize, &Option<Op<'_>>)| match op {
            Some(Op::Copy { dst, .. }) if dst.array.is_none() => Some((index as u32, *dst)),
            _ => None,
        };
        Self {
            sources: nodes.iter().enumerate().filter_map(source).collect(),
            targets: nodes.iter().enumerate().filter_map(target).collect(),
            ..used
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Space, StreamId};

    fn copy(dst: u64, src: u64) -> Option<Op<'static>> {
        Some(Op::Copy {
            stream: StreamId::NONE,
            dst: Region::linear(dst, 64),
            src: Region::linear(src, 64),
            dst_space: Space::Unified,
            src_space: Space::Unified,
            asynchronous: true,
            batch: 0,
        })
    }

    #[test]
    fn sources_are_what_copies_read_and_nothing_in_the_graph_writes() {
        let work = GraphHostWork::of(&[copy(1000, 100), None, copy(200, 1000), copy(3000, 263)]);
        let nodes: Vec<u32> = work.sources.iter().map(|s| s.0).collect();
        assert_eq!(nodes, [0], "node 2 reads what node 0 writes, node 3 reads the last byte that node 2 writes");
        assert!(!work.calls_host);
    }

    #[test]
    fn host_functions_may_write_anywhere() {
        let func = Op::HostFunc { stream: StreamId::NONE, func: HostFuncId(1), address: 0 };
        let work = GraphHostWork::of(&[copy(1000, 100), Some(func)]);
        assert!(work.sources.is_empty() && work.calls_host);
    }
}
