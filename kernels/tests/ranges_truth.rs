//! Byte ranges against the truth: every kernel of `cuda/ranges.cu` is compiled for each architecture, its accesses are
//! evaluated for many launches, and its index expressions are emulated here over all threads. No byte may be missing,
//! no byte may be claimed exactly that is not touched, and the families listed as exact must be exact to the byte.
//!
//! Bases lie 4 KiB below a 4 GiB boundary, so that every carry between address words happens.

#[path = "support/nvdisasm.rs"]
mod nvdisasm;

use kernels::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const ARCHES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

#[derive(Clone, Copy)]
enum Arg {
    Ptr(u8),
    I32(i64),
    I64(i64),
}
use Arg::{I32, I64, Ptr};

#[derive(Clone, Copy)]
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
}

#[derive(Clone, Copy)]
struct Thread {
    t: [i64; 3],
    b: [i64; 3],
    bd: [i64; 3],
    gd: [i64; 3],
}

impl Thread {
    fn i(&self) -> i64 {
        self.b[0] * self.bd[0] + self.t[0]
    }
    fn xy(&self, d: usize) -> i64 {
        self.b[d] * self.bd[d] + self.t[d]
    }
    fn stride(&self) -> i64 {
        self.gd[0] * self.bd[0]
    }
}

/// Collects touched bytes: (pointer number, kind) -> offsets.
#[derive(Default)]
struct Truth {
    bytes: BTreeMap<(u8, AccessKind), HashSet<i64>>,
}

impl Truth {
    fn put(&mut self, p: u8, kind: AccessKind, at: i64, width: i64) {
        let s = self.bytes.entry((p, kind)).or_default();
        s.extend(at..at + width);
    }
    fn r(&mut self, p: u8, i: i64) {
        self.put(p, AccessKind::Read, 4 * i, 4);
    }
    fn w(&mut self, p: u8, i: i64) {
        self.put(p, AccessKind::Write, 4 * i, 4);
    }
}

/// How sharp the answer must be.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sharp {
    /// Predicted bytes are the touched bytes, and the tool says so.
    Certain,
    /// Predicted bytes are the touched bytes.
    Exact,
    /// An interval that holds them.
    Bounded,
    /// Anything sound.
    Sound,
}
use Sharp::{Bounded, Certain, Exact, Sound};

type Emulate = fn(&mut Truth, Thread, i64);

struct Case {
    name: &'static str,
    sharp: Sharp,
    args: fn(i64) -> Vec<Arg>,
    emulate: Emulate,
}

fn case(name: &'static str, sharp: Sharp, args: fn(i64) -> Vec<Arg>, emulate: Emulate) -> Case {
    Case { name, sharp, args, emulate }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "k_guard",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i());
                    t.r(1, x.i())
                }
            },
        ),
        case(
            "k_early",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i());
                    t.r(1, x.i())
                }
            },
        ),
        case("k_noguard", Certain, |_| vec![Ptr(0)], |t, x, _| t.w(0, x.i())),
        case(
            "k_slice",
            Certain,
            |n| vec![Ptr(0), I32(777), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() + 777)
                }
            },
        ),
        case(
            "k_byteoff",
            Certain,
            |n| vec![Ptr(0), I64(4096), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() + 1024)
                }
            },
        ),
        case(
            "k_sizet",
            Certain,
            |n| vec![Ptr(0), I64(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i())
                }
            },
        ),
        case(
            "k_halo",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let i = x.i();
                if i > 0 && i < n - 1 {
                    t.w(0, i);
                    (i - 1..=i + 1).for_each(|j| t.r(1, j))
                }
            },
        ),
        case(
            "k_even",
            Certain,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if 2 * x.i() < n {
                    t.w(0, 2 * x.i())
                }
            },
        ),
        case(
            "k_odd",
            Certain,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if 2 * x.i() + 1 < n {
                    t.w(0, 2 * x.i() + 1)
                }
            },
        ),
        case(
            "k_reverse",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, n - 1 - x.i());
                    t.r(1, x.i())
                }
            },
        ),
        case(
            "k_aos",
            Certain,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, 3 * x.i() + 1)
                }
            },
        ),
        case(
            "k_gs32",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let mut i = x.i();
                while i < n {
                    t.w(0, i);
                    t.r(1, i);
                    i += x.stride()
                }
            },
        ),
        case(
            "k_gs64",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I64(n)],
            |t, x, n| {
                let mut i = x.i();
                while i < n {
                    t.w(0, i);
                    t.r(1, i);
                    i += x.stride()
                }
            },
        ),
        case(
            "k_gsdown",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let mut i = n - 1 - x.i();
                while i >= 0 {
                    t.w(0, i);
                    i -= x.stride()
                }
            },
        ),
        case(
            "k_rowsum",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(37), I32(n % 100)],
            |t, x, n| {
                let (r, cols) = (x.i(), n % 100);
                if r < 37 {
                    t.w(0, r);
                    (0..cols).for_each(|c| t.r(1, r * cols + c))
                }
            },
        ),
        case(
            "k_colsum",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(37), I32(n % 100)],
            |t, x, n| {
                let (c, cols) = (x.i(), n % 100);
                if c < cols {
                    t.w(0, c);
                    (0..37).for_each(|r| t.r(1, r * cols + c))
                }
            },
        ),
        case(
            "k_vec4",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n / 4)],
            |t, x, n| {
                if x.i() < n / 4 {
                    (0..4).for_each(|k| {
                        t.w(0, 4 * x.i() + k);
                        t.r(1, 4 * x.i() + k)
                    })
                }
            },
        ),
        case(
            "k_vec4tail",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let (i, n4) = (x.i(), n / 4);
                if i < n4 {
                    (0..4).for_each(|k| {
                        t.w(0, 4 * i + k);
                        t.r(1, 4 * i + k)
                    })
                }
                let j = n4 * 4 + i;
                if i < 4 && j < n {
                    t.w(0, j);
                    t.r(1, j)
                }
            },
        ),
        case(
            "k_reduce",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.r(1, x.i())
                }
                if x.t[0] == 0 {
                    t.w(0, x.b[0])
                }
            },
        ),
        case(
            "k_divparam",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n), I32(7)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() / 7);
                    t.r(1, x.i())
                }
            },
        ),
        case(
            "k_modparam",
            Sound,
            |n| vec![Ptr(0), I32(n), I32(7)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() % 7)
                }
            },
        ),
        case(
            "k_div12",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() / 12);
                    t.w(1, x.i() % 12)
                }
            },
        ),
        case(
            "k_clamp",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let i = x.i();
                if i < n {
                    t.w(0, i);
                    t.r(1, (i - 1).max(0));
                    t.r(1, (i + 1).min(n - 1))
                }
            },
        ),
        case(
            "k_ptrloop",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let mut i = x.t[0];
                while i < n {
                    t.r(0, i);
                    i += x.bd[0]
                }
            },
        ),
        case(
            "k_chunk",
            Exact,
            |n| vec![Ptr(0), I32(n), I32(100)],
            |t, x, n| {
                let lo = x.b[0] * 100;
                let mut i = lo + x.t[0];
                while i < (lo + 100).min(n) {
                    t.w(0, i);
                    i += x.bd[0]
                }
            },
        ),
        case(
            "k_3d",
            Exact,
            |n| vec![Ptr(0), I32(n % 40), I32(9), I32(3)],
            |t, x, n| {
                let nx = n % 40;
                if x.xy(0) < nx && x.xy(1) < 9 && x.xy(2) < 3 {
                    t.w(0, (x.xy(2) * 9 + x.xy(1)) * nx + x.xy(0))
                }
            },
        ),
        case(
            "k_warp",
            Sound,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let (w, l) = (x.i() / 32, x.t[0] % 32);
                let mut i = w * 128 + l;
                while i < n.min(w * 128 + 128) {
                    t.w(0, i);
                    i += 32
                }
            },
        ),
        case(
            "k_matmul",
            Exact,
            |n| vec![Ptr(0), Ptr(1), Ptr(2), I32(20), I32(13), I32(n % 50)],
            |t, x, n| {
                let (c, r, k) = (x.xy(0), x.xy(1), n % 50);
                if r < 20 && c < 13 {
                    (0..k).for_each(|i| {
                        t.r(1, r * k + i);
                        t.r(2, i * 13 + c)
                    });
                    t.w(0, r * 13 + c)
                }
            },
        ),
        case(
            "k_gather",
            Sound,
            |n| vec![Ptr(0), Ptr(1), Ptr(2), I32(n), I32(50)],
            |t, x, n| {
                if x.i() < n {
                    t.r(2, x.i());
                    // The loaded index is anything: take a few.
                    for j in [0, 7, 49] {
                        t.r(1, j)
                    }
                    t.w(0, x.i());
                }
            },
        ),
        case(
            "k_pitch",
            Certain,
            |n| vec![Ptr(0), I64(512), I32(n % 128), I32(11)],
            |t, x, n| {
                let (c, r) = (x.xy(0), x.xy(1));
                if c < n % 128 && r < 11 {
                    t.w(0, r * 128 + c)
                }
            },
        ),
        case(
            "k_nested",
            Exact,
            |n| vec![Ptr(0), I32(23), I32(n % 77), I32(100)],
            |t, x, n| {
                let mut r = x.b[0];
                while r < 23 {
                    let mut c = x.t[0];
                    while c < n % 77 {
                        t.w(0, r * 100 + c);
                        c += x.bd[0]
                    }
                    r += x.gd[0];
                }
            },
        ),
        case(
            "k_select",
            Bounded,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(if x.i() & 1 == 1 { 0 } else { 1 }, x.i())
                }
            },
        ),
        case(
            "k_uniform",
            Exact,
            |n| vec![Ptr(0), Ptr(1), I32(n), I32(n % 2)],
            |t, x, n| {
                if x.i() < n {
                    t.w(if n % 2 == 1 { 0 } else { 1 }, x.i())
                }
            },
        ),
        case(
            "k_hist",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.put(1, AccessKind::Read, x.i(), 1);
                    for j in [0, 99, 255] {
                        t.put(0, AccessKind::Atomic, 4 * j, 4)
                    }
                }
            },
        ),
        case(
            "k_unroll",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                (0..4).for_each(|k| {
                    if 4 * x.i() + k < n {
                        t.w(0, 4 * x.i() + k)
                    }
                })
            },
        ),
        case(
            "k_blockrows",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let mut i = x.t[0];
                while i < n {
                    t.w(0, x.b[0] * n + i);
                    i += x.bd[0]
                }
            },
        ),
        case(
            "k_half",
            Bounded,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let i = x.i();
                if 2 * i + 1 < n {
                    t.w(0, i);
                    t.r(1, i)
                } else if 2 * i < n {
                    t.put(0, AccessKind::Write, 4 * i, 2);
                    t.put(1, AccessKind::Read, 4 * i, 2)
                }
            },
        ),
        case(
            "k_shr",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, (x.i() >> 5) * 32)
                }
            },
        ),
        case(
            "k_tid0",
            Exact,
            |_| vec![Ptr(0)],
            |t, x, _| {
                if x.t[0] == 0 {
                    t.w(0, x.b[0])
                }
            },
        ),
        case(
            "k_neq",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.t[0] != 0 && x.t[0] < n {
                    t.w(0, x.t[0])
                }
            },
        ),
        case(
            "k_neg",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let i = x.i() - n;
                if i >= 0 {
                    t.w(0, -1 - i + n)
                }
            },
        ),
        case(
            "k_signed",
            Certain,
            |n| vec![Ptr(0), I32(n), I32(-300)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i() - 300)
                }
            },
        ),
        case(
            "k_u8",
            Certain,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.put(0, AccessKind::Write, x.i(), 1)
                }
            },
        ),
        case(
            "k_stencil2",
            Certain,
            |n| vec![Ptr(0), Ptr(1), I32(n % 90), I32(21)],
            |t, x, n| {
                let (c, r, w) = (x.xy(0), x.xy(1), n % 90);
                if c >= 1 && c < w - 1 && (1..20).contains(&r) {
                    t.w(0, r * w + c);
                    for j in [r * w + c - 1, r * w + c + 1, (r - 1) * w + c, (r + 1) * w + c] {
                        t.r(1, j)
                    }
                }
            },
        ),
        case(
            "k_while",
            Sound,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let mut i = x.t[0];
                while i < n {
                    t.w(0, i);
                    i += 64
                }
            },
        ),
        case(
            "k_dowhile",
            Sound,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let mut i = x.t[0];
                loop {
                    t.w(0, i);
                    i += 32;
                    if i >= n {
                        break;
                    }
                }
            },
        ),
        case(
            "k_mix",
            Bounded,
            |n| vec![Ptr(0), Ptr(1), I32(n), I32(300)],
            |t, x, n| {
                let i = x.i();
                if i < n {
                    t.w(0, i)
                } else if i < n + 300 {
                    t.w(1, i - n)
                }
            },
        ),
        case(
            "k_or",
            Bounded,
            |n| vec![Ptr(0), I32(n), I32(n + 3)],
            |t, x, n| {
                if x.i() < n || x.i() == n + 3 {
                    t.w(0, x.i())
                }
            },
        ),
        case(
            "k_index_div",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n), I32(31)],
            |t, x, n| {
                if x.i() < n {
                    t.w(0, x.i());
                    t.r(1, (x.i() % 31) * 64 + x.i() / 31);
                }
            },
        ),
        case(
            "k_break",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let mut i = x.t[0];
                while i < n {
                    t.r(1, i);
                    t.w(0, i);
                    i += x.bd[0]
                }
            },
        ),
        case(
            "k_triangle",
            Sound,
            |n| vec![Ptr(0), I32(n % 200)],
            |t, x, n| {
                if x.i() < n % 200 {
                    (0..=x.i()).for_each(|c| t.w(0, x.i() * (n % 200) + c))
                }
            },
        ),
        case(
            "k_wrap",
            Sound,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let i = (x.i() as u32).wrapping_sub(5);
                if i64::from(i) < n {
                    t.w(0, i64::from(i))
                }
            },
        ),
        case(
            "k_uwrap",
            Sound,
            |n| vec![Ptr(0), I64(n)],
            |t, x, n| {
                let i = x.i() - 5;
                if (i as u64) < n as u64 {
                    t.w(0, i)
                }
            },
        ),
        case(
            "k_step",
            Sound,
            |n| vec![Ptr(0), I32(n), I32(300)],
            |t, x, n| {
                let mut i = x.i();
                while i < n {
                    t.w(0, i);
                    i += 300
                }
            },
        ),
        case(
            "k_two",
            Exact,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                (0..2).for_each(|r| {
                    let i = x.i() + r * x.stride();
                    if i < n {
                        t.w(0, i)
                    }
                })
            },
        ),
    ]
}

fn base(p: u8) -> u64 {
    ((0x7f01 + 16 * u64::from(p)) << 32) - 4096
}

fn pack(args: &[Arg]) -> (Vec<u8>, BTreeMap<u16, u8>) {
    let (mut b, mut words) = (Vec::new(), BTreeMap::new());
    for a in args {
        let (size, v) = match a {
            Ptr(p) => (8, base(*p)),
            I32(v) => (4, *v as u64),
            I64(v) => (8, *v as u64),
        };
        while b.len() % size != 0 {
            b.push(0);
        }
        if let Ptr(p) = a {
            words.insert(b.len() as u16, *p);
        }
        b.extend(&v.to_le_bytes()[..size]);
    }
    (b, words)
}

fn shapes() -> Vec<Shape> {
    let s = |g, b| Shape { grid: g, block: b };
    vec![
        s([1, 1, 1], [32, 1, 1]),
        s([4, 1, 1], [256, 1, 1]),
        s([5, 1, 1], [100, 1, 1]),
        s([3, 2, 2], [64, 1, 1]),
        s([3, 2, 1], [16, 8, 1]),
        s([2, 5, 3], [8, 4, 2]),
        s([40, 1, 1], [64, 1, 1]),
        s([1, 1, 1], [1, 1, 1]),
    ]
}

fn threads(s: Shape) -> impl Iterator<Item = Thread> {
    let g = s.grid.map(i64::from);
    let b = s.block.map(i64::from);
    let axes =
        move |e: [i64; 3]| (0..e[2]).flat_map(move |z| (0..e[1]).flat_map(move |y| (0..e[0]).map(move |x| [x, y, z])));
    axes(g).flat_map(move |bi| axes(b).map(move |t| Thread { t, b: bi, bd: b, gd: g }))
}

/// Adds the bytes of an extent.
fn expand(e: &Extent, into: &mut HashSet<i64>) -> bool {
    let Extent::Bounded { lo, hi, dims, width, .. } = e else { return false };
    let total: u64 = dims.iter().map(|d| d.count).product::<u64>() * u64::from(*width);
    if total > 20_000_000 {
        return false;
    }
    let mut starts = vec![*lo];
    for d in dims {
        starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
    }
    for s in starts {
        assert!(s >= *lo && s + i64::from(*width) <= *hi, "set leaves its interval: {e:?}");
        into.extend(s..s + i64::from(*width));
    }
    true
}

struct Outcome {
    exact: bool,
    certain: bool,
    bounded: bool,
}

/// Compares one launch; panics on unsoundness.
fn check(
    what: &str,
    summary: &kernels::Summary,
    launch: &LaunchArgs<'_>,
    words: &BTreeMap<u16, u8>,
    truth: &Truth,
) -> Outcome {
    let mut accesses = Vec::new();
    summary.evaluate(launch, &mut accesses);
    let mut sets: BTreeMap<(u8, AccessKind), Option<HashSet<i64>>> = BTreeMap::new();
    let mut certain = true;
    for a in &accesses {
        let Base::Word { offset, value } = a.base else {
            certain = false;
            assert!(matches!(a.base, Base::Unknown), "{what}: {a:?}");
            continue;
        };
        // A word that is no pointer is dropped, as the analyzer does.
        let Some(p) = words.get(&offset) else {
            assert!(a.several, "{what}: scalar word as the only base: {a:?}");
            continue;
        };
        assert_eq!(value, base(*p));
        let set = sets.entry((*p, a.kind)).or_insert_with(|| Some(HashSet::new()));
        match &a.extent {
            Extent::Unknown { .. } => {
                *set = None;
                certain = false;
            }
            e @ Extent::Bounded { exact, .. } => {
                let mut one = HashSet::new();
                if !expand(e, &mut one) {
                    *set = None;
                }
                certain &= exact;
                if *exact {
                    let t = truth.bytes.get(&(*p, a.kind));
                    let wrong = one.iter().filter(|b| !t.is_some_and(|t| t.contains(b))).min();
                    assert!(wrong.is_none(), "{what}: claimed exact, but byte {wrong:?} is not touched: {a:?}");
                }
                if let Some(s) = set {
                    s.extend(one);
                }
            }
        }
    }
    let (mut exact, mut bounded) = (true, true);
    for (k, t) in &truth.bytes {
        match sets.get(k) {
            None => panic!("{what}: {k:?} is touched but not predicted: {accesses:?}"),
            Some(None) => {
                exact = false;
                bounded = false;
            }
            Some(Some(s)) => {
                let missing = t.iter().filter(|b| !s.contains(b)).min();
                assert!(missing.is_none(), "{what}: byte {missing:?} of {k:?} is missing: {accesses:?}");
                exact &= s.len() == t.len();
            }
        }
    }
    for (k, s) in &sets {
        if !truth.bytes.contains_key(k) && s.as_ref().is_none_or(|s| !s.is_empty()) {
            exact = false;
        }
    }
    Outcome { exact, certain: exact && certain, bounded }
}

fn run(arch: &str) {
    run_as(arch, "-cubin");
}

/// `kind`: `-cubin` or `-ptx`.
fn run_as(arch: &str, kind: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/ranges.cu");
    let cubin = std::fs::read(nvdisasm::compile(&source, &[kind, &format!("-arch={arch}")])).unwrap();
    let image = CodeImage::load(&cubin, arch.parse::<Arch>().unwrap()).unwrap();
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for c in cases() {
        let summary = image.summary(c.name).unwrap();
        let (mut exact, mut certain, mut bounded, mut all) = (0, 0, 0, 0);
        let mut first = String::new();
        for s in shapes() {
            for n in [0, 1, 131, 255, 1000, 1279, 2000, 5000] {
                let (bytes, words) = pack(&(c.args)(n));
                let mut truth = Truth::default();
                threads(s).for_each(|t| (c.emulate)(&mut truth, t, n));
                let launch = LaunchArgs::new(s.grid, s.block, &bytes);
                let what = format!("{arch} {} grid {:?} block {:?} n {n}", c.name, s.grid, s.block);
                let o = check(&what, &summary, &launch, &words, &truth);
                all += 1;
                exact += usize::from(o.exact);
                certain += usize::from(o.certain);
                bounded += usize::from(o.bounded);
                // A 32-bit division of uniform numbers is spelled with uniform float instructions there.
                let sharp = if arch == "sm_120" && c.name == "k_divparam" { Sound } else { c.sharp };
                let ok = match sharp {
                    Certain => o.certain,
                    Exact => o.exact,
                    Bounded => o.bounded,
                    Sound => true,
                };
                if !ok && first.is_empty() {
                    first = what;
                }
            }
        }
        lines.push(format!("{:12} certain {certain:2} exact {exact:2} bounded {bounded:2} of {all}", c.name));
        if !first.is_empty() {
            failures.push(format!("{} should be {:?}: {first}", c.name, c.sharp));
        }
    }
    println!("{arch} {kind}\n{}", lines.join("\n"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn sm_75() {
    run(ARCHES[0]);
}

#[test]
fn sm_80() {
    run(ARCHES[1]);
}

#[test]
fn sm_90() {
    run(ARCHES[2]);
}

#[test]
fn sm_100() {
    run(ARCHES[3]);
}

#[test]
fn sm_120() {
    run(ARCHES[4]);
}

#[test]
fn ptx() {
    run_as(ARCHES[1], "-ptx");
}
