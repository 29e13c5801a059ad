//! Values that fills and copies leave in memory: a stream may find them before anybody writes the
//! value that it waits for.
//!
//! Owns what the latest fills and copies of known bytes left where. Only one that began before an
//! address was first waited for is looked up here; from then on [`super::sync_vars`] keeps the
//! writes of that address. What else may have written there (a kernel, a copy of unknown bytes) is
//! not known to this crate: see [`crate::Engine::values_found`].

use std::collections::BTreeMap;

use smallvec::SmallVec;
use trace::Region;

use crate::clock::{FloorRef, TimelineSnapshot};
use crate::state::sync_vars::covers;

/// Fills and copies that are remembered.
const KEPT: usize = 256;

/// Bytes that are left in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftBytes<'a> {
    /// The same element again and again.
    Pattern { value: u32, element: u8 },
    /// These.
    Listed(&'a [u8]),
}

#[derive(Debug)]
enum Kept {
    Pattern { value: u32, element: u8 },
    Listed(Box<[u8]>),
}

/// A value at one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeftValue {
    /// As an unsigned number; bytes that are not known are 0.
    pub(crate) value: u64,
    /// How many of its bytes are known: 4 or 8.
    pub(crate) known: u8,
}

impl LeftBytes<'_> {
    /// What lies at an address, if `region` holds at least four bytes there.
    pub(crate) fn at(&self, region: &Region, address: u64) -> Option<LeftValue> {
        let (offset, rest) = within(region, address)?;
        let known = if rest >= 8 { 8 } else { 4 };
        let mut bytes = [0; 8];
        for (n, byte) in bytes.iter_mut().take(known).enumerate() {
            let at = offset + n as u64;
            *byte = match *self {
                Self::Pattern { value, element } => {
                    let part = at.checked_rem(u64::from(element)).filter(|part| *part < 4)?;
                    value.to_le_bytes()[part as usize]
                }
                Self::Listed(listed) => *listed.get(usize::try_from(at).ok()?)?,
            };
        }
        (rest >= 4).then(|| LeftValue { value: u64::from_le_bytes(bytes), known: known as u8 })
    }
}

/// How far into its row an address lies, and how many bytes of the row begin there.
fn within(region: &Region, address: u64) -> Option<(u64, u64)> {
    let mut offset = address.checked_sub(region.start).filter(|_| region.array.is_none())?;
    for (count, stride) in [(region.depth, region.slice_pitch), (region.height, region.pitch)] {
        if count > 1 {
            let row = offset.checked_div(stride)?;
            if row >= u64::from(count) {
                return None;
            }
            offset -= row * stride;
        } else if count == 0 {
            return None;
        }
    }
    Some((offset, region.width.checked_sub(offset).filter(|rest| *rest > 0)?))
}

#[derive(Debug)]
struct Left {
    region: Region,
    bytes: Kept,
    by: TimelineSnapshot,
    /// Numbers of those in the same place that were over when it began. That is settled when it
    /// comes: later, the host may have seen both finish.
    after: SmallVec<[u64; 2]>,
}

/// What one fill or copy left at an address.
pub(crate) struct LeftAt<'a> {
    pub(crate) value: LeftValue,
    pub(crate) by: &'a TimelineSnapshot,
    /// Which one it is.
    pub(crate) number: u64,
    /// Which ones in the same place were over when it began.
    pub(crate) after: &'a [u64],
}

/// The latest fills and copies of known bytes.
#[derive(Debug, Default)]
pub(crate) struct LeftValues {
    /// By number, which is by age.
    all: BTreeMap<u64, Box<Left>>,
    /// The end of each, by start and number. Every fill looks for those in its own place: a
    /// workspace is cleared before each of its uses, thousands of times a second.
    places: BTreeMap<(u64, u64), u64>,
    /// None is wider.
    widest: u64,
    last: u64,
}

impl LeftValues {
    /// One more. What the latest one of the same bytes has overwritten is forgotten when the host
    /// has seen that one finish: no wait finds it any more.
    pub(crate) fn put(&mut self, region: Region, bytes: LeftBytes<'_>, by: TimelineSnapshot, floor: FloorRef<'_>) {
        let (start, end) = (region.start, region.end());
        let mut near = self.near(start, end);
        let is_same = |all: &BTreeMap<u64, Box<Left>>, number: &u64| all[number].region == region;
        let latest = near.iter().rev().find(|number| is_same(&self.all, number)).map(|number| &self.all[number]);
        let seen = latest.filter(|latest| covers(&TimelineSnapshot::default(), latest.by.own, floor));
        if let Some(after) = seen.map(|latest| latest.after.clone()) {
            near.retain(|number| {
                let gone = after.contains(number) && is_same(&self.all, number);
                if gone {
                    self.remove(*number);
                }
                !gone
            });
        }
        if self.all.len() >= KEPT
            && let Some((&oldest, _)) = self.all.first_key_value()
        {
            self.remove(oldest);
            near.retain(|number| *number != oldest);
        }
        let bytes = match bytes {
            LeftBytes::Pattern { value, element } => Kept::Pattern { value, element },
            LeftBytes::Listed(listed) => Kept::Listed(listed.into()),
        };
        let is_over = |number: &u64| {
            let left = &self.all[number];
            left.region.start < end && start < left.region.end() && covers(&by, left.by.own, floor)
        };
        let after = near.into_iter().filter(is_over).collect();
        self.last += 1;
        self.widest = if self.places.is_empty() { end - start } else { self.widest.max(end - start) };
        self.places.insert((start, self.last), end);
        self.all.insert(self.last, Box::new(Left { region, bytes, by, after }));
    }

    /// Those that share bytes with a place, or begin and end where it does, oldest first.
    fn near(&self, start: u64, end: u64) -> SmallVec<[u64; 8]> {
        let from = (start.saturating_sub(self.widest), 0);
        let is_near = |&(&(s, _), &e): &(&(u64, u64), &u64)| (s < end && start < e) || (s == start && e == end);
        let near = self.places.range(from..=(end.max(start), u64::MAX)).filter(is_near);
        let mut near: SmallVec<[u64; 8]> = near.map(|(place, _)| place.1).collect();
        near.sort_unstable();
        near
    }

    fn remove(&mut self, number: u64) {
        if let Some(left) = self.all.remove(&number) {
            self.places.remove(&(left.region.start, number));
        }
    }

    /// What was left at an address, oldest first.
    pub(crate) fn at(&self, address: u64) -> impl Iterator<Item = LeftAt<'_>> {
        self.all.iter().filter_map(move |(&number, left)| {
            let bytes = match &left.bytes {
                Kept::Pattern { value, element } => LeftBytes::Pattern { value: *value, element: *element },
                Kept::Listed(listed) => LeftBytes::Listed(listed),
            };
            let value = bytes.at(&left.region, address)?;
            Some(LeftAt { value, by: &left.by, number, after: &left.after })
        })
    }

    /// The memory is gone.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        for number in self.near(start, end) {
            let region = &self.all[&number].region;
            if region.start < end && start < region.end() {
                self.remove(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Entry;

    fn value(value: u64, known: u8) -> Option<LeftValue> {
        Some(LeftValue { value, known })
    }

    #[test]
    fn values_are_read_as_the_device_does() {
        let line = Region::linear(100, 12);
        let of = |value, element| LeftBytes::Pattern { value, element };
        assert_eq!(of(0xa1, 1).at(&line, 100), value(0xa1a1_a1a1_a1a1_a1a1, 8));
        assert_eq!(of(0xb1a1, 2).at(&line, 104), value(0xb1a1_b1a1_b1a1_b1a1, 8));
        assert_eq!(of(0xb1a1, 2).at(&line, 101), value(0xa1b1_a1b1_a1b1_a1b1, 8), "between two elements");
        assert_eq!(of(7, 4).at(&line, 104), value(0x7_0000_0007, 8));
        assert_eq!(of(7, 4).at(&line, 108), value(7, 4), "its last four bytes");
        assert_eq!((of(7, 4).at(&line, 110), of(7, 4).at(&line, 112), of(7, 4).at(&line, 99)), (None, None, None));
        assert_eq!(of(7, 0).at(&line, 100), None, "a damaged record");
        let rows = Region::pitched(100, 8, 2, 32);
        assert_eq!((of(7, 4).at(&rows, 108), of(7, 4).at(&rows, 132)), (None, value(0x7_0000_0007, 8)));
        assert_eq!((of(7, 4).at(&rows, 136), of(7, 4).at(&rows, 164)), (value(7, 4), None));
        let listed = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        assert_eq!(LeftBytes::Listed(&listed).at(&line, 104), value(0x3_0000_0002, 8));
        assert_eq!(LeftBytes::Listed(&listed).at(&line, 108), value(3, 4));
        assert_eq!(LeftBytes::Listed(&listed[..8]).at(&line, 104), None, "a list that is too short");
    }

    /// What [`LeftValues`] keeps, as its rule says it: each is compared with all others.
    #[derive(Default)]
    struct Plain(Vec<(Region, u64, u64, Vec<u64>)>, u64);

    impl Plain {
        fn put(&mut self, region: Region, time: u64, floor: u64) {
            let latest = self.0.iter().rev().find(|left| left.0 == region).filter(|latest| latest.1 <= floor);
            if let Some(after) = latest.map(|latest| latest.3.clone()) {
                self.0.retain(|left| left.0 != region || !after.contains(&left.2));
            }
            if self.0.len() >= KEPT {
                self.0.remove(0);
            }
            let meets = |of: &Region| of.start < region.end() && region.start < of.end();
            // One timeline: all earlier ones are over.
            let after = self.0.iter().filter(|left| meets(&left.0)).map(|left| left.2).collect();
            self.1 += 1;
            self.0.push((region, time, self.1, after));
        }
    }

    #[test]
    fn those_in_one_place_are_found_among_all() {
        let (mut kept, mut plain, mut random) = (LeftValues::default(), Plain::default(), 1_u64);
        let mut next = |below: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % below
        };
        for time in 1..4000 {
            let wide = if next(40) == 0 { 4096 } else { 64 };
            let region = Region::linear(next(100) * 32, if next(30) == 0 { 0 } else { 1 + next(wide) });
            let seen = [time - time.min(next(300)), u64::MAX][usize::from(next(100) == 0)];
            let times = [0, seen];
            let floor = FloorRef { times: &times, all_before: 0, version: 0, now: 1 };
            let by = TimelineSnapshot { own: Entry { slot: 1, time }, ..TimelineSnapshot::default() };
            kept.put(region, LeftBytes::Pattern { value: 0, element: 4 }, by, floor);
            plain.put(region, time, seen);
            if next(200) == 0 {
                let (start, end) = (next(3200), next(6400));
                kept.forget(start, end);
                plain.0.retain(|left| left.0.end() <= start || left.0.start >= end);
            }
            let found =
                kept.all.iter().map(|(number, left)| (left.region, left.by.own.time, *number, left.after.to_vec()));
            assert_eq!(found.collect::<Vec<_>>(), plain.0, "after {time}");
            assert_eq!(kept.places.len(), kept.all.len());
        }
        assert!(plain.1 > 3000 && plain.0.len() > 50);
    }
}
