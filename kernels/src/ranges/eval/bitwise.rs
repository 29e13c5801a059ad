//! Masks, bitwise functions and byte permutation of forms.
//!
//! Owns what such an operation makes of a number. Masks that hold predicates are in
//! `predicate_masks`.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::eval::Eval;
use crate::ranges::eval::no_wrap::{concrete, floor_div, interp};
use crate::ranges::graph::node::NodeId;
use smallvec::SmallVec;

fn low_mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

fn within(eval: &mut Eval<'_>, f: &AffineForm, limit: Int, b: BlockId) -> bool {
    let fits = |(lo, hi): (Int, Int)| lo >= 0 && hi < limit;
    fits(eval.atoms.boxed(f, false)) || fits(eval.bounds(f, b))
}

/// A fresh atom over the values of `deps` with a box, keyed by content.
pub(crate) fn boxed_atom(
    eval: &mut Eval<'_>,
    key: AtomKey,
    (lo, hi): (impl Into<Int>, impl Into<Int>),
    why: Option<Reason>,
    deps: &[&AffineForm],
    b: BlockId,
) -> AffineForm {
    AffineForm::atom(eval.keyed(key, |eval| {
        let a = eval.atoms.new_atom(lo, hi, why, b);
        eval.atoms[a].deps = eval.atoms.depends(deps);
        a
    }))
}

/// `f & mask`.
fn masked(eval: &mut Eval<'_>, f: &AffineForm, mask: u64, bits: u32, b: BlockId) -> AffineForm {
    let full = low_mask(bits);
    let mask = mask & full;
    if mask == 0 {
        return AffineForm::default();
    }
    if mask == full {
        return f.clone();
    }
    let low = mask.trailing_zeros();
    let top = 64 - mask.leading_zeros();
    let pointer = |t: &(AtomId, Int)| t.1 == 1 && matches!(eval.atoms[t.0].kind, AtomKind::Param(_));
    if top == bits && mask >> low == low_mask(top - low) && f.terms.iter().any(pointer) {
        // An address rounded down stays an address: `f - f mod 2^low`.
        let number = concrete(&eval.atoms, f);
        let unit = Int::pow2(low);
        let rest = number.add(&floor_div(eval, &number, unit, b), -unit);
        return f.add(&rest, -1);
    }
    let f = concrete(&eval.atoms, f);
    if mask >> low == low_mask(top - low) {
        // Contiguous bits.
        let unit = Int::pow2(low);
        if top == bits {
            return floor_div(eval, &f, unit, b).scale(unit);
        }
        let lim = Int::pow2(top);
        let r = if within(eval, &f, lim, b) {
            f
        } else {
            let q = floor_div(eval, &f, lim, b);
            f.add(&q, -lim)
        };
        return if low == 0 { r } else { floor_div(eval, &r, unit, b).scale(unit) };
    }
    // Bits that are never set may as well stay.
    let clear = f.gcd().gcd(f.c).pin();
    let wider = mask | ((clear & -clear).max(1) as u64 - 1) & full;
    if wider != mask {
        return masked(eval, &f, wider, bits, b);
    }
    let u = interp(eval, &f, bits, false, b);
    let hi = eval.bounds(&u, b).1.min(Int::from(mask));
    boxed_atom(eval, AtomKey::Mask(f.clone(), mask, b), (0, hi), None, &[&f], b)
}

/// `a | b`, also `a ^ b` (`xor`) where no bit is set in both.
fn or(eval: &mut Eval<'_>, x: &AffineForm, y: &AffineForm, xor: bool, bits: u32, b: BlockId) -> AffineForm {
    if *x == AffineForm::default() {
        return y.clone();
    }
    if *y == AffineForm::default() {
        return x.clone();
    }
    for (p, q) in [(x, y), (y, x)] {
        // The lowest bit that may be set.
        let g = p.gcd().gcd(p.c).pin();
        let g = Int::new(g & -g);
        if g > 0 && within(eval, q, g, b) {
            return p.add(q, 1);
        }
        if let Some(c) = q.as_const().map(|c| c.pin().rem_euclid(1 << bits))
            && c > 0
            && c & (c - 1) == 0
        {
            let c = Int::new(c);
            let (lo, hi) = (floor_div(eval, p, c, b), floor_div(eval, p, c * 2, b));
            if lo.add(&hi, -2) == AffineForm::default() {
                // The bit is clear in p.
                return p.add(q, 1);
            }
        }
    }
    let (ux, uy) = (interp(eval, x, bits, false, b), interp(eval, y, bits, false, b));
    let (hx, hy) = (eval.bounds(&ux, b).1, eval.bounds(&uy, b).1);
    let hi = ones_up_to(hx.max(hy)).min(low_mask(bits));
    let why = eval.atoms.why(&ux).or_else(|| eval.atoms.why(&uy));
    let r = eval.keyed(AtomKey::Pair(u8::from(xor) + 1, ux.clone(), uy.clone(), b), |eval| {
        let r = eval.atoms.new_atom(0, hi, why, b);
        let deps = eval.atoms.depends(&[&ux, &uy]);
        let one = AffineForm::atom(r);
        // x | y <= x + y; x ^ y too.
        let mut cons = vec![eval.atoms.con(one.add(&ux, -1).add(&uy, -1))];
        if !xor {
            cons.push(eval.atoms.con(ux.add(&one, -1)));
            cons.push(eval.atoms.con(uy.add(&one, -1)));
        }
        let a = &mut eval.atoms[r];
        a.deps = deps;
        a.cons = cons;
        r
    });
    AffineForm::atom(r)
}

fn xor_const(eval: &mut Eval<'_>, n: NodeId, f: &AffineForm, k: u64, bits: u32, b: BlockId) -> AffineForm {
    let full = low_mask(bits);
    let k = k & full;
    if k == full {
        return f.scale(-1).plus(-1);
    }
    // All but the low bits flipped on a multiple of 2^z: -x - 2^z.
    let z = (!k & full) + 1;
    let (single, z) = (z.is_power_of_two(), Int::from(z));
    if single && f.terms.iter().all(|t| t.1.divides(z)) && f.c.divides(z) {
        return f.scale(-1).plus(-z);
    }
    // The low bits change only within their aligned group.
    let group = Int::pow2(64 - k.leading_zeros());
    if 64 - k.leading_zeros() >= bits {
        return eval.opaque(AtomKey::Node(n, 20), eval.atoms.why(f).unwrap_or(Reason::Bits), bits, b);
    }
    let f = concrete(&eval.atoms, f);
    let q = floor_div(eval, &f, group, b).scale(group);
    let t = boxed_atom(eval, AtomKey::Xor(f.clone(), k), (0, group - 1), None, &[&f], b);
    q.add(&t, 1)
}

/// Bitwise function of three forms by truth table.
pub(crate) fn lop3(eval: &mut Eval<'_>, n: NodeId, v: [AffineForm; 3], lut: u8, bits: u32, b: BlockId) -> AffineForm {
    let full = low_mask(bits);
    let k: [Option<u64>; 3] = [0, 1, 2].map(|i| v[i].as_const().map(|c| c.pin().rem_euclid(1 << bits) as u64));
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
        [] => AffineForm::konst(Int::from(word(&|_| None))),
        [x] => {
            let m0 = word(&|i| (i == x).then_some(false));
            let m1 = word(&|i| (i == x).then_some(true));
            let (keep, inv) = (m0 ^ m1, m0);
            let f = v[x].clone();
            if inv & keep == 0 {
                let r = masked(eval, &f, keep, bits, b);
                return if inv == 0 { r } else { or(eval, &r, &AffineForm::konst(Int::from(inv)), false, bits, b) };
            }
            if keep == full {
                return xor_const(eval, n, &f, inv, bits, b);
            }
            if inv & !keep & full == 0 && inv & keep == keep {
                return masked(eval, &f.scale(-1).plus(-1), keep, bits, b);
            }
            eval.opaque(AtomKey::Node(n, 21), eval.atoms.why(&f).unwrap_or(Reason::Bits), bits, b)
        }
        [x, y] => two_inputs(eval, n, &v, (x, y), k, lut, bits, b),
        _ => many_inputs(eval, n, &v, lut, bits, b),
    }
}

#[allow(clippy::too_many_arguments)]
fn two_inputs(
    eval: &mut Eval<'_>,
    n: NodeId,
    v: &[AffineForm; 3],
    (x, y): (usize, usize),
    k: [Option<u64>; 3],
    lut: u8,
    bits: u32,
    b: BlockId,
) -> AffineForm {
    let full = low_mask(bits);
    let o = 3 - x - y;
    let third = k[o].unwrap_or(0);
    let mut r = AffineForm::default();
    for (bit, m) in [(1u8, third), (0, !third & full)] {
        if m == 0 {
            continue;
        }
        let row = |p: u8, q: u8| lut >> (p << (2 - x) | q << (2 - y) | bit << (2 - o)) & 1;
        let t = row(0, 0) << 3 | row(0, 1) << 2 | row(1, 0) << 1 | row(1, 1);
        let (fx, fy) = (v[x].clone(), v[y].clone());
        let g = match t {
            0b0000 => AffineForm::default(),
            0b0011 => fx,
            0b0101 => fy,
            0b0111 => or(eval, &fx, &fy, false, bits, b),
            0b0110 => or(eval, &fx, &fy, true, bits, b),
            0b0001 => and(eval, &fx, &fy, bits, b),
            0b0010 => {
                let ny = fy.scale(-1).plus(-1);
                and(eval, &fx, &ny, bits, b)
            }
            0b0100 => {
                let nx = fx.scale(-1).plus(-1);
                and(eval, &nx, &fy, bits, b)
            }
            _ => return many_inputs(eval, n, v, lut, bits, b),
        };
        let g = masked(eval, &g, m, bits, b);
        r = r.add(&g, 1);
    }
    r
}

fn and(eval: &mut Eval<'_>, x: &AffineForm, y: &AffineForm, bits: u32, b: BlockId) -> AffineForm {
    let (ux, uy) = (interp(eval, x, bits, false, b), interp(eval, y, bits, false, b));
    let (hx, hy) = (eval.bounds(&ux, b).1, eval.bounds(&uy, b).1);
    // Below both: one known side bounds it.
    let (wx, wy) = (eval.atoms.why(&ux), eval.atoms.why(&uy));
    let why = if wx.is_some() && wy.is_some() { wx } else { None };
    let hi = match (wx, wy) {
        (Some(_), None) => hy,
        (None, Some(_)) => hx,
        _ => hx.min(hy),
    };
    boxed_atom(eval, AtomKey::Pair(3, ux.clone(), uy.clone(), b), (0, hi), why, &[&ux, &uy], b)
}

fn many_inputs(eval: &mut Eval<'_>, n: NodeId, v: &[AffineForm; 3], lut: u8, bits: u32, b: BlockId) -> AffineForm {
    if lut == 0xfe {
        let x = or(eval, &v[0], &v[1], false, bits, b);
        return or(eval, &x, &v[2], false, bits, b);
    }
    let why = v.iter().find_map(|f| eval.atoms.why(f));
    if lut & 1 == 0 {
        // No bit is set that no input has.
        let mut hi = Int::new(0);
        let mut why = None;
        for f in v {
            let u = interp(eval, f, bits, false, b);
            hi = hi.max(eval.bounds(&u, b).1);
            why = why.or_else(|| eval.atoms.why(&u));
        }
        if hi < Int::from(low_mask(bits)) {
            let hi = ones_up_to(hi);
            return boxed_atom(eval, AtomKey::Lop(lut, v.to_vec(), b), (0, hi), why, &[&v[0], &v[1], &v[2]], b);
        }
    }
    eval.opaque(AtomKey::Node(n, 22), why.unwrap_or(Reason::Bits), bits, b)
}

/// The low `k` bits of a 32-bit form, extended.
pub(crate) fn extract(
    eval: &mut Eval<'_>,
    n: NodeId,
    f: &AffineForm,
    k: u8,
    signed: bool,
    bits: u32,
    b: BlockId,
) -> AffineForm {
    let k = u32::from(k);
    if !signed {
        return masked(eval, f, low_mask(k), bits, b);
    }
    let (lo, hi) = eval.bounds(f, b);
    let half = Int::pow2(k - 1);
    if -half <= lo && hi < half {
        return f.clone();
    }
    if let Some(c) = f.as_const() {
        return AffineForm::konst((c + half).rem_euclid(Int::pow2(k)) - half);
    }
    let why = eval.atoms.why(f);
    boxed_atom(eval, AtomKey::Range(n, -half, half - 1), (-half, half - 1), why, &[f], b)
}

pub(crate) fn prmt(eval: &mut Eval<'_>, n: NodeId, [x, sel, y]: [AffineForm; 3], b: BlockId) -> AffineForm {
    let why = eval.atoms.why(&x).or_else(|| eval.atoms.why(&y)).unwrap_or(Reason::Bits);
    let Some(sel) = sel.as_const().map(|c| c.pin().rem_euclid(1 << 32)) else {
        return eval.opaque(AtomKey::Node(n, 27), why, 32, b);
    };
    let s = [0, 4, 8, 12].map(|k| (sel >> k & 15) as u8);
    if let (Some(p), Some(q)) = (x.as_const(), y.as_const()) {
        let word = |c: Int| c.pin().rem_euclid(1 << 32) as u64;
        let v = word(p) | word(q) << 32;
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
        return AffineForm::konst(r);
    }
    match s {
        [0, 1, 2, 3] => return x,
        [4, 5, 6, 7] => return y,
        _ => {}
    }
    if y == AffineForm::default() {
        let zero = |c: u8| c & 8 == 0 && c >= 4;
        match s {
            [0, p, q, r] if zero(p) && zero(q) && zero(r) => return masked(eval, &x, 0xff, 32, b),
            [0, 1, q, r] if zero(q) && zero(r) => return masked(eval, &x, 0xffff, 32, b),
            [p, q, 0, 1] if zero(p) && zero(q) => return x.scale(1 << 16),
            [0, 1, 9, 9] => {
                let (lo, hi) = eval.bounds(&x, b);
                if lo >= -0x8000 && hi < 0x8000 {
                    return x;
                }
            }
            _ => {}
        }
    }
    eval.opaque(AtomKey::Node(n, 28), why, 32, b)
}

fn ones_up_to(hi: Int) -> Int {
    if hi >= INF {
        return INF;
    }
    Int::new((1 << (128 - hi.pin().max(0).leading_zeros())) - 1)
}
