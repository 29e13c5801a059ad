//! Pairs of rectangles, in memory and in opaque arrays, against a model of a few lines: there is a
//! race if and only if the two have a byte in common, and it is certain.

use crate::support::{A, B, D2D, Program, Shape, X, reads};
use std::collections::BTreeSet;
use trace::{ArrayId, Op, Region, Space};

const ARRAY: ArrayId = ArrayId(5);

fn bytes(r: &Region) -> BTreeSet<u64> {
    let rows = (0..u64::from(r.depth)).flat_map(|z| (0..u64::from(r.height)).map(move |y| (z, y)));
    rows.flat_map(|(z, y)| (0..r.width).map(move |x| r.start + z * r.slice_pitch + y * r.pitch + x)).collect()
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % below
}

#[test]
fn two_rectangles_race_where_they_have_a_byte_in_common() {
    let (mut state, mut racy) = (0x5eed_0042, 0);
    for case in 0..500 {
        let in_array = case % 2 == 0;
        let (pitch, rows, slices) = (8 + random(&mut state, 40), 1 + random(&mut state, 8), 1 + random(&mut state, 3));
        let mut region = || {
            let (x, y, z) = (random(&mut state, pitch), random(&mut state, rows), random(&mut state, slices));
            let from_0 = random(&mut state, 3) == 0;
            let (x, y, z) = if from_0 { (0, 0, 0) } else { (x, y, z) };
            Region {
                start: x + (y + z * rows) * pitch + if in_array { 0 } else { X },
                width: 1 + random(&mut state, pitch - x),
                height: 1 + random(&mut state, rows - y) as u32,
                depth: 1 + random(&mut state, slices - z) as u32,
                pitch,
                slice_pitch: pitch * rows,
                array: if in_array { ARRAY } else { ArrayId::NONE },
            }
        };
        let (first, second) = (region(), region());
        let mut p = Program::new();
        let size = pitch * rows * slices;
        p.malloc(X, size);
        p.malloc(X + (1 << 30), 2 * size);
        p.does("cudaMallocArray", Op::ArrayCreate { array: ARRAY, handle: 9, size });
        let spaces = if in_array { (Space::Array, Space::Device) } else { D2D };
        p.copy_region(A, first, Region::linear(X + (1 << 30), 1), spaces, 0);
        p.copy_region(B, second, Region::linear(X + (1 << 30) + 1, 1), spaces, 0);
        let verdict = p.verdict();
        if bytes(&first).is_disjoint(&bytes(&second)) {
            assert!(verdict.is_empty(), "case {case}: {first:?} {second:?}: {verdict:?}");
        } else {
            racy += 1;
            assert_eq!(verdict, ["write-after-write certain"], "case {case}: {first:?} {second:?}");
        }
    }
    assert!((100..400).contains(&racy), "{racy} of 500 have a byte in common");
}

/// A texture over pitched memory shows rows. A copy that covers all of them meets whatever texels
/// the kernel reads, one between the rows meets none.
#[test]
fn a_pitched_texture_shows_its_rows_and_nothing_between_them() {
    let (mut state, mut seen) = (0x5eed_0043, [0; 3]);
    for case in 0..600 {
        let (pitch, rows) = (8 + random(&mut state, 24), 1 + random(&mut state, 6));
        let mut region = |grown: bool| {
            let (x, y) = (random(&mut state, pitch / 2), random(&mut state, rows));
            let (x, y) = if grown { (x / 4, 0) } else { (x, y) };
            let width = 1 + random(&mut state, pitch - x);
            let (width, height) =
                if grown { (width.max(pitch - x - 2), rows) } else { (width, 1 + random(&mut state, rows - y)) };
            Region::pitched(X + x + y * pitch, width, height as u32, pitch)
        };
        let (shown, copied) = (region(false), region(case % 3 == 0));
        let mut p = Program::new();
        p.malloc(X, pitch * rows);
        p.malloc(X + (1 << 30), 2 * pitch * rows);
        let object = 0x55;
        p.does("cudaCreateTextureObject", Op::ObjectCreate { object, region: shown, writable: false });
        p.copy_region(A, copied, Region::linear(X + (1 << 30), 1), D2D, 0);
        p.go(B, object, &[reads(0, Shape::Object)]);
        let (texels, filled) = (bytes(&shown), bytes(&copied));
        let (which, expected) = match () {
            () if texels.is_disjoint(&filled) => (0, None),
            () if texels.is_subset(&filled) => (1, Some("read-after-write likely")),
            () => (2, Some("read-after-write possible")),
        };
        seen[which] += 1;
        assert_eq!(p.verdict(), Vec::from_iter(expected), "case {case}: {shown:?} {copied:?}");
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}
