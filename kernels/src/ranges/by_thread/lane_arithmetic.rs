//! What a node is for each thread, when what it is made of is known.
//!
//! Owns the arithmetic of [`ThreadLanes`], modulo 2^32 and 2^64. Sums, and which of their parts is
//! the pointer, are in `lane_sums`. When a value is asked for, and how long it holds, is in
//! `lanes`.

use super::lane_classes::LANES;
use super::lane_value::{LaneValue, NUMBER, Tag, Tags, UNKNOWN};
use super::lanes::ThreadLanes;
use super::numbers::{compared_floats, divided, permuted, signed};
use crate::ir::{Cmp, Combine, Pure, Special};
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Kind, NodeId, Width};
use smallvec::SmallVec;
use std::cell::Cell;

/// Bases that are told apart.
const MAX_BASES: usize = 8192;
/// How far addresses are from their pointer that are not below it, and what is no address.
const NEAR: u64 = 1 << 32;

fn mask_of(width: Width) -> u64 {
    match width {
        Width::W64 => u64::MAX,
        Width::W32 => 0xffff_ffff,
        Width::Pred => 1,
    }
}

impl ThreadLanes<'_> {
    /// A value that was made before.
    pub(super) fn operand(&self, n: NodeId) -> &LaneValue {
        self.values[n.0 as usize].as_ref().unwrap_or(&self.missing)
    }

    /// Notes that something is done with the value of a base; whether it has one.
    fn note(&self, tag: Tag) -> bool {
        match self.bases[usize::from(tag) - 1].0 {
            SymbolicBase::Word(off) => {
                input(LaunchInput::Bytes(off, 8), self.launch).pin();
                true
            }
            _ => false,
        }
    }

    /// Are these addresses near a pointer in the parameters, and those numbers below all pointers?
    /// Then they compare alike wherever the pointer leads to.
    fn is_far(&self, addresses: &LaneValue, numbers: &LaneValue) -> bool {
        let is_small = matches!(numbers.tags, Tags::All(NUMBER)) && numbers.distinct().all(|n| n < NEAR);
        let Some(first) = Some(addresses.tags.at(0)).filter(|t| is_small && *t != NUMBER && *t != UNKNOWN) else {
            return false;
        };
        let word = |tag: Tag| match (tag, self.bases.get(usize::from(tag).wrapping_sub(1))) {
            (NUMBER | UNKNOWN, _) => None,
            (_, Some((SymbolicBase::Word(at), from))) => Some((*at, *from)),
            _ => None,
        };
        let is_near = |number: u64, from: u64| number.wrapping_sub(from).wrapping_add(NEAR) < 2 * NEAR;
        let is_pointer = |at: u16| input(LaunchInput::IsPointer(at), self.launch).pin() == 1;
        match (&addresses.tags, word(first)) {
            (Tags::All(_), Some((at, from))) => addresses.distinct().all(|n| is_near(n, from)) && is_pointer(at),
            (Tags::Each(_), _) => (0..self.len).all(|lane| {
                word(addresses.tags.at(lane))
                    .is_some_and(|(at, from)| is_near(addresses.at(lane), from) && is_pointer(at))
            }),
            _ => false,
        }
    }

    /// The tag of a number made of values with these tags.
    pub(super) fn number(&self, tags: &[Tag]) -> Tag {
        let known = tags.iter().all(|t| *t == NUMBER || *t != UNKNOWN && self.note(*t));
        if known { NUMBER } else { UNKNOWN }
    }

    pub(super) fn numbers(&self, of: &[NodeId], out: &mut Tags) {
        let tags: SmallVec<[&Tags; 3]> = of.iter().map(|n| &self.operand(*n).tags).collect();
        self.each_tag(&tags, out, false, |lane| {
            let tags: SmallVec<[Tag; 3]> = tags.iter().map(|t| t.at(lane)).collect();
            self.number(&tags)
        });
    }

    /// The tags of a value, of those that it is made of: numbers where all are. Elsewhere `tag`
    /// says what, once for lanes in a row that are made of the same. (Of what is unknown `tag` may
    /// say more, where it `looks_inside`.)
    pub(super) fn each_tag(&self, of: &[&Tags], out: &mut Tags, looks_inside: bool, tag: impl Fn(usize) -> Tag) {
        if of.iter().all(|t| matches!(t, Tags::All(_))) {
            let numbers = of.iter().all(|t| matches!(t, Tags::All(NUMBER)));
            *out = Tags::All(if numbers { NUMBER } else { tag(0) });
            return;
        }
        let mut each = [NUMBER; LANES];
        of.iter().for_each(|t| t.note_others(&mut each));
        let others = each;
        for lane in 0..self.len {
            if others[lane] == NUMBER {
                continue;
            }
            let alike = |t: &&Tags| t.at(lane) == t.at(lane - 1) && !(looks_inside && t.at(lane) == UNKNOWN);
            each[lane] = if lane > 0 && of.iter().all(alike) { each[lane - 1] } else { tag(lane) };
        }
        *out = Tags::found(Box::new(each), self.len);
    }

    fn one(&self, x: NodeId, out: &mut LaneValue, mask: u64, f: impl Fn(u64) -> u64) {
        self.numbers(&[x], &mut out.tags);
        out.map(self.operand(x), |x| f(x) & mask);
    }

    fn two(&self, x: NodeId, y: NodeId, out: &mut LaneValue, mask: u64, f: impl Fn(u64, u64) -> u64) {
        self.numbers(&[x, y], &mut out.tags);
        out.map_two(self.operand(x), self.operand(y), |x, y| f(x, y) & mask);
    }

    fn base(&mut self, base: SymbolicBase, value: u64) -> (u64, Tag) {
        if let Some(tag) = self.tags.get(&base) {
            return (value, *tag);
        }
        if self.bases.len() >= MAX_BASES {
            return (0, UNKNOWN);
        }
        self.bases.push((base, value));
        let tag = self.bases.len() as Tag;
        self.tags.insert(base, tag);
        (value, tag)
    }

    /// Addresses that the host does not know: any that are far from each other.
    fn somewhere(&mut self, base: SymbolicBase) -> (u64, Tag) {
        let value = (self.bases.len() as u64 + 1) << 48;
        match self.bases.iter().find(|b| b.0 == base) {
            Some(b) => self.base(base, b.1),
            None => self.base(base, value),
        }
    }

    /// The parameter bytes at an offset.
    fn param(&mut self, off: u16, bytes: u8) -> (u64, Tag) {
        let end = usize::from(off) + if bytes == 8 { 8 } else { 1 };
        if end > self.launch.params.len() {
            return (0, UNKNOWN);
        }
        let what = LaunchInput::Bytes(off, if matches!(bytes, 1 | 2 | 8) { bytes } else { 4 });
        if bytes == 8 {
            return self.base(SymbolicBase::Word(off), what.read(self.launch));
        }
        (input(what, self.launch).pin() as u64, NUMBER)
    }

    fn special(&self, s: Special, out: &mut LaneValue) {
        let l = self.launch;
        out.tags = Tags::All(NUMBER);
        let axis = |d: u8| usize::from(d.min(2));
        // (Ones or zeros without clusters.)
        let cluster = |d: u8| l.cluster[axis(d)].max(1);
        let fill = |out: &mut LaneValue, v: u64| out.fill(v);
        let copy = |out: &mut LaneValue, from: &[u32; LANES]| out.put(self.len, |lane| u64::from(from[lane]));
        match s {
            Special::Tid(d) => copy(out, &self.tid[axis(d)]),
            Special::Ctaid(d) => copy(out, &self.ctaid[axis(d)]),
            Special::ClusterId(d) => out.put(self.len, |lane| u64::from(self.ctaid[axis(d)][lane] / cluster(d))),
            Special::ClusterCtaid(d) => out.put(self.len, |lane| u64::from(self.ctaid[axis(d)][lane] % cluster(d))),
            Special::ClusterRank => out.put(self.len, |lane| {
                let place = |d: u8| u64::from(self.ctaid[axis(d)][lane] % cluster(d));
                place(0) + u64::from(cluster(0)) * (place(1) + u64::from(cluster(1)) * place(2))
            }),
            Special::Ntid(d) => fill(out, l.block[axis(d)].into()),
            Special::Nctaid(d) => fill(out, l.grid[axis(d)].into()),
            Special::NCluster(d) => fill(out, l.grid[axis(d)].div_ceil(cluster(d)).into()),
            Special::Lane => {
                let [x, y, _] = l.block;
                out.put(self.len, |lane| {
                    let t = [0, 1, 2].map(|d: usize| u64::from(self.tid[d][lane]));
                    (t[0] + u64::from(x) * (t[1] + u64::from(y) * t[2])) % 32
                });
            }
            Special::ClusterSize => fill(out, (0..3).map(|d| u64::from(cluster(d))).product()),
            Special::ClusterNctaid(d) => fill(out, cluster(d).into()),
            Special::DynamicShared => fill(out, l.shared.into()),
            Special::LocalBase | Special::DriverBase(_) | Special::ClusterReciprocal(_) => {
                out.tags = Tags::All(UNKNOWN);
            }
        }
    }

    /// What a node is made to, of operands that were calculated.
    pub(super) fn operation(&mut self, n: NodeId, out: &mut LaneValue) {
        let g = self.g;
        let node = g.node(n);
        let (bits, mask) = (node.width.bits(), mask_of(node.width));
        match &node.kind {
            Kind::Const(c) => out.all(*c & mask, NUMBER),
            Kind::Param(off, bytes) => {
                let (v, tag) = self.param(*off, *bytes);
                out.all(v, tag);
            }
            Kind::Special(s) => self.special(*s, out),
            Kind::Symbol(s) => {
                let (v, tag) = self.somewhere(SymbolicBase::Symbol(s.0));
                out.all(v, tag);
            }
            Kind::ParamAddress(p) => {
                let (v, tag) = self.somewhere(SymbolicBase::ParamAddress(*p));
                out.all(v, tag);
            }
            Kind::Lin(terms, c) => self.sum(n, terms, *c, mask, out),
            Kind::Mul(x, y) => match (self.operand(*x).common(), self.operand(*y).common()) {
                (_, Some(times)) => self.multiple(n, *x, times, &[*x, *y], mask, out),
                (Some(times), _) => self.multiple(n, *y, times, &[*x, *y], mask, out),
                _ => self.two(*x, *y, out, mask, u64::wrapping_mul),
            },
            Kind::MulWide(s, x, y) => {
                let s = *s;
                self.two(*x, *y, out, mask, |x, y| {
                    if s { signed(x, 32).wrapping_mul(signed(y, 32)) as u64 } else { x.wrapping_mul(y) }
                });
            }
            Kind::MulHi(s, x, y) => {
                let wide = |v: u64| if *s { i128::from(signed(v, bits)) } else { i128::from(v) };
                self.two(*x, *y, out, mask, |x, y| (wide(x).wrapping_mul(wide(y)) >> bits) as u64);
            }
            Kind::Extend(s, x) => {
                self.numbers(&[*x], &mut out.tags);
                let mut recipe = self.recipes[n.0 as usize].take();
                out.extend(*s, self.operand(*x), &mut recipe);
                self.recipes[n.0 as usize] = recipe;
            }
            Kind::Lo(x) => {
                self.numbers(&[*x], &mut out.tags);
                out.move_from(self.operand(*x), 0, mask);
            }
            Kind::Hi(x) => self.one(*x, out, mask, |x| x >> 32),
            Kind::High(x) => self.one(*x, out, mask, |x| x << 32),
            Kind::Pack(lo, hi) => self.two(*lo, *hi, out, mask, |lo, hi| lo & 0xffff_ffff | hi << 32),
            Kind::Shl(x, k) if self.operand(*k).common().is_some_and(|k| k < u64::from(bits)) => {
                let times = 1 << self.operand(*k).common().unwrap_or(0);
                self.multiple(n, *x, times, &[*x, *k], mask, out);
            }
            Kind::Shl(x, k) => self.two(*x, *k, out, mask, |x, k| {
                let k = k & 0xffff_ffff;
                if k >= u64::from(bits) { 0 } else { x << k }
            }),
            Kind::Shr(s, x, k) => self.two(*x, *k, out, mask, |x, k| {
                let k = (k & 0xffff_ffff).min(u64::from(bits));
                match (s, k == u64::from(bits)) {
                    (true, _) => (signed(x, bits) >> k.min(u64::from(bits) - 1)) as u64,
                    (false, true) => 0,
                    (false, false) => x >> k,
                }
            }),
            Kind::Lop3(lut, x, y, z) => self.bitwise(*lut, [*x, *y, *z], mask, out),
            Kind::MinMax(min, s, x, y) => self.two(*x, *y, out, mask, |x, y| {
                let less = if *s { signed(x, bits) < signed(y, bits) } else { x < y };
                if less == *min { x } else { y }
            }),
            Kind::Abs(x) => self.one(*x, out, mask, |x| signed(x, bits).unsigned_abs()),
            Kind::Sel(p, x, y) => self.choice(*p, *x, *y, out),
            Kind::Div(s, x, y) | Kind::Rem(s, x, y) => {
                let rem = matches!(node.kind, Kind::Rem(..));
                self.two(*x, *y, out, mask, |x, y| divided(x, y, bits, *s, rem));
                if self.operand(*y).common().is_none_or(|y| y == 0) {
                    let zero: Vec<usize> = (0..self.len).filter(|l| self.operand(*y).at(*l) == 0).collect();
                    zero.into_iter().for_each(|lane| out.tags.each()[lane] = UNKNOWN);
                }
            }
            Kind::Ext(k, s, x) => {
                let k = u32::from(*k).clamp(1, 64);
                self.one(*x, out, mask, |x| {
                    let up = x << (64 - k);
                    if *s { ((up as i64) >> (64 - k)) as u64 } else { up >> (64 - k) }
                });
            }
            Kind::Prmt(x, sel, y) => {
                self.numbers(&[*x, *sel, *y], &mut out.tags);
                out.map_three([x, sel, y].map(|n| self.operand(*n)), |[x, sel, y]| permuted(x, sel, y));
            }
            Kind::ParamIndexed(off, bytes, s, index) => self.indexed(*off, *bytes, *s, *index, mask, out),
            Kind::Cmp(c, s, x, y) => self.compare(*c, *s, *x, *y, out),
            Kind::FloatCmp(holds, flush, x, y) => {
                let wide = g.node(*x).width == Width::W64;
                self.two(*x, *y, out, 1, |x, y| u64::from(compared_floats(*holds, *flush, wide, x, y)));
            }
            Kind::OtherLane(x, from) => self.other_lane(*x, *from, out),
            Kind::Pure(f, of) => self.pure(*f, *of, mask, out),
            Kind::Not(x) => self.one(*x, out, 1, |x| !x),
            Kind::Combine(how, x, y) => self.combine(*how, *x, *y, out),
            Kind::PLut(lut, of) => self.truth_table(*lut, *of, out),
            Kind::NonZero(x) => self.one(*x, out, 1, |x| u64::from(x != 0)),
            Kind::Building
            | Kind::Opaque(_)
            | Kind::Bounded(..)
            | Kind::LocalLoad(..)
            | Kind::SharedLoad(..)
            | Kind::Loaded(_)
            | Kind::Phi(_)
            | Kind::LoopPhi(..) => out.tags = Tags::All(UNKNOWN),
        }
    }

    fn pure(&self, f: Pure, of: [NodeId; 3], mask: u64, out: &mut LaneValue) {
        self.numbers(&of, &mut out.tags);
        let operands = of.map(|n| self.operand(n));
        let all = Cell::new(true);
        out.map_three(operands, |v| {
            let result = f.apply(v);
            all.set(all.get() && result.is_some());
            result.unwrap_or(0) & mask
        });
        if !all.get() {
            let known = |lane: usize| f.apply(operands.map(|v| v.at(lane))).is_some();
            let lost: Vec<usize> = (0..self.len).filter(|lane| !known(*lane)).collect();
            lost.into_iter().for_each(|lane| out.tags.each()[lane] = UNKNOWN);
        }
    }

    fn bitwise(&self, lut: u8, of: [NodeId; 3], mask: u64, out: &mut LaneValue) {
        // By the first two, and the third decides in each of the four cases.
        let case = |of: u8| {
            let bits = |row: u8| if lut >> row & 1 == 1 { u64::MAX } else { 0 };
            (bits(2 * of + 1), bits(2 * of))
        };
        let cases = [0, 1, 2, 3].map(case);
        out.map_three(of.map(|n| self.operand(n)), |[x, y, z]| {
            let by = |of: usize| z & cases[of].0 | !z & cases[of].1;
            (x & (y & by(3) | !y & by(2)) | !x & (y & by(1) | !y & by(0))) & mask
        });
        // An address that is rounded down stays one.
        let tags = of.map(|n| &self.operand(n).tags);
        let tag = |lane: usize| {
            let pointers: SmallVec<[Tag; 3]> = tags.iter().map(|t| t.at(lane)).filter(|t| *t != NUMBER).collect();
            match pointers[..] {
                [] => NUMBER,
                [t] if t != UNKNOWN && self.note(t) => t,
                _ => UNKNOWN,
            }
        };
        self.each_tag(&tags, &mut out.tags, false, tag);
    }

    fn choice(&self, p: NodeId, x: NodeId, y: NodeId, out: &mut LaneValue) {
        let p = self.operand(p);
        if let Some(holds) = p.decided() {
            // (The other value may be an old one.)
            let chosen = self.operand(if holds { x } else { y });
            out.clone_from(chosen);
            out.is_new = false;
            return;
        }
        let (x, y) = (self.operand(x), self.operand(y));
        if let (Tags::All(NUMBER), Tags::All(t)) = (&p.tags, &x.tags)
            && x.tags == y.tags
        {
            out.map_three([p, x, y], |[p, x, y]| if p != 0 { x } else { y });
            out.tags = Tags::All(*t);
            return;
        }
        let mut each = Box::new([NUMBER; LANES]);
        out.put(self.len, |lane| {
            let chosen = match p.tags.at(lane) {
                NUMBER => Some(if p.at(lane) != 0 { x } else { y }),
                // Both may be the same.
                _ if x.at(lane) == y.at(lane) && x.tags.at(lane) == y.tags.at(lane) => Some(x),
                _ => None,
            };
            each[lane] = chosen.map_or(UNKNOWN, |v| v.tags.at(lane));
            chosen.map_or(0, |v| v.at(lane))
        });
        out.tags = Tags::found(each, self.len);
    }

    fn indexed(&mut self, off: i32, bytes: u8, sign: bool, index: NodeId, mask: u64, out: &mut LaneValue) {
        self.numbers(&[index], &mut out.tags);
        let index = self.operand(index).clone();
        let tags = std::mem::replace(&mut out.tags, Tags::All(UNKNOWN));
        if let Tags::All(NUMBER) = tags {
            // What lanes look up together is looked up once.
            let mut found: SmallVec<[Tag; 8]> = SmallVec::new();
            out.map(&index, |at| {
                let (v, tag) = self.looked_up(off, bytes, sign, at, mask);
                found.push(tag);
                v
            });
            if let Some(tag) = found.first().filter(|first| found.iter().all(|tag| tag == *first)) {
                out.tags = Tags::All(*tag);
                return;
            }
        }
        let mut each = Box::new([UNKNOWN; LANES]);
        let len = self.len;
        out.put(len, |lane| {
            if lane >= len || tags.at(lane) != NUMBER {
                return 0;
            }
            let (v, tag) = self.looked_up(off, bytes, sign, index.at(lane), mask);
            each[lane] = tag;
            v
        });
        out.tags = Tags::found(each, len);
    }

    /// The parameter at a place that a number tells.
    fn looked_up(&mut self, off: i32, bytes: u8, sign: bool, index: u64, mask: u64) -> (u64, Tag) {
        let at = i64::from(off) + signed(index, 32);
        let Ok(at) = u16::try_from(at) else { return (0, UNKNOWN) };
        if usize::from(at) + usize::from(bytes) > self.launch.params.len() {
            return (0, UNKNOWN);
        }
        let (v, tag) = self.param(at, bytes);
        let short = 64 - 8 * u32::from(bytes.min(4));
        (if sign && bytes < 4 { ((v << short) as i64 >> short) as u64 & mask } else { v }, tag)
    }

    fn compare(&self, c: Cmp, s: bool, x: NodeId, y: NodeId, out: &mut LaneValue) {
        let bits = self.g.node(x).width.bits();
        let equal = matches!(c, Cmp::Eq | Cmp::Ne);
        let (a, b) = (self.operand(x), self.operand(y));
        match (&a.tags, &b.tags) {
            // Equal or not whatever they count from.
            (Tags::All(p), Tags::All(q)) if equal && p == q && *p != UNKNOWN => out.tags = Tags::All(NUMBER),
            _ if bits == 64 && (self.is_far(a, b) || self.is_far(b, a)) => out.tags = Tags::All(NUMBER),
            _ => self.numbers(&[x, y], &mut out.tags),
        }
        // What holds for less, equal and greater.
        let holds = match c {
            Cmp::Lt => 0b001u64,
            Cmp::Le => 0b011,
            Cmp::Gt => 0b100,
            Cmp::Ge => 0b110,
            Cmp::Eq => 0b010,
            Cmp::Ne => 0b101,
        };
        out.map_two(a, b, |x, y| {
            let order = if s { signed(x, bits).cmp(&signed(y, bits)) } else { x.cmp(&y) };
            holds >> (order as i8 + 1) & 1
        });
    }

    fn combine(&self, how: Combine, x: NodeId, y: NodeId, out: &mut LaneValue) {
        let lut = match how {
            Combine::And => 0xc0,
            Combine::Or => 0xfc,
            Combine::Xor => 0x3c,
        };
        self.three_valued(lut, &[x, y], out);
    }

    fn truth_table(&self, lut: u8, of: [NodeId; 3], out: &mut LaneValue) {
        self.three_valued(lut, &of, out);
    }

    /// A truth table of predicates, of which some may be unknown.
    fn three_valued(&self, lut: u8, of: &[NodeId], out: &mut LaneValue) {
        let mut each = Box::new([NUMBER; LANES]);
        let of: SmallVec<[&LaneValue; 3]> = of.iter().map(|n| self.operand(*n)).collect();
        if of.iter().all(|v| matches!(v.tags, Tags::All(NUMBER))) {
            let third = of.get(2).copied().unwrap_or(of[0]);
            let uses_third = u64::from(of.len() > 2);
            out.map_three([of[0], of[1], third], |[x, y, z]| {
                let row = (x & 1) << 2 | (y & 1) << 1 | z & uses_third;
                u64::from(lut >> row & 1)
            });
            out.tags = Tags::All(NUMBER);
            return;
        }
        out.put(self.len, |lane| {
            let (mut row, mut free) = (0u8, 0u8);
            for (i, v) in of.iter().enumerate() {
                match v.tags.at(lane) {
                    NUMBER => row |= (v.at(lane) as u8 & 1) << (2 - i),
                    _ => free |= 1 << (2 - i),
                }
            }
            let at = |r: u8| lut >> r & 1;
            let mut rows = (0..8u8).filter(|r| r & !free == row).map(at);
            let first = rows.next().unwrap_or(0);
            if !rows.all(|v| v == first) {
                each[lane] = UNKNOWN;
            }
            u64::from(first)
        });
        out.tags = Tags::found(each, self.len);
    }
}
