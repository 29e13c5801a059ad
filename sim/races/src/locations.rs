//! Places through which threads synchronise: what has been released there, and to whom.
//!
//! A strong write publishes clocks in the domains that its scope covers: the writer's block, its
//! cluster, the device. A strong read takes those of the domains that its own scope covers. So a
//! release and an acquire meet exactly if each one's scope includes the other's thread.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::clock::{Known, join};
use crate::events::Scope;

/// Who has released to the whole device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Block(u32),
    Several,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Location {
    blocks: FxHashMap<u32, Arc<Known>>,
    clusters: FxHashMap<u32, Arc<Known>>,
    device: Option<(Arc<Known>, By)>,
    /// It is a barrier object.
    pub(crate) object: bool,
}

impl Location {
    /// Forgets what was released: a write that continues no release sequence comes.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.clusters.clear();
        self.device = None;
    }

    /// Publishes a clock to one domain of its writer. A clock for the device is not published to
    /// the block and the cluster as well: [`Location::released_to`] looks there.
    pub(crate) fn release(&mut self, scope: Scope, block: u32, cluster: u32, known: &Arc<Known>) {
        let add = |slot: &mut Arc<Known>| *slot = join(slot, known);
        match scope {
            Scope::Block => add(self.blocks.entry(block).or_default()),
            Scope::Cluster => {
                add(self.blocks.entry(block).or_default());
                add(self.clusters.entry(cluster).or_default());
            }
            Scope::Device => {
                let (slot, by) = self.device.get_or_insert_with(|| (Arc::default(), By::Block(block)));
                add(slot);
                if *by != By::Block(block) {
                    *by = By::Several;
                }
            }
        }
    }

    /// What a read of a scope meets, by the domains.
    pub(crate) fn released_to(&self, scope: Scope, block: u32, cluster: u32) -> [Option<Arc<Known>>; 3] {
        let mut met = [self.blocks.get(&block).cloned(), None, None];
        if scope >= Scope::Cluster {
            met[1] = self.clusters.get(&cluster).cloned();
        }
        if let Some((device, by)) = &self.device {
            if scope == Scope::Device {
                met[2] = Some(device.clone());
            }
            if scope == Scope::Cluster {
                // Which of its writers are in the cluster is not kept: all count.
                met[1] = Some(met[1].as_ref().map_or_else(|| device.clone(), |old| join(old, device)));
            }
            // The block has part in it as far as its writers are in the block.
            let near = if *by == By::Block(block) { device.clone() } else { Arc::new(device.of_block(block)) };
            if !near.is_empty() {
                met[0] = Some(met[0].as_ref().map_or_else(|| near.clone(), |old| join(old, &near)));
            }
        }
        met
    }
}
