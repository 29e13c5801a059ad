//! Masks, bitwise functions, shifts, minima, division, byte permutation on forms.

use super::eval::{Eval, Key};
use super::form::{Form, INF, Int};
use super::node::NodeId;
use crate::ir::{BlockId, Reason};
use smallvec::SmallVec;

fn low_mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Eval<'_> {
    fn within(&mut self, f: &Form, limit: Int, b: BlockId) -> bool {
        let fits = |(lo, hi): (Int, Int)| lo >= 0 && hi < limit;
        fits(self.boxed(f, false)) || fits(self.bounds(f, b))
    }

    /// A fresh atom over the values of `deps` with a box, keyed by content.
    fn boxed_atom(&mut self, key: Key, (lo, hi): (Int, Int), why: Option<Reason>, deps: &[&Form], b: BlockId) -> Form {
        Form::atom(self.keyed(key, |e| {
            let a = e.new_atom(lo, hi, why, b);
            e.atoms[a.0 as usize].deps = e.depends(deps);
            a
        }))
    }

    /// `f & mask`.
    fn mask(&mut self, f: &Form, mask: u64, bits: u32, b: BlockId) -> Form {
        let full = low_mask(bits);
        let mask = mask & full;
        if mask == 0 {
            return Form::default();
        }
        if mask == full {
            return f.clone();
        }
        let f = self.concrete(f);
        let low = mask.trailing_zeros();
        let top = 64 - mask.leading_zeros();
        if mask >> low == low_mask(top - low) {
            // Contiguous bits.
            let unit: Int = 1 << low;
            if top == bits {
                return self.floor_div(&f, unit, b).scale(unit);
            }
            let lim: Int = 1 << top;
            let r = if self.within(&f, lim, b) {
                f
            } else {
                let q = self.floor_div(&f, lim, b);
                f.add(&q, -lim)
            };
            return if low == 0 { r } else { self.floor_div(&r, unit, b).scale(unit) };
        }
        let u = self.interp(&f, bits, false, b);
        let hi = self.bounds(&u, b).1.min(Int::from(mask));
        self.boxed_atom(Key::Mask(f.clone(), mask, b), (0, hi), None, &[&f], b)
    }

    /// `a | b`, also `a ^ b` (`xor`) where no bit is set in both.
    fn or(&mut self, x: &Form, y: &Form, xor: bool, bits: u32, b: BlockId) -> Form {
        if *x == Form::default() {
            return y.clone();
        }
        if *y == Form::default() {
            return x.clone();
        }
        for (p, q) in [(x, y), (y, x)] {
            let mut g = p.gcd();
            g = super::form::gcd(g, p.c);
            g &= -g;
            if g > 0 && self.within(q, g, b) {
                return p.add(q, 1);
            }
            if let Some(c) = q.as_const().map(|c| c.rem_euclid(1 << bits))
                && c > 0
                && c & (c - 1) == 0
            {
                let (lo, hi) = (self.floor_div(p, c, b), self.floor_div(p, 2 * c, b));
                if lo.add(&hi, -2) == Form::default() {
                    // The bit is clear in p.
                    return p.add(q, 1);
                }
            }
        }
        let (ux, uy) = (self.interp(x, bits, false, b), self.interp(y, bits, false, b));
        let (hx, hy) = (self.bounds(&ux, b).1, self.bounds(&uy, b).1);
        let hi = ones_up_to(hx.max(hy)).min((1 << bits) - 1);
        let why = self.why(&ux).or_else(|| self.why(&uy));
        let r = self.keyed(Key::Pair(u8::from(xor) + 1, ux.clone(), uy.clone(), b), |e| {
            let r = e.new_atom(0, hi, why, b);
            let deps = e.depends(&[&ux, &uy]);
            let one = Form::atom(r);
            // x | y <= x + y; x ^ y too.
            let mut cons = vec![e.con(one.add(&ux, -1).add(&uy, -1))];
            if !xor {
                cons.push(e.con(ux.add(&one, -1)));
                cons.push(e.con(uy.add(&one, -1)));
            }
            let a = &mut e.atoms[r.0 as usize];
            a.deps = deps;
            a.cons = cons;
            r
        });
        Form::atom(r)
    }

    fn xor_const(&mut self, n: NodeId, f: &Form, k: u64, bits: u32, b: BlockId) -> Form {
        let full = low_mask(bits);
        let k = k & full;
        if k == full {
            return f.scale(-1).plus(-1);
        }
        // All but the low bits flipped on a multiple of 2^z: -x - 2^z.
        let z = Int::from((!k & full) + 1);
        if z & (z - 1) == 0 && f.terms.iter().all(|t| t.1 % z == 0) && f.c % z == 0 {
            return f.scale(-1).plus(-z);
        }
        // The low bits change only within their aligned group.
        let group: Int = 1 << (64 - k.leading_zeros());
        if 64 - k.leading_zeros() >= bits {
            return self.opaque(Key::Node(n, 20), self.why(f).unwrap_or(Reason::Bits), bits, b);
        }
        let f = self.concrete(f);
        let q = self.floor_div(&f, group, b).scale(group);
        let t = self.boxed_atom(Key::Xor(f.clone(), k), (0, group - 1), None, &[&f], b);
        q.add(&t, 1)
    }

    /// Bitwise function of three forms by truth table.
    pub(super) fn lop3(&mut self, n: NodeId, v: [Form; 3], lut: u8, bits: u32, b: BlockId) -> Form {
        let full = low_mask(bits);
        let k: [Option<u64>; 3] = [0, 1, 2].map(|i| v[i].as_const().map(|c| c.rem_euclid(1 << bits) as u64));
        let tab = |t: u8| lut >> t & 1 == 1;
        let var: SmallVec<[usize; 3]> =
            (0..3).filter(|i| k[*i].is_none() && (0..8u8).any(|t| tab(t) != tab(t ^ (4 >> i)))).collect();
        // For each combination of the variable inputs: the constant word of results.
        let word = |bitsof: &dyn Fn(usize) -> Option<bool>| -> u64 {
            (0..bits)
                .map(|bit| {
                    let t = (0..3).fold(0u8, |t, i| {
                        let x = bitsof(i).unwrap_or_else(|| k[i].unwrap_or(0) >> bit & 1 == 1);
                        t | u8::from(x) << (2 - i)
                    });
                    u64::from(tab(t)) << bit
                })
                .sum()
        };
        match var[..] {
            [] => Form::konst(Int::from(word(&|_| None))),
            [x] => {
                let m0 = word(&|i| (i == x).then_some(false));
                let m1 = word(&|i| (i == x).then_some(true));
                let (keep, inv) = (m0 ^ m1, m0);
                let f = v[x].clone();
                if inv & keep == 0 {
                    let r = self.mask(&f, keep, bits, b);
                    return if inv == 0 { r } else { self.or(&r, &Form::konst(Int::from(inv)), false, bits, b) };
                }
                if keep == full {
                    return self.xor_const(n, &f, inv, bits, b);
                }
                if inv & !keep & full == 0 && inv & keep == keep {
                    return self.mask(&f.scale(-1).plus(-1), keep, bits, b);
                }
                self.opaque(Key::Node(n, 21), self.why(&f).unwrap_or(Reason::Bits), bits, b)
            }
            [x, y] => self.two_inputs(n, &v, (x, y), k, lut, bits, b),
            _ => self.many_inputs(n, &v, lut, bits, b),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn two_inputs(
        &mut self,
        n: NodeId,
        v: &[Form; 3],
        (x, y): (usize, usize),
        k: [Option<u64>; 3],
        lut: u8,
        bits: u32,
        b: BlockId,
    ) -> Form {
        let full = low_mask(bits);
        let o = 3 - x - y;
        let third = k[o].unwrap_or(0);
        let mut r = Form::default();
        for (bit, m) in [(1u8, third), (0, !third & full)] {
            if m == 0 {
                continue;
            }
            let row = |p: u8, q: u8| lut >> (p << (2 - x) | q << (2 - y) | bit << (2 - o)) & 1;
            let t = row(0, 0) << 3 | row(0, 1) << 2 | row(1, 0) << 1 | row(1, 1);
            let (fx, fy) = (v[x].clone(), v[y].clone());
            let g = match t {
                0b0000 => Form::default(),
                0b0011 => fx,
                0b0101 => fy,
                0b0111 => self.or(&fx, &fy, false, bits, b),
                0b0110 => self.or(&fx, &fy, true, bits, b),
                0b0001 => self.and(&fx, &fy, bits, b),
                0b0010 => {
                    let ny = fy.scale(-1).plus(-1);
                    self.and(&fx, &ny, bits, b)
                }
                0b0100 => {
                    let nx = fx.scale(-1).plus(-1);
                    self.and(&nx, &fy, bits, b)
                }
                _ => return self.many_inputs(n, v, lut, bits, b),
            };
            let g = self.mask(&g, m, bits, b);
            r = r.add(&g, 1);
        }
        r
    }

    fn and(&mut self, x: &Form, y: &Form, bits: u32, b: BlockId) -> Form {
        let (ux, uy) = (self.interp(x, bits, false, b), self.interp(y, bits, false, b));
        let (hx, hy) = (self.bounds(&ux, b).1, self.bounds(&uy, b).1);
        // Below both: one known side bounds it.
        let (wx, wy) = (self.why(&ux), self.why(&uy));
        let why = if wx.is_some() && wy.is_some() { wx } else { None };
        let hi = match (wx, wy) {
            (Some(_), None) => hy,
            (None, Some(_)) => hx,
            _ => hx.min(hy),
        };
        self.boxed_atom(Key::Pair(3, ux.clone(), uy.clone(), b), (0, hi), why, &[&ux, &uy], b)
    }

    fn many_inputs(&mut self, n: NodeId, v: &[Form; 3], lut: u8, bits: u32, b: BlockId) -> Form {
        if lut == 0xfe {
            let x = self.or(&v[0], &v[1], false, bits, b);
            return self.or(&x, &v[2], false, bits, b);
        }
        let why = v.iter().find_map(|f| self.why(f));
        if lut & 1 == 0 {
            // No bit is set that no input has.
            let mut hi = 0;
            let mut why = None;
            for f in v {
                let u = self.interp(f, bits, false, b);
                hi = hi.max(self.bounds(&u, b).1);
                why = why.or_else(|| self.why(&u));
            }
            if hi < (1 << bits) - 1 {
                let hi = ones_up_to(hi);
                return self.boxed_atom(Key::Lop(lut, v.to_vec(), b), (0, hi), why, &[&v[0], &v[1], &v[2]], b);
            }
        }
        self.opaque(Key::Node(n, 22), why.unwrap_or(Reason::Bits), bits, b)
    }

    pub(super) fn abs(&mut self, f: &Form, bits: u32, b: BlockId) -> Form {
        let s = self.interp(f, bits, true, b);
        let (lo, hi) = self.bounds(&s, b);
        if lo >= 0 {
            return s;
        }
        if hi <= 0 {
            return s.scale(-1);
        }
        let why = self.why(&s);
        let hi = (-lo).max(hi);
        let key = Key::Abs(s.clone(), b);
        Form::atom(self.keyed(key, |e| {
            let a = e.new_atom(0, hi, why, b);
            let one = Form::atom(a);
            e.atoms[a.0 as usize].deps = e.depends(&[&s]);
            e.atoms[a.0 as usize].cons = vec![e.con(s.add(&one, -1)), e.con(s.scale(-1).add(&one, -1))];
            a
        }))
    }

    pub(super) fn min_max(&mut self, x: &Form, y: &Form, min: bool, b: BlockId) -> Form {
        let (dl, dh) = self.bounds(&x.add(y, -1), b);
        if dh <= 0 {
            return if min { x.clone() } else { y.clone() };
        }
        if dl >= 0 {
            return if min { y.clone() } else { x.clone() };
        }
        let (lx, hx) = self.bounds(x, b);
        let (ly, hy) = self.bounds(y, b);
        let (lo, hi) = if min { (lx.min(ly), hx.min(hy)) } else { (lx.max(ly), hx.max(hy)) };
        // One known side bounds the result on one side only: it stays opaque, its constraints do the rest.
        let why = self.why(x).or_else(|| self.why(y));
        Form::atom(self.keyed(Key::Pair(if min { 4 } else { 5 }, x.clone(), y.clone(), b), |e| {
            let m = e.new_atom(lo, hi, why, b);
            let one = Form::atom(m);
            let s = if min { 1 } else { -1 };
            let mut cons = vec![e.con(one.add(x, -1).scale(s)), e.con(one.add(y, -1).scale(s))];
            // An opaque atom's box does not count in the end, but these hold: min >= the smaller lower bound.
            if min && lo > -INF && e.strictly_bounded(x, y, b, false) {
                cons.push(e.con(one.scale(-1).plus(lo)));
            }
            if !min && hi < INF && e.strictly_bounded(x, y, b, true) {
                cons.push(e.con(one.plus(-hi)));
            }
            e.atoms[m.0 as usize].deps = e.depends(&[x, y]);
            e.atoms[m.0 as usize].cons = cons;
            m
        }))
    }

    /// Are both bounded above (or below) without the help of opaque boxes?
    fn strictly_bounded(&mut self, x: &Form, y: &Form, b: BlockId, above: bool) -> bool {
        let ctx = self.ctx(b);
        [x, y].iter().all(|f| {
            let (lo, hi) = self.bounds_in(f, &ctx, true);
            if above { hi < INF } else { lo > -INF }
        })
    }

    pub(super) fn shift_left(&mut self, n: NodeId, x: NodeId, k: NodeId, bits: u32, b: BlockId) -> Form {
        let k = self.ev(k);
        if let Some(c) = k.as_const() {
            let c = c.rem_euclid(1 << 32);
            return if c >= Int::from(bits) { Form::default() } else { self.ev(x).scale(1 << c) };
        }
        let x = self.ev(x);
        let (sl, sh) = self.bounds(&k, b);
        let ux = self.interp(&x, bits, false, b);
        let (lo, hi) = self.bounds(&ux, b);
        let why = self.why(&k).or_else(|| self.why(&ux));
        if why.is_some() || sl < 0 || sh >= Int::from(bits) || hi << sh >= 1 << bits {
            return self.opaque(Key::Node(n, 23), why.unwrap_or(Reason::Bits), bits, b);
        }
        self.boxed_atom(Key::Range(n, lo << sl, hi << sh), (lo << sl, hi << sh), None, &[&k, &ux], b)
    }

    pub(super) fn shift_right(&mut self, n: NodeId, signed: bool, x: NodeId, k: NodeId, bits: u32, b: BlockId) -> Form {
        let k = self.ev(k);
        let x = self.ev(x);
        let x = self.interp(&x, bits, signed, b);
        let x = self.concrete(&x);
        if let Some(c) = k.as_const() {
            let c = c.rem_euclid(1 << 32);
            if c >= Int::from(bits) {
                return if signed { self.floor_div(&x, 1 << (bits - 1), b) } else { Form::default() };
            }
            return self.floor_div(&x, 1 << c, b);
        }
        let (sl, sh) = self.bounds(&k, b);
        let (lo, hi) = self.bounds(&x, b);
        let why = self.why(&k).or_else(|| self.why(&x));
        if why.is_some() || sl < 0 || sh >= Int::from(bits) {
            return self.opaque(Key::Node(n, 24), why.unwrap_or(Reason::Bits), bits, b);
        }
        let lo = lo >> if lo >= 0 { sh } else { sl };
        let hi = hi >> if hi >= 0 { sl } else { sh };
        self.boxed_atom(Key::Range(n, lo, hi), (lo, hi), None, &[&k, &x], b)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn divide(
        &mut self,
        n: NodeId,
        signed: bool,
        x: NodeId,
        y: NodeId,
        rem: bool,
        bits: u32,
        b: BlockId,
    ) -> Form {
        let (x, y) = (self.ev(x), self.ev(y));
        let (x, y) = (self.interp(&x, bits, signed, b), self.interp(&y, bits, signed, b));
        let (x, y) = (self.concrete(&x), self.concrete(&y));
        let (xl, xh) = self.bounds(&x, b);
        let (yl, yh) = self.bounds(&y, b);
        let why = self.why(&x).or_else(|| self.why(&y));
        if yl <= 0 {
            return self.opaque(Key::Node(n, 25), why.unwrap_or(Reason::Bits), bits, b);
        }
        if let Some(d) = y.as_const().filter(|_| xl >= 0) {
            let q = self.floor_div(&x, d, b);
            return if rem { x.add(&q, -d) } else { q };
        }
        if let Some(d) = y.as_const()
            && xl > -INF
            && xh < INF
        {
            // Rounding to zero of a number that may be negative.
            let (lo, hi) = if rem {
                (if xl < 0 { -(d - 1) } else { 0 }, if xh > 0 { d - 1 } else { 0 })
            } else {
                (-(-xl).div_euclid(d), xh.max(0).div_euclid(d))
            };
            let why = if rem { None } else { why };
            return self.boxed_atom(Key::Range(n, lo, hi), (lo, hi), why, &[&x, &y], b);
        }
        if xl < 0 {
            return self.opaque(Key::Node(n, 26), why.unwrap_or(Reason::Bits), bits, b);
        }
        let (lo, hi) = if rem { (0, xh.min(yh - 1)) } else { (xl / yh.max(1), xh / yl) };
        let why = if rem { self.why(&y) } else { why };
        Form::atom(self.keyed(Key::Range(n, lo, hi), |e| {
            let a = e.new_atom(lo, hi, why, b);
            let one = Form::atom(a);
            e.atoms[a.0 as usize].deps = e.depends(&[&x, &y]);
            let mut cons = vec![e.con(one.add(&x, -1))];
            if rem {
                cons.push(e.con(one.add(&y, -1).plus(1)));
            }
            e.atoms[a.0 as usize].cons = cons;
            a
        }))
    }

    /// The low `k` bits of a 32-bit form, extended.
    pub(super) fn extract(&mut self, n: NodeId, f: &Form, k: u8, signed: bool, bits: u32, b: BlockId) -> Form {
        let k = u32::from(k);
        if !signed {
            return self.mask(f, low_mask(k), bits, b);
        }
        let (lo, hi) = self.bounds(f, b);
        let half: Int = 1 << (k - 1);
        if -half <= lo && hi < half {
            return f.clone();
        }
        if let Some(c) = f.as_const() {
            return Form::konst((c + half).rem_euclid(1 << k) - half);
        }
        let why = self.why(f);
        self.boxed_atom(Key::Range(n, -half, half - 1), (-half, half - 1), why, &[f], b)
    }

    pub(super) fn prmt(&mut self, n: NodeId, [x, sel, y]: [Form; 3], b: BlockId) -> Form {
        let why = self.why(&x).or_else(|| self.why(&y)).unwrap_or(Reason::Bits);
        let Some(sel) = sel.as_const().map(|c| c.rem_euclid(1 << 32)) else {
            return self.opaque(Key::Node(n, 27), why, 32, b);
        };
        let s = [0, 4, 8, 12].map(|k| (sel >> k & 15) as u8);
        if let (Some(p), Some(q)) = (x.as_const(), y.as_const()) {
            let v = p.rem_euclid(1 << 32) as u64 | (q.rem_euclid(1 << 32) as u64) << 32;
            let r = s.iter().enumerate().fold(0u32, |r, (k, c)| {
                let byte = (v >> (8 * (c & 7))) as u8;
                let byte = if c & 8 == 0 {
                    byte
                } else if byte >> 7 == 1 {
                    0xff
                } else {
                    0
                };
                r | u32::from(byte) << (8 * k)
            });
            return Form::konst(Int::from(r));
        }
        match s {
            [0, 1, 2, 3] => return x,
            [4, 5, 6, 7] => return y,
            _ => {}
        }
        if y == Form::default() {
            let zero = |c: u8| c & 8 == 0 && c >= 4;
            match s {
                [0, p, q, r] if zero(p) && zero(q) && zero(r) => return self.mask(&x, 0xff, 32, b),
                [0, 1, q, r] if zero(q) && zero(r) => return self.mask(&x, 0xffff, 32, b),
                [p, q, 0, 1] if zero(p) && zero(q) => return x.scale(1 << 16),
                [0, 1, 9, 9] => {
                    let (lo, hi) = self.bounds(&x, b);
                    if -0x8000 <= lo && hi < 0x8000 {
                        return x;
                    }
                }
                _ => {}
            }
        }
        self.opaque(Key::Node(n, 28), why, 32, b)
    }

    /// Parameter bytes at a dynamic offset: the list of words it may be.
    pub(super) fn indexed(&mut self, n: NodeId, off: i32, bytes: u8, signed: bool, idx: NodeId, b: BlockId) -> Form {
        let f = self.ev(idx);
        let f = self.interp(&f, 32, true, b);
        let ctx = self.ctx(b);
        let (lo, hi) = self.bounds_in(&f, &ctx, true);
        let step = f.gcd().max(1);
        let bits = 8 * u32::from(bytes);
        let why = self.why(&f).unwrap_or(Reason::Constant);
        if lo <= -INF || hi >= INF || (hi - lo) / step > 512 {
            return self.opaque(Key::Node(n, 29), why, bits, b);
        }
        // The offsets reached are congruent to the constant part modulo the step.
        let mut at = lo + (f.c - lo).rem_euclid(step);
        let mut alts = Vec::new();
        while at <= hi {
            let Ok(o) = u16::try_from(Int::from(off) + at) else {
                return self.opaque(Key::Node(n, 30), Reason::Constant, bits, b);
            };
            // A word outside of the recorded bytes is not reached by a program that runs.
            if usize::from(o) + usize::from(bytes) <= self.launch.params.len() {
                let v = self.param(n, o, bytes, b);
                let v = match (signed, v.as_const()) {
                    (true, Some(c)) if bytes < 4 => {
                        let half: Int = 1 << (bits - 1);
                        Form::konst((c + half).rem_euclid(1 << bits) - half)
                    }
                    _ => v,
                };
                alts.push(v);
            }
            at += step;
        }
        if alts.is_empty() {
            return self.opaque(Key::Node(n, 31), Reason::Constant, bits, b);
        }
        self.alternatives(alts, Key::Table(f.clone(), off, bytes, signed), Some(&f), b)
    }

    /// Local array read at a dynamic index: any value stored into a slot that the index may reach.
    pub(super) fn local_load(&mut self, n: NodeId, addr: NodeId, bytes: u8, b: BlockId) -> Form {
        let bits = 8 * u32::from(bytes);
        let g = self.g;
        if self.local_busy.contains(&n) || g.local_stores.is_empty() || g.local_stores.len() > 200 {
            return self.opaque(Key::Node(n, 32), Reason::Local, bits, b);
        }
        self.local_busy.push(n);
        let r = self.stored_values(addr, bytes, b);
        self.local_busy.pop();
        match r {
            Some(alts) if !alts.is_empty() && alts.len() <= 64 => self.alternatives(alts, Key::Alts(n), None, b),
            _ => self.opaque(Key::Node(n, 33), Reason::Local, bits, b),
        }
    }

    fn stored_values(&mut self, addr: NodeId, bytes: u8, b: BlockId) -> Option<Vec<Form>> {
        let g = self.g;
        let a = self.ev(addr);
        let ctx = self.ctx(b);
        let mut alts = Vec::new();
        for s in &g.local_stores {
            let at = self.ev(s.addr);
            // Both are the local base plus an offset; the base cancels.
            let d = a.add(&at, -1).norm(32);
            let (lo, hi) = self.bounds_in(&d, &ctx, true);
            let step = d.gcd();
            let width = Int::from(bytes);
            // Every place at which the load may begin so that the two share a byte.
            for off in lo.max(1 - width)..=hi.min(Int::from(s.bytes) - 1) {
                if step != 0 && (off - d.c).rem_euclid(step) != 0 {
                    continue;
                }
                // A word, or an aligned pair of words, that this store alone makes; else it is put together from several.
                if s.bytes < 4 || off < 0 || off % 4 != 0 || off + width > 4 * s.words.len() as Int {
                    return None;
                }
                let q = (off / 4) as usize;
                let v = match bytes {
                    8 if !q.is_multiple_of(2) => return None,
                    8 => *s.pairs.get(q / 2)?,
                    _ => s.words[q],
                };
                let f = self.ev(v);
                // What one iteration stored may be read by another.
                if self.varies_around(&f, s.block) {
                    return None;
                }
                alts.push(f);
            }
        }
        Some(alts)
    }
}

fn ones_up_to(hi: Int) -> Int {
    if hi >= INF {
        return INF;
    }
    let hi = hi.max(0);
    (1 << (128 - hi.leading_zeros())) - 1
}
