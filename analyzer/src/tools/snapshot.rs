//! `streamsan memory --snapshot`: the allocations in the format of PyTorch's memory viewer
//! (memory_viz), for any CUDA program.
//!
//! Owns the mapping. Memory from CUDA is a segment, and the blocks of a program's own pool lie in
//! it as PyTorch's do. Memory without such blocks is a segment with one block. Host memory is left
//! out. Time is the number of the op.

use super::TracedProcess;
use super::memory::{Class, MemoryEvent, MemoryReport, MemoryTotals};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use symbols::frame::{Frame, FrameKind};

/// The snapshot of the process that allocated most.
pub fn snapshot(report: &mut MemoryReport) -> Value {
    let most = report.processes.values_mut().max_by_key(|(_, memory)| memory.events.len());
    let Some((process, memory)) = most else { return empty() };
    of(process, memory)
}

fn empty() -> Value {
    json!({ "segments": [], "device_traces": [[]], "allocator_settings": {}, "external_annotations": [] })
}

fn of(process: &mut TracedProcess, memory: &MemoryTotals) -> Value {
    let mut roots: BTreeMap<u64, MemoryEvent> = BTreeMap::new();
    // The lifetimes of segments, by the time they began, that hold blocks of a pool.
    let mut pooled: BTreeSet<u64> = BTreeSet::new();
    let holder = |roots: &BTreeMap<u64, MemoryEvent>, ptr: u64| {
        let (_, root) = roots.range(..=ptr).next_back()?;
        (ptr - root.ptr < root.size).then_some(*root)
    };
    for event in &memory.events {
        match Class::of(event.kind) {
            Some(Class::Device) if event.made => drop(roots.insert(event.ptr, *event)),
            Some(Class::Device) => drop(roots.remove(&event.ptr)),
            Some(Class::Block) if event.made => pooled.extend(holder(&roots, event.ptr).map(|root| root.time)),
            _ => {}
        }
    }
    let mut events = Vec::new();
    let mut made: BTreeMap<u64, u64> = BTreeMap::new();
    for event in &memory.events {
        let frames = frames(&process.frames(event.stack));
        let mut push = |action: &str| {
            events.push(json!({
                "action": action, "addr": event.ptr, "size": event.size, "stream": event.stream,
                "time_us": event.time, "frames": frames,
            }));
        };
        match (Class::of(event.kind), event.made) {
            (Some(Class::Device), true) => {
                made.insert(event.ptr, event.time);
                push("segment_alloc");
                if !pooled.contains(&event.time) {
                    push("alloc");
                }
            }
            (Some(Class::Device), false) => {
                if made.remove(&event.ptr).is_some_and(|time| !pooled.contains(&time)) {
                    push("free_requested");
                    push("free_completed");
                }
                push("segment_free");
            }
            (Some(Class::Block), true) => push("alloc"),
            (Some(Class::Block), false) => {
                push("free_requested");
                push("free_completed");
            }
            _ => {}
        }
    }
    let mut segments = Vec::new();
    for root in roots.values() {
        let inside = memory.live.range((Class::Block, root.ptr)..(Class::Block, root.ptr + root.size));
        let mut live: Vec<MemoryEvent> = inside.map(|(_, live)| live.made).collect();
        if live.is_empty() && !pooled.contains(&root.time) {
            live.push(*root);
        }
        segments.push(segment(process, root, &live));
    }
    json!({ "segments": segments, "device_traces": [events], "allocator_settings": {}, "external_annotations": [] })
}

fn segment(process: &mut TracedProcess, root: &MemoryEvent, live: &[MemoryEvent]) -> Value {
    let mut blocks = Vec::new();
    let mut at = root.ptr;
    let end = root.ptr + root.size;
    let gap = |from: u64, to: u64| json!({ "address": from, "size": to - from, "requested_size": to - from, "state": "inactive", "frames": [] });
    for block in live {
        if block.ptr > at {
            blocks.push(gap(at, block.ptr));
        }
        let (size, frames) = (block.size.min(end - block.ptr), frames(&process.frames(block.stack)));
        blocks.push(json!({
            "address": block.ptr, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames,
        }));
        at = block.ptr + size;
    }
    if at < end {
        blocks.push(gap(at, end));
    }
    let active: u64 = live.iter().map(|b| b.size).sum();
    json!({
        "device": 0, "address": root.ptr, "total_size": root.size, "allocated_size": active, "active_size": active,
        "requested_size": active, "stream": root.stream, "segment_type": "large", "segment_pool_id": [0, 0],
        "is_expandable": false, "frames": frames(&process.frames(root.stack)), "blocks": blocks,
    })
}

fn frames(frames: &[Frame]) -> Vec<Value> {
    let shown = frames.iter().filter(|f| f.kind != FrameKind::Folded);
    shown
        .map(|f| {
            let file = f.file.as_deref().or(f.module.as_deref()).unwrap_or("??");
            json!({ "filename": file, "line": f.line.unwrap_or(0), "name": f.function })
        })
        .collect()
}
