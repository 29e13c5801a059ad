//! Addresses made of quotients and remainders, and parameters looked up by block index
//! (`cuda/digits.cu`). No byte that is touched is missing, no byte is claimed that is not touched,
//! and the bounds are the bytes where the rules of `extent/delinearization.rs` and `per_block.rs`
//! say that they are. With data, guards on digits, or too many blocks they must stay bounds.

use crate::support::cuda;
use kernels::AccessKind::{Read, Write};
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes by direction and parameter offset.
type Bytes = BTreeMap<(AccessKind, u16), BTreeSet<i64>>;

fn base(k: u64) -> u64 {
    0x7f00_0000_0000 + (k << 36)
}

/// Parameter bytes.
#[derive(Default)]
struct Params(Vec<u8>);

impl Params {
    fn ptr(mut self, k: u64) -> Params {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend(base(k).to_le_bytes());
        self
    }
    fn word(mut self, v: u32) -> Params {
        self.0.extend(v.to_le_bytes());
        self
    }
    fn divider(self, d: u32) -> Params {
        let shift = d.next_power_of_two().trailing_zeros();
        let magic = ((1u64 << 32) * ((1u64 << shift) - u64::from(d)) / u64::from(d) + 1) as u32;
        self.word(d).word(magic).word(shift)
    }
}

/// What is claimed: all bytes of the bounds, and those claimed exactly; `None`: something is not
/// known.
fn claimed(image: &CodeImage, name: &str, grid: [u32; 3], block: u32, params: &Params) -> Option<(Bytes, Bytes)> {
    let mut out = Vec::new();
    let launch = LaunchArgs::new(grid, [block, 1, 1], &params.0);
    image.summary(name).expect("summary").evaluate(&launch, &mut out);
    let (mut all, mut exact) = (Bytes::new(), Bytes::new());
    for a in &out {
        let (Base::Word { offset, .. }, Extent::Bounded { lo, dims, width, exact: e, .. }) = (a.base, &a.extent) else {
            return None;
        };
        let mut starts = vec![*lo];
        for d in dims {
            starts = (0..d.count as i64).flat_map(|k| starts.iter().map(move |s| s + k * d.stride as i64)).collect();
        }
        let bytes = || starts.iter().flat_map(|s| *s..s + i64::from(*width));
        all.entry((a.kind, offset)).or_default().extend(bytes());
        if *e {
            exact.entry((a.kind, offset)).or_default().extend(bytes());
        }
    }
    Some((all, exact))
}

#[derive(Clone, Copy, PartialEq)]
enum Sharp {
    /// The bytes.
    Tight,
    /// A bound, of which nothing is claimed.
    Bound,
    /// A bound, or unknown.
    Sound,
}

struct Check<'a> {
    image: &'a CodeImage,
    what: &'a str,
}

impl Check<'_> {
    fn is(&self, name: &str, grid: [u32; 3], block: u32, params: &Params, touched: &Bytes, sharp: Sharp) {
        let what = format!("{} {name} grid {grid:?} block {block}", self.what);
        let Some((all, exact)) = claimed(self.image, name, grid, block, params) else {
            assert!(sharp == Sharp::Sound, "{what}: not known");
            return;
        };
        for (key, bytes) in touched {
            let has = all.get(key).unwrap_or_else(|| panic!("{what}: {key:?} missing"));
            assert!(bytes.is_subset(has), "{what}: {key:?} misses bytes, first {:?}", bytes.difference(has).next());
        }
        for (key, bytes) in &exact {
            let real = touched.get(key).cloned().unwrap_or_default();
            assert!(bytes.is_subset(&real), "{what}: {key:?} claims {:?}", bytes.difference(&real).next());
        }
        match sharp {
            Sharp::Tight => {
                for (key, bytes) in &all {
                    let more = bytes.difference(&touched[key]).next();
                    assert!(more.is_none(), "{what}: {key:?} is too wide at {more:?}");
                }
            }
            Sharp::Bound => assert!(exact.keys().all(|k| k.0 != Write), "{what}: claims writes"),
            Sharp::Sound => {}
        }
    }
}

fn put(t: &mut Bytes, kind: AccessKind, param: u16, element: i64) {
    t.entry((kind, param)).or_default().extend(4 * element..4 * element + 4);
}

fn permuted(c: &Check<'_>, sharp: Sharp) {
    // Sizes, pitches of the input: rows with gaps, a permutation, a row that is repeated, and what
    // is left of a last plane.
    let shapes: [([u32; 3], [u32; 3], u32); 6] = [
        ([100, 4, 2], [1, 101, 404], 800),
        ([32, 10, 8], [80, 1, 10], 2560),
        ([32, 10, 8], [1, 0, 32], 2560),
        ([16, 12, 10], [1, 20, 300], 1500),
        ([7, 5, 9], [45, 1, 5], 315),
        ([64, 3, 5], [3, 1, 192], 777),
    ];
    for (size, pitch, n) in shapes {
        let params = Params::default().ptr(0).ptr(1).word(n);
        let params = size.iter().fold(params, |p, s| p.divider(*s));
        let params = pitch.iter().fold(params, |p, s| p.word(*s));
        let mut t = Bytes::new();
        for i in 0..n {
            let [a, b, z] = [i % size[0], i / size[0] % size[1], i / size[0] / size[1] % size[2]];
            put(&mut t, Read, 8, (a * pitch[0] + b * pitch[1] + z * pitch[2]).into());
            put(&mut t, Write, 0, i.into());
        }
        c.is("k_permuted", [n.div_ceil(256), 1, 1], 128, &params, &t, sharp);
        // Blocks beyond the end touch nothing.
        c.is("k_permuted", [n.div_ceil(256) + 2, 1, 1], 128, &params, &t, sharp);
    }
}

fn rows(c: &Check<'_>, sharp: Sharp) {
    for (n, pitch) in [(1000, 128), (1050, 128), (130, 111), (99, 128), (1050, 100), (1050, 60)] {
        let grid = [(n as u32).div_ceil(128), 1, 1];
        let mut t = Bytes::new();
        for i in 0..n {
            put(&mut t, Read, 8, i / 100 * pitch + i % 100);
            put(&mut t, Write, 0, i);
        }
        let params = Params::default().ptr(0).ptr(1).word(n as u32).word(pitch as u32);
        c.is("k_rows", grid, 128, &params, &t, sharp);
        let params = Params::default().ptr(0).ptr(1).word(n as u32).word(100).word(pitch as u32);
        // (For the newest architectures the quotient comes out of floating point in a way that is
        // not followed.)
        let known = if c.what.starts_with("sm_120") { Sharp::Sound } else { sharp };
        c.is("k_any_rows", grid, 128, &params, &t, known);
    }
}

fn beside(c: &Check<'_>) {
    for (n, pitch) in [(300, 32), (520, 40)] {
        let (mut t, mut some, mut data) = (Bytes::new(), Bytes::new(), Bytes::new());
        for i in 30..n.min(30 + 512) {
            (0..3).for_each(|y| put(&mut t, Write, 0, i / 24 * pitch + i % 24 + y * 1000));
        }
        let params = Params::default().ptr(0).word(n as u32).word(pitch as u32).word(1000);
        c.is("k_shifted", [4, 3, 1], 128, &params, &t, Sharp::Sound);
        for i in (0..n).filter(|i| i % 64 < 20) {
            put(&mut some, Write, 0, i / 64 * (pitch + 40) + i % 64);
        }
        let params = Params::default().ptr(0).word(n as u32).word(pitch as u32 + 40).word(20);
        c.is("k_some_columns", [5, 1, 1], 128, &params, &some, Sharp::Sound);
        for i in 0..n {
            put(&mut data, Read, 8, i);
            // As if the data said no to all but one.
            if i == 77 {
                put(&mut data, Write, 0, i / 64 * (pitch + 40) + i % 64);
            }
        }
        let params = Params::default().ptr(0).ptr(1).word(n as u32).word(pitch as u32 + 40);
        c.is("k_as_data_says", [5, 1, 1], 128, &params, &data, Sharp::Bound);
    }
}

/// The tables of `k_tensors`: sizes, and the chunks of all tensors in turn, as far as there are
/// blocks; how often each is listed.
fn tables(sizes: [u32; 6], chunk: u32, times: usize) -> (Params, Vec<(usize, u32)>) {
    let chunks = |k: usize| (0..sizes[k].div_ceil(chunk)).map(move |c| (k, c));
    let list: Vec<(usize, u32)> = (0..6).flat_map(chunks).collect();
    let list: Vec<(usize, u32)> = list.iter().cycle().take(list.len() * times).copied().collect();
    let mut p = (0..6).fold(Params::default(), |p, k| p.ptr(k + 1));
    p = sizes.iter().fold(p, |p, s| p.word(*s));
    (0..640).for_each(|b| p.0.push(list.get(b).map_or(5, |l| l.0 as u8)));
    (0..640).for_each(|b| p.0.extend((list.get(b).map_or(0, |l| l.1) as u16).to_le_bytes()));
    (p, list)
}

fn blocks(c: &Check<'_>, sharp: Sharp) {
    for sizes in [[1000, 10, 300, 256, 257, 4], [513, 1, 1, 2, 700, 3]] {
        for times in [1, 50] {
            let (table, list) = tables(sizes, 256, times);
            let mut params = Params::default().word(256).word(0);
            params.0.extend(&table.0);
            let mut t = Bytes::new();
            for (k, c) in &list {
                for i in c * 256..sizes[*k].min((c + 1) * 256) {
                    [Read, Write].into_iter().for_each(|d| put(&mut t, d, 8 + 8 * *k as u16, i.into()));
                }
            }
            // More blocks than are looked at one by one: no byte is missing, that is all.
            let sharp = if list.len() > 512 { Sharp::Sound } else { sharp };
            assert_eq!(list.len() > 512, times > 1 && sizes[0] == 1000, "{}", list.len());
            c.is("k_tensors", [list.len() as u32, 1, 1], 64, &params, &t, sharp);
        }
        let (table, _) = tables(sizes, 256, 1);
        let mut params = Params::default().ptr(0);
        params.0.extend(&table.0);
        params = params.word(2000);
        let mut t = Bytes::new();
        for (k, n) in sizes.iter().enumerate() {
            for i in 0..*n {
                put(&mut t, Read, 8 + 8 * k as u16, i.into());
                put(&mut t, Write, 0, (2000 * k as u32 + i).into());
            }
        }
        c.is("k_second", [3, 6, 1], 64, &params, &t, sharp);
    }
}

fn all(arch: &str, kind: &str, sharp: Sharp) {
    let image = cuda::image("digits.cu", arch, kind);
    let what = format!("{arch} {kind}");
    let c = Check { image: &image, what: &what };
    permuted(&c, sharp);
    rows(&c, sharp);
    beside(&c);
    // (Code for sm_80 takes the tables' places from another bank of constants, which is not read.)
    blocks(&c, if arch == "sm_80" { Sharp::Sound } else { sharp });
}

#[test]
fn sm_80() {
    all("sm_80", "-cubin", Sharp::Tight);
}

#[test]
fn sm_90() {
    all("sm_90", "-cubin", Sharp::Tight);
}

#[test]
fn sm_120() {
    all("sm_120", "-cubin", Sharp::Tight);
}

#[test]
fn ptx() {
    all("sm_80", "-ptx", Sharp::Sound);
}
