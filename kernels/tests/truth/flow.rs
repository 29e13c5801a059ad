//! Kernels with two dimensions, choices, unrolled loops and unusual arithmetic.

use super::Arg::{I32, I64, Ptr};
use super::Sharp::{Bounded, Certain, Exact, Sound};
use super::{Case, case};
use kernels::AccessKind;

pub fn cases() -> Vec<Case> {
    let mut all = shapes();
    all.extend(turns());
    all
}

/// Pitches, selects, unrolling.
fn shapes() -> Vec<Case> {
    vec![
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
            "k_tail",
            Certain,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| (0..5).map(|k| x.t[0] + k * x.bd[0]).filter(|i| *i < n).for_each(|i| t.w(0, i)),
        ),
        case(
            "k_tail_apart",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n), I32(n / 2 + 40)],
            |t, x, n| {
                let mut i = x.t[0];
                for (p, end) in [(0, n), (1, n / 2 + 40), (0, n)] {
                    if i < end {
                        t.w(p, i);
                        i += x.bd[0]
                    }
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
    ]
}

/// Loops with conditions, wrapping numbers, several accesses.
fn turns() -> Vec<Case> {
    vec![
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
