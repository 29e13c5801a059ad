//! The value of one node for many threads at once.
//!
//! Owns how such a value is kept: as numbers of classes of lanes, and how far they have moved, with
//! tags that say what each counts from. Which lanes a class has is in `lane_classes`, which
//! operation makes a value in `lane_arithmetic`, when it is made in `lanes`.

use super::lane_classes::{LANE_BITS, LANES, Mask, NO_LANES, add, bits_of, classes, lanes};
use smallvec::SmallVec;
use std::rc::Rc;

/// What a value counts from: nothing, or the base of this number, counted from one.
pub(super) type Tag = u16;
pub(super) const NUMBER: Tag = 0;
pub(super) const UNKNOWN: Tag = Tag::MAX;

/// The tags of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tags {
    All(Tag),
    Each(Box<[Tag; LANES]>),
}

impl Tags {
    pub(crate) fn at(&self, lane: usize) -> Tag {
        match self {
            Tags::All(t) => *t,
            Tags::Each(t) => t[lane],
        }
    }

    /// Tags that were found for each of the lanes in use.
    pub(crate) fn found(each: Box<[Tag; LANES]>, len: usize) -> Tags {
        if each[..len].iter().all(|t| *t == each[0]) { Tags::All(each[0]) } else { Tags::Each(each) }
    }

    /// Notes in `any` the lanes in which this is no number.
    pub(crate) fn note_others(&self, any: &mut [Tag; LANES]) {
        match self {
            Tags::All(NUMBER) => {}
            Tags::All(t) => any.iter_mut().for_each(|any| *any |= *t),
            Tags::Each(t) => any.iter_mut().zip(t.iter()).for_each(|(any, t)| *any |= *t),
        }
    }

    /// The tags of each lane, to be changed.
    pub(crate) fn each(&mut self) -> &mut [Tag; LANES] {
        if let Tags::All(t) = *self {
            *self = Tags::Each(Box::new([t; LANES]));
        }
        match self {
            Tags::Each(t) => t,
            Tags::All(_) => unreachable!("made above"),
        }
    }
}

/// The value of a node for each lane. (Truth values are 0 and 1. Values that count from a base are
/// addresses nevertheless.)
///
/// Many values are the same for a warp, for a block, or for each eighth thread: for all lanes that
/// agree in some bits of their numbers. Such a class has one number. And many only move, all by the
/// same distance, from one iteration to the next: that is added to numbers which stay.
#[derive(Clone, Debug)]
pub(super) struct LaneValue {
    /// A number for each class of lanes.
    bits: Rc<Vec<u64>>,
    /// The bits of a lane's number that tell its class.
    by: u8,
    /// What is added to each number, and the bits that count then.
    moved: u64,
    mask: u64,
    pub(crate) tags: Tags,
    /// Numbers were calculated, and not taken over.
    pub(crate) is_new: bool,
}

/// From what a value was made the last time.
#[derive(Debug)]
pub(super) struct Recipe {
    of: SmallVec<[(Rc<Vec<u64>>, u64); 2]>,
    made: LaneValue,
    /// The least and the greatest number.
    range: (i64, i64),
}

impl LaneValue {
    pub(crate) fn unknown() -> LaneValue {
        let bits = Rc::new(vec![0]);
        LaneValue { bits, by: 0, moved: 0, mask: u64::MAX, tags: Tags::All(UNKNOWN), is_new: true }
    }

    pub(crate) fn all(&mut self, bits: u64, tag: Tag) {
        self.fill(bits);
        self.tags = Tags::All(tag);
    }

    /// One number for all lanes. (The tags stay, here and below.)
    pub(crate) fn fill(&mut self, bits: u64) {
        self.set(0, [bits].into_iter());
    }

    /// Numbers of classes by these bits.
    fn set(&mut self, by: u8, numbers: impl Iterator<Item = u64>) {
        match Rc::get_mut(&mut self.bits) {
            Some(bits) => {
                bits.clear();
                bits.extend(numbers);
            }
            None => self.bits = Rc::new(numbers.collect()),
        }
        (self.by, self.moved, self.mask, self.is_new) = (by, 0, u64::MAX, true);
        self.join_classes();
    }

    /// Makes one class of those that have the same numbers.
    fn join_classes(&mut self) {
        let Some(bits) = Rc::get_mut(&mut self.bits) else { return };
        let by = self.by;
        let mut place = by.count_ones();
        for bit in (0..LANE_BITS).rev().filter(|bit| by >> bit & 1 == 1) {
            place -= 1;
            let step = 1 << place;
            if bits.chunks(2 * step).all(|pair| pair[..step] == pair[step..]) {
                let left = bits.len() / 2;
                (0..left).for_each(|k| bits[k] = bits[(k / step) * 2 * step + k % step]);
                bits.truncate(left);
                self.by &= !(1 << bit);
            }
        }
    }

    /// The number of a lane.
    pub(crate) fn at(&self, lane: usize) -> u64 {
        self.number(classes().of_lane[usize::from(self.by)][lane])
    }

    fn number(&self, class: u8) -> u64 {
        self.bits[usize::from(class)].wrapping_add(self.moved) & self.mask
    }

    /// A number for each of so many lanes.
    pub(crate) fn put(&mut self, len: usize, number: impl FnMut(usize) -> u64) {
        let all = len.next_power_of_two();
        self.set((all - 1) as u8, (0..all).map(number));
    }

    /// The numbers of all lanes, each class's once.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = u64> {
        self.bits.iter().map(|b| b.wrapping_add(self.moved) & self.mask)
    }

    /// How many numbers there are.
    pub(crate) fn groups(&self) -> usize {
        self.bits.len()
    }

    /// The numbers as they are now, for classes by more bits.
    fn numbers(&self, by: u8) -> impl Iterator<Item = u64> {
        let (own, first) = (&classes().of_lane[usize::from(self.by)], &classes().first[usize::from(by)]);
        first[..1 << by.count_ones()].iter().map(|lane| self.number(own[usize::from(*lane)]))
    }

    /// Numbers made of those of one other value.
    pub(crate) fn map(&mut self, x: &LaneValue, mut f: impl FnMut(u64) -> u64) {
        self.set(x.by, x.bits.iter().map(|b| f(b.wrapping_add(x.moved) & x.mask)));
    }

    /// Numbers made of those of two others.
    pub(crate) fn map_two(&mut self, x: &LaneValue, y: &LaneValue, f: impl Fn(u64, u64) -> u64) {
        let number = |v: &LaneValue, bits: u64| bits.wrapping_add(v.moved) & v.mask;
        match (&x.bits[..], &y.bits[..]) {
            (xs, ys) if x.by == y.by => {
                self.set(x.by, xs.iter().zip(ys).map(|(a, b)| f(number(x, *a), number(y, *b))));
            }
            (xs, [b]) => self.set(x.by, xs.iter().map(|a| f(number(x, *a), number(y, *b)))),
            ([a], ys) => self.set(y.by, ys.iter().map(|b| f(number(x, *a), number(y, *b)))),
            _ => {
                let by = x.by | y.by;
                self.set(by, x.numbers(by).zip(y.numbers(by)).map(|(x, y)| f(x, y)));
            }
        }
    }

    /// Numbers made of those of three others.
    pub(crate) fn map_three(&mut self, [x, y, z]: [&LaneValue; 3], f: impl Fn([u64; 3]) -> u64) {
        let by = x.by | y.by | z.by;
        let numbers = x.numbers(by).zip(y.numbers(by)).zip(z.numbers(by));
        self.set(by, numbers.map(|((x, y), z)| f([x, y, z])));
    }

    /// A truth value that all lanes have.
    pub(crate) fn decided(&self) -> Option<bool> {
        match self.tags {
            Tags::All(NUMBER) if self.by == 0 => Some(self.number(0) != 0),
            _ => None,
        }
    }

    /// The number that all lanes have.
    pub(crate) fn common(&self) -> Option<u64> {
        (self.by == 0).then(|| self.number(0))
    }

    /// Of a truth value: of some lanes those in which it holds, those in which it does not, and
    /// those in which it is no number.
    pub(crate) fn decides(&self, mask: &Mask) -> [Mask; 3] {
        let [mut yes, mut no, mut unknown] = [NO_LANES; 3];
        match (&self.tags, self.decided()) {
            (_, Some(true)) => yes = *mask,
            (_, Some(false)) => no = *mask,
            (Tags::All(UNKNOWN), _) => unknown = *mask,
            _ => {
                for lane in lanes(mask) {
                    let of = match self.tags.at(lane) {
                        NUMBER if self.at(lane) != 0 => &mut yes,
                        NUMBER => &mut no,
                        _ => &mut unknown,
                    };
                    add(of, lane);
                }
            }
        }
        [yes, no, unknown]
    }

    /// The same numbers as those of another value, moved, and of some bits.
    pub(crate) fn move_from(&mut self, x: &LaneValue, by: u64, mask: u64) {
        self.bits = x.bits.clone();
        (self.by, self.moved, self.mask, self.is_new) = (x.by, x.moved.wrapping_add(by), mask, false);
    }

    /// A sum of multiples of others and a constant, of which some bits count: no more than in any
    /// of the others. When all have only moved since the last time, so has the sum.
    pub(crate) fn sum(&mut self, of: &[(&LaneValue, u64)], constant: u64, mask: u64, last: &mut Option<Box<Recipe>>) {
        if of.iter().any(|(x, _)| x.mask & mask != mask) {
            let by = of.iter().fold(0, |by, (x, _)| by | x.by);
            let first = &classes().first[usize::from(by)][..1 << by.count_ones()];
            let part = |lane: u8, (x, times): &(&LaneValue, u64)| x.at(usize::from(lane)).wrapping_mul(*times);
            let sum = |lane: &u8| of.iter().fold(constant, |sum, x| sum.wrapping_add(part(*lane, x))) & mask;
            return self.set(by, first.iter().map(sum));
        }
        // Modulo 2^32 or 2^64, so that masks of the parts do not matter.
        let moved = of.iter().fold(constant, |c, (x, times)| {
            let all = if x.by == 0 { x.bits[0].wrapping_add(x.moved) } else { x.moved };
            c.wrapping_add(all.wrapping_mul(*times))
        });
        let parts = || of.iter().filter(|(x, _)| x.by != 0);
        match (parts().next(), parts().count()) {
            (None, _) => return self.fill(moved & mask),
            (Some((x, 1)), 1) => return self.move_from(x, moved.wrapping_sub(x.moved), mask),
            _ => {}
        }
        let same = |r: &Recipe| {
            r.of.len() == parts().count()
                && r.of.iter().zip(parts()).all(|(r, p)| Rc::ptr_eq(&r.0, &p.0.bits) && r.1 == p.1)
        };
        match last {
            Some(r) if same(r) => self.move_from(&r.made, moved, mask),
            _ => {
                let by = parts().fold(0, |by, (x, _)| by | x.by);
                let first = &classes().first[usize::from(by)][..1 << by.count_ones()];
                let sum = |lane: &u8| {
                    parts().fold(0u64, |sum, (x, times)| {
                        let class = classes().of_lane[usize::from(x.by)][usize::from(*lane)];
                        sum.wrapping_add(x.bits[usize::from(class)].wrapping_mul(*times))
                    })
                };
                self.set(by, first.iter().map(sum));
                let of = parts().map(|(x, times)| (x.bits.clone(), *times)).collect();
                *last = Some(Box::new(Recipe { of, made: self.without_tags(), range: (0, 0) }));
                (self.moved, self.mask) = (moved, mask);
            }
        }
    }

    /// A 32-bit number as a 64-bit one. When it has only moved since the last time, within the
    /// range of its type for all lanes, so has the result.
    pub(crate) fn extend(&mut self, signed: bool, x: &LaneValue, last: &mut Option<Box<Recipe>>) {
        let wide = |v: u64| if signed { i64::from(v as u32 as i32) as u64 } else { u64::from(v as u32) };
        let (least, most) = if signed { (i32::MIN.into(), i32::MAX.into()) } else { (0, i64::from(u32::MAX)) };
        if let Some(r) = last
            && let [(bits, at)] = &r.of[..]
            && Rc::ptr_eq(bits, &x.bits)
        {
            let by = i64::from(x.moved.wrapping_sub(*at) as u32 as i32);
            if r.range.0 + by >= least && r.range.1 + by <= most {
                return self.move_from(&r.made, by as u64, u64::MAX);
            }
        }
        self.map(x, wide);
        if x.by != 0 && self.by != 0 {
            let ends = self.bits.iter().map(|b| *b as i64);
            let range = (ends.clone().min().unwrap_or(0), ends.max().unwrap_or(0));
            let of = SmallVec::from_iter([(x.bits.clone(), x.moved)]);
            *last = Some(Box::new(Recipe { of, made: self.without_tags(), range }));
        }
    }

    fn without_tags(&self) -> LaneValue {
        LaneValue { tags: Tags::All(NUMBER), ..self.clone() }
    }

    /// Is this the same value, as far as that is easily seen?
    pub(crate) fn is_same(&self, other: &LaneValue) -> bool {
        let form = |v: &LaneValue| (v.by, v.moved, v.mask);
        form(self) == form(other) && self.tags == other.tags && self.bits == other.bits
    }

    /// The numbers from which 64-bit ones have moved, and how far: where they are the same object,
    /// nothing but the distance differs.
    pub(crate) fn origin(&self) -> Option<(&Rc<Vec<u64>>, u64)> {
        (self.mask == u64::MAX).then_some((&self.bits, self.moved))
    }

    /// Takes over some lanes of another value; whether anything differs.
    pub(crate) fn take(&mut self, mask: &Mask, new: &LaneValue) -> bool {
        let by = self.by | new.by | bits_of(mask);
        let first = &classes().first[usize::from(by)][..1 << by.count_ones()];
        let mut differs = false;
        let numbers = first.iter().map(|lane| {
            let lane = usize::from(*lane);
            let old = self.at(lane);
            if mask[lane / 64] >> (lane % 64) & 1 == 0 {
                return old;
            }
            differs |= old != new.at(lane);
            new.at(lane)
        });
        let numbers: Vec<u64> = numbers.collect();
        if differs {
            self.set(by, numbers.into_iter());
        }
        match (&self.tags, &new.tags) {
            (Tags::All(t), Tags::All(n)) if t == n => {}
            _ => {
                for lane in lanes(mask) {
                    let tag = new.tags.at(lane);
                    if self.tags.at(lane) != tag {
                        self.tags.each()[lane] = tag;
                        differs = true;
                    }
                }
            }
        }
        differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 200;

    fn value(number: impl Fn(usize) -> u64) -> LaneValue {
        let mut v = LaneValue { tags: Tags::All(NUMBER), ..LaneValue::unknown() };
        v.put(LEN, number);
        v
    }

    fn numbers(v: &LaneValue) -> Vec<u64> {
        (0..LEN).map(|lane| v.at(lane)).collect()
    }

    /// By all, by blocks of 64, by warps, by pairs, by each eighth lane, by lane, moved.
    fn values() -> [LaneValue; 7] {
        let lane = value(|l| l as u64);
        let mut moved = LaneValue::unknown();
        moved.move_from(&lane, u64::MAX - 20, 0xffff_ffff);
        [
            value(|_| 7),
            value(|l| l as u64 / 64),
            value(|l| l as u64 / 32),
            value(|l| l as u64 / 2),
            value(|l| l as u64 % 8),
            lane,
            moved,
        ]
    }

    #[test]
    fn what_lanes_have_alike_is_kept_once() {
        assert_eq!(values().map(|v| v.groups()), [1, 4, 8, 128, 8, 256, 256]);
        assert_eq!(value(|l| l as u64 / 4 % 8).by, 0b11100);
        for odd in [0, 77, 191, 199] {
            let v = value(|lane| u64::from(lane == odd));
            assert_eq!(numbers(&v), (0..LEN).map(|lane| u64::from(lane == odd)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn numbers_are_made_as_lane_by_lane() {
        let mut out = LaneValue::unknown();
        let all = |f: &dyn Fn(usize) -> u64| (0..LEN).map(f).collect::<Vec<_>>();
        for x in &values() {
            out.map(x, |x| x ^ 5);
            assert_eq!(numbers(&out), all(&|l| x.at(l) ^ 5));
            for y in &values() {
                out.map_two(x, y, |x, y| 1000 * x + y);
                assert_eq!(numbers(&out), all(&|l| 1000 * x.at(l) + y.at(l)));
                out.sum(&[(x, 3), (y, u64::MAX)], 5, 0xffff, &mut None);
                assert_eq!(numbers(&out), all(&|l| (3 * x.at(l)).wrapping_sub(y.at(l)).wrapping_add(5) & 0xffff));
                // Numbers of 32 bits in one of 64.
                out.sum(&[(x, 3), (y, 1)], 5, u64::MAX, &mut None);
                assert_eq!(numbers(&out), all(&|l| 3 * x.at(l) + y.at(l) + 5));
                for z in &values() {
                    out.map_three([x, y, z], |[x, y, z]| x ^ y << 10 ^ z << 20);
                    assert_eq!(numbers(&out), all(&|l| x.at(l) ^ y.at(l) << 10 ^ z.at(l) << 20));
                }
            }
        }
    }

    #[test]
    fn what_has_moved_is_not_made_again() {
        let (mut lane, pair) = (value(|l| l as u64 * 12), value(|l| l as u64 / 2));
        let (mut moved, mut out) = (LaneValue::unknown(), LaneValue::unknown());
        let mut last = [None, None, None];
        for step in [0u64, 40, 0xffff_ff00, 0x7fff_fb00, 80] {
            moved.move_from(&lane, step, 0xffff_ffff);
            let number = |l: usize| (12 * l as u64 + step) as u32;
            out.sum(&[(&moved, 4), (&pair, 1)], 9, 0xffff_ffff, &mut last[0]);
            let sum = |l: usize| u64::from(number(l).wrapping_mul(4).wrapping_add(l as u32 / 2 + 9));
            assert_eq!(numbers(&out), (0..LEN).map(sum).collect::<Vec<_>>());
            assert_eq!(out.is_new, step == 0, "only the first one is calculated");
            for (signed, last) in [false, true].into_iter().zip(&mut last[1..]) {
                out.extend(signed, &moved, last);
                let wide = |l: usize| if signed { i64::from(number(l) as i32) as u64 } else { u64::from(number(l)) };
                assert_eq!(numbers(&out), (0..LEN).map(wide).collect::<Vec<_>>(), "{step:x} {signed}");
            }
        }
        // Other numbers, which have not moved.
        lane.put(LEN, |l| l as u64 * 12 + u64::from(l == 3));
        out.sum(&[(&lane, 4), (&pair, 1)], 9, 0xffff_ffff, &mut last[0]);
        assert!(out.is_new && out.at(3) == 4 * 37 + 1 + 9);
        out.extend(true, &lane, &mut last[1]);
        assert!(out.is_new && out.at(3) == 37);
    }

    #[test]
    fn some_lanes_are_taken_over() {
        let some: [fn(usize) -> bool; 6] =
            [|l| l < 64, |l| l / 32 % 2 == 1, |l| l % 3 == 0, |l| l == 199, |l| (64..192).contains(&l), |l| l < 128];
        for old in &values() {
            for new in &values() {
                for chosen in some {
                    let mut mask = NO_LANES;
                    (0..LEN).filter(|l| chosen(*l)).for_each(|l| add(&mut mask, l));
                    let mut v = old.clone();
                    v.tags = Tags::All(NUMBER);
                    let differs = v.take(&mask, &LaneValue { tags: Tags::All(NUMBER), ..new.clone() });
                    let expected: Vec<u64> = (0..LEN).map(|l| if chosen(l) { new.at(l) } else { old.at(l) }).collect();
                    assert_eq!(numbers(&v), expected);
                    assert_eq!(differs, expected != numbers(old));
                }
            }
        }
    }

    #[test]
    fn a_truth_decides_lane_by_lane() {
        let mut v = value(|lane| u64::from(lane / 32 == 1));
        v.tags.each()[100] = UNKNOWN;
        let mut mask = NO_LANES;
        (32..128).for_each(|lane| add(&mut mask, lane));
        let [yes, no, unknown] = v.decides(&mask).map(|m| lanes(&m).collect::<Vec<_>>());
        assert_eq!(yes, (32..64).collect::<Vec<_>>());
        assert_eq!(no, (64..128).filter(|l| *l != 100).collect::<Vec<_>>());
        assert_eq!(unknown, [100]);
    }
}
