//! Signal pads of PyTorch's symmetric memory: which launches use one word of them without order.
//!
//! Owns the words that its kernels have updated lately. PyTorch says in `get_mem_pool`
//! (`torch/distributed/_symmetric_memory`, 2.11) that behaviour is undefined if kernels use one pad
//! at the same time: each word holds one signal.

use std::collections::VecDeque;

use trace::{Epoch, StackId, StreamId};

use super::names::KernelDef;

/// Words that are remembered.
const MOST: usize = 256;

/// A launch that uses a signal pad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PadUse {
    /// Its place in the order.
    pub epoch: Epoch,
    /// Where it was launched.
    pub stack: StackId,
    /// On which stream.
    pub stream: StreamId,
}

/// The words of one process.
#[derive(Debug, Default)]
pub struct SignalPads(VecDeque<((u64, u64), PadUse)>);

impl SignalPads {
    /// Whether a kernel is one of PyTorch's that signal through pads.
    pub fn is_user(def: &KernelDef) -> bool {
        trace::OF_SIGNAL_PADS.iter().any(|part| def.name.contains(part))
    }

    /// A launch updates words atomically, the first and the end of which are given. Answers another
    /// one that did, and that is not ordered before it.
    pub fn used(&mut self, words: (u64, u64), by: PadUse, is_before: impl Fn(Epoch) -> bool) -> Option<PadUse> {
        let meets = |(from, to): (u64, u64)| from < words.1 && words.0 < to;
        let mut unordered = None;
        self.0.retain(|(known, user)| {
            let is_over = is_before(user.epoch);
            if !is_over && meets(*known) && user.epoch != by.epoch {
                unordered = unordered.or(Some(*user));
            }
            !is_over || !meets(*known)
        });
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((words, by));
        unordered
    }
}
