//! The value of one node for many threads at once.
//!
//! Owns how such a value is kept: as numbers of groups of lanes, for a warp or a block often has
//! one number, with tags that say what each counts from. Which operation makes it is in
//! `lane_arithmetic`, when it is made in `lanes`.

/// Threads that are calculated together.
pub(super) const LANES: usize = 256;

/// What a value counts from: nothing, or the base of this number, counted from one.
pub(super) type Tag = u8;
pub(super) const NUMBER: Tag = 0;
pub(super) const UNKNOWN: Tag = Tag::MAX;

/// The tags of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tags {
    All(Tag),
    Each(Box<[Tag; LANES]>),
}

impl Tags {
    pub fn at(&self, lane: usize) -> Tag {
        match self {
            Tags::All(t) => *t,
            Tags::Each(t) => t[lane],
        }
    }

    /// Tags that were found for each of the lanes in use.
    pub fn found(each: Box<[Tag; LANES]>, len: usize) -> Tags {
        if each[..len].iter().all(|t| *t == each[0]) { Tags::All(each[0]) } else { Tags::Each(each) }
    }

    /// Notes in `any` the lanes in which this is no number.
    pub fn note_others(&self, any: &mut [Tag; LANES]) {
        match self {
            Tags::All(NUMBER) => {}
            Tags::All(t) => any.iter_mut().for_each(|any| *any |= *t),
            Tags::Each(t) => any.iter_mut().zip(t.iter()).for_each(|(any, t)| *any |= *t),
        }
    }

    /// The tags of each lane, to be changed.
    pub fn each(&mut self) -> &mut [Tag; LANES] {
        if let Tags::All(t) = *self {
            *self = Tags::Each(Box::new([t; LANES]));
        }
        match self {
            Tags::Each(t) => t,
            Tags::All(_) => unreachable!("made above"),
        }
    }
}

/// Lanes as bits.
pub(super) type Mask = [u64; LANES / 64];
pub(super) const NO_LANES: Mask = [0; LANES / 64];

/// The lanes of a mask.
pub(super) fn lanes(mask: &Mask) -> impl Iterator<Item = usize> {
    let words = mask.iter().copied().enumerate();
    words.flat_map(|(at, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.wrapping_sub(1);
            (bit < 64).then_some(64 * at + bit)
        })
    })
}

/// Puts a lane into a mask.
pub(super) fn add(mask: &mut Mask, lane: usize) {
    mask[lane / 64] |= 1 << (lane % 64);
}

/// `shared` of a value that all lanes have.
const BY_ALL: u32 = LANES.ilog2();

/// The value of a node for each lane. (Truth values are 0 and 1. Values that count from a base are
/// addresses nevertheless.)
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LaneValue {
    /// A number for each group of lanes.
    bits: Vec<u64>,
    /// So many lanes in a row are a group, as a power of two: what a warp or a block has alike is
    /// calculated once for all of it.
    shared: u32,
    pub tags: Tags,
}

impl LaneValue {
    pub fn unknown() -> LaneValue {
        LaneValue { bits: vec![0], shared: BY_ALL, tags: Tags::All(UNKNOWN) }
    }

    pub fn all(&mut self, bits: u64, tag: Tag) {
        self.fill(bits);
        self.tags = Tags::All(tag);
    }

    /// One number for all lanes. (The tags stay.)
    pub fn fill(&mut self, bits: u64) {
        self.bits.clear();
        self.bits.push(bits);
        self.shared = BY_ALL;
    }

    /// The number of a lane.
    pub fn at(&self, lane: usize) -> u64 {
        self.bits[lane >> self.shared]
    }

    /// A number for each of so many lanes. (The tags stay.)
    pub fn put(&mut self, len: usize, number: impl FnMut(usize) -> u64) {
        self.bits.clear();
        self.bits.extend((0..len).map(number));
        self.shared = 0;
        self.share();
    }

    /// Lanes in a row that have the same number for sure, as a power of two.
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// How many numbers there are.
    pub fn groups(&self) -> usize {
        self.bits.len()
    }

    /// Numbers made of those of one other value.
    pub fn map(&mut self, x: &LaneValue, f: impl Fn(u64) -> u64) {
        self.bits.clear();
        self.bits.extend(x.bits.iter().map(|x| f(*x)));
        self.shared = x.shared;
        self.share();
    }

    /// Numbers made of those of two others.
    pub fn map_two(&mut self, x: &LaneValue, y: &LaneValue, f: impl Fn(u64, u64) -> u64) {
        self.bits.clear();
        self.shared = x.shared.min(y.shared);
        match (&x.bits[..], &y.bits[..]) {
            (xs, ys) if x.shared == y.shared => self.bits.extend(xs.iter().zip(ys).map(|(x, y)| f(*x, *y))),
            (xs, [y]) => self.bits.extend(xs.iter().map(|x| f(*x, *y))),
            ([x], ys) => self.bits.extend(ys.iter().map(|y| f(*x, *y))),
            (xs, ys) => {
                let (by_x, by_y) = (x.shared - self.shared, y.shared - self.shared);
                self.bits.extend((0..xs.len().max(ys.len())).map(|k| f(xs[k >> by_x], ys[k >> by_y])));
            }
        }
        self.share();
    }

    /// Numbers made of those of three others.
    pub fn map_three(&mut self, of: [&LaneValue; 3], f: impl Fn([u64; 3]) -> u64) {
        self.bits.clear();
        let [x, y, z] = of;
        self.shared = x.shared.min(y.shared).min(z.shared);
        if of.iter().all(|v| v.shared == self.shared) {
            self.bits.extend(x.bits.iter().zip(&y.bits).zip(&z.bits).map(|((x, y), z)| f([*x, *y, *z])));
        } else {
            let by = of.map(|v| v.shared - self.shared);
            let groups = x.bits.len().max(y.bits.len()).max(z.bits.len());
            let numbers = |k: usize| [x.bits[k >> by[0]], y.bits[k >> by[1]], z.bits[k >> by[2]]];
            self.bits.extend((0..groups).map(|k| f(numbers(k))));
        }
        self.share();
    }

    /// A truth value that all lanes have.
    pub fn decided(&self) -> Option<bool> {
        match (&self.tags, &self.bits[..]) {
            (Tags::All(NUMBER), [one]) => Some(*one != 0),
            _ => None,
        }
    }

    /// Of a truth value: of some lanes those in which it holds, those in which it does not, and those
    /// in which it is no number.
    pub fn decides(&self, mask: &Mask) -> [Mask; 3] {
        let [mut yes, mut no, mut unknown] = [NO_LANES; 3];
        match (&self.tags, &self.bits[..]) {
            (Tags::All(NUMBER), [0]) => no = *mask,
            (Tags::All(NUMBER), [_]) => yes = *mask,
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

    /// A sum of multiples of others and a constant, of which some bits count.
    pub fn sum<'v>(&mut self, of: impl Iterator<Item = (&'v LaneValue, u64)> + Clone, constant: u64, mask: u64) {
        self.bits.clear();
        let finest = of.clone().map(|(x, _)| x).min_by_key(|x| x.shared);
        self.bits.resize(finest.map_or(1, |x| x.bits.len()), constant);
        self.shared = finest.map_or(BY_ALL, |x| x.shared);
        for (x, times) in of {
            let by = x.shared - self.shared;
            let numbers = self.bits.iter_mut();
            match &x.bits[..] {
                [x] => numbers.for_each(|o| *o = o.wrapping_add(x.wrapping_mul(times))),
                xs if by == 0 => numbers.zip(xs).for_each(|(o, x)| *o = o.wrapping_add(x.wrapping_mul(times))),
                xs => numbers.enumerate().for_each(|(k, o)| *o = o.wrapping_add(xs[k >> by].wrapping_mul(times))),
            }
        }
        self.bits.iter_mut().for_each(|o| *o &= mask);
        self.share();
    }

    /// The same numbers for smaller groups, of which there are so many.
    fn split(&mut self, shared: u32, groups: usize) {
        if shared < self.shared {
            let by = self.shared - shared;
            self.bits = (0..groups).map(|k| self.bits[k >> by]).collect();
            self.shared = shared;
        }
    }

    /// The same numbers for the largest groups.
    fn share(&mut self) {
        while self.bits.len() > 1 {
            if self.bits.chunks(2).any(|pair| pair.first() != pair.last()) {
                return;
            }
            let pairs = self.bits.len().div_ceil(2);
            (0..pairs).for_each(|k| self.bits[k] = self.bits[2 * k]);
            self.bits.truncate(pairs);
            self.shared += 1;
        }
        self.shared = BY_ALL;
    }

    /// Takes over some lanes of another value, of so many in all; whether anything differs.
    pub fn take(&mut self, mask: &Mask, len: usize, new: &LaneValue) -> bool {
        let shared = together(mask).min(new.shared);
        self.split(shared, len.div_ceil(1 << shared));
        let step = 1 << self.shared;
        let mut differs = false;
        for (group, number) in self.bits.iter_mut().enumerate() {
            let lane = group * step;
            if mask[lane / 64] >> (lane % 64) & 1 == 1 {
                differs |= std::mem::replace(number, new.at(lane)) != new.at(lane);
            }
        }
        self.share();
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

/// Groups of lanes of which a mask has all or none, as a power of two.
fn together(mask: &Mask) -> u32 {
    let halves = |word: &u64| [*word as u32, (*word >> 32) as u32];
    let whole = |part: u32| part == 0 || part == u32::MAX;
    match () {
        () if mask.iter().all(|word| *word == 0 || *word == u64::MAX) => 6,
        () if mask.iter().flat_map(halves).all(whole) => 5,
        () => 0,
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

    /// By all, by blocks of 64, by warps (the last one is cut off), by pairs, by lane.
    fn values() -> [LaneValue; 5] {
        [value(|_| 7), value(|l| l as u64 / 64), value(|l| l as u64 / 32), value(|l| l as u64 / 2), value(|l| l as u64)]
    }

    #[test]
    fn what_lanes_in_a_row_have_alike_is_kept_once() {
        assert_eq!(values().map(|v| (v.shared(), v.groups())), [(BY_ALL, 1), (6, 4), (5, 7), (1, 100), (0, 200)]);
        // One lane that differs, also the last one of a group that is cut off.
        for odd in [0, 77, 191, 199] {
            let v = value(|lane| u64::from(lane == odd));
            assert_eq!(numbers(&v), (0..LEN).map(|lane| u64::from(lane == odd)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn numbers_are_made_as_lane_by_lane() {
        let mut out = LaneValue::unknown();
        for x in &values() {
            for y in &values() {
                out.map_two(x, y, |x, y| 1000 * x + y);
                assert_eq!(numbers(&out), (0..LEN).map(|l| 1000 * x.at(l) + y.at(l)).collect::<Vec<_>>());
                out.sum([(x, 3), (y, u64::MAX)].into_iter(), 5, 0xffff);
                let sum = |l| (3 * x.at(l)).wrapping_sub(y.at(l)).wrapping_add(5) & 0xffff;
                assert_eq!(numbers(&out), (0..LEN).map(sum).collect::<Vec<_>>());
                for z in &values() {
                    out.map_three([x, y, z], |[x, y, z]| x ^ y << 10 ^ z << 20);
                    let made = |l| x.at(l) ^ y.at(l) << 10 ^ z.at(l) << 20;
                    assert_eq!(numbers(&out), (0..LEN).map(made).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn some_lanes_are_taken_over() {
        let some: [fn(usize) -> bool; 5] =
            [|l| l < 64, |l| l / 32 % 2 == 1, |l| l % 3 == 0, |l| l == 199, |l| (64..192).contains(&l)];
        for old in &values() {
            for new in &values() {
                for chosen in some {
                    let mut mask = NO_LANES;
                    (0..LEN).filter(|l| chosen(*l)).for_each(|l| add(&mut mask, l));
                    let mut v = old.clone();
                    let differs = v.take(&mask, LEN, new);
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
