//! Kernels whose addresses follow from indices: slices, strides, vectors; grid-stride and other
//! loops.

use super::Arg::{I32, I64, Ptr};
use super::Sharp::{Bounded, Certain, Exact, Sound};
use super::{Case, Thread, Truth, case};
use kernels::AccessKind;

pub fn cases() -> Vec<Case> {
    let mut all = indices();
    all.extend(loops());
    all
}

/// One element for each thread.
fn copied(t: &mut Truth, x: Thread, n: i64) {
    if x.i() < n {
        t.w(0, x.i());
        t.r(1, x.i())
    }
}

/// As many as it takes for all threads together.
fn copied_in_strides(t: &mut Truth, x: Thread, n: i64) {
    let mut i = x.i();
    while i < n {
        t.w(0, i);
        t.r(1, i);
        i += x.stride()
    }
}

/// Straight from the thread.
fn indices() -> Vec<Case> {
    vec![
        case(
            "k_window64",
            Bounded,
            |n| vec![Ptr(0), Ptr(1), I64(n), I64(13)],
            |t, x, n| {
                let i = x.i();
                if i < n {
                    t.w(0, i);
                    let (row, col) = (i / 16 - 1, i % 16 - 1);
                    if row >= 0 && col >= 0 && row < 13 && col < 13 {
                        t.r(1, row * 13 + col);
                    }
                }
            },
        ),
        case(
            "k_rounded",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    t.put(0, AccessKind::Write, (2 * x.i()) & !3, 4);
                }
            },
        ),
        case("k_guard", Certain, |n| vec![Ptr(0), Ptr(1), I32(n)], copied),
        case("k_early", Certain, |n| vec![Ptr(0), Ptr(1), I32(n)], copied),
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
    ]
}

/// Loops, vectors, division, shared memory.
fn loops() -> Vec<Case> {
    vec![
        case("k_gs32", Exact, |n| vec![Ptr(0), Ptr(1), I32(n)], copied_in_strides),
        case("k_gs64", Exact, |n| vec![Ptr(0), Ptr(1), I64(n)], copied_in_strides),
        case(
            "k_narrowed",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let mut i = x.i();
                while i < n {
                    t.w(0, i);
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
            "k_before",
            Sound,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                let mut i = x.i();
                while i < n {
                    if i > 0 {
                        t.r(1, i);
                        t.r(1, i - 1);
                    }
                    t.w(0, i);
                    i += x.stride()
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
    ]
}
