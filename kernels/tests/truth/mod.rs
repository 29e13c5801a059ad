//! What a kernel touches, stated by its source: arguments, launch shapes, threads, and the bytes
//! that a thread reads and writes. The kernels themselves are in [`plain`] (indices), [`flow`]
//! (loops, guards, arithmetic) and [`lanes`] (values of other lanes); [`compare`] compares.

pub mod compare;
mod flow;
mod lanes;
mod plain;

use kernels::AccessKind;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
pub enum Arg {
    Ptr(u8),
    I32(i64),
    I64(i64),
}

#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

#[derive(Clone, Copy)]
pub struct Thread {
    pub t: [i64; 3],
    pub b: [i64; 3],
    pub bd: [i64; 3],
    pub gd: [i64; 3],
}

impl Thread {
    pub fn i(&self) -> i64 {
        self.b[0] * self.bd[0] + self.t[0]
    }
    pub fn xy(&self, d: usize) -> i64 {
        self.b[d] * self.bd[d] + self.t[d]
    }
    pub fn stride(&self) -> i64 {
        self.gd[0] * self.bd[0]
    }
}

/// Collects touched bytes: (pointer number, kind) -> offsets.
#[derive(Default)]
pub struct Truth {
    pub bytes: BTreeMap<(u8, AccessKind), FxHashSet<i64>>,
}

impl Truth {
    pub fn put(&mut self, p: u8, kind: AccessKind, at: i64, width: i64) {
        let s = self.bytes.entry((p, kind)).or_default();
        s.extend(at..at + width);
    }
    pub fn r(&mut self, p: u8, i: i64) {
        self.put(p, AccessKind::Read, 4 * i, 4);
    }
    pub fn w(&mut self, p: u8, i: i64) {
        self.put(p, AccessKind::Write, 4 * i, 4);
    }
}

/// How sharp the answer must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sharp {
    /// Predicted bytes are the touched bytes, and the tool says so.
    Certain,
    /// Predicted bytes are the touched bytes.
    Exact,
    /// An interval that holds them.
    Bounded,
    /// Anything sound.
    Sound,
}

pub type Emulate = fn(&mut Truth, Thread, i64);

pub struct Case {
    pub name: &'static str,
    pub sharp: Sharp,
    pub args: fn(i64) -> Vec<Arg>,
    pub emulate: Emulate,
}

fn case(name: &'static str, sharp: Sharp, args: fn(i64) -> Vec<Arg>, emulate: Emulate) -> Case {
    Case { name, sharp, args, emulate }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let mut all = plain::cases();
    all.extend(flow::cases());
    all.extend(lanes::cases());
    all
}
